#include "interleavings/plain_data.hpp"

#include <algorithm>
#include <utility>

namespace rondo::test {

/// Calls visit(number of the word, its bytes as bits).
template <class Visit>
void plain_data::for_each_word(const void* begin, std::size_t bytes, Visit&& visit) {
  auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t end = at + bytes;
  while (at != end) {
    const std::uintptr_t number = at / word_size;
    const std::uintptr_t next = std::min(end, (number + 1) * word_size);
    visit(number, static_cast<std::uint8_t>((1U << (next - number * word_size)) - (1U << at % word_size)));
    at = next;
  }
}

std::optional<plain_data::use> plain_data::note(use now, const memory::clock& known, const void* begin,
                                                std::size_t bytes) {
  std::optional<use> found;
  for_each_word(begin, bytes, [&](std::uintptr_t number, std::uint8_t of_word) {
    word& w = make(number);
    now.bytes = of_word;
    for (std::size_t i = 0; i != w.count; ++i) {
      const use& u = w.uses[i];
      if (u.thread == now.thread && u.step == now.step && (u.writes || !now.writes) &&
          (of_word & ~u.bytes) == 0)
        return;  // it makes no difference
      if (!found && race(u, now, known)) found = u;
    }
    replace(w, now, known);
  });
  return found;
}

std::optional<plain_data::use> plain_data::find(use now, const memory::clock& known, const void* begin,
                                                std::size_t bytes) {
  std::optional<use> found;
  for_each_word(begin, bytes, [&](std::uintptr_t number, std::uint8_t of_word) {
    const word* const w = look_up(number);
    now.bytes = of_word;
    for (std::size_t i = 0; w != nullptr && i != w->count; ++i)
      if (!found && race(w->uses[i], now, known)) found = w->uses[i];
  });
  return found;
}

void plain_data::forget(const void* begin, std::size_t bytes) noexcept {
  for_each_word(begin, bytes, [&](std::uintptr_t number, std::uint8_t of_word) {
    word* const w = look_up(number);
    for (std::size_t i = 0; w != nullptr && i != w->count; ++i)
      w->uses[i].bytes = static_cast<std::uint8_t>(w->uses[i].bytes & ~of_word);
  });
}

bool plain_data::race(const use& before, const use& now, const memory::clock& known) noexcept {
  return before.thread != now.thread && (before.writes || now.writes) && (before.bytes & now.bytes) != 0 &&
         before.step > known[before.thread];
}

/// Adds a use. Those that it comes after are no longer needed for its bytes: what races with them also races with it.
void plain_data::replace(word& w, const use& now, const memory::clock& known) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i != w.count; ++i) {
    use u = w.uses[i];
    const bool is_before = u.thread == now.thread || u.step <= known[u.thread];
    if (is_before && (now.writes || !u.writes)) u.bytes = static_cast<std::uint8_t>(u.bytes & ~now.bytes);
    if (u.bytes != 0) w.uses[kept++] = u;
  }
  w.count = std::min(kept + 1, most_uses);
  w.uses[w.count - 1] = now;
}

std::size_t plain_data::place_of(std::uintptr_t number) const noexcept {
  const std::size_t mask = words_.size() - 1;
  std::size_t i = number * 0x9e3779b97f4a7c15U >> 20 & mask;
  while (words_[i].round == round_ && words_[i].number != number) i = (i + 1) & mask;
  return i;
}

/// Null if nothing was noted about the word.
plain_data::word* plain_data::look_up(std::uintptr_t number) noexcept {
  word& w = words_[place_of(number)];
  return w.round == round_ ? &w : nullptr;
}

plain_data::word& plain_data::make(std::uintptr_t number) {
  if (2 * used_ > words_.size()) {
    std::vector<word> before(2 * words_.size());
    before.swap(words_);
    for (const word& w : before)
      if (w.round == round_) words_[place_of(w.number)] = w;
  }
  word& w = words_[place_of(number)];
  if (w.round != round_) {
    w.number = number;
    w.round = round_;
    w.count = 0;
    ++used_;
  }
  return w;
}

}  // namespace rondo::test
