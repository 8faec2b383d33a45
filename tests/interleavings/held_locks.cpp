#include "interleavings/held_locks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>

namespace rondo::test {

namespace {

struct held {
  lock_rank rank;
  const void* lock;
};

/// The locks that this thread holds. There is nothing to destroy: MinGW destroys thread_local variables whose memory it
/// may have freed.
class held_list {
 public:
  const held* begin() const { return all_.data(); }
  const held* end() const { return all_.data() + size_; }
  std::size_t size() const { return size_; }
  void add(const held& h) { all_.at(size_++) = h; }
  void remove(const void* lock) {
    size_ = static_cast<std::size_t>(
        std::remove_if(all_.data(), all_.data() + size_, [lock](const held& h) { return h.lock == lock; }) -
        all_.data());
  }

 private:
  std::array<held, 16> all_;
  std::size_t size_;
};

thread_local constinit held_list held_here{};
std::array<std::atomic<std::size_t>, 6> taken_so_far{};
std::atomic<std::size_t> disorders_so_far{0};

std::ptrdiff_t count_of(lock_rank rank) {
  return std::count_if(held_here.begin(), held_here.end(), [rank](const held& h) { return h.rank == rank; });
}

bool may_be_inside(lock_rank outer, lock_rank inner) { return inner > outer && outer <= lock_rank::shard; }

}  // namespace

std::size_t held_locks::count() { return held_here.size(); }

void held_locks::add(lock_rank rank, const void* lock) {
  for (const held& outer : held_here) {
    const bool second = rank == lock_rank::shard && count_of(rank) == 1 && std::less<>()(outer.lock, lock);
    if (!may_be_inside(outer.rank, rank) && !second) ++disorders_so_far;
  }
  held_here.add({rank, lock});
  ++taken_so_far[static_cast<std::size_t>(rank)];
}

void held_locks::remove(const void* lock) { held_here.remove(lock); }

std::size_t held_locks::disorders() { return disorders_so_far; }

std::size_t held_locks::taken(lock_rank rank) { return taken_so_far[static_cast<std::size_t>(rank)]; }

}  // namespace rondo::test
