// What a task can be made from, and how it calls its callable.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include <rondo/task.hpp>

namespace values_task_call {

using namespace rondo;

int function_calls = 0;
void function() { ++function_calls; }
std::uint64_t function_run = 0;
int function_of_firing(const firing& f) {
  function_run = f.run;
  return 42;
}

struct both {
  std::string* told;
  void operator()() const { *told += "plain "; }
  void operator()(const firing&) const { *told += "firing "; }
};

firing run_number(std::uint64_t run) {
  firing f;
  f.run = run;
  return f;
}

static_assert(!std::is_copy_constructible_v<task> && !std::is_copy_assignable_v<task>);
static_assert(std::is_nothrow_move_constructible_v<task> && std::is_nothrow_move_assignable_v<task>);
static_assert(std::is_nothrow_default_constructible_v<task> && std::is_nothrow_destructible_v<task>);
static_assert(!std::is_convertible_v<task, bool>, "only explicit conversion: a task is not a number");
static_assert(!std::is_constructible_v<task, int> && !std::is_constructible_v<task, std::string>);
static_assert(!std::is_constructible_v<task, void (*)(int)>, "neither void() nor void(const firing&)");
static_assert(!std::is_constructible_v<task, void (*)(firing&)>, "a firing cannot be changed");
static_assert(std::is_convertible_v<void (*)(), task> && std::is_convertible_v<int (*)(const firing&), task>);
static_assert(std::is_constructible_v<task, std::unique_ptr<int> (*)()>);

TEST_CASE("a task calls its callable each time it is called") {
  int calls = 0;
  task t = [&] { ++calls; };
  t();
  t();
  CHECK(calls == 2);
}

TEST_CASE("a callable that takes a firing gets the one the task is called with") {
  std::uint64_t run = 99;
  task t = [&](const firing& f) { run = f.run; };
  t(run_number(7));
  CHECK(run == 7);
  t();
  CHECK(run == 0);
}

TEST_CASE("a callable may take its firing by value") {
  std::uint64_t run = 0;
  task t = [&](firing f) { run = f.run; };
  t(run_number(7));
  CHECK(run == 7);
}

TEST_CASE("a callable that can be called with and without a firing is called with it") {
  std::string told;
  SUBCASE("overloads") {
    task t = both{&told};
    t();
  }
  SUBCASE("a generic lambda") {
    task t = [&](auto&&... arguments) { told += sizeof...(arguments) == 1 ? "firing " : "plain "; };
    t();
  }
  SUBCASE("a default argument") {
    task t = [&](const firing& f = run_number(1)) { told += f.run == 0 ? "firing " : "default "; };
    t();
  }
  CHECK(told == "firing ");
}

TEST_CASE("results are discarded") {
  int calls = 0;
  task number = [&] { return ++calls; };
  task pointer = [&](const firing&) { return std::make_unique<int>(++calls); };
  number();
  pointer();
  CHECK(calls == 2);
}

TEST_CASE("plain functions, by name and by pointer, are callables") {
  function_calls = 0;
  task by_name(function);
  task by_pointer(&function);
  by_name();
  by_pointer();
  CHECK(function_calls == 2);
  task of_firing(function_of_firing);
  of_firing(run_number(3));
  CHECK(function_run == 3);
}

TEST_CASE("a callable may be move-only") {
  int calls = 0;
  task t = [&calls, only_one = std::make_unique<int>(5)] { calls += *only_one; };
  t();
  CHECK(calls == 5);
}

TEST_CASE("a callable may change its own state") {
  int last = 0;
  task t = [&last, n = 0]() mutable { last = ++n; };
  t();
  t();
  CHECK(last == 2);
}

TEST_CASE("std::function, and the results of std::bind and std::ref, are callables") {
  int calls = 0;
  const auto call = [&] { ++calls; };
  task wrapped = std::function<void()>(call);
  task bound = std::bind(call);
  task referenced = std::ref(call);
  task of_firing = std::function<void(const firing&)>([&](const firing&) { ++calls; });
  for (task* t : {&wrapped, &bound, &referenced, &of_firing}) (*t)();
  CHECK(calls == 4);
}

TEST_CASE("an exception of the callable leaves the call, and the task can be called again") {
  int calls = 0;
  task t = [&] {
    if (++calls == 1) throw std::string("first");
  };
  CHECK_THROWS_AS(t(), std::string);
  t();
  CHECK(calls == 2);
}

TEST_CASE("a moved task calls the callable of its source") {
  int calls = 0;
  task a = [&] { ++calls; };
  task b = std::move(a);
  b();
  task c;
  c = std::move(b);
  c();
  CHECK(calls == 2);
}

}  // namespace values_task_call
