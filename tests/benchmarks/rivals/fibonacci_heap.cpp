#include <boost/heap/fibonacci_heap.hpp>

#include "rivals.hpp"

namespace {

/// A heap of timers. (Rondo's is a heap of buckets.)
class fibonacci_heap_timers {
 public:
  fibonacci_heap_timers(std::uint32_t n, firings& fired) : places_(n), fired_(fired) {}
  void set(std::uint32_t number, std::int64_t due) { places_[number] = queue_.push({due, number}); }
  void cancel(std::uint32_t number) { queue_.erase(places_[number]); }
  void advance(std::int64_t to) {
    while (!queue_.empty() && queue_.top().due <= to) {
      const std::uint32_t timer = queue_.top().timer;
      queue_.pop();
      fired_(*this, timer);
    }
  }

 private:
  struct entry {
    std::int64_t due;
    std::uint32_t timer;
    bool operator<(const entry& other) const noexcept { return due > other.due; }
  };
  boost::heap::fibonacci_heap<entry> queue_;
  std::vector<decltype(queue_)::handle_type> places_;
  firings& fired_;
};

}  // namespace

const rival fibonacci_heap{"boost::heap::fibonacci_heap", run_with<fibonacci_heap_timers>};
