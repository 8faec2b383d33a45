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

struct unlocked_wheel : wheel_core<unlocked> {
  using wheel_core::wheel_core;
  std::size_t size = 0;

  /// Checked builds: after a call, dies if something is not as it must be.
  void check([[maybe_unused]] const char* after) noexcept {
    if constexpr (checks) look_at_times(after);
  }

 private:
  // Out of line, so that who includes this does not compile it.
  RONDO_EXPORT void look_at_times(const char* after) noexcept;

  std::size_t unused_check_steps_ = 0;
};

/// Takes `n` out of the wheel that it is in, if any.
inline void leave_wheel(node& n) noexcept {
  if (n.wheel == nullptr) return;
  auto& home = *static_cast<unlocked_wheel*>(n.wheel);
  home.cancel(n);
  --home.size;
}

/// The insert hooks of a wheel that one thread uses.
struct insert_always {
  static bool may_insert() noexcept { return true; }
  static void top_moved_earlier() noexcept {}
  static void before_move(node& n) noexcept { leave_wheel(n); }
};

}  // namespace detail

/// What a timer of a wheel derives from. A node is in one wheel at most; destroying it takes it out.
/// Not copyable, not movable: the wheel knows its address. Not thread-safe, like the wheel.
class wheel_node {
 public:
  /// In no wheel.
  wheel_node() noexcept = default;
  /// Leaves its wheel, if it is in one.
  ~wheel_node() { detail::leave_wheel(node_); }
  wheel_node(const wheel_node&) = delete;
  wheel_node& operator=(const wheel_node&) = delete;

  /// Whether it is in a wheel.
  bool scheduled() const noexcept { return node_.wheel != nullptr; }

  /// The tick it is due at. Meaningful while scheduled().
  tick_number due() const noexcept { return node_.due; }

 private:
  template <class Node>
  friend class rondo::wheel;

  // A member and no base, so that names of ours do not hide the user's; and its tail is the user's.
  [[no_unique_address]] detail::node node_;
};

/// A timing wheel for nodes of the user's own type, which derives from wheel_node. The caller says what time
/// it is; the wheel keeps no clock, starts no thread and allocates nothing per timer (it takes memory for pointers
/// to them in segments of 16 KiB).
///
///     struct request : rondo::wheel_node { int id; };
///     rondo::wheel<request> timeouts;
///     timeouts.schedule(r, timeouts.now() + 500);
///     timeouts.advance(tick_now, [](request& r) { … });
///
/// - The ticks of a *window*, as many as there are buckets, have a bucket each: tick t has bucket `t mod buckets`.
///   The window moves with the ticks that are fired, in steps of an eighth. Timers after it (and overdue ones that are
///   before it) are in a few lists that all buckets share, and are redistributed as the window comes to them. So timers
///   of any distance are in the wheel itself.
/// - Order: earlier ticks first, also over a jump; within a tick in the order of scheduling.
/// - schedule and cancel: O(1) amortised, however far away the timer is. Firing: O(1) a timer, plus O(log buckets) a
///   tick that has timers, plus O(1) for each octal digit of a timer's distance, counted in eighths of the window; a
///   timer that is cancelled before its list is redistributed does not pay for that. Ticks without timers cost nothing.
/// - Single calls: no call moves all timers. advance() redistributes 4,096 timers at most for each tick that it fires.
///   Measured with a million timers, in one list or one bucket, also with all but one of them cancelled: the longest
///   advance() that fires one timer takes 0.2 ms, the longest next_due() 0.03 ms, schedule() 0.05 ms and cancel()
///   0.003 ms.
/// - Memory: 20 bytes in the node (24 with the padding that a payload of four fills), 8 in the wheel, more where
///   cancellations leave holes, and 128 a bucket. Measured with a million timers, in all, with nodes of 24 bytes: 33
///   bytes a timer when all are new, 40 at most after millions of cancellations. With 10,000 timers it is 50 to 77, as
///   each tick and each list that has timers takes half a KiB at least.
/// - Memory given back: that of a burst which has fired, but for a few per cent. Of cancelled timers a part is given
///   back only when time comes to their ticks, or next_due() is asked.
/// - Threads: none of it is thread-safe; use `rondo::timer` for that.
///
/// Not copyable, not movable.
template <class Node>
class wheel {
 public:
  /// The limit of advance() that is none.
  static constexpr std::size_t unlimited = rondo::unlimited;

