// The memory of a trace: the events that were recorded last.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>

#include <rondo/time.hpp>

#include "sync/sync.hpp"

namespace rondo::detail {

/// A ring of slots, one for each event. Threads write at the same time, and others read what they write.
///
/// A thread takes the next number, which says the slot, and claims the slot. If another thread is still writing there,
/// because it was stopped while the ring came round, the event is left out. So a slot has one writer at a time.
///
/// Memory order: a reader accepts a slot if its state says twice that the event of that number is complete, before and after
/// the other words are read. The state acquires, so these are not older. If one of them is newer, its store, which
/// releases, comes after the claim of the newer event; reading it acquires that claim, and the second look finds it.
class
    trace_ring {  // NOLINT(clang-analyzer-optin.performance.Padding): what all threads write has its own line
 public:
  using word = std::uint64_t;
  /// What an event says, in addition to its label and its duration.
  using content = std::array<word, 6>;

  /// Which sort of event it is, and which thread has recorded it.
  struct label {
    std::uint8_t kind = 0;  // less than 32
    bool is_virtual = false;
    bool is_named = false;     // the next number is that of its name
    std::uint32_t thread = 0;  // less than 2^24
  };

  struct event {
    label what;
    duration length;  // negative while it is in progress
    content says;
  };

 private:
  struct alignas(64) slot {
    sync::atomic<word> state;
    sync::atomic<std::int64_t> length;
    std::array<sync::atomic<word>, std::tuple_size_v<content>> says;
  };

 public:
  /// An event in progress; or one that was left out.
  class begun {
   public:
    begun() noexcept = default;

   private:
    friend class trace_ring;
    begun(slot& at, std::uint64_t number) noexcept : at_(&at), number_(number) {}

    slot* at_ = nullptr;
    std::uint64_t number_ = 0;
  };

  /// Precondition: `slots` is a power of two, and at least 2. Throws std::bad_alloc.
  explicit trace_ring(std::size_t slots) : mask_(slots - 1), slots_(new slot[slots]) {
    for (std::uint64_t i = 0; i != slots; ++i)  // as if the ring had come round once
      slots_[i].state.store((i - slots) << 32 | complete, relaxed);
  }

  /// Records the beginning of an event, or an event that takes no time.
  begun begin(label what, const content& says, std::string_view name) noexcept {
    what.is_named = !name.empty();
    const std::uint64_t number = next_.fetch_add(what.is_named ? 2 : 1, relaxed);
    __builtin_prefetch(&slots_[(number + prefetch_distance) & mask_], 1);
    if (what.is_named) __builtin_prefetch(&slots_[(number + prefetch_distance + 1) & mask_], 1);
    if (what.is_named) write(number + 1, {.kind = name_kind, .thread = what.thread}, words_of(name));
    return write(number, what, says);
  }

  /// Has no effect if newer events have replaced this one.
  static void end(const begun& p, duration length) noexcept {
    if (p.at_ == nullptr) return;
    std::int64_t expected = in_progress(p.number_);
    p.at_->length.compare_exchange_strong(expected, std::max(length, duration::zero()).count(), relaxed);
  }

  /// Calls visit(event, name, number) for each event that is in the ring, in the order in which they began. Leaves out what
  /// is being written.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::uint64_t end = next_.load(relaxed);
    for (std::uint64_t i = end - std::min<std::uint64_t>(end, mask_ + 1); i != end; ++i) {
      event e;
      if (!read(i, e) || e.what.kind == name_kind) continue;
      event name{};
      if (e.what.is_named && !read(i + 1, name)) name = {};
      std::array<char, sizeof(content) + 1> text{};
      std::memcpy(text.data(), name.says.data(), sizeof(content));
      visit(e, std::string_view(text.data()));
    }
  }

  std::size_t size() const noexcept { return mask_ + 1; }
  std::uint64_t lost() const noexcept {
    const std::uint64_t end = next_.load(relaxed);
    return end - std::min<std::uint64_t>(end, mask_ + 1);
  }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  static constexpr word complete = 1;
  static constexpr std::size_t prefetch_distance = 8;  // the ring is larger than what a processor keeps near
  static constexpr std::uint8_t name_kind = 31;

  // The state: the lower half of the event's number, its label, and whether it is complete.
  static word state_of(std::uint64_t number, label l) noexcept {
    return number << 32 | word{l.thread} << 8 | word{l.is_virtual ? 1U : 0U} << 7 |
           word{l.is_named ? 1U : 0U} << 6 | word{l.kind} << 1;
  }
  static label label_of(word state) noexcept {
    return {.kind = static_cast<std::uint8_t>(state >> 1 & 31U),
            .is_virtual = (state >> 7 & 1U) != 0,
            .is_named = (state >> 6 & 1U) != 0,
            .thread = static_cast<std::uint32_t>(state >> 8 & 0xffffffU)};
  }
  // Differs from event to event of a slot, so that an event that has been replaced does not end another one.
  static std::int64_t in_progress(std::uint64_t number) noexcept {
    return -1 - static_cast<std::int64_t>(number);
  }

  static content words_of(std::string_view name) noexcept {
    content says{};
    std::memcpy(says.data(), name.data(), std::min(name.size(), sizeof says));
    return says;
  }

  begun write(std::uint64_t number, label what, const content& says) noexcept {
    slot& s = slots_[number & mask_];
    const word state = state_of(number, what);
    word before = s.state.load(relaxed);
    const bool is_newer = static_cast<std::int32_t>((before >> 32) - number) > 0;
    if ((before & complete) == 0 || is_newer) return {};
    if (!s.state.compare_exchange_strong(before, state, std::memory_order_acquire, relaxed)) return {};
    s.length.store(in_progress(number), std::memory_order_release);
    for (std::size_t i = 0; i != says.size(); ++i) s.says[i].store(says[i], std::memory_order_release);
    s.state.store(state | complete, std::memory_order_release);
    return {s, number};
  }

  bool read(std::uint64_t number, event& e) const noexcept {
    const slot& s = slots_[number & mask_];
    const word state = s.state.load(std::memory_order_acquire);
    if ((state & complete) == 0 || state >> 32 != (number & 0xffffffffU)) return false;
    e.what = label_of(state);
    e.length = duration(s.length.load(std::memory_order_acquire));
    for (std::size_t i = 0; i != e.says.size(); ++i) e.says[i] = s.says[i].load(std::memory_order_acquire);
    return s.state.load(relaxed) == state;
  }

  const std::size_t mask_;
  const std::unique_ptr<slot[]> slots_;
  alignas(64) sync::atomic<std::uint64_t> next_{0};  // number
};

}  // namespace rondo::detail
