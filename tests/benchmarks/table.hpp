// The results of one workload.
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
  std::vector<row> rows;  // the others are compared with the first
  bool compared = true;   // false: ratios between the rows would mean nothing

  double ratio(const row& r) const { return r.median / rows.front().median; }
};

}  // namespace measure
