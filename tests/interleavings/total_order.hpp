// What is known about a total order.
#pragma once

#include <cstddef>
#include <vector>

namespace rondo::test {

/// A graph of what comes before what. There is a total order of its nodes as long as it has no cycle.
class total_order {
 public:
  using node = std::size_t;
  using nodes = std::vector<node>;

  void clear() { after_.clear(); }

  node add() {
    after_.emplace_back();
    return after_.size() - 1;
  }
  void put_before(const nodes& first, const nodes& second) {
    for (const node f : first)
      for (const node s : second) after_[f].push_back(s);
  }

  /// Whether one of `first` comes before one of `second`, or is the same.
  bool comes_before(const nodes& first, const nodes& second) const {
    if (first.empty() || second.empty()) return false;
    std::vector<bool> wanted(after_.size());
    for (const node s : second) wanted[s] = true;
    std::vector<bool> found(after_.size());
    nodes open = first;
    while (!open.empty()) {
      const node n = open.back();
      open.pop_back();
      if (wanted[n]) return true;
      if (found[n]) continue;
      found[n] = true;
      open.insert(open.end(), after_[n].begin(), after_[n].end());
    }
    return false;
  }

 private:
  std::vector<nodes> after_;
};

}  // namespace rondo::test
