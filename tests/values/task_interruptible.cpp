// Tasks whose callables take a std::stop_token.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <version>

#include <rondo/task.hpp>

namespace values_task_interruptible {

using namespace rondo;

#ifdef __cpp_lib_jthread

static_assert(std::is_convertible_v<void (*)(std::stop_token), task>);
static_assert(std::is_convertible_v<int (*)(const firing&, std::stop_token), task>);
static_assert(std::is_constructible_v<task, void (*)(const std::stop_token&)>);
static_assert(!std::is_constructible_v<task, void (*)(std::stop_token&)>, "a token cannot be changed");
static_assert(!std::is_constructible_v<task, void (*)(std::stop_token, const firing&)>);
static_assert(!std::is_constructible_v<task, void (*)(std::stop_source)>);

firing run_number(std::uint64_t run) {
  firing f;
  f.run = run;
  return f;
}

TEST_CASE("a callable that takes a token gets one that can be asked to stop") {
  bool possible = false;
  task t = [&](std::stop_token token) { possible = token.stop_possible() && !token.stop_requested(); };
  t();
  CHECK(possible);
}

TEST_CASE("a callable that takes a firing and a token gets both") {
  std::uint64_t run = 0;
  task t = [&](const firing& f, std::stop_token token) { run = token.stop_possible() ? f.run : 0; };
  t(run_number(7));
  CHECK(run == 7);
}

TEST_CASE("each run has a token of its own") {
  std::vector<std::stop_token> tokens;
  task t = [&](std::stop_token token) { tokens.push_back(token); };
  t();
  t();
  REQUIRE(tokens.size() == 2);
  CHECK(tokens[0] != tokens[1]);
}

TEST_CASE("with and without a firing, the callable is called with it; without a token, if it can be") {
  std::string told;
  struct with_both {
    std::string* told;
    void operator()(std::stop_token) const { *told += "token "; }
    void operator()(const firing&, std::stop_token) const { *told += "both "; }
  };
  task both = with_both{&told};
  both();
  struct with_all : with_both {
    using with_both::operator();
    void operator()() const { *told += "plain "; }
  };
  task all = with_all{{&told}};
  all();
  task generic = [&](auto&&... arguments) { told += std::to_string(sizeof...(arguments)) + ' '; };
  generic();
  task bound = std::bind([&] { told += "bound "; });
  bound();
  // Whether it could be called with a token is not even asked: that would not compile.
  task of_firing = [&](const auto& f) { told += std::to_string(f.run); };
  of_firing(run_number(3));
  CHECK(told == "both plain 1 bound 3");
}

TEST_CASE("a callable that takes a token may be null, move-only, and of any size") {
  CHECK_FALSE(task(static_cast<void (*)(std::stop_token)>(nullptr)));
  CHECK_FALSE(task(std::function<void(std::stop_token)>()));
  int sum = 0;
  task move_only = [&sum, one = std::make_unique<int>(1)](std::stop_token) { sum += *one; };
  task large = [&sum, many = std::array<int, 100>{2}](std::stop_token) { sum += many[0]; };
  task moved = std::move(large);
  moved();
  move_only();
  moved = std::move(move_only);
  moved();
  CHECK(sum == 4);
}

TEST_CASE("the callable is destroyed with its task") {
  const auto watched = std::make_shared<int>();
  {
    task t = [watched](std::stop_token) {};
    CHECK(watched.use_count() == 2);
    task other = std::move(t);
    CHECK(watched.use_count() == 2);
  }
  CHECK(watched.use_count() == 1);
}

#else

struct stop_token {};  // the standard library has none
static_assert(!std::is_constructible_v<task, void (*)(stop_token)>);
static_assert(!std::is_constructible_v<task, void (*)(const firing&, stop_token)>);

TEST_CASE("without std::stop_token, no callable takes one") {
  CHECK_FALSE(detail::interruptible_callable<void (*)(stop_token)>);
}

#endif

}  // namespace values_task_interruptible
