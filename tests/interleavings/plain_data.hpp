// Finds data races: two accesses of different threads to the same byte, one of which writes, and none of which happens
// before the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interleavings/memory.hpp"
#include "interleavings/operation.hpp"

namespace rondo::test {

/// What is not atomic. For each byte, keeps the last write and the reads since: it is enough to compare with these
/// (Flanagan and Freund, "FastTrack: efficient and precise dynamic race detection", 2009).
class plain_data {
 public:
  struct use {
    const void* code = nullptr;  // where it is in the program
    std::uint32_t step = 0;
    std::uint8_t thread = nobody;
    std::uint8_t bytes = 0;  // of a word, as bits
    bool writes = false;
  };

  plain_data() : words_(std::size_t{1} << 12) {}

  /// Begins a schedule.
  void begin() noexcept {
    ++round_;
    used_ = 0;
  }

  /// Notes a use by a thread that knows of these steps. Returns another one with which it races, if there is one.
  std::optional<use> note(use, const memory::clock& known, const void* begin, std::size_t bytes);
  /// As note(), but notes nothing: for an atomic access, which may race with one that is not.
  std::optional<use> find(use, const memory::clock& known, const void* begin, std::size_t bytes);
  /// The objects that were there no longer exist.
  void forget(const void* begin, std::size_t bytes) noexcept;

 private:
  static constexpr std::size_t word_size = 8;
  static constexpr std::size_t most_uses = 10;  // any others are not kept

  struct word {
    std::uintptr_t number = 0;  // in memory
    std::uint64_t round = 0;    // of the schedule; of an earlier one, it is unused
    std::size_t count = 0;
    std::array<use, most_uses> uses;
  };

  static bool race(const use&, const use& now, const memory::clock& known) noexcept;
  static void replace(word&, const use& now, const memory::clock& known) noexcept;
  std::size_t place_of(std::uintptr_t number) const noexcept;
  word* look_up(std::uintptr_t number) noexcept;
  word& make(std::uintptr_t number);
  template <class Visit>
  static void for_each_word(const void* begin, std::size_t bytes, Visit&& visit);

  std::vector<word> words_;  // a hash table; its size is a power of two
  std::size_t used_ = 0;
  std::uint64_t round_ = 1;
};

}  // namespace rondo::test
