// Shows figures while a program runs: on a terminal in a table that updates in place, elsewhere line by line.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace common {

// A row of the table has a title and pairs of name and figure.
struct figure {
  std::string name;
  std::string value;
  bool in_line = true;  // whether it is also shown where there is no table
};
struct figure_row {
  std::string title;
  std::vector<figure> figures;
};

class live_table {
 public:
  // Updates in place if standard output is a terminal that can move the cursor, unless `plain`.
  explicit live_table(bool plain, std::string how_to_end = "Ctrl-C ends it");

  bool in_place() const noexcept { return in_place_; }

  // The interval between updates.
  std::chrono::milliseconds interval() const noexcept;

  // `messages` are printed once, above the table.
  void show(std::chrono::nanoseconds elapsed, const std::vector<figure_row>&,
            const std::vector<std::string>& messages = {});

 private:
  void draw(const std::string& title, const std::vector<figure_row>&);
  void print_line(const std::vector<figure_row>&) const;

  const bool in_place_;
  const std::string how_to_end_;
  std::size_t drawn_ = 0;  // lines of the table above the cursor
};

}  // namespace common
