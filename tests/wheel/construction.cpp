#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "recording.hpp"

namespace wheel_construction {

using namespace wheel_test;

TEST_CASE("the number of buckets is rounded up to a power of two") {
  struct {
    std::size_t asked, made;
  } const cases[] = {{1, 1},
                     {2, 2},
                     {3, 4},
                     {4, 4},
                     {5, 8},
                     {511, 512},
                     {512, 512},
                     {513, 1024},
                     {600, 1024},
                     {4097, 8192},
                     {(1 << 20) - 1, 1 << 20},
                     {1 << 20, 1 << 20}};
  for (const auto& c : cases) {
    CAPTURE(c.asked);
    CHECK(wheel(c.asked).buckets() == c.made);
  }
}

TEST_CASE("zero buckets, or more than 2^20, are refused with the number in the message") {
  for (const std::size_t refused : {std::size_t{0}, (std::size_t{1} << 20) + 1, rondo::unlimited}) {
    CAPTURE(refused);
    std::string message;
    try {
      wheel w(refused);
    } catch (const std::invalid_argument& e) {
      message = e.what();
    }
    CHECK(message.find(std::to_string(refused)) != std::string::npos);
  }
}

TEST_CASE("a new wheel has 512 buckets, is at tick 0 and is empty") {
  const wheel w;
  CHECK(w.buckets() == 512);
  CHECK(w.now() == 0);
  CHECK(w.empty());
  CHECK(w.size() == 0);
  CHECK_FALSE(w.next_due().has_value());
}

TEST_CASE("a wheel may begin at any tick") {
  for (const tick_number start : {tick_number{7}, tick_number{-7}, first_tick, last_tick}) {
    CAPTURE(start);
    CHECK(wheel(8, start).now() == start);
  }
}

TEST_CASE("nodes and wheels can be neither copied nor moved") {
  CHECK_FALSE(std::is_copy_constructible_v<timer>);
  CHECK_FALSE(std::is_move_constructible_v<timer>);
  CHECK_FALSE(std::is_copy_assignable_v<timer>);
  CHECK_FALSE(std::is_move_assignable_v<timer>);
  CHECK_FALSE(std::is_copy_constructible_v<wheel>);
  CHECK_FALSE(std::is_move_constructible_v<wheel>);
  CHECK_FALSE(std::is_copy_assignable_v<wheel>);
  CHECK_FALSE(std::is_move_assignable_v<wheel>);
}

TEST_CASE("wheel::unlimited is rondo::unlimited") { CHECK(wheel::unlimited == rondo::unlimited); }

TEST_CASE("a node may have other bases, before and after wheel_node") {
  struct first_base {
    int first = 1;
  };
  struct last_base {
    int last = 3;
  };
  struct node : first_base, rondo::wheel_node, last_base {};
  rondo::wheel<node> w(8);
  node n;
  w.schedule(n, 5);
  CHECK(w.advance(5, [&](node& fired) { CHECK(&fired == &n); }) == 1);
}

TEST_CASE("a callback may be anything that can be called with a node, and is not copied") {
  struct counting {
    counting() = default;
    counting(const counting&) = delete;
    counting& operator=(const counting&) = delete;
    void operator()(timer&) { ++calls; }
    int calls = 0;
  };
  static int calls_of_function = 0;
  struct function {
    static int count(const timer&) { return ++calls_of_function; }
  };
  wheel w(8);
  timer a, b;
  counting callback;
  w.schedule(a, 5);
  w.schedule(b, 6);
  w.advance(5, callback);
  CHECK(callback.calls == 1);
  w.advance(6, &function::count);
  CHECK(calls_of_function == 1);
}

}  // namespace wheel_construction
