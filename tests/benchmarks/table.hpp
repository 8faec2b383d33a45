// One workload's results.
#pragma once

#include <string>
#include <vector>

namespace measure {

struct row {
  std::string name;
  double median;
  double min = median;
  double max = median;
  int repetitions = 1;
};

struct table {
  std::string workload;
  std::string unit;
  std::vector<row> rows;  // the first one is the one to which the others are compared
  bool compared = true;   // false: the rows are figures of one contender, ratios would say nothing

  double ratio(const row& r) const { return r.median / rows.front().median; }
};

}  // namespace measure
