// Shards on their own, with records that threads take and give back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/pool_threads.hpp"
#include "scheduler/ready_list.hpp"
#include "scheduler/shards.hpp"

namespace rondo::test {

struct shards_in_use {
  detail::shards all{8, 0};
  detail::ready_list pass;
  std::vector<detail::record*> taken;

  void take(std::size_t thread, std::size_t count) {
    pool_threads::on(thread, [&] {
      for (std::size_t i = 0; i != count; ++i) taken.push_back(&all.take());
    });
  }
  detail::record* find(std::uint32_t slot) const {
    detail::shard_lock hold;
    return all.find(slot, hold);
  }
  /// As the end of a timer.
  void end(detail::record& r) {
    detail::shard& s = all.of(r);
    s.mutex.lock();
    ++r.generation;
    r.invalidate_wait();
    detail::shards::give_back(r, s);
  }
  void give_back_all(std::size_t thread) {
    pool_threads::on(thread, [&] {
      for (detail::record* const r : taken) end(*r);
    });
    taken.clear();
  }
};

}  // namespace rondo::test
