#include <rondo/detail/wheel_core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rondo/detail/checks.hpp>

namespace rondo::detail {

std::size_t checked_buckets(std::size_t buckets) {
  if (buckets == 0 || buckets > max_buckets)
    throw std::invalid_argument("rondo: buckets must be 1 … " + std::to_string(max_buckets) + ", not " +
                                std::to_string(buckets));
  return std::bit_ceil(buckets);
}

wheel_core::wheel_core(std::size_t buckets, tick_number now)
    : mask_(checked_buckets(buckets) - 1),
      block_shift_(std::max(static_cast<int>(std::bit_width(mask_)) - window_block_bits, 0)),
      buckets_(mask_ + 1),
      future_(pool_, block_shift_),
      past_(pool_),
      queue_(mask_ + 2),
      last_ranks_(mask_ + 1) {
  move_window(now);
}

void wheel_core::insert_slowly(node& n, tick_number due) {
  make_room(due);
  add(n, due);
}

void wheel_core::make_room(tick_number due) {
  if (in_window(due)) return make_room_in_bucket(due);
  (due < window_begin_ ? past_ : future_).make_room(due);
  if (far_queued_ && far_key_ <= due) return;
  far_queued_ = far_key_is_exact_ = true;
  far_key_ = due;
  update_window_end();
  queue_.set(buckets_.size(), due);
}

void wheel_core::make_room_in_bucket(tick_number due) {
  bucket& b = buckets_[bucket_of(due)];
  const bool is_new = b.nodes.first == 0;
  b.nodes.make_room(pool_);
  b.due = due;
  if (!is_new) return;
  last_ranks_[bucket_of(due)] = 0;
  queue_.set(bucket_of(due), due);
}

void wheel_core::add(node& n, tick_number due) noexcept {
  const bool is_far = !in_window(due) && due >= window_begin_;
  if (is_far)
    future_.add(n, due);
  else if (in_window(due))
    buckets_[bucket_of(due)].nodes.push_at_once(n);
  else
    past_.add(n, due);
  n.rank = is_far ? next_far_rank() : node::after_far;
  if (is_eager_ && last_far_rank_ >= trial_ends_) is_eager_ = false;
}

void wheel_core::move(node& n, tick_number due) {
  if (n.is_cancelled()) {
    note_refused();
    n.wheel->erase(n);
    insert(n, due);
  } else {
    make_room(due);
    n.wheel->erase(n);
    add(n, due);
  }
  n.due = due;
  n.wheel = this;
  ++size;
}

void wheel_core::sweep_for_cancel() noexcept {
  if (--cancels_until_sweep_ != 0) return;
  cancels_until_sweep_ = cancels_per_sweep;
  pool_.sweep(1);
}

void wheel_core::note_refused() noexcept {
  if (last_far_rank_ >= trial_ends_) {
    trial_ends_ = last_far_rank_ + tried * node::rank_step;
    refused_ = 0;
  }
  if (++refused_ <= tried / 4) return;
  is_eager_ = true;
  trial_ends_ = last_far_rank_ + eager * node::rank_step;
}

wheel_core::open_tick wheel_core::try_open() {
  open_tick t{nullptr, queue_.top_due};
  // If far nodes are not in order, all nodes of a tick are gathered before it is opened.
  const bool gathers = queue_.top > mask_ || (must_gather() && far_queued_ && far_key_ <= t.due);
  if (gathers && far_key_is_exact_) {
    t.nodes = gather_far(t.due);
  } else if (gathers) {
    correct_far_key();
  } else if (bucket& b = buckets_[queue_.top]; b.nodes.front(pool_) != nullptr) {
    if (in_order && last_ranks_[queue_.top] == out_of_order) sort(queue_.top);
    t.nodes = &b.nodes;
  } else {
    correct_key();
  }
  if (t.nodes != nullptr) t.nodes->prefetch_first();
  return t;
}

/// Puts the nodes of a bucket in the order in which they were scheduled.
void wheel_core::sort(std::size_t index) {
  const chain& nodes = buckets_[index].nodes;
  sorted_.clear();
  nodes.for_each(pool_, [&](node& n) { sorted_.push_back(&n); });
  // Nodes that were added directly come last already.
  const auto end = std::find_if(sorted_.rbegin(), sorted_.rend(),
                                [](const node* n) { return n->rank != node::after_far; });
  std::sort(sorted_.begin(), end.base(), [](const node* x, const node* y) { return x->rank < y->rank; });
  auto next = sorted_.begin();
  for (chunk_pool::chunk c = nodes.first; c != 0; c = pool_.chunks[c].next) {
    for (node*& slot : nodes.slots(c, pool_)) {
      if (slot == nullptr) continue;
      slot = *next++;
      slot->position = pool_.number_of(c, slot);
    }
  }
  last_ranks_[index] = end == sorted_.rend() ? 0 : (*end)->rank;
  if (sorted_.size() > most_kept_sorted) std::vector<node*>().swap(sorted_);
}

/// Removes the tick's bucket if it is empty, moves the window, and redistributes a part.
void wheel_core::close(open_tick t) {
  if (t.due < window_begin_) return;  // it was overdue
  if (t.nodes->front(pool_) == nullptr) {
    t.nodes->release(pool_);  // perhaps next_due() has already done so
    queue_.set(bucket_of(t.due), std::nullopt);
  }
  // An earlier node may have been inserted in the meantime.
  const tick_number first = queue_.top != delay_queue::none ? std::min(queue_.top_due, t.due) : t.due;
  move_on(first);
}

/// Moves the window to the block of `first`, if that is a later one, redistributes a part, and sweeps one if there are
/// many cancelled nodes. Precondition: no node is due before `first`.
void wheel_core::move_on(tick_number first) {
  if (first >> block_shift_ > window_begin_ >> block_shift_) move_window(first);
  if (future_.rest.first != 0) redistribute();
  if (pool_.cancelled > 2 * size + part) pool_.sweep(part / chunk_pool::chunk_nodes + 1);
}

std::optional<tick_number> wheel_core::next_due() noexcept {
  while (queue_.top != delay_queue::none) {
    if (key_is_exact()) return queue_.top_due;
    correct_key();
  }
  return std::nullopt;
}

void wheel_core::correct_key() noexcept {
  if (queue_.top <= mask_) {  // no node is left in the bucket
    buckets_[queue_.top].nodes.release(pool_);
    queue_.set(queue_.top, std::nullopt);
    return;
  }
  correct_far_key();
}

void wheel_core::correct_far_key() noexcept {
  std::optional<far_lists::key> key = past_.earliest(far_key_);
  if (!key) key = future_.earliest(far_key_);
  far_queued_ = key.has_value();
  far_key_is_exact_ = key && key->at_it != nullptr;
  if (!key) {
    far_in_order_ = true;
    queue_.set(buckets_.size(), std::nullopt);
  } else if (key->due != far_key_) {
    far_key_ = key->due;
    queue_.set(buckets_.size(), far_key_);
  }
  update_window_end();
}

/// Moves a far node to its bucket. Returns false if it is due after the last one. (If its bucket has chunks, their tick
/// is that of the node, because both are in the window.)
struct wheel_core::bucket_mover {
  bool operator()(node& n) const {
    if (n.due > wheel.buckets_last_) return false;
    const std::size_t index = wheel.bucket_of(n.due);
    chain& nodes = wheel.buckets_[index].nodes;
    if (!nodes.push_at_once(n)) {
      wheel.make_room_in_bucket(n.due);
      nodes.push_at_once(n);
    }
    std::uint64_t& last_rank = wheel.last_ranks_[index];
    last_rank = n.rank < last_rank ? out_of_order : n.rank;
    n.rank ^= node::far_bit | node::near_bit;
    return true;
  }
  wheel_core& wheel;
};

/// Gathers the nodes of `due`. Returns the chain that holds them, whose first slot holds a node; or null if they were
/// moved to a bucket, or if only part of the work was done. Precondition: `due` is the key of the far nodes' entry,
/// which is the top, and exact.
chain* wheel_core::gather_far(tick_number due) {
  if (due < window_begin_) {
    past_.redistribute(part, [](node&) { return false; });
    // The list of `due` is the first one: correct_key() has dropped earlier lists, whose nodes were erased.
    chain* const nodes = past_.single_block();
    if (nodes == nullptr && past_.rest.first == 0) past_.move_base(due);
    return nodes;
  }
  if (due > buckets_last_) move_window(due);
  redistribute();
  const bucket& b = buckets_[bucket_of(due)];
  // Redistributing everything before its nodes would take too long.
  if (future_.rest.first != 0 && (must_gather() || b.due != due || b.nodes.first == 0)) {
    future_.extract(due, part, bucket_mover{*this});
    update_window_end();
  }
  return nullptr;
}

/// Moves the window to the block of `first`. Precondition: no node is due before that.
void wheel_core::move_window(tick_number first) noexcept {
  window_begin_ = first >> block_shift_ << block_shift_;
  const auto others = static_cast<tick_number>(mask_);
  if (__builtin_add_overflow(window_begin_, others, &buckets_last_))
    buckets_last_ = std::numeric_limits<tick_number>::max();
  future_.move_base(buckets_last_);
  update_window_end();
}

/// Updates window_last_ and far_after_. Must be called after each change of the window, of the far key, or of what is
/// being redistributed. The window ends before the first tick that is not yet redistributed, or with the last bucket.
void wheel_core::update_window_end() noexcept {
  const bool redistributing = future_.rest.first != 0;
  window_last_ = redistributing ? future_.rest_first - 1 : buckets_last_;
  far_after_ = redistributing ? future_.rest_last : window_last_;
  if (!far_queued_ || future_.lists.empty())
    far_after_ = std::numeric_limits<tick_number>::max();
  else if (far_after_ < far_key_)
    far_after_ = far_key_ - 1;
}

void wheel_core::redistribute() {
  far_key_is_exact_ = false;
  future_.redistribute(part, bucket_mover{*this});
  update_window_end();
}

void wheel_core::shrink_to_fit(bool is_open) noexcept {
  for (std::size_t b = 0; b <= mask_; ++b) {
    chain& nodes = buckets_[b].nodes;
    if (nodes.first == 0 || nodes.front(pool_) != nullptr) continue;
    nodes.release(pool_);
    queue_.set(b, std::nullopt);
  }
  if (pool_.cancelled != 0) pool_.sweep(pool_.chunks_in_use());
  past_.shrink_to_fit(is_open);
  future_.shrink_to_fit(false);
  if (far_queued_ && past_.surely_empty() && future_.surely_empty()) {
    far_queued_ = far_key_is_exact_ = false;
    far_in_order_ = true;
    queue_.set(buckets_.size(), std::nullopt);
  }
  update_window_end();
  std::vector<node*>().swap(sorted_);
  pool_.shrink_to_fit();
}

std::string wheel_core::fault() const {
  std::string wrong = pool_.fault();
  for (std::size_t b = 0; b <= mask_ && wrong.empty(); ++b) {
    wrong = fault_of_bucket(b);
    if (!wrong.empty()) wrong.insert(0, "bucket " + std::to_string(b) + ": ");
  }
  if (wrong.empty()) wrong = past_.fault();
  if (wrong.empty()) wrong = future_.fault();
  if (wrong.empty()) wrong = fault_of_far_nodes();
  if (wrong.empty()) wrong = queue_.fault();
  std::size_t cancelled = 0;
  for_each_linked([&](const node& n) {
    if (n.is_cancelled()) ++cancelled;
    if (wrong.empty() && n.wheel != this)
      wrong = "it holds a node due at tick " + std::to_string(n.due) + ", in no wheel, or in another";
  });
  if (wrong.empty() && cancelled != pool_.cancelled)
    wrong = "it holds " + std::to_string(cancelled) + " cancelled nodes, but counts " +
            std::to_string(pool_.cancelled);
  return wrong;
}

std::string wheel_core::fault_of_bucket(std::size_t index) const {
  const bucket& b = buckets_[index];
  std::string wrong = b.nodes.fault(pool_);
  b.nodes.for_each(pool_, [&](const node& n) {
    if (wrong.empty() && (n.due != b.due || bucket_of(n.due) != index || !n.is_near()))
      wrong =
          "its tick is " + std::to_string(b.due) + ", but it holds a node due at " + std::to_string(n.due);
  });
  if (!wrong.empty()) return wrong;
  if (b.nodes.first != 0 && (b.due < window_begin_ || b.due > buckets_last_))
    return "its tick, " + std::to_string(b.due) + ", is not in the window";
  const std::optional<tick_number> key = queue_.due_of(index);
  if (key.has_value() != (b.nodes.first != 0))
    return key ? "no chunks, but queued" : "chunks, but not queued";
  return key && *key != b.due ? "its key is not its tick" : "";
}

std::string wheel_core::fault_of_far_nodes() const {
  std::string wrong;
  bool is_exact = false;
  const auto check = [&](const node& n, bool is_near) {
    const bool is_outside = is_near ? n.due < window_begin_ : n.due >= window_begin_ && n.due > window_last_;
    is_exact |= n.due == far_key_ && !n.is_cancelled();
    if (!is_outside || n.is_near() != is_near)
      wrong = "a far node due at tick " + std::to_string(n.due) + " is in the wrong store";
    else if (wrong.empty() && (!far_queued_ || n.due < far_key_))
      wrong = "a node due at tick " + std::to_string(n.due) + " is before the key";
  };
  past_.for_each([&](const node& n) { check(n, true); });
  future_.for_each([&](const node& n) { check(n, false); });
  if (!wrong.empty()) return wrong;
  if (far_queued_ && far_key_is_exact_ && !is_exact) return "no far node is due at the exact key";
  const std::optional<tick_number> key = queue_.due_of(buckets_.size());
  const bool agree = far_queued_ ? key == far_key_ : !key;
  return agree ? "" : "the wheel and the delay queue disagree on the key of the far nodes";
}

void wheel_core::check_periodically(const char* after) noexcept {
  unused_check_steps_ += check_steps_per_call;
  if (unused_check_steps_ < buckets() + size) return;
  unused_check_steps_ = 0;
  std::size_t nodes = 0;
  for_each([&](const node&) { ++nodes; });
  std::string wrong = fault();
  if (wrong.empty() && nodes != size)
    wrong = "it holds " + std::to_string(nodes) + " nodes, but counts " + std::to_string(size);
  if (!wrong.empty()) die("after " + std::string(after) + " of a wheel: " + wrong);
}

}  // namespace rondo::detail
