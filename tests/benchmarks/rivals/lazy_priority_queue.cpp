#include <queue>

#include "rivals.hpp"

namespace {

/// A binary heap from which cancelling removes nothing: a cancelled entry is skipped when it reaches the top.
class lazy_heap_timers {
 public:
  lazy_heap_timers(std::uint32_t n, firings& fired) : versions_(n), fired_(fired) {}
  void set(std::uint32_t number, std::int64_t due) { queue_.push({due, number, versions_[number]}); }
  void cancel(std::uint32_t number) { ++versions_[number]; }
  void advance(std::int64_t to) {
    while (!queue_.empty() && queue_.top().due <= to) {
      const entry e = queue_.top();
      queue_.pop();
      if (e.version == versions_[e.timer]) fired_(*this, e.timer);
    }
  }

 private:
  struct entry {
    std::int64_t due;
    std::uint32_t timer;
    std::uint32_t version;
    bool operator<(const entry& other) const noexcept { return due > other.due; }
  };
  std::priority_queue<entry> queue_;
  std::vector<std::uint32_t> versions_;
  firings& fired_;
};

}  // namespace

const rival lazy_priority_queue{"std::priority_queue, lazy deletion", run_with<lazy_heap_timers>};