  /// `buckets` is rounded up to a power of two; 0 or more than 2^20: std::invalid_argument. Any number works for any
  /// delay, and 512 suits nearly all wheels. Do not make it as large as your delays. Measured with 100,000 timers,
  /// against 512 buckets:
  ///
  /// - What they cost. An empty bucket takes 128 bytes: 512 buckets 64 KiB, 32,768 buckets 4 MiB. A tick of the window
  ///   that has timers takes half a KiB at least. With delays of 30,000 ticks a timer takes 39 bytes with 64 buckets,
  ///   40 with 512, 48 with 4,096, 230 with 32,768 and 520 with 262,144. To cancel and re-arm one takes the same time
  ///   with 64 to 4,096 buckets, but 4 times as long with 32,768 and 5.5 times with 262,144.
  ///   Where hardly two timers share a tick, firing takes 2 and 4 times as long with these two.
  /// - What they bring. A timer within the window is never redistributed. That matters to a few timers that fire: one
  ///   that is re-armed 1,000 ticks ahead each time fires in 0.4 of the time with 4,096 buckets. With delays of up to
  ///   512 ticks no larger number is faster by more than an eighth; 64 buckets are up to a quarter slower.
  explicit wheel(std::size_t buckets = 512, tick_number now = 0) : core_(buckets, now), now_(now) {}

  /// Leaves every node unscheduled.
  ~wheel() {
    detail::require(!advancing_, "a wheel was destroyed inside its own callback");
    core_.for_each([](detail::node& n) { n.wheel = nullptr; });
  }

  wheel(const wheel&) = delete;
  wheel& operator=(const wheel&) = delete;

  /// Sets `n` to fire at tick `due`, which may be any tick: one that is not after now() fires at the next
  /// advance(). A scheduled node is moved, also out of another wheel, to the end of the queue of its new
  /// tick. Strong guarantee: should memory run out (std::bad_alloc), nothing has changed.
  void schedule(Node& n, tick_number due) {
    detail::node& node = node_of(n);
    if (node.wheel == nullptr) [[likely]] {
      core_.schedule(node, due, detail::insert_always());
    } else {
      core_.reschedule(node, due, detail::insert_always());
    }
    ++core_.size;
    core_.check("schedule()");
  }

  /// Takes `n` out. False if it was not scheduled here.
  bool cancel(Node& n) noexcept {
    if (!core_.cancel(node_of(n))) return false;
    --core_.size;
    core_.check("cancel()");
    return true;
  }

  /// Moves time to `to` and calls on_due(Node&) for each node due at or before it; returns how many that
  /// were. During a call now() is the tick being fired, or later if the node was overdue, and the node is no
  /// longer scheduled. The callback may schedule, cancel or destroy any node, its own included; what it
  /// schedules for a tick `<= to` fires later in the same advance().
  ///
  /// After `limit` calls it returns, the rest stays scheduled and the next advance() goes on from there. If
  /// the callback throws, the exception leaves advance(), the nodes not yet fired stay scheduled, and the
  /// wheel is usable. In both cases now() is the tick last fired. `to < now()`: nothing happens, 0.
  ///
  /// Undefined, and caught in builds that are checked or without NDEBUG: advance() from inside the callback,
  /// and destroying the wheel there.
  template <class OnDue>
  std::size_t advance(tick_number to, OnDue&& on_due, std::size_t limit = unlimited) {
    static_assert(std::is_base_of_v<wheel_node, Node>, "Node must derive from rondo::wheel_node");
    detail::require(!advancing_, "advance() of a wheel was called inside its own callback");
    if (to < now_) return 0;
    const advancing_mark mark(advancing_);
    const std::size_t fired = core_.take_due(to, limit, [&](detail::node& n, tick_number tick) {
      --core_.size;
      if (now_ < tick) now_ = tick;
      on_due(owner_of(n));
    });
    if (fired != limit) now_ = to;
    core_.check("advance()");
    return fired;
  }

  /// The due tick of the earliest node, exactly. O(1), but for the tidying up after cancellations, and for a look at
  /// the earliest list of far timers if no bucket comes before it.
  std::optional<tick_number> next_due() const { return core_.next_due(); }

  /// The tick that time has come to: as constructed, moved on by advance(). It never moves back.
  tick_number now() const noexcept { return now_; }
  /// How many nodes are scheduled.
  std::size_t size() const noexcept { return core_.size; }
  /// Whether none is.
  bool empty() const noexcept { return core_.size == 0; }
  /// How many buckets there are: a power of two.
  std::size_t buckets() const noexcept { return core_.buckets(); }

 private:
  struct advancing_mark {
    explicit advancing_mark(bool& flag) noexcept : flag_(flag) { flag_ = true; }
    ~advancing_mark() { flag_ = false; }
    advancing_mark(const advancing_mark&) = delete;
    advancing_mark& operator=(const advancing_mark&) = delete;
    bool& flag_;
  };

  static detail::node& node_of(Node& n) noexcept { return static_cast<wheel_node&>(n).node_; }
  static Node& owner_of(detail::node& n) noexcept {
    static_assert(std::is_standard_layout_v<wheel_node>);  // its first member lies where it does
    return static_cast<Node&>(reinterpret_cast<wheel_node&>(n));
  }

  mutable detail::unlocked_wheel core_;
  tick_number now_;
  bool advancing_ = false;
};

}  // namespace rondo
