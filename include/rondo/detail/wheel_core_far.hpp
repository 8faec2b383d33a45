// wheel_core: the nodes outside the window, how they enter it, and how memory is given back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>

#include <rondo/detail/wheel_core_class.hpp>

namespace rondo::detail {

/// rekey() for the far stores: gives their entry a later key if one is known without a search, otherwise the exact one.
template <class Sync>
[[gnu::noinline]] void wheel_core<Sync>::rekey_far(stripe& s) noexcept {
  const far_store& first = s.past.surely_empty() ? s.future : s.past;
  std::optional<tick_number> key;
  if (!first.surely_empty() && !first.knows_earliest() && first.lower_bound() > s.key) {
    key = first.lower_bound();
  } else {
    key = s.past.earliest();
    if (!key) key = s.future.earliest();
    s.key_is_exact = key.has_value();
  }
  s.queued = key.has_value();
  if (!key) {
    dequeue(far_entry(s));
  } else if (*key != s.key) {
    s.key = *key;
    enqueue(far_entry(s), *key);
  }
  update_window_end(s);
}

/// Gathers the nodes of `due`. Returns null if they were moved to a bucket, or if only part of the work was done; in
/// both cases, the caller starts again with the top of the queue. Otherwise, returns the chain that holds them, whose
/// first slot holds a node. Precondition: `due` is the key of the far stores' entry, which is the top, and is_exact().
template <class Sync>
[[gnu::noinline]] chain* wheel_core<Sync>::gather_far(tick_number due, stripe& s) {
  if (due < s.window_begin) return gather_past(due, s);
  if (s.future.is_beyond_base(due)) move_window(s, begin_of_block(due));
  redistribute(s);
  const bucket& b = bucket_at(due);
  // Redistributing everything before its nodes would take too long.
  if (s.future.redistributing() && (b.due != due || !b.nodes.has_chunks())) {
    s.future.extract(due, Sync::redistributed_at_a_time, [&](node& n) { move_to_bucket(n, s); });
    update_window_end(s);
  }
  return nullptr;
}

template <class Sync>
chain* wheel_core<Sync>::gather_past(tick_number due, stripe& s) {
  s.past.redistribute(Sync::redistributed_at_a_time, [](node&) { return false; });
  // The list of `due` is the first one: rekey_far() has dropped earlier lists, whose nodes were erased.
  chain* const nodes = s.past.single_block();
  if (nodes == nullptr && !s.past.redistributing()) s.past.move_base(s.past.block_of(due));
  return nodes;
}

template <class Sync>
void wheel_core<Sync>::after_taking(const top_entry& e, stripe& s, bool all) {
  if (e.entry > mask_) return;
  if (all && buckets_[e.entry].nodes.has_chunks()) {  // not if next_due() in a callback has removed it
    buckets_[e.entry].nodes.release(s.pool);
    dequeue(e.entry);
  }
  if (begin_of_block(e.due) != s.window_begin) {
    // A callback or another thread may have scheduled an earlier node.
    const std::optional<top_entry> next = top();
    const tick_number begin = begin_of_block(next && next->due < e.due ? next->due : e.due);
    if (begin > s.window_begin) move_window(s, begin);
  }
  if (s.future.redistributing()) redistribute(s);
}

/// Precondition: no node of the stripe is due before `begin`.
template <class Sync>
[[gnu::noinline]] void wheel_core<Sync>::move_window(stripe& s, tick_number begin) noexcept {
  s.window_begin = begin;
  const far_store::block last = far_store::block(-1) >> block_shift_;
  const far_store::block first = s.future.block_of(begin);
  s.future.move_base(first + std::min<far_store::block>(mask_ >> block_shift_, last - first));
  update_window_end(s);
}

/// Updates window_last and far_after. Must be called after each change of the window, of the key, or of what is being
/// redistributed. The window ends before the first tick that is not yet redistributed, or with the last bucket.
template <class Sync>
void wheel_core<Sync>::update_window_end(stripe& s) noexcept {
  constexpr tick_number last_tick = std::numeric_limits<tick_number>::max();
  if (s.future.redistributing()) {
    s.window_last = s.future.redistributed_begin() - 1;
    s.far_after = s.future.redistributed_last();
  } else {
    const std::uint64_t ticks_left =
        static_cast<std::uint64_t>(last_tick) - static_cast<std::uint64_t>(s.window_begin);
    s.window_last = s.window_begin + static_cast<tick_number>(std::min<std::uint64_t>(mask_, ticks_left));
    s.far_after = s.window_last;
  }
  if (!s.queued || !s.future.has_lists())
    s.far_after = last_tick;
  else if (s.far_after < s.key)
    s.far_after = s.key - 1;
}

template <class Sync>
[[gnu::noinline]] void wheel_core<Sync>::redistribute(stripe& s) {
  s.key_is_exact = false;
  s.future.redistribute(Sync::redistributed_at_a_time, [&](node& n) {
    if (s.future.is_beyond_base(n.due)) return false;
    move_to_bucket(n, s);
    return true;
  });
  update_window_end(s);
}

template <class Sync>
void wheel_core<Sync>::move_to_bucket(node& n, stripe& s) {
  const tick_number due = n.due;
  bucket& b = bucket_at(due);  // if it has chunks, its tick is that of `n`, because both are in the window
  if (!b.nodes.has_room()) make_room_in_bucket(due, s);
  b.nodes.push_back(n);
}

template <class Sync>
void wheel_core<Sync>::shrink_to_fit(bool in_callback) noexcept {
  for (std::size_t i = 0; i <= stripe_mask_; ++i) {
    const std::lock_guard hold(stripes_[i].mutex);
    shrink_to_fit(i, in_callback);
  }
}

/// Precondition: the stripe is locked.
template <class Sync>
void wheel_core<Sync>::shrink_to_fit(std::size_t index, bool in_callback) noexcept {
  stripe& s = stripes_[index];
  for (std::size_t b = index; b <= mask_; b += stripe_mask_ + 1) {
    chain& nodes = buckets_[b].nodes;
    if (!nodes.has_chunks() || nodes.front(s.pool) != nullptr) continue;
    nodes.release(s.pool);
    dequeue(b);
  }
  s.past.shrink_to_fit(in_callback);  // take_due() may be reading one of its lists
  s.future.shrink_to_fit(false);
  if (s.queued && s.past.surely_empty() && s.future.surely_empty()) {
    s.queued = s.key_is_exact = false;
    dequeue(far_entry(s));
  }
  update_window_end(s);
  s.pool.shrink_to_fit();
}

}  // namespace rondo::detail
