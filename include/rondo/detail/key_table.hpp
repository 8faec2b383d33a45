// The keys of a keyed_timers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <rondo/detail/block_table.hpp>
#include <rondo/detail/keyed_core.hpp>

namespace rondo::detail {

/// A hash table of entries. Each key has a place, which does not move and has a number. Places refer to each other by
/// number, so a key of four bytes takes 24, and a bucket four. Finding, adding or removing a key visits one bucket and the
/// places in it, and rarely allocates. The places of keys that were removed are used again; their memory is kept. Not
/// thread-safe.
template <class Key, class Hash, class KeyEqual>
class key_table {
 public:
  using number = std::
      uint32_t;  // of a place; 0 for none. (There are fewer keys than records, whose slots have 32 bits.)

  struct place {
    place() noexcept {}  // NOLINT(modernize-use-equals-default): has no key
    ~place() {}          // NOLINT(modernize-use-equals-default): the key is destroyed by others
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    keyed_entry entry;
    number next = 0;  // in its bucket, or among the free ones
    union {
      Key key;
    };
  };

  key_table() = default;
  key_table(const key_table&) = delete;
  key_table& operator=(const key_table&) = delete;
  ~key_table() {
    for (std::size_t i = 0; i != buckets(); ++i)
      for (number n = heads_[i]; n != 0; n = at(n).next) std::destroy_at(&at(n).key);
  }

  bool empty() const noexcept { return size_ == 0; }
  /// No place has this number or a greater one.
  number end() const noexcept { return places_.end(); }
  /// Precondition: 0 < n < end().
  place& at(number n) const noexcept { return places_.at(n); }

  /// Returns 0 if the key is unknown.
  number find(const Key& key) const noexcept { return size_ == 0 ? 0 : find_in(bucket_of(key), key); }

  /// Throws std::bad_alloc and what moving the key throws; in either case, no key is added.
  number find_or_add(Key&& key) {
    if (heads_ != nullptr)
      if (const number known = find_in(bucket_of(key), key)) return known;
    if (size_ == buckets()) grow();
    if (free_ == 0) reuse(places_.add());
    place& added = at(free_);
    std::construct_at(&added.key, std::move(key));
    ++size_;
    number& head = heads_[bucket_of(added.key)];
    const number n = free_;
    free_ = std::exchange(added.next, head);
    return head = n;
  }

  /// The key is no longer found. The caller destroys it, and then calls reuse().
  void forget(number n) noexcept {
    number* link = &heads_[bucket_of(at(n).key)];
    while (*link != n) link = &at(*link).next;
    *link = at(n).next;
    --size_;
  }
  void reuse(number n) noexcept { at(n).next = std::exchange(free_, n); }

 private:
  static constexpr int fewest_bits = 3;

  std::size_t buckets() const noexcept { return heads_ == nullptr ? 0 : std::size_t{1} << bits_; }

  /// Hashes may be the keys themselves, whose low bits may all be the same. The product's high bits depend on all bits.
  std::size_t bucket_of(const Key& key) const noexcept {
    const std::uint64_t mixed = static_cast<std::uint64_t>(hash_(key)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(mixed >> (64 - bits_));
  }

  number find_in(std::size_t bucket, const Key& key) const noexcept {
    number n = heads_[bucket];
    while (n != 0 && !equal_(at(n).key, key)) n = at(n).next;
    return n;
  }

  void grow() {
    const std::size_t before = buckets();
    const int bits = heads_ == nullptr ? fewest_bits : bits_ + 1;
    auto old = std::make_unique<number[]>(std::size_t{1} << bits);
    old.swap(heads_);
    bits_ = bits;
    for (std::size_t i = 0; i != before; ++i) {
      while (const number n = old[i]) {
        old[i] = at(n).next;
        number& head = heads_[bucket_of(at(n).key)];
        at(n).next = std::exchange(head, n);
      }
    }
  }

  block_table<place> places_;
  std::unique_ptr<number[]> heads_;  // of the buckets; null until there is a key
  int bits_ = 0;                     // there are 2^bits_ buckets
  number free_ = 0;
  std::size_t size_ = 0;
  [[no_unique_address]] Hash hash_{};
  [[no_unique_address]] KeyEqual equal_{};
};

}  // namespace rondo::detail
