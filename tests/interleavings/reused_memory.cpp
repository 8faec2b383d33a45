// Memory that is released and handed out again: what the explorer finds does not depend on the allocator's addresses.
#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "failing_new.hpp"
#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "interleavings/watched.hpp"

namespace interleavings_reused_memory {

using namespace rondo::test;
using order = std::memory_order;

/// Has a size that nothing else has.
struct block {
  int value = 1;
  explored_mutex mutex;
  std::array<std::byte, 1'000> rest{};
};

/// Where the threads' blocks were. (If it saw these functions, a compiler might know that no blocks are needed.)
struct addresses {
  const void* first = nullptr;
  bool is_same = false;  // of both, in a schedule

  /// The first thread releases its block there.
  [[gnu::noinline]] void release(const void* at) {
    const unwatched here;
    first = at;
  }
  /// The second one has got this one.
  [[gnu::noinline]] void get(const void* at) {
    const unwatched here;
    is_same |= std::exchange(first, nullptr) == at;
  }
};

/// Explores with weak memory. The second thread to ask for a T gets that of the first one, if that has been released.
template <class T>
exploration explore_reuse(addresses& where, const std::function<scenario()>& make) {
  const reusing_blocks of_this_size(sizeof(T));
  exploration e = explore_and_tell(
      [&] {
        where.first = nullptr;
        return make();
      },
      {}, 1);
  CHECK(where.is_same);
  return e;
}

bool has_race(const exploration& e) { return e.failure.starts_with("a data race: "); }

TEST_CASE("a block is not that which was at its address before" * doctest::skip(!plain_data_is_watched)) {
  addresses where;
  const auto e = explore_reuse<block>(where, [&] {
    const auto use = [&](bool is_first) {
      const auto own = std::make_unique<block>();
      expect(own->value == 1, "it is there");
      is_first ? where.release(own.get()) : where.get(own.get());
    };
    return scenario{{{"first", [=] { use(true); }}, {"second", [=] { use(false); }}}};
  });
  CHECK(e.failure == "");
}

TEST_CASE("a block that a test allocates where nothing is watched is not that which was there before" *
          doctest::skip(!plain_data_is_watched)) {
  addresses where;
  const auto e = explore_reuse<block>(where, [&] {
    const auto use = [&](bool is_first) {
      std::unique_ptr<block> own;
      {
        const unwatched here;
        own = std::make_unique<block>();
      }
      own->value = 2;
      is_first ? where.release(own.get()) : where.get(own.get());
      const unwatched here;
      own = nullptr;
    };
    return scenario{{{"first", [=] { use(true); }}, {"second", [=] { use(false); }}}};
  });
  CHECK(e.failure == "");
}

/// What a thread does. It is destroyed, and its block released, at once when the thread has ended.
struct body {
  addresses* where;
  std::array<std::byte, 1'000> rest{};

