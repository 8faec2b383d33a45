// The one file that includes Boost.Heap.
#include <rondo/detail/delay_queue.hpp>

#include <boost/heap/fibonacci_heap.hpp>
#include <vector>

namespace rondo::detail {

struct delay_queue::heap {
  struct entry {
    tick_number due;
    std::size_t bucket;
    bool waiting;  // it has a next round
  };

  /// Boost's heaps have the largest on top: the "larger" entry is the one that comes first. Compared, never
  /// subtracted: differences of ticks overflow.
  struct comes_after {
    bool operator()(const entry& a, const entry& b) const noexcept {
      if (a.waiting != b.waiting) return b.waiting;
      return a.due > b.due;
    }
  };

  using fibonacci_heap = boost::heap::fibonacci_heap<entry, boost::heap::compare<comes_after>>;

  explicit heap(std::size_t buckets) {
    handles.reserve(buckets);
    for (std::size_t b = 0; b != buckets; ++b) handles.push_back(entries.push({0, b, false}));
  }

  fibonacci_heap entries;
  std::vector<fibonacci_heap::handle_type> handles;  // by bucket
};

delay_queue::delay_queue(std::size_t buckets) : heap_(new heap(buckets)) {}

delay_queue::~delay_queue() { delete heap_; }

void delay_queue::set(std::size_t bucket, tick_number due) noexcept {
  const auto handle = heap_->handles[bucket];
  const heap::entry next{due, bucket, true};
  // In a heap with the smallest on top, Boost's `increase` is "earlier" and `decrease` is "later".
  if (heap::comes_after{}(*handle, next))
    heap_->entries.increase(handle, next);
  else
    heap_->entries.decrease(handle, next);
  look_at_top();
}

void delay_queue::remove(std::size_t bucket) noexcept {
  const auto handle = heap_->handles[bucket];
  if (!(*handle).waiting) return;
  heap_->entries.decrease(handle, {0, bucket, false});
  look_at_top();
}

std::optional<tick_number> delay_queue::due_of(std::size_t bucket) const {
  const heap::entry& own = *heap_->handles[bucket];
  return own.waiting ? std::optional(own.due) : std::nullopt;
}

std::string delay_queue::fault() const {
  for (std::size_t b = 0; b != heap_->handles.size(); ++b) {
    const heap::entry& own = *heap_->handles[b];
    if (own.bucket != b) return "the delay queue has taken bucket " + std::to_string(b) + " for another";
    if (heap::comes_after{}(heap_->entries.top(), own))
      return "bucket " + std::to_string(b) + " comes before the top of the delay queue";
  }
  const heap::entry& top = heap_->entries.top();
  const bool known = top.waiting ? top.bucket == top_bucket_ && top.due == top_due_ : empty();
  return known ? "" : "the delay queue's top is not what it was last";
}

void delay_queue::look_at_top() noexcept {
  const heap::entry& top = heap_->entries.top();
  top_bucket_ = top.waiting ? top.bucket : none;
  top_due_ = top.due;
}

}  // namespace rondo::detail
