// Runs contenders and reports the results: tables on the terminal, JSON, charts.
#pragma once

#include <string>
#include <vector>

#include "environment.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "table.hpp"

namespace measure {

class report {
 public:
  explicit report(options);

  bool small() const { return options_.small; }

  /// Whether this workload was asked for. Others need not be measured.
  bool wanted(const std::string& workload) const { return workload.find(options_.only) != workload.npos; }

  /// Whether this contender was asked for. compare() skips the others.
  bool takes_part(const std::string& contender) const {
    return contender.find(options_.contenders) != contender.npos;
  }

  /// Runs the contenders in turn, so that a change in the machine's speed affects all of them. The report fails if
  /// their checksums differ, because then they did not do the same work.
  void compare(const std::string& workload, const std::string& unit, std::vector<contender> contenders);

  /// Adds results that compare() did not produce.
  void add(table);

  /// Writes the requested files and returns the exit status.
  int finish() const;

 private:
  bool write_json() const;

  options options_;
  environment environment_;
  std::vector<table> tables_;
  bool right_ = true;
};

}  // namespace measure
