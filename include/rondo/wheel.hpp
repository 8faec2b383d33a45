// The passive wheel: intrusive, single-threaded, without a clock.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>

#include <rondo/detail/checks.hpp>
#include <rondo/detail/wheel_core.hpp>
#include <rondo/export.hpp>
#include <rondo/time.hpp>

namespace rondo {

template <class Node>
class wheel;

namespace detail {

struct wheel_access;  // for tests

/// Removes `n` from its wheel, if it is in one.
inline void leave_wheel(node& n) noexcept {
  if (n.wheel != nullptr) n.wheel->erase(n);
}

}  // namespace detail

/// The base class of a wheel's timers. A node is in at most one wheel; its destructor removes it. Not copyable and not
/// movable, because the wheel knows its address. Not thread-safe, like the wheel.
class wheel_node {
 public:
  /// Creates a node that is in no wheel.
  wheel_node() noexcept = default;
  /// Removes the node from its wheel, if it is in one.
  ~wheel_node() { detail::leave_wheel(node_); }
  wheel_node(const wheel_node&) = delete;
  wheel_node& operator=(const wheel_node&) = delete;

  /// Whether the node is in a wheel.
  bool scheduled() const noexcept { return node_.is_scheduled(); }

  /// The tick at which the node is due. Meaningful only while scheduled().
  tick_number due() const noexcept { return node_.due; }

 private:
  template <class Node>
  friend class rondo::wheel;

  // A member rather than a base, so that its names do not hide the user's; its tail padding is free for the user's
  // members.
  [[no_unique_address]] detail::node node_;
};

/// A timing wheel for nodes of the user's own type, which derives from wheel_node. The caller supplies the time: the
/// wheel has no clock, starts no thread, and allocates nothing for a single timer (it allocates its memory for pointers
/// to timers in segments of 16 KiB).
///
///     struct request : rondo::wheel_node { int id; };
///     rondo::wheel<request> timeouts;
///     timeouts.schedule(r, timeouts.now() + 500);
///     timeouts.advance(tick_now, [](request& r) { … });
///
/// - A *window* has as many ticks as there are buckets, and each of its ticks has its own bucket: tick t has bucket
///   `t mod buckets`. The window moves with the ticks that are fired, in steps of one eighth. Timers due after the
///   window, and overdue timers due before it, are in a few lists that all buckets share; they are redistributed when
///   the window reaches them. The wheel therefore accepts timers at any distance.
/// - Order: earlier ticks first, even if time jumps; within a tick, the order of scheduling.
/// - Cost of scheduling and cancelling: amortised O(1), however far away the timer is. Cost of firing: O(1) per timer,
///   plus O(log buckets) per tick that has timers, plus O(1) for each octal digit of a timer's distance, counted in
///   eighths of the window. Ticks without timers cost nothing.
/// - Timeouts that are answered: a timer after the window that is cancelled stays in its list, unseen, until the wheel
///   comes there. If it is scheduled again for the same tick or a later one before that, both calls write one cache line,
///   that of the node. It may be destroyed, or scheduled elsewhere, at any time.
/// - Longest single calls: advance() redistributes far timers in parts of 4,096, at most two parts for each tick that
///   it fires (or for 4,096 timers of one tick), and one more part in the end. There are two exceptions. Overdue timers
///   are redistributed until those of the earliest tick are known. All timers of a tick are gathered before the first
///   of them fires, if far timers were scheduled again in their places: otherwise the order would be lost. Measured with
///   a million timers, in one list or one bucket, and also with all but one of them cancelled: the longest advance() that
///   fires one timer takes 0.2 ms (25 ms to gather a million of one tick), the longest next_due() 0.6 ms, schedule() 0.04
///   ms and cancel() 0.005 ms.
/// - Memory: 28 bytes in the node (32 with padding, which a payload of four bytes can use), 8 in the wheel, more where
///   cancellations leave holes, and 136 for each bucket. Measured with a million timers, including nodes of 32 bytes:
///   41 bytes per timer when all are new, at most 48 after millions of cancellations. With 10,000 timers it is 58 to
///   85, because each tick and each list that has timers takes at least half a KiB.
/// - Released memory: nearly all memory of a burst is released once the burst has fired. Memory of cancelled timers is
///   released when time reaches their ticks, by next_due(), or, while two thirds of all timers in the wheel are cancelled
///   ones, in parts by each advance(), and by cancel() if they are many. shrink_to_fit() releases the rest.
/// - Threads: the wheel is not thread-safe; use `rondo::timer` for that.
///
/// Not copyable, not movable.
template <class Node>
class wheel {
  friend struct detail::wheel_access;

 public:
  /// No limit, for advance().
  static constexpr std::size_t unlimited = rondo::unlimited;

  /// `buckets` is rounded up to a power of two; if it is 0 or more than 2^20, the constructor throws
  /// std::invalid_argument. Any number works for any delay, and 512 suits nearly all wheels. Do not make it as large as
  /// your delays. Measured with 100,000 timers, compared with 512 buckets:
  ///
  /// - Costs of more buckets. An empty bucket takes 136 bytes: 512 buckets take 68 KiB, 32,768 take 4.3 MiB. A tick of
  ///   the window that has timers takes at least half a KiB. With delays of 30,000 ticks, a timer takes 39 bytes with
  ///   64 buckets, 40 with 512, 48 with 4,096, 230 with 32,768 and 520 with 262,144. Cancelling and re-arming takes the
  ///   same time with 64 to 4,096 buckets, but 4 times as long with 32,768 and 5.5 times as long with 262,144. If
  ///   timers hardly ever share a tick, firing takes 2 and 4 times as long with these two sizes.
  /// - Benefits. A timer within the window is never redistributed. That matters if few timers fire: a timer that is
  ///   re-armed 1,000 ticks ahead each time fires in 0.4 of the time with 4,096 buckets. With delays of up to 512
  ///   ticks, no larger number is faster by more than an eighth; 64 buckets are up to a quarter slower.
  explicit wheel(std::size_t buckets = 512, tick_number now = 0) : core_(buckets, now), now_(now) {}

