// How far a scheduler is on its way to the end.
#pragma once

#include <atomic>

#include "sync/wait_point.hpp"

namespace rondo::detail {

/// Running, draining, stopped: it goes forward only. All members but abandon() are legal from any thread.
template <class Sync>
class phase {
 public:
  /// No new timers from now on, and periodic ones end.
  void drain() noexcept { draining_.store(true, std::memory_order_seq_cst); }
  /// No new timers, and no new runs.
  void stop() noexcept { stopped_.store(true, std::memory_order_seq_cst); }
  /// This is a copy in a child made by fork(): stopped, and with locks that may never be free.
  void abandon() noexcept {
    abandoned_ = true;
    stop();
  }

  bool draining() const noexcept { return draining_.load(std::memory_order_seq_cst); }
  bool stopped() const noexcept { return stopped_.load(std::memory_order_seq_cst); }
  bool abandoned() const noexcept { return abandoned_; }

 private:
  typename Sync::template atomic<bool> draining_{false};
  typename Sync::template atomic<bool> stopped_{false};
  bool abandoned_ = false;  // changes only while there is one thread
};

/// Of several calls of stop() one gets the timers that have not fired; the others wait until it has them.
template <class Sync>
class unfired_claim {
 public:
  /// Threads wait at `endings`, which must outlive this.
  explicit unfired_claim(wait_point<Sync>& endings) noexcept : endings_(endings) {}

  bool claimed() const noexcept { return claimed_.load(std::memory_order_seq_cst); }
  /// Whether the caller is the one.
  bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_seq_cst); }
  /// The caller, who had the claim, has found no memory: the next call may have it.
  void give_up() noexcept {
    claimed_.store(false, std::memory_order_seq_cst);
    settle();
  }
  /// The caller, who has the claim, has the timers.
  void settle() noexcept {
    settled_.store(true, std::memory_order_seq_cst);
    endings_.wake();
  }
  void wait_until_settled() {
    endings_.wait_until([this] { return settled_.load(std::memory_order_seq_cst); });
  }

 private:
  wait_point<Sync>& endings_;
  typename Sync::template atomic<bool> claimed_{false};
  typename Sync::template atomic<bool> settled_{false};
};

}  // namespace rondo::detail
