// wheel_core: the invariants that checked builds verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <rondo/detail/wheel_core_class.hpp>

namespace rondo::detail {

template <class Sync>
std::string wheel_core<Sync>::fault() const {
  for (std::size_t i = 0; i <= stripe_mask_; ++i) {
    const std::lock_guard hold(stripes_[i].mutex);
    if (std::string wrong = fault_of(i); !wrong.empty()) return wrong;
  }
  const std::lock_guard hold(queue_mutex_);
  return queue_.fault();
}

/// Precondition: the stripe is locked.
template <class Sync>
std::string wheel_core<Sync>::fault_of(std::size_t index) const {
  const stripe& s = stripes_[index];
  std::string wrong = s.pool.fault();
  for (std::size_t b = index; b <= mask_ && wrong.empty(); b += stripe_mask_ + 1) {
    wrong = fault_of_bucket(b, s);
    if (!wrong.empty()) wrong.insert(0, "bucket " + std::to_string(b) + ": ");
  }
  if (wrong.empty()) wrong = s.past.fault();
  if (wrong.empty()) wrong = s.future.fault();
  if (wrong.empty()) wrong = fault_of_window(s);
  if (wrong.empty()) wrong = fault_of_key(s);
  return wrong.empty() ? fault_of_nodes(index) : wrong;
}

template <class Sync>
std::string wheel_core<Sync>::fault_of_bucket(std::size_t index, const stripe& s) const {
  const bucket& b = buckets_[index];
  std::string wrong = b.nodes.fault(s.pool);
  b.nodes.for_each(s.pool, [&](const node& n) {
    if (wrong.empty() && (n.due != b.due || bucket_of(n.due, mask_) != index))
      wrong =
          "its tick is " + std::to_string(b.due) + ", but it holds a node due at " + std::to_string(n.due);
  });
  if (!wrong.empty()) return wrong;
  const auto from_begin = static_cast<std::uint64_t>(b.due) - static_cast<std::uint64_t>(s.window_begin);
  if (b.nodes.has_chunks() && from_begin > mask_)
    return "its tick, " + std::to_string(b.due) + ", is not in the window";
  const std::lock_guard hold(queue_mutex_);
  const std::optional<tick_number> key = queue_.due_of(index);
  if (key.has_value() != b.nodes.has_chunks())
    return key ? "no chunks, but queued" : "chunks, but not queued";
  return key && *key != b.due ? "its key is not its tick" : "";
}

template <class Sync>
std::string wheel_core<Sync>::fault_of_window(const stripe& s) const {
  std::string wrong;
  const auto check = [&](const node& n, bool is_outside) {
    if (!is_outside) wrong = "a far node due at tick " + std::to_string(n.due) + " is in the wrong store";
  };
  s.past.for_each([&](const node& n) { check(n, n.due < s.window_begin); });
  s.future.for_each([&](const node& n) { check(n, n.due >= s.window_begin && n.due > s.window_last); });
  return wrong;
}

template <class Sync>
std::string wheel_core<Sync>::fault_of_key(const stripe& s) const {
  std::string wrong;
  bool is_exact = false;
  const auto check = [&](const node& n) {
    is_exact |= n.due == s.key;
    if (!s.queued || n.due < s.key)
      wrong = "a node due at tick " + std::to_string(n.due) + " is before the key";
  };
  s.past.for_each(check);
  s.future.for_each(check);
  if (!wrong.empty()) return wrong;
  if (s.queued && s.key_is_exact && !is_exact) return "no far node is due at the exact key";
  const std::lock_guard hold(queue_mutex_);
  const std::optional<tick_number> key = queue_.due_of(far_entry(s));
  const bool agree = s.queued ? key == s.key : !key;
  return agree ? "" : "a stripe and the delay queue disagree on the key of its far stores";
}

template <class Sync>
std::string wheel_core<Sync>::fault_of_nodes(std::size_t index) const {
  std::string wrong;
  const auto check = [&](const node& n) {
    if (!wrong.empty()) return;
    const char* const what = n.wheel != this                         ? "in no wheel, or in another"
                             : &stripe_at(n.due) != &stripes_[index] ? "of another stripe"
                                                                     : nullptr;
    if (what != nullptr) wrong = "it holds a node due at tick " + std::to_string(n.due) + ", " + what;
  };
  for_each_in(index, check);
  return wrong;
}

}  // namespace rondo::detail
