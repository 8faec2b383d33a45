// The keys of a keyed_timers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <rondo/detail/keyed_core.hpp>

namespace rondo::detail {

/// A hash table of entries. In std::unordered_map, inserting or removing a node also changes other nodes, which lie
/// anywhere in memory: with 100,000 keys, those cache misses cost as much as the rest of a call. Here it changes one
/// bucket and, rarely, the preceding node. Nodes do not move. Not thread-safe.
template <class Key, class Hash, class KeyEqual>
class key_table {
 public:
  struct node {
    node* next;  // in its bucket
    const Key key;
    keyed_entry entry;
  };
  /// A forgotten key. Destroying it runs user code.
  using forgotten = std::unique_ptr<node>;

  key_table() = default;
  key_table(const key_table&) = delete;
  key_table& operator=(const key_table&) = delete;
  ~key_table() {
    for (std::size_t i = 0; i != buckets(); ++i)
      while (heads_[i] != nullptr) const forgotten gone = forget(*heads_[i]);
  }

  /// Returns null if the key is unknown.
  node* find(const Key& key) const noexcept {
    if (heads_ == nullptr) return nullptr;
    node* n = heads_[bucket_of(key)];
    while (n != nullptr && !equal_(n->key, key)) n = n->next;
    return n;
  }

  /// Throws std::bad_alloc and what moving the key throws; in either case, no key is added.
  node& find_or_add(Key&& key) {
    if (node* const known = find(key)) return *known;
    if (size_ == buckets()) grow();
    auto made = std::unique_ptr<node>(new node{nullptr, std::move(key), {}});
    node*& head = heads_[bucket_of(made->key)];
    made->next = head;
    ++size_;
    return *(head = made.release());
  }

  forgotten forget(node& n) noexcept {
    node** link = &heads_[bucket_of(n.key)];
    while (*link != &n) link = &(*link)->next;
    *link = n.next;
    --size_;
    return forgotten(&n);
  }

  /// Calls visit(entry) for each entry.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i != buckets(); ++i)
      for (const node* n = heads_[i]; n != nullptr; n = n->next) visit(n->entry);
  }

 private:
  static constexpr int fewest_bits = 3;

  std::size_t buckets() const noexcept { return heads_ == nullptr ? 0 : std::size_t{1} << bits_; }

  /// Hashes may be the keys themselves, whose low bits may all be the same. The product's high bits depend on all bits.
  std::size_t bucket_of(const Key& key) const noexcept {
    const std::uint64_t mixed = static_cast<std::uint64_t>(hash_(key)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<std::size_t>(mixed >> (64 - bits_));
  }

  void grow() {
    const std::size_t before = buckets();
    const int bits = heads_ == nullptr ? fewest_bits : bits_ + 1;
    auto old = std::make_unique<node*[]>(std::size_t{1} << bits);
    old.swap(heads_);
    bits_ = bits;
    for (std::size_t i = 0; i != before; ++i) {
      while (node* const n = old[i]) {
        old[i] = n->next;
        node*& head = heads_[bucket_of(n->key)];
        n->next = std::exchange(head, n);
      }
    }
  }

  std::unique_ptr<node*[]> heads_;  // of the buckets; null until there is a key
  int bits_ = 0;                    // there are 2^bits_ buckets
  std::size_t size_ = 0;
  [[no_unique_address]] Hash hash_{};
  [[no_unique_address]] KeyEqual equal_{};
};

}  // namespace rondo::detail
