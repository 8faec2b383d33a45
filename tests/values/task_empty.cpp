#include <doctest/doctest.h>

#include <functional>

#include <rondo/task.hpp>

namespace values_task_empty {

using namespace rondo;

void function() {}

void check_empty(task t) {
  CHECK_FALSE(static_cast<bool>(t));
  CHECK_THROWS_AS(t(), std::bad_function_call);
}

TEST_CASE("a task made from nothing is empty") {
  check_empty(task());
  check_empty(task(nullptr));
  check_empty(nullptr);
}

TEST_CASE("a task made from a null pointer to a function or member is empty") {
  check_empty(static_cast<void (*)()>(nullptr));
  check_empty(static_cast<void (*)(const firing&)>(nullptr));
  std::uint64_t firing::*const no_member = nullptr;
  check_empty(no_member);
}

TEST_CASE("a task made from an empty std::function is empty") {
  check_empty(std::function<void()>());
  check_empty(std::function<void(const firing&)>());
  std::function<void()> named;
  check_empty(named);
}

TEST_CASE("a task made from a callable is not empty") {
  CHECK(static_cast<bool>(task(function)));
  CHECK(static_cast<bool>(task(&function)));
  CHECK(static_cast<bool>(task([] {})));
  CHECK(static_cast<bool>(task([](const firing&) {})));
  CHECK(static_cast<bool>(task(std::function<void()>(function))));
  CHECK(static_cast<bool>(task(&firing::run)));
}

TEST_CASE("a moved-from task is empty") {
  task from = [] {};
  task to = std::move(from);
  CHECK(static_cast<bool>(to));
  check_empty(std::move(from));
  task assigned;
  assigned = std::move(to);
  CHECK(static_cast<bool>(assigned));
  check_empty(std::move(to));
}

TEST_CASE("a task that is reset, or assigned an empty value, is empty") {
  task t = [] {};
  SUBCASE("reset") { t.reset(); }
  SUBCASE("nullptr") { t = nullptr; }
  SUBCASE("an empty task") { t = task(); }
  check_empty(std::move(t));
}

TEST_CASE("an empty task may be moved, reset and destroyed") {
  task a;
  task b = std::move(a);
  a = std::move(b);
  a.reset();
  check_empty(std::move(a));
}

}  // namespace values_task_empty
