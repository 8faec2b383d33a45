// Bugs that others have had, written for the explorer from their descriptions: it finds each, and finds nothing in what is
// right.
#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "interleavings/watched.hpp"

namespace interleavings_known_bugs {

using namespace rondo::test;
using order = std::memory_order;

/// A queue of many producers and one consumer, whose nodes are linked from the oldest to the newest (Vyukov, "Intrusive
/// MPSC node-based queue"). A producer makes its node the newest, and then links it. In between, nothing behind the node
/// before can be taken.
class intrusive_queue {
 public:
  struct node {
    explored_atomic<node*> next{nullptr};
    int value = 0;
  };

  /// Returns whether the queue was empty.
  bool push(node& n) {
    n.next.store(nullptr, order::relaxed);
    node* const before = newest_.exchange(&n, order::acq_rel);
    before->next.store(&n, order::release);
    return before == &stub_;
  }

  /// Returns null if there is none, or if a producer has not linked its node yet.
  node* pop() {
    node* next = oldest_->next.load(order::acquire);
    if (oldest_ == &stub_) {
      if (next == nullptr) return nullptr;
      oldest_ = next;
      next = next->next.load(order::acquire);
    }
    if (next == nullptr && newest_.load(order::acquire) == oldest_) {
      push(stub_);
      next = oldest_->next.load(order::acquire);
    }
    if (next == nullptr) return nullptr;
    return std::exchange(oldest_, next);
  }

 private:
  node stub_;
  explored_atomic<node*> newest_{&stub_};
  node* oldest_ = &stub_;
};

/// A thread that sleeps while its queue is empty, and two that give it something to do.
struct worker {
  explicit worker(bool always) : notifies_always(always) {}

  void give(std::size_t i) {
    nodes[i].value = 1;
    if (!queue.push(nodes[i]) && !notifies_always) return;
    const std::lock_guard hold(mutex);
    is_ready = true;
    told.notify_one();
  }
  void work() {
    int done = 0;
    for (;;) {
      while (const auto* const n = queue.pop()) done += n->value;
      if (done == 2) return;
      std::unique_lock hold(mutex);
      while (!is_ready) told.wait(hold);
      is_ready = false;
    }
  }

