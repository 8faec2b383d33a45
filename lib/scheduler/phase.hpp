// How far a scheduler is on its way to its end.
#pragma once

#include <atomic>
#include <cstdint>

#include <rondo/time.hpp>

#include "sync/sync.hpp"
#include "sync/wait_point.hpp"

namespace rondo::detail {

/// Running, draining, stopped. It only moves forward. All members except abandon() may be called from any thread.
class phase {
 public:
  /// No new timers from now on, and periodic ones end.
  void drain() noexcept { draining_.store(true, std::memory_order_seq_cst); }
  /// No new timers and no new runs from now on.
  void stop() noexcept { stopped_.store(true, std::memory_order_seq_cst); }
  /// Marks this as a copy in a child made by fork(): it is stopped, and its locks may never be free.
  void abandon() noexcept {
    abandoned_ = true;
    stop();
  }

  /// Whether drain() or stop() has begun.
  bool ending() const noexcept { return stopped() || draining(); }
  bool draining() const noexcept { return draining_.load(std::memory_order_seq_cst); }
  bool stopped() const noexcept { return stopped_.load(std::memory_order_seq_cst); }
  bool abandoned() const noexcept { return abandoned_; }

 private:
  sync::atomic<bool> draining_{false};
  sync::atomic<bool> stopped_{false};
  bool abandoned_ = false;  // changes only while there is one thread
};

/// Of several calls of stop(), one gets the timers that have not fired. The others wait until it has them.
class unfired_claim {
 public:
  /// Threads wait at `endings`, which must outlive this.
  explicit unfired_claim(wait_point& endings) noexcept : endings_(endings) {}

  /// Whether a call has the timers, or is about to.
  bool claimed() const noexcept { return get() != state::free; }
  /// Whether a call has them.
  bool settled() const noexcept { return get() == state::settled; }
  /// Returns whether the caller now has the claim.
  bool claim() noexcept {
    state expected = state::free;
    return state_.compare_exchange_strong(expected, state::claimed, std::memory_order_seq_cst);
  }
  /// Called if the call that has the claim has found no memory: another call may then have it.
  void give_up() noexcept { set(state::free); }
  /// Called when the call that has the claim has the timers.
  void settle() noexcept { set(state::settled); }
  /// Waits while another call has the claim but not yet the timers, and no longer than until `end`, in real time.
  /// Returns whether that is over.
  bool wait_while_claimed(time_point end) {
    return endings_.wait_until(end, [this] { return get() != state::claimed; });
  }

 private:
  enum class state : std::uint8_t { free, claimed, settled };

  state get() const noexcept { return state_.load(std::memory_order_seq_cst); }
  void set(state s) noexcept {
    state_.store(s, std::memory_order_seq_cst);
    endings_.wake();
  }

  wait_point& endings_;
  sync::atomic<state> state_{state::free};
};

}  // namespace rondo::detail
