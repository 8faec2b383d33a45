// A callable is destroyed exactly once, wherever it is stored and however its task is moved.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <rondo/task.hpp>

#include "counted.hpp"

namespace values_task_lifetime {

using namespace values_test;
using namespace rondo;

TEST_CASE_TEMPLATE("a callable is destroyed exactly once, with its task", Callable, small, large,
                   throwing_move) {
  counts c;
  {
    task t = Callable(c);
    CHECK(c.alive == 1);
    t();
    CHECK(c.called == 1);
    CHECK(c.alive == 1);
  }
  CHECK(c.alive == 0);
  CHECK(c.destroyed == c.made + c.moved);
  CHECK(c.copied == 0);
}

TEST_CASE_TEMPLATE("a callable survives all moves of its task, and stays the only one", Callable, small,
                   large, throwing_move) {
  counts c;
  {
    std::vector<task> tasks;
    tasks.emplace_back(Callable(c));
    for (int i = 0; i != 20; ++i) tasks.emplace_back();  // moved as the vector grows
    task t = std::move(tasks.front());
    CHECK(c.alive == 1);
    tasks.clear();
    CHECK(c.alive == 1);
    t();
    CHECK(c.called == 1);
  }
  CHECK(c.alive == 0);
  CHECK(c.copied == 0);
}

TEST_CASE_TEMPLATE("a callable is destroyed when its task is reset or gets another one", Callable, small,
                   large, throwing_move) {
  counts first, second;
  task t = Callable(first);
  SUBCASE("reset") { t.reset(); }
  SUBCASE("nullptr") { t = nullptr; }
  SUBCASE("another callable") {
    t = Callable(second);
    CHECK(second.alive == 1);
  }
  CHECK(first.alive == 0);
  t.reset();
  CHECK(second.alive == 0);
}

TEST_CASE_TEMPLATE("an lvalue callable is copied, and the task owns the copy", Callable, small, large) {
  counts c;
  const Callable original(c);
  {
    task t = original;
    CHECK(c.copied == 1);
    CHECK(c.alive == 2);
  }
  CHECK(c.alive == 1);
}

TEST_CASE("a small callable is stored inside the task: moving the task moves it") {
  counts c;
  task a = small(c);
  const int moved = c.moved;
  task b = std::move(a);
  CHECK(c.moved == moved + 1);
  CHECK(c.alive == 1);
}

TEST_CASE_TEMPLATE("a callable that is large, or whose move might throw, is not moved with its task",
                   Callable, large, throwing_move) {
  counts c;
  task a = Callable(c);
  const int moved = c.moved;
  task b = std::move(a);
  CHECK(c.moved == moved);
  CHECK(c.alive == 1);
}

TEST_CASE("a task moved onto itself keeps its callable") {
  counts c;
  task t = small(c);
  task& same = t;
  t = std::move(same);
  CHECK(c.alive == 1);
  t();
  CHECK(c.called == 1);
}

TEST_CASE("a callable with a stricter alignment than a pointer's is aligned") {
  struct alignas(32) aligned {
    std::uintptr_t* told;
    void operator()() const { *told = reinterpret_cast<std::uintptr_t>(this); }
  };
  static_assert(sizeof(aligned) <= task::inside_capacity,
                "small enough to be stored inside, but for the alignment");
  std::uintptr_t address = 1;
  task tasks[4];  // their own addresses differ by less than the alignment
  for (task& t : tasks) {
    t = aligned{&address};
    t();
    CHECK(address % 32 == 0);
  }
}

TEST_CASE("a callable whose constructor throws leaves no task and leaks nothing") {
  struct unwell {};
  struct cannot_be_copied {
    explicit cannot_be_copied(counts& c) : member(c) {}
    cannot_be_copied(const cannot_be_copied& other) : member(other.member) { throw unwell{}; }
    void operator()() const {}
    small member;
    unsigned char bulk[100] = {};
  };
  counts c;
  const cannot_be_copied original(c);
  CHECK_THROWS_AS(task{original}, unwell);
  CHECK(c.alive == 1);
}

TEST_CASE("a task is already empty while its callable is being destroyed") {
  struct looks_back {
    looks_back(std::optional<task>& o, bool& e) : owner(&o), was_empty(&e) {}
    looks_back(looks_back&& other) noexcept
        : owner(std::exchange(other.owner, nullptr)), was_empty(other.was_empty) {}
    ~looks_back() {
      if (owner != nullptr) *was_empty = !static_cast<bool>(**owner);
    }
    void operator()() const {}
    std::optional<task>* owner;
    bool* was_empty;
  };
  std::optional<task> owner;
  bool was_empty = false;
  SUBCASE("reset") {
    owner.emplace(looks_back(owner, was_empty));
    owner->reset();
  }
  SUBCASE("assigned nullptr") {
    owner.emplace(looks_back(owner, was_empty));
    *owner = nullptr;
  }
  CHECK(was_empty);
}

TEST_CASE("a callable that resets its own task in its destructor is destroyed once") {
  struct resets {
    resets(task& o, counts& c) : owner(&o), member(c) {}
    resets(resets&& other) noexcept
        : owner(std::exchange(other.owner, nullptr)), member(std::move(other.member)) {}
    ~resets() {
      if (owner != nullptr) owner->reset();
    }
    void operator()() const {}
    task* owner;
    small member;
  };
  counts c;
  task owner;
  owner = resets(owner, c);
  owner.reset();
  CHECK(c.alive == 0);
  CHECK(c.destroyed == c.made + c.moved);
}

}  // namespace values_task_lifetime