  /// All nodes are unscheduled afterwards.
  ~wheel() {
    if (detail::finds_misuse && advancing_) detail::die("a wheel was destroyed inside its own callback");
    core_.for_each_linked([](detail::node& n) { n.wheel = nullptr; });
  }

  wheel(const wheel&) = delete;
  wheel& operator=(const wheel&) = delete;

  /// Schedules `n` to fire at tick `due`. Any tick is allowed: if it is not after now(), `n` fires in the next
  /// advance(). A node that is already scheduled, here or in another wheel, is moved. `n` fires after the nodes that
  /// are already scheduled for its tick. Strong guarantee: if memory runs out (std::bad_alloc), nothing has changed.
  void schedule(Node& n, tick_number due) {
    detail::node& node = static_cast<wheel_node&>(n).node_;
    core_.schedule(node, due);
    if constexpr (detail::checks) core_.check_periodically("schedule()");
  }

  /// Removes `n`. Returns false if it was not scheduled in this wheel.
  bool cancel(Node& n) noexcept {
    detail::node& node = static_cast<wheel_node&>(n).node_;
    if (node.wheel != &core_ || node.is_cancelled()) return false;
    core_.cancel(node);
    if constexpr (detail::checks) core_.check_periodically("cancel()");
    return true;
  }

  /// Moves time to `to` and calls on_due(Node&) for each node due at or before it; returns the number of calls. During
  /// a call, now() is the tick being fired, or later if the node was overdue, and the node is no longer scheduled. The
  /// callback may schedule, cancel or destroy any node, including its own. A node that it schedules for a tick `<= to`
  /// fires later in the same advance().
  ///
  /// advance() returns after `limit` calls; the remaining nodes stay scheduled, and the next advance() continues with
  /// them. If the callback throws, the exception propagates out of advance(), the nodes not yet fired stay scheduled,
  /// and the wheel remains usable. In both cases now() is the tick last fired. If `to < now()`, nothing happens and the
  /// result is 0. If memory runs out (std::bad_alloc), no node is lost either, and the next advance() continues.
  ///
  /// Calling advance() or destroying the wheel inside the callback is undefined; checked builds and builds without
  /// NDEBUG detect it.
  template <class OnDue>
  std::size_t advance(tick_number to, OnDue&& on_due, std::size_t limit = unlimited) {
    static_assert(std::is_base_of_v<wheel_node, Node>, "Node must derive from rondo::wheel_node");
    static_assert(std::is_standard_layout_v<wheel_node>);  // its first member has its address
    if (detail::finds_misuse && advancing_)
      detail::die("advance() of a wheel was called inside its own callback");
    if (to < now_) return 0;
    advancing_ = true;
    const advancing_end end{advancing_};
    std::size_t fired = 0;
    while (fired != limit) {
      const detail::wheel_core::open_tick tick = core_.open(to);
      if (tick.nodes == nullptr) {
        now_ = to;
        break;
      }
      if (now_ < tick.due) now_ = tick.due;
      while (fired != limit) {
        detail::node* const n = core_.take(tick);
        if (n == nullptr) break;
        ++fired;
        on_due(static_cast<Node&>(reinterpret_cast<wheel_node&>(*n)));
      }
      core_.close(tick);
    }
    if constexpr (detail::checks) core_.check_periodically("advance()");
    return fired;
  }

  /// The exact tick at which the earliest node is due; std::nullopt if the wheel is empty. O(1), except that it removes
  /// the holes left by cancelled nodes and, if the earliest node is far, searches the lists of far timers.
  std::optional<tick_number> next_due() const { return core_.next_due(); }

  /// Releases, to operator delete, the memory that a burst has left over: all memory that holds no timer, so that a
  /// wheel without timers takes as much as a new one. Timers and their order do not change. In a wheel with timers, two
  /// more things remain: the rest of each 16 KiB segment that holds a timer, and the tables of segments up to the last
  /// such segment, which take 3 to 6 % of the most memory that the wheel has held. Throws nothing: if there is no
  /// memory for smaller tables, they stay as they are. May be called in callbacks of advance(). O(buckets + timers /
  /// 64 + memory released), and O(timers) if some of them were cancelled.
  void shrink_to_fit() noexcept {
    core_.shrink_to_fit(advancing_);
    if constexpr (detail::checks) core_.check_periodically("shrink_to_fit()");
  }

  /// The current tick: the constructor's `now`, moved forward by advance(). It never moves back.
  tick_number now() const noexcept { return now_; }
  /// The number of scheduled nodes.
  std::size_t size() const noexcept { return core_.size; }
  /// Whether no node is scheduled.
  bool empty() const noexcept { return core_.size == 0; }
  /// The number of buckets: a power of two.
  std::size_t buckets() const noexcept { return core_.buckets(); }

 private:
  struct advancing_end {
    ~advancing_end() { flag = false; }
    bool& flag;
  };

  mutable detail::wheel_core core_;
  tick_number now_;
  bool advancing_ = false;
};

}  // namespace rondo
