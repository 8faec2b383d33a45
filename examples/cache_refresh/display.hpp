// The output while the program runs: on a terminal a table that updates in place, elsewhere one line after another.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "snapshot.hpp"

namespace cache_refresh {

// The table's rows: a title and pairs of name and figure.
struct figure {
  std::string name;
  std::string value;
};
struct figure_row {
  std::string title;
  std::vector<figure> figures;
};
// Rates are those since `before`.
std::vector<figure_row> figures(const snapshot& now, const snapshot& before);

class display {
 public:
  // True if standard output is a terminal that can move the cursor.
  explicit display(bool plain);

  // The interval between updates.
  std::chrono::milliseconds interval() const noexcept;

  void show(const snapshot&);

 private:
  void draw_table(const std::vector<figure_row>&);
  void print_line(const std::vector<figure_row>&) const;

  const bool in_place_;
  snapshot before_;
  std::size_t drawn_ = 0;  // lines of the table above the cursor
};

}  // namespace cache_refresh
