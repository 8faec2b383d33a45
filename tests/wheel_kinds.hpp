// Wheels with the interface of rondo::wheel, for tests that try the same on all of them: one that redistributes few
// nodes at a time, and the wheel of a scheduler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <rondo/detail/ticks.hpp>
#include <rondo/detail/wheel_core.hpp>
#include <rondo/wheel.hpp>

#include "scheduler/striped_wheel.hpp"

namespace rondo::detail {

struct wheel_access {
  template <class Node>
  static wheel_core& core(wheel<Node>& w) {
    return w.core_;
  }
};

}  // namespace rondo::detail

namespace rondo::test {

/// Parts so small that even short lists are redistributed in several steps.
inline constexpr std::uint32_t few_nodes = 3;

/// The number of nodes that are in no bucket.
template <class Wheel>
std::size_t far_nodes(const Wheel& w) {
  std::size_t found = 0;
  w.for_each_entry([&](std::optional<std::size_t> bucket, tick_number, auto&& each) {
    if (!bucket) each([&](const detail::node&) { ++found; });
  });
  return found;
}

struct public_wheel {
  static constexpr tick_number last_due = std::numeric_limits<tick_number>::max();
  using node = wheel_node;
  template <class Node>
  using wheel = rondo::wheel<Node>;
};

/// A rondo::wheel that redistributes few nodes at a time.
struct small_parts : public_wheel {
  template <class Node>
  struct wheel : rondo::wheel<Node> {
    explicit wheel(std::size_t buckets = 512, tick_number now = 0) : rondo::wheel<Node>(buckets, now) {
      core().part = few_nodes;
    }
    detail::wheel_core& core() { return detail::wheel_access::core(*this); }
    std::string fault() { return core().fault(); }
  };
};

/// The wheel of a scheduler. Callbacks run without locks, so they may do anything to the wheel.
struct striped {
  static constexpr tick_number last_due = detail::never_tick - 1;

  /// Counts its nodes, as rondo::wheel does.
  struct counting_wheel : detail::striped_wheel {
    using detail::striped_wheel::striped_wheel;
    std::size_t size = 0;
  };

  class node : public detail::shared_node {
   public:
    node() noexcept = default;
    ~node() { leave(); }
    node(const node&) = delete;
    node& operator=(const node&) = delete;

    bool scheduled() const noexcept { return home_ != nullptr; }
    tick_number due() const noexcept { return due_tick(); }

   private:
    friend striped;
    void leave() noexcept {
      if (home_ == nullptr) return;
      home_->cancel(*this);
      --home_->size;
      forget();
    }
    void forget() noexcept {
      home_ = nullptr;
      detail::node::wheel = nullptr;
    }
    counting_wheel* home_ = nullptr;
  };

  template <class Node>
  class wheel {
   public:
    explicit wheel(std::size_t buckets = 512, tick_number now = 0)
        : core_(buckets, now, few_nodes), now_(now) {}
    ~wheel() {
      core_.for_each([](detail::shared_node& n) {
        n.set(n.word().with(detail::place::out));
        static_cast<node&>(n).forget();
      });
    }
    wheel(const wheel&) = delete;
    wheel& operator=(const wheel&) = delete;

    void schedule(Node& n, tick_number due) {
      if (static_cast<node&>(n).home_ != &core_) static_cast<node&>(n).leave();
      if (static_cast<node&>(n).home_ == nullptr)
        core_.schedule(
            n, due, detail::place::waiting, [] { return true; }, [] {});
      else
        core_.reschedule(
            n, due, detail::place::waiting, [] { return true; }, [] {}, [] {});
      if (std::exchange(static_cast<node&>(n).home_, &core_) != &core_) ++core_.size;
    }
    bool cancel(Node& n) noexcept {
      if (static_cast<node&>(n).home_ != &core_) return false;
      static_cast<node&>(n).leave();
      return true;
    }
    template <class OnDue>
    std::size_t advance(tick_number to, OnDue&& on_due, std::size_t limit = unlimited) {
      if (to < now_) return 0;
      std::size_t fired = 0;
      for (; fired != limit; ++fired) {
        detail::shared_node* taken = nullptr;
        try {
          core_.take_due(to, 1, [&](detail::shared_node& n, tick_number tick) {
            taken = &n;
            now_ = std::max(now_, tick);
          });
        } catch (const std::bad_alloc&) {
          if (taken == nullptr) throw;  // otherwise only what follows the call of on_due has failed
        }
        if (taken == nullptr) break;
        --core_.size;
        static_cast<node*>(taken)->forget();
        on_due(static_cast<Node&>(*taken));
      }
      if (fired != limit) now_ = to;
      return fired;
    }

    std::optional<tick_number> next_due() { return core_.next_due(); }
    void shrink_to_fit() noexcept { core_.shrink_to_fit(); }
    tick_number now() const noexcept { return now_; }
    std::size_t size() const noexcept { return core_.size; }
    bool empty() const noexcept { return core_.size == 0; }
    std::size_t buckets() const noexcept { return core_.buckets(); }
    std::string fault() const { return core_.fault(); }

   private:
    counting_wheel core_;
    tick_number now_;
  };
};

}  // namespace rondo::test
