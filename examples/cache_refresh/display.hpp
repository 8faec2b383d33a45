// The output while the program runs, and at its end.
#pragma once

#include <string>

#include "common/live_table.hpp"
#include "snapshot.hpp"
#include "station.hpp"

namespace cache_refresh {

class display {
 public:
  explicit display(bool plain) : table_(plain, "q ends it") {}

  // Whether the output is a table, which needs a terminal.
  bool in_place() const noexcept { return table_.in_place(); }

  // The interval between updates.
  std::chrono::milliseconds interval() const noexcept { return table_.interval(); }

  void show(const snapshot&);

 private:
  common::live_table table_;
  snapshot before_;
};

void print_summary(const snapshot& end, const agreement&, const std::string& last_error);

}  // namespace cache_refresh
