// The only file that includes Boost.Heap.
#include <rondo/detail/delay_queue.hpp>

#include <boost/heap/fibonacci_heap.hpp>
#include <cassert>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace rondo::detail {

/// An allocator with memory for a fixed number of the heap's nodes, so that inserting an entry allocates nothing. The
/// heap constructs its allocator itself; reserve() is called afterwards. (In an anonymous namespace, it would cause a
/// warning where several files are compiled as one.)
template <class T>
class node_slab {
 public:
  using value_type = T;

  node_slab() : memory_(std::make_shared<memory>()) {}
  template <class U>
  explicit node_slab(const node_slab<U>&) : node_slab() {}

  void reserve(std::size_t nodes) {
    memory_->nodes = std::make_unique<cell[]>(nodes);
    memory_->free.reserve(nodes);
    for (std::size_t i = nodes; i != 0; --i) memory_->free.push_back(&memory_->nodes[i - 1]);
  }
  T* allocate([[maybe_unused]] std::size_t one) noexcept {
    assert(one == 1 && !memory_->free.empty());
    cell* const taken = memory_->free.back();
    memory_->free.pop_back();
    return reinterpret_cast<T*>(taken);
  }
  void deallocate(T* given_back, std::size_t) noexcept {
    memory_->free.push_back(reinterpret_cast<cell*>(given_back));
  }
  friend bool operator==(const node_slab& a, const node_slab& b) noexcept { return a.memory_ == b.memory_; }

 private:
  struct alignas(T) cell {
    std::byte bytes[sizeof(T)];
  };
  struct memory {
    std::unique_ptr<cell[]> nodes;
    std::vector<cell*> free;
  };
  std::shared_ptr<memory> memory_;
};

struct delay_queue::heap {
  /// A tick and the entry's number. Boost's heaps have the largest element on top; here it is the smallest one.
  using entry = std::pair<tick_number, std::size_t>;
  using fibonacci_heap = boost::heap::fibonacci_heap<entry, boost::heap::compare<std::greater<>>,
                                                     boost::heap::allocator<node_slab<entry>>>;
  struct slot {
    fibonacci_heap::handle_type handle{};
    bool queued = false;
  };

  explicit heap(std::size_t entries) : slots(entries) { waiting.get_allocator().reserve(entries); }

  fibonacci_heap waiting;
  std::vector<slot> slots;  // by entry
};

delay_queue::delay_queue(std::size_t entries) : heap_(new heap(entries)) {}

delay_queue::~delay_queue() { delete heap_; }

void delay_queue::set(std::size_t entry, std::optional<tick_number> due) noexcept {
  heap::slot& own = heap_->slots[entry];
  heap::fibonacci_heap& waiting = heap_->waiting;
  if (!due) {
    if (!own.queued) return;
    waiting.erase(own.handle);
    own = {};
  } else if (const heap::entry next{*due, entry}; !own.queued) {
    own = {waiting.push(next), true};
  } else if (next < *own.handle) {
    waiting.increase(own.handle, next);  // the smallest is on top: Boost's `increase` is "earlier"
  } else {
    waiting.decrease(own.handle, next);
  }
  if (waiting.empty())
    top = none;
  else
    std::tie(top_due, top) = waiting.top();
}

std::optional<tick_number> delay_queue::due_of(std::size_t entry) const {
  const heap::slot& own = heap_->slots[entry];
  return own.queued ? std::optional((*own.handle).first) : std::nullopt;
}

std::string delay_queue::fault() const {
  std::size_t taken = 0;
  for (std::size_t e = 0; e != heap_->slots.size(); ++e) {
    if (!heap_->slots[e].queued) continue;
    ++taken;
    const heap::entry& own = *heap_->slots[e].handle;
    if (own.second != e) return "the delay queue has taken entry " + std::to_string(e) + " for another";
    if (heap_->waiting.top() > own)
      return "entry " + std::to_string(e) + " comes before the top of the delay queue";
  }
  if (taken != heap_->waiting.size())
    return "the delay queue's heap has another number of entries than are queued";
  if (taken == 0) return top == none ? "" : "the delay queue is empty, but has a top";
  return heap_->waiting.top() == heap::entry(top_due, top)
             ? ""
             : "the delay queue's stored top is not its actual top";
}

}  // namespace rondo::detail
