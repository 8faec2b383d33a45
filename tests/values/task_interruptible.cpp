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
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

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

struct with_or_without_firing {
  std::string* told;
  void operator()(std::stop_token) const { *told += "token "; }
  void operator()(const firing&, std::stop_token) const { *told += "both "; }
};
struct with_or_without_anything : with_or_without_firing {
  using with_or_without_firing::operator();
  void operator()() const { *told += "nothing "; }
  void operator()(const firing&) const { *told += "firing "; }
};

TEST_CASE("a callable that takes a token gets one, and with a firing, if it can be called in several ways") {
  std::string told;
  const auto call = [](task t) { t(); };
  call(with_or_without_firing{&told});
  call(with_or_without_anything{{&told}});
  CHECK(told == "both both ");
  bool possible = false;
  call([&](const firing&, std::stop_token token = {}) { possible = token.stop_possible(); });
  CHECK(possible);
  possible = false;
  call([&](std::stop_token token = {}) { possible = token.stop_possible(); });
  CHECK(possible);
}

TEST_CASE("a callable that takes anything is called without a token") {
  std::string told;
  const auto call = [](task t) { t(run_number(3)); };
  call([&](auto&&... arguments) { told += std::to_string(sizeof...(arguments)) + ' '; });
  call(std::bind([&] { told += "bound "; }));
  // With a token, these would not compile.
  call([&](const auto& f) { told += std::to_string(f.run) + ' '; });
  call([&](const auto&... f) { told += std::to_string((f.run + ...)) + ' '; });
  CHECK(told == "1 bound 3 3 ");
}

TEST_CASE("callables that take a token may be generic lambdas, and come from std::bind") {
  std::string told;
  const auto call = [](task t) { t(run_number(3)); };
  const auto tell = [&](const std::stop_token& token) { told += token.stop_possible() ? "token " : "none "; };
  call([&](const auto& f, auto token) {
    told += std::to_string(f.run) + ' ';
    tell(token);
  });
  call(std::bind(tell, std::placeholders::_1));
  call(std::bind(tell, std::placeholders::_2));
  CHECK(told == "3 token token token ");
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
