// Runs contenders and reports what came out: tables on the terminal, JSON, charts.
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

  /// Whether this workload was asked for; one that was not need not be measured.
  bool wanted(const std::string& workload) const { return workload.find(options_.only) != workload.npos; }

  /// Whether this contender was asked for; compare() leaves the others out.
  bool takes_part(const std::string& contender) const {
    return contender.find(options_.contenders) != contender.npos;
  }

  /// Runs the contenders in turn, so that a change of the machine's speed hits all. If their checksums
  /// differ somebody did other work: that fails the report.
  void compare(const std::string& workload, const std::string& unit, std::vector<contender> contenders);

  /// Results that were come by otherwise.
  void add(table);

  /// Writes the files that were asked for and returns the exit status.
  int finish() const;

 private:
  bool write_json() const;

  options options_;
  environment environment_;
  std::vector<table> tables_;
  bool right_ = true;
};

}  // namespace measure
