// The one file that includes Boost.Heap.
#include <rondo/detail/delay_queue.hpp>

#include <boost/heap/fibonacci_heap.hpp>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

namespace rondo::detail {
namespace {

/// Memory for a fixed number of the heap's nodes, so that an entry comes and goes without an allocation. (The heap
/// makes its allocator itself, so reserve() comes later.)
template <class T>
class node_slab {
 public:
  using value_type = T;

  node_slab() : memory_(std::make_shared<memory>()) {}
  template <class U>
  explicit node_slab(const node_slab<U>&) : node_slab() {}

  void reserve(std::size_t nodes) {
    memory_->nodes = std::make_unique<place[]>(nodes);
    memory_->free.reserve(nodes);
    for (std::size_t i = nodes; i != 0; --i) memory_->free.push_back(&memory_->nodes[i - 1]);
  }
  T* allocate([[maybe_unused]] std::size_t one) noexcept {
    assert(one == 1 && !memory_->free.empty());
    place* const taken = memory_->free.back();
    memory_->free.pop_back();
    return reinterpret_cast<T*>(taken);
  }
  void deallocate(T* given_back, std::size_t) noexcept {
    memory_->free.push_back(reinterpret_cast<place*>(given_back));
  }
  friend bool operator==(const node_slab& a, const node_slab& b) noexcept { return a.memory_ == b.memory_; }

 private:
  struct alignas(T) place {
    std::byte bytes[sizeof(T)];
  };
  struct memory {
    std::unique_ptr<place[]> nodes;
    std::vector<place*> free;
  };
  std::shared_ptr<memory> memory_;
};

}  // namespace

struct delay_queue::heap {
  struct entry {
    tick_number due;
    std::size_t number;
  };

  /// Boost's heaps have the largest on top: the "larger" entry is the one that comes first. Compared, never
  /// subtracted: differences of ticks overflow.
  struct comes_after {
    bool operator()(const entry& a, const entry& b) const noexcept {
      return a.due != b.due ? a.due > b.due : a.number > b.number;
    }
  };

  using fibonacci_heap = boost::heap::fibonacci_heap<entry, boost::heap::compare<comes_after>,
                                                     boost::heap::allocator<node_slab<entry>>>;
  struct place {
    fibonacci_heap::handle_type handle{};
    bool taken = false;
  };

  explicit heap(std::size_t entries) : places(entries) { waiting.get_allocator().reserve(entries); }

  fibonacci_heap waiting;
  std::vector<place> places;  // by entry
};

delay_queue::delay_queue(std::size_t entries) : heap_(new heap(entries)) {}

delay_queue::~delay_queue() { delete heap_; }

void delay_queue::set(std::size_t entry, tick_number due) noexcept {
  heap::place& own = heap_->places[entry];
  const heap::entry next{due, entry};
  if (!own.taken)
    own = {heap_->waiting.push(next), true};
  else if (heap::comes_after{}(*own.handle,
                               next))           // in a heap with the smallest on top, Boost's `increase` is
    heap_->waiting.increase(own.handle, next);  // "earlier" and `decrease` is "later"
  else
    heap_->waiting.decrease(own.handle, next);
  note_top();
}

void delay_queue::remove(std::size_t entry) noexcept {
  heap::place& own = heap_->places[entry];
  if (!own.taken) return;
  heap_->waiting.erase(own.handle);
  own = {};
  note_top();
}

std::optional<tick_number> delay_queue::due_of(std::size_t entry) const {
  const heap::place& own = heap_->places[entry];
  return own.taken ? std::optional((*own.handle).due) : std::nullopt;
}

std::string delay_queue::fault() const {
  std::size_t taken = 0;
  for (std::size_t e = 0; e != heap_->places.size(); ++e) {
    if (!heap_->places[e].taken) continue;
    ++taken;
    const heap::entry& own = *heap_->places[e].handle;
    if (own.number != e) return "the delay queue has taken entry " + std::to_string(e) + " for another";
    if (heap::comes_after{}(heap_->waiting.top(), own))
      return "entry " + std::to_string(e) + " comes before the top of the delay queue";
  }
  if (taken != heap_->waiting.size()) return "the delay queue holds an entry that is not there";
  if (taken == 0) return empty() ? "" : "the delay queue is empty, and has a top";
  const heap::entry& top = heap_->waiting.top();
  return top.number == top_ && top.due == top_due_ ? "" : "the delay queue's top is not what it was last";
}

void delay_queue::note_top() noexcept {
  if (heap_->waiting.empty()) {
    top_ = none;
    return;
  }
  const heap::entry& top = heap_->waiting.top();
  top_ = top.number;
  top_due_ = top.due;
}

}  // namespace rondo::detail