  void operator()() const { where->release(this); }
};

TEST_CASE("what a thread has read of its own body is no race with whoever gets the memory" *
          doctest::skip(!plain_data_is_watched)) {
  addresses where;
  const auto e = explore_reuse<body>(where, [&] {
    return scenario{{{"ends", body{&where}}, {"allocates", [&] {
                                                const auto own = std::make_unique<body>();
                                                own->where = &where;
                                                where.get(own.get());
                                              }}}};
  });
  CHECK(e.failure == "");
}

/// Two threads use a number. One releases a block afterwards, and the other one allocates one before.
exploration ordered_by_a_block(addresses& where, bool with_locks) {
  return explore_reuse<block>(where, [=, &where] {
    struct state {
      int number = 0;
      explored_atomic<bool> is_released;
    };
    const auto s = std::make_shared<state>();
    const auto lock = [=](block& b) {
      if (with_locks) const std::lock_guard hold(b.mutex);
    };
    const auto use_and_release = [=, &where] {
      auto own = std::make_unique<block>();
      s->number = 1;
      lock(*own);
      where.release(own.get());
      own = nullptr;
      s->is_released.store(true, order::relaxed);
    };
    const auto allocate_and_use = [=, &where] {
      if (!s->is_released.load(order::relaxed)) return;
      const auto own = std::make_unique<block>();
      where.get(own.get());
      lock(*own);
      expect(s->number <= 1, "it is a number");
    };
    return scenario{{{"releases", use_and_release}, {"allocates", allocate_and_use}}};
  });
}

TEST_CASE("the address of a block orders nothing" * doctest::skip(!plain_data_is_watched)) {
  addresses where;
  CHECK(has_race(ordered_by_a_block(where, false)));
}

TEST_CASE("a lock at the address of another one orders nothing" * doctest::skip(!plain_data_is_watched)) {
  addresses where;
  CHECK(has_race(ordered_by_a_block(where, true)));
}

/// As above, but nothing is allocated.
TEST_CASE("a lock that takes the place of another one orders nothing" *
          doctest::skip(!plain_data_is_watched)) {
  const auto e = explore_and_tell(
      [] {
        struct state {
          int number = 0;
          explored_mutex mutex;
          explored_atomic<bool> is_new;
        };
        const auto s = std::make_shared<state>();
        const auto use_and_replace = [=] {
          s->number = 1;
          { const std::lock_guard hold(s->mutex); }
          std::destroy_at(&s->mutex);
          std::construct_at(&s->mutex);
          s->is_new.store(true, order::relaxed);
        };
        const auto lock_and_use = [=] {
          if (!s->is_new.load(order::relaxed)) return;
          const std::lock_guard hold(s->mutex);
          expect(s->number <= 1, "it is a number");
        };
        return scenario{{{"replaces", use_and_replace}, {"locks", lock_and_use}}};
      },
      {}, 1);
  CHECK(has_race(e));
}

/// One thread releases a block and says so, and then another one uses it.
exploration used_after(bool with_order) {
  return explore_and_tell(
      [=] {
        struct state {
          std::unique_ptr<block> shared = std::make_unique<block>();
          explored_atomic<bool> is_released;
        };
        const auto s = std::make_shared<state>();
        const auto release = [=] {
          s->shared = nullptr;
          s->is_released.store(true, with_order ? order::release : order::relaxed);
        };
        const auto use = [s, at = s->shared.get(), with_order] {
          if (!s->is_released.load(with_order ? order::acquire : order::relaxed)) return;
          if (!with_order)
            expect(at->value <= 1, "it is a number");
          else
            s->shared = std::make_unique<block>();
        };
        return scenario{{{"releases", release}, {"uses", use}}};
      },
      {}, 1);
}

TEST_CASE("a block that another thread may have released is not used" *
          doctest::skip(!plain_data_is_watched)) {
  const reusing_blocks kept(sizeof(block));  // so that this program may look there
  CHECK(has_race(used_after(false)));
  CHECK(used_after(true).failure == "");
}

struct thrown {
  int value;
  std::array<std::byte, 4'000> rest{};  // so that all threads get such memory in the same place
};

/// The C++ library allocates exceptions itself, and counts who refers to them where nothing is watched.
TEST_CASE("an exception is not that which was at its address before" *
          doctest::skip(!plain_data_is_watched)) {
  addresses where;
  const auto e = explore_and_tell(
      [&] {
        struct state {
          std::exception_ptr given;
          explored_event is_given;
          explored_atomic<bool> is_over;
        };
        where.first = nullptr;
        const auto s = std::make_shared<state>();
        const auto throw_twice = [s, &where] {
          try {
            throw thrown{1};
          } catch (...) {
            s->given = std::current_exception();
          }
          s->is_given.set();
          s->is_over.load(order::relaxed);
          try {
            throw thrown{2};
          } catch (const thrown& t) {
            where.get(&t);
          }
        };
        const auto read = [s, &where] {
          s->is_given.wait();
          try {
            std::rethrow_exception(std::exchange(s->given, nullptr));
          } catch (const thrown& t) {
            expect(t.value == 1, "it is the first one");
            where.release(&t);
          }
          s->is_over.store(true, order::relaxed);
        };
        return scenario{{{"throws", throw_twice}, {"reads", read}}};
      },
      {}, 1);
  CHECK(e.failure == "");
  CHECK(where.is_same);
}

}  // namespace interleavings_reused_memory