  const bool notifies_always;
  intrusive_queue queue;
  std::array<intrusive_queue::node, 2> nodes;
  explored_mutex mutex;
  explored_condition told;
  bool is_ready = false;
};

exploration working(bool notifies_always, std::size_t stale) {
  return explore_and_tell(
      [=] {
        const auto w = std::make_shared<worker>(notifies_always);
        return scenario{{{"worker", [w] { w->work(); }},
                         {"producer", [w] { w->give(0); }},
                         {"other producer", [w] { w->give(1); }}}};
      },
      stale == 0 ? std::optional<std::size_t>() : 1, stale);
}

/// https://github.com/NVIDIA/stdexec/issues/2230: only a producer that finds the queue empty wakes the worker. If the worker
/// looks when a producer behind another node has not linked its own yet, it finds nothing, and sleeps; then that producer
/// wakes nobody.
TEST_CASE("known bugs: a worker sleeps although its queue is not empty") {
  for (const std::size_t stale : {0U, 1U}) {
    const exploration e = working(false, stale);
    CHECK(e.failure.starts_with("nobody can go on"));
    CHECK(e.failure.find("never: worker: wake") != std::string::npos);
    CHECK(working(true, stale).failure == "");
  }
}

/// Peterson's lock. A thread that would have to wait gives up instead.
exploration peterson(order stored, order loaded, std::size_t stale) {
  return explore_and_tell(
      [=] {
        struct state {
          std::array<explored_atomic<bool>, 2> wants;
          explored_atomic<std::size_t> polite;
          explored_atomic<int> inside;
        };
        const auto s = std::make_shared<state>();
        const auto enter = [=](std::size_t me) {
          s->wants[me].store(true, stored);
          s->polite.store(me, stored);
          if (s->wants[1 - me].load(loaded) && s->polite.load(loaded) == me) return;
          expect(s->inside.fetch_add(1, order::relaxed) == 0, "one thread at a time is inside");
          s->inside.fetch_sub(1, order::relaxed);
          s->wants[me].store(false, stored);
        };
        return scenario{{{"one", [=] { enter(0); }}, {"other", [=] { enter(1); }}}};
      },
      {}, stale);
}

TEST_CASE("known bugs: Peterson's lock without fences lets two threads in") {
  CHECK(peterson(order::release, order::acquire, 1).failure.starts_with("one thread at a time"));
  CHECK(peterson(order::release, order::acquire, 0).failure == "");
  CHECK(peterson(order::seq_cst, order::seq_cst, 3).failure == "");
}

/// Two threads make an object when they need it first, and look for it without the lock.
exploration made_once(order found) {
  return explore_and_tell(
      [=] {
        struct state {
          explored_mutex mutex;
          explored_atomic<int*> made{nullptr};
          std::unique_ptr<int> kept;
        };
        const auto s = std::make_shared<state>();
        const auto use = [=] {
          int* it = s->made.load(found);
          if (it == nullptr) {
            const std::lock_guard hold(s->mutex);
            it = s->made.load(order::relaxed);
            if (it == nullptr) {
              s->kept = std::make_unique<int>(42);
              it = s->kept.get();
              s->made.store(it, order::release);
            }
          }
          expect(*it == 42, "it is made");
        };
        return scenario{{{"one", use}, {"other", use}}};
      },
      {}, 1);
}

TEST_CASE("known bugs: double-checked initialisation without acquire is a data race" *
          doctest::skip(!plain_data_is_watched)) {
  CHECK(made_once(order::relaxed).failure.starts_with("a data race: "));
  CHECK(made_once(order::acquire).failure == "");
}

/// A coroutine that nobody waits for. `Begin`: whether it begins within the call that creates it.
template <class Begin>
struct coroutine {
  struct promise_type {
    coroutine get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    Begin initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  std::coroutine_handle<> handle;
};

/// A coroutine suspends, and another thread resumes it, so that it ends.
template <class Begin>
exploration resumed_by_another() {
  return explore_and_tell(
      [] {
        struct state {
          explored_atomic<void*> waiting{nullptr};

          bool await_ready() const noexcept { return false; }
          void await_suspend(std::coroutine_handle<> h) { waiting.store(h.address(), order::release); }
          void await_resume() const noexcept {}

          static coroutine<Begin> wait(state& s) { co_await s; }
          void resume() {
            void* const at = waiting.exchange(nullptr, order::acquire);
            if (at != nullptr) std::coroutine_handle<>::from_address(at).resume();
          }
        };
        const auto s = std::make_shared<state>();
        const auto begin = [s] {
          const auto begun = state::wait(*s);
          if constexpr (std::is_same_v<Begin, std::suspend_always>) begun.handle.resume();
        };
        return scenario{{{"begins", begin}, {"resumes", [s] { s->resume(); }}}, [s] { s->resume(); }};
      },
      {}, 1);
}

#if defined(__GNUC__) && !defined(__clang__)
constexpr bool counts_in_frames = __GNUC__ >= 15;
#else
constexpr bool counts_in_frames = false;
#endif

/// g++ 15 and 16 count references in the frame of a coroutine, not atomically. The call that creates the coroutine gives its
/// reference up when it returns. If the coroutine began within this call, another thread may already have resumed it, and
/// gives up another one at the end. So a coroutine that others resume should begin after the call.
TEST_CASE("known bugs: the call that creates a coroutine uses its frame while another thread resumes it" *
          doctest::skip(!plain_data_is_watched)) {
  CHECK(resumed_by_another<std::suspend_never>().failure.starts_with("a data race: ") == counts_in_frames);
  CHECK(resumed_by_another<std::suspend_always>().failure == "");
}

}  // namespace interleavings_known_bugs
