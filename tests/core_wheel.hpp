// As rondo::wheel, but over a wheel_core with other locks, stripes and parts of redistribution.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <rondo/detail/node.hpp>
#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>
#include <rondo/time.hpp>

namespace rondo::test {

/// A lock for one thread: aborts instead of waiting for itself.
class own_lock {
 public:
  void lock() noexcept { change(true); }
  void unlock() noexcept { change(false); }

 private:
  void change(bool held) noexcept {
    if (held_ == held) std::abort();
    held_ = held;
  }
  bool held_ = false;
};

/// Parts so small that even short lists are redistributed in several steps.
struct small_parts : detail::unlocked {
  static constexpr std::uint32_t redistributed_at_a_time = 3;
};
struct stripes_without_locks : small_parts {
  static constexpr std::size_t stripes = 4;
};
struct stripes_with_locks {
  using stripe_mutex = own_lock;
  using queue_mutex = own_lock;
  static constexpr std::size_t stripes = 16;
  static constexpr std::uint32_t redistributed_at_a_time = 3;
};

template <class Sync>
struct counting_core : detail::wheel_core<Sync> {
  using detail::wheel_core<Sync>::wheel_core;
  std::size_t size = 0;
};

template <class Sync, class Node>
class core_wheel;

/// As rondo::wheel_node.
template <class Sync>
class core_node {
 public:
  core_node() noexcept = default;
  ~core_node() { leave(node_); }
  core_node(const core_node&) = delete;
  core_node& operator=(const core_node&) = delete;

  bool scheduled() const noexcept { return node_.wheel != nullptr; }
  tick_number due() const noexcept { return node_.due; }

  static void leave(detail::node& n) noexcept {
    detail::wheel_base* const wheel = n.wheel;
    if (wheel == nullptr) return;
    auto& home = *static_cast<counting_core<Sync>*>(wheel);
    home.cancel(n);
    --home.size;
  }

 private:
  template <class, class>
  friend class core_wheel;
  detail::node node_;
};

/// As rondo::wheel; Node derives from core_node<Sync>.
template <class Sync, class Node>
class core_wheel {
 public:
  explicit core_wheel(std::size_t buckets = 512, tick_number now = 0) : core_(buckets, now), now_(now) {}
  ~core_wheel() {
    core_.for_each([](detail::node& n) { n.wheel = nullptr; });
  }
  core_wheel(const core_wheel&) = delete;
  core_wheel& operator=(const core_wheel&) = delete;

  void schedule(Node& n, tick_number due) {
    detail::node& node = node_of(n);
    if (node.wheel == nullptr) {
      core_.schedule(node, due, insert_hooks{*this});
      ++core_.size;
      return;
    }
    const bool was_here = node.wheel == &core_;
    core_.reschedule(node, due, insert_hooks{*this});
    core_.size += was_here ? 0 : 1;
  }
  bool cancel(Node& n) noexcept {
    if (!core_.cancel(node_of(n))) return false;
    --core_.size;
    return true;
  }

  template <class OnDue>
  std::size_t advance(tick_number to, OnDue&& on_due, std::size_t limit = unlimited) {
    if (to < now_) return 0;
    const auto fire = [&](detail::node& n, tick_number tick) {
      now_ = std::max(now_, tick);
      const callback_mark mark(in_callback_);
      on_due(static_cast<Node&>(owner_of(n)));
    };
    std::size_t fired = 0;
    if constexpr (std::is_empty_v<typename Sync::stripe_mutex>) {
      fired = core_.take_due(to, limit, [&](detail::node& n, tick_number tick) {
        --core_.size;
        fire(n, tick);
      });
    } else {
      while (fired != limit && take_one(to, fire)) ++fired;
    }
    if (fired != limit) now_ = to;
    return fired;
  }

  std::optional<tick_number> next_due() const { return core_.next_due(); }
  void shrink_to_fit() noexcept { core_.shrink_to_fit(in_callback_ && !detail::is_locked<Sync>); }
  tick_number now() const noexcept { return now_; }
  std::size_t size() const noexcept { return core_.size; }
  bool empty() const noexcept { return core_.size == 0; }
  std::size_t buckets() const noexcept { return core_.buckets(); }
  std::string fault() const { return core_.fault(); }
  /// The number of nodes that are in no bucket.
  std::size_t far_nodes() const {
    std::size_t found = 0;
    core_.for_each_entry([&](std::optional<std::size_t> bucket, tick_number, auto&& each) {
      if (!bucket) each([&](const detail::node&) { ++found; });
    });
    return found;
  }

 private:
  struct callback_mark {
    explicit callback_mark(bool& flag) noexcept : flag_(flag) { flag_ = true; }
    ~callback_mark() { flag_ = false; }
    callback_mark(const callback_mark&) = delete;
    callback_mark& operator=(const callback_mark&) = delete;
    bool& flag_;
  };

  struct insert_hooks {
    core_wheel& w;
    static bool may_insert() noexcept { return true; }
    static void top_moved_earlier() noexcept {}
    static bool may_move(detail::node&) noexcept { return true; }
    void before_move(detail::node& n) const noexcept {
      if (n.wheel != &w.core_) core_node<Sync>::leave(n);
    }
  };

  /// If there are locks, calls the callback without them, because it may do anything.
  template <class Fire>
  bool take_one(tick_number to, Fire& fire) {
    detail::node* taken = nullptr;
    tick_number at = 0;
    core_.take_due(to, 1, [&](detail::node& n, tick_number tick) {
      taken = &n;
      at = tick;
    });
    if (taken == nullptr) return false;
    --core_.size;
    fire(*taken, at);
    return true;
  }

  static detail::node& node_of(Node& n) noexcept { return static_cast<core_node<Sync>&>(n).node_; }
  static core_node<Sync>& owner_of(detail::node& n) noexcept {
    static_assert(std::is_standard_layout_v<core_node<Sync>>);  // so its first member has its address
    return reinterpret_cast<core_node<Sync>&>(n);
  }

  mutable counting_core<Sync> core_;
  tick_number now_;
  bool in_callback_ = false;
};

}  // namespace rondo::test
