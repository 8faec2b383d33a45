// The memory of a scenario: what each load may return.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "interleavings/operation.hpp"
#include "interleavings/total_order.hpp"

namespace rondo::test {

/// Atomic objects as C++20 has them ([intro.races], [atomics.order], [atomics.fences]), in operational form. Each keeps
/// all its values, in modification order. Each thread has a view: for each object, the earliest value that coherence lets
/// it read. A load may return that one or any later one; a store may take any place after it, but not between a value and
/// the read-modify-write that has read it. A release hands the view and the clock of its thread over, to the acquire that
/// reads from it or from its release sequence. (Kang, Hur, Lahav, Vafeiadis and Dreyer, "A promising semantics for
/// relaxed-memory concurrency", 2017, without promises.)
///
/// The total order of what is seq_cst is not the order in which the threads take their steps: it need not agree with
/// relaxed loads. So the model collects what [atomics.order]/4 demands of it, in a graph, and allows what leaves it
/// without a cycle. (Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing sequential consistency in C/C++11", 2017; P0668.)
///
/// A store becomes visible to all threads in a finite time ([intro.progress]/18, and [atomics.order]/11: in a reasonable
/// one). Between two steps of a thread no time need pass. But when time has passed until a moment that a thread waited for,
/// it no longer reads what was old when it passed: see catch_up().
///
/// Left out: a load never returns what is stored only later, so that no value depends on itself. C++20 permits this where
/// no value comes out of thin air: the outcome 1, 1 of load buffering.
class memory {
 public:
  using order = std::memory_order;
  using word = std::uint64_t;
  /// The steps of each thread that happen before something.
  using clock = std::array<std::uint32_t, most_threads>;

  /// Decides between possibilities, of which the first is the latest value or the last place.
  struct chooser {
    std::function<bool()> may_choose;  // otherwise, it is the first
    std::function<std::size_t(std::size_t count)> choose;
  };

  explicit memory(chooser c) : chooser_(std::move(c)) {}

  /// Begins a schedule.
  void begin();
  /// The objects and locks at these addresses no longer exist.
  void forget(const void* first, std::size_t bytes);

  // `latest` is the last value in modification order.
  word load(std::size_t thread, const void* address, word latest, order);
  void store(std::size_t thread, const void* address, word& latest, word bits, order);
  word update(std::size_t thread, const void* address, word& latest, const std::function<word(word)>& change,
              order);
  bool compare_exchange(std::size_t thread, const void* address, word& latest, word& expected, word bits,
                        order success, order failure);
  void fence(std::size_t thread, order);

  /// From now on, the thread reads the last value of each object or a later one. That orders nothing else: what was
  /// stored before these values has not been acquired.
  void catch_up(std::size_t thread);

  // Of a lock.
  void acquire(std::size_t thread, const void* lock);
  void release(std::size_t thread, const void* lock);

  /// What happens before the thread's next step.
  const clock& known(std::size_t thread) const noexcept { return threads_[thread].now.known; }
  /// The thread's next step.
  std::uint32_t next_step(std::size_t thread) const noexcept { return threads_[thread].time + 1; }

 private:
  using node = total_order::node;
  using nodes = total_order::nodes;
  struct value;
  struct event;

  /// What a thread knows, or hands over.
  struct knowledge {
    clock known{};
    clock strongly{};                // the steps that strongly happen before
    std::vector<const value*> view;  // of each object, by its number; null for the first value

    void join(const knowledge&);
    void see(std::size_t number, const value&);
    std::size_t place_of(std::size_t number) const noexcept;
  };
  using message = std::shared_ptr<const knowledge>;

  struct value {
    word bits = 0;
    std::size_t place = 0;    // in modification order
    message released;         // null if none
    bool is_updated = false;  // a read-modify-write has read it, and comes next
    // The store and the loads that have read it, as far as they are seq_cst; and these with the seq_cst fences before.
    nodes at, until;
    nodes readers_at, readers_until;
  };

  struct object {
    std::size_t number = 0;
    std::vector<value*> values;  // in modification order
  };

  struct sc_fence {
    std::size_t thread;
    std::uint32_t time;
    node at;
    std::vector<const value*> view;
  };

  struct thread_state {
    std::uint32_t time = 0;  // the number of its steps
    knowledge now;
    knowledge acquired;  // what its loads have read: known after an acquire fence
    message fenced;      // what its relaxed stores hand over: known at its last release fence
    std::vector<std::pair<std::uint32_t, node>> in_order;  // its seq_cst steps, and when it took them
  };

  void tick(std::size_t thread) noexcept;
  object& at(const void* address, word latest);
  template <class Allowed>
  std::size_t decide(std::size_t thread, const object&, Allowed&&);
  word read(std::size_t thread, object&, std::size_t place, order);
  value& write(const event&, object&, word bits, order);
  void update_at(std::size_t thread, object&, std::size_t place, word bits, order);
  void take_over(std::size_t thread, const message&, order);

  bool fits(const event&) const;
  void put_in_order(const event&, nodes& itself, nodes& with_fences);
  nodes ordered_before(const event&) const;
  nodes ordered_after(const event&) const;
  nodes fences_before(std::size_t thread) const;
  nodes strongly_before(std::size_t thread) const;

  chooser chooser_;
  std::array<thread_state, most_threads> threads_;
  std::map<std::uintptr_t, object> objects_;  // by their addresses
  std::size_t objects_so_far_ = 0;
  std::deque<value> values_;                   // of all objects, also of those that are gone
  std::map<std::uintptr_t, knowledge> locks_;  // by their addresses
  std::vector<sc_fence> fences_;
  total_order sc_;
};

}  // namespace rondo::test
