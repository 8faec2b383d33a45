#include "model/shrinker.hpp"

#include <algorithm>

namespace rondo::test {

namespace {

// Not a < b: on big-endian machines g++ 12 compares only an eighth of vectors of 8-byte numbers.
bool simpler(const choices::list& a, const choices::list& b) {
  return a.size() != b.size() ? a.size() < b.size()
                              : std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

/// Missing numbers at the end count as 0 anyway.
void drop_zeros_at_end(choices::list& l) {
  while (!l.empty() && l.back() == 0) l.pop_back();
}

void erase(choices::list& l, std::size_t from, std::size_t count) {
  const auto begin = l.begin() + static_cast<std::ptrdiff_t>(from);
  l.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

choices::list shrinker::shrink(choices::list first) {
  best_ = std::move(first);
  drop_zeros_at_end(best_);
  choices::list before;
  do {
    before = best_;
    remove_chunks();
    clear_chunks();
    lower_each();
    lower_one_and_remove();
  } while (best_ != before && has_time());
  return best_;
}

bool shrinker::try_out(choices::list l) {
  drop_zeros_at_end(l);
  if (!simpler(l, best_) || !has_time()) return false;
  auto made = still_fails_(l);
  if (!made) return false;
  drop_zeros_at_end(*made);
  best_ = simpler(*made, l) ? std::move(*made) : std::move(l);
  return true;
}

/// From the end, because early choices affect later ones. Tries every small size, because an operation has that many
/// choices.
void shrinker::remove_chunks() {
  for (std::size_t size = std::bit_floor(best_.size()); size != 0; size = size > 8 ? size / 2 : size - 1) {
    for (std::size_t end = best_.size(); end >= size && has_time();) {
      const bool removed = try_with([&](choices::list& l) { erase(l, end - size, size); });
      end = std::min(removed ? end - size : end - 1 - size / 4, best_.size());
    }
  }
}

void shrinker::clear_chunks() {
  for (const std::size_t size : {8U, 4U, 2U}) {
    for (std::size_t i = 0; i + size <= best_.size(); ++i)
      try_with([&](choices::list& l) { std::fill_n(l.begin() + static_cast<std::ptrdiff_t>(i), size, 0); });
  }
}

void shrinker::lower_each() {
  for (std::size_t i = 0; i < best_.size(); ++i) {
    if (best_[i] == 0 || try_with([i](choices::list& l) { l[i] = 0; })) continue;
    // Searches between a number that does not fail and one that does.
    number passes = 0;
    while (i < best_.size() && best_[i] > passes + 1 && has_time()) {
      const number middle = passes + (best_[i] - passes) / 2;
      if (!try_with([&](choices::list& l) { l[i] = middle; })) passes = middle;
    }
    if (i < best_.size() && best_[i] > 1) try_with([i](choices::list& l) { --l[i]; });
  }
}

/// A number may be the index of an earlier element, and then has to be lowered when an element before it is removed.
void shrinker::lower_one_and_remove() {
  constexpr std::size_t most_removed = 12;
  for (std::size_t lowered = best_.size(); lowered-- != 0;) {
    for (std::size_t from = 0; from < best_.size(); ++from) {
      for (std::size_t count = most_removed; count != 0 && has_time(); --count) {
        if (lowered >= best_.size() || best_[lowered] == 0 || from + count > best_.size()) continue;
        try_with([&](choices::list& l) {
          --l[lowered];
          erase(l, from, count);
        });
      }
    }
  }
}

}  // namespace rondo::test
