// Data races: what the explorer finds about data that is not atomic.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "interleavings/explorations.hpp"
#include "interleavings/explored.hpp"
#include "interleavings/watched.hpp"

namespace interleavings_races {

using namespace rondo::test;
using order = std::memory_order;

struct shared {
  explored_atomic<bool> is_there;
  explored_mutex mutex;
  int data = 0;
  std::array<std::uint8_t, 8> bytes{};
  std::atomic<int> owners{2};
  std::array<std::byte, 1'000> many{}, copies{};
};

using act = std::function<void(shared&)>;

bool race_is_found(const act& one, const act& other) {
  const exploration e = explore(
      [=] {
        const auto s = std::make_shared<shared>();
        return scenario{{{"one", [s, one] { one(*s); }}, {"other", [s, other] { other(*s); }}}};
      },
      {}, 1);
  CHECK((e.failure.empty() || e.failure.starts_with("a data race: ")));
  return !e.failure.empty();
}

void write(shared& s) { s.data = 1; }
void read(shared& s) { expect(s.data >= 0, "it is a number"); }

TEST_CASE("races: two threads use plain data, and one of them writes" *
          doctest::skip(!plain_data_is_watched)) {
  CHECK(race_is_found(write, write));
  CHECK(race_is_found(write, read));
  CHECK(race_is_found(read, write));
  CHECK_FALSE(race_is_found(read, read));
}

TEST_CASE("races: a lock orders what threads do inside" * doctest::skip(!plain_data_is_watched)) {
  const auto inside = [](act what) {
    return [what = std::move(what)](shared& s) {
      const std::lock_guard hold(s.mutex);
      what(s);
    };
  };
  CHECK_FALSE(race_is_found(inside(write), inside(write)));
  CHECK(race_is_found(inside(write), read));
}

TEST_CASE("races: a message needs release and acquire" * doctest::skip(!plain_data_is_watched)) {
  const auto message = [](order stored, order loaded) {
    return race_is_found(
        [=](shared& s) {
          s.data = 1;
          s.is_there.store(true, stored);
        },
        [=](shared& s) {
          if (s.is_there.load(loaded)) read(s);
        });
  };
  CHECK_FALSE(message(order::release, order::acquire));
  CHECK(message(order::relaxed, order::acquire));
  CHECK(message(order::release, order::relaxed));
}

TEST_CASE("races: what a thread does after its release is not ordered by it" *
          doctest::skip(!plain_data_is_watched)) {
  CHECK(race_is_found(
      [](shared& s) {
        s.is_there.store(true, order::release);
        s.data = 1;
      },
      [](shared& s) {
        if (s.is_there.load(order::acquire)) read(s);
      }));
}

TEST_CASE("races: each byte of a word is by itself" * doctest::skip(!plain_data_is_watched)) {
  const auto write_byte = [](std::size_t i) { return [i](shared& s) { s.bytes[i] = 1; }; };
  CHECK_FALSE(race_is_found(write_byte(3), write_byte(4)));
  CHECK(race_is_found(write_byte(3), write_byte(3)));
}

TEST_CASE("races: bytes that are copied or set are read and written" * doctest::skip(!copies_are_watched)) {
  const act write_one = [](shared& s) { s.many[500] = std::byte{1}; };
  const act read_one = [](shared& s) { expect(s.many[500] <= std::byte{1}, "it is there"); };
  const act set = [](shared& s) { std::memset(s.many.data(), 1, s.many.size()); };
  const act move = [](shared& s) { std::memmove(&s.many[0], &s.many[1], s.many.size() - 1); };
  const act copy_from = [](shared& s) { std::memcpy(&s.copies, &s.many, sizeof s.many); };
  const act copy_to = [](shared& s) { std::memcpy(&s.many, &s.copies, sizeof s.many); };
  for (const act& writes : {set, move, copy_to}) CHECK(race_is_found(writes, read_one));
  for (const act& reads : {move, copy_from}) CHECK(race_is_found(reads, write_one));
  CHECK_FALSE(race_is_found(copy_from, read_one));
}

/// The last of two owners destroys what they have.
bool last_owner_races(order given_up) {
  return race_is_found(
      [=](shared& s) {
        s.data = 1;
        if (s.owners.fetch_sub(1, given_up) == 1) s.data = 2;
      },
      [=](shared& s) {
        s.bytes[0] = 1;
        if (s.owners.fetch_sub(1, given_up) == 1) s.data = 2;
      });
}

TEST_CASE("races: atomics that are no steps order as others do" * doctest::skip(!plain_data_is_watched)) {
  CHECK_FALSE(last_owner_races(order::acq_rel));
  CHECK(last_owner_races(order::release));
  CHECK(last_owner_races(order::acquire));
}

TEST_CASE("races: memory is released while another thread uses it" * doctest::skip(!plain_data_is_watched)) {
  const auto e = explore(
      [] {
        auto* const number = new int(1);
        return scenario{{{"reads", [number] { expect(*number == 1, "it is there"); }},
                         {"releases", [number] { delete number; }}}};
      },
      {}, 1);
  CHECK(e.failure.starts_with("a data race: releases writes"));
}

TEST_CASE("races: memory that is allocated again is another object" * doctest::skip(!plain_data_is_watched)) {
  CHECK_FALSE(race_is_found(
      [](shared&) {
        for (int i = 0; i != 3; ++i) std::make_unique<std::array<int, 20>>()->fill(i);
      },
      [](shared&) {
        for (int i = 0; i != 3; ++i) std::make_unique<std::array<int, 20>>()->fill(i);
      }));
}

}  // namespace interleavings_races
