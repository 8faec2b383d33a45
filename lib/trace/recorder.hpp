// What one scheduler writes into its trace.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <rondo/firing.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>
#include <rondo/trace.hpp>

#include "sync/thread_local.hpp"
#include "trace/ring.hpp"

namespace rondo::detail {

struct trace_access {
  static trace_ring* of(const trace* t) noexcept { return t != nullptr ? t->ring_.get() : nullptr; }
};

/// Why a pass begins.
enum class woken : std::uint8_t {
  due,       // the driver thread has slept until then
  rung,      // an earlier timer was set, or the scheduler is being stopped
  awake,     // the driver thread has not slept
  polled,    // by the user's loop
  advanced,  // virtual time
};

enum class traced : std::uint8_t {
  pass,        // of the driver; takes time
  run,         // on the driver; takes time
  job,         // a run that an executor had; takes time
  hand_over,   // a call of an executor by the driver; takes time
  missed,      // points, reported to a run
  overlapped,  // points dropped because a run was in progress
  rejected,    // a run whose job was destroyed
  threw,       // a run whose executor threw
};

/// Small numbers for threads that record, from 1 on. Not those of shards, of which there are few.
class traced_thread {
 public:
  static std::uint32_t number() noexcept {
    if (own_number == 0) [[unlikely]]
      own_number = next();
    return own_number;
  }

 private:
  static std::uint32_t next() noexcept;

  RONDO_THREAD_LOCAL static constinit std::uint32_t own_number;
};

/// Does nothing but say so if the scheduler has no trace. All other members require that it has one. Lock-free.
class recorder {
 public:
  using begun = trace_ring::begun;

  recorder(std::shared_ptr<trace> into, std::uint32_t scheduler, std::string_view name,
           bool is_virtual) noexcept
      : ring_(trace_access::of(into.get())),
        scheduler_(scheduler),
        is_virtual_(is_virtual),
        into_(std::move(into)) {
    std::memcpy(name_.data(), name.data(), std::min(name.size(), sizeof name_));
  }

  explicit operator bool() const noexcept { return ring_ != nullptr; }

  begun pass(time_point begin, woken why) const noexcept {
    return ring_->begin(label(traced::pass),
                        {bits(begin), std::uint64_t{scheduler_} << 8 | static_cast<std::uint8_t>(why),
                         name_[0], name_[1], name_[2], name_[3]},
                        {});
  }
  /// `from`: for a run on the driver and a hand-over, since when only the driver keeps it from starting; for a job, when it
  /// was handed over.
  begun run(traced what, const firing& fact, time_point begin, time_point from) const noexcept {
    if (what != traced::hand_over && fact.missed != 0) note(traced::missed, fact, begin, fact.missed);
    return record(what, fact, begin, bits(from));
  }
  /// `count` is the number of points that were missed or overlapped.
  void note(traced what, const firing& fact, time_point now, std::uint64_t count) const noexcept {
    record(what, fact, now, count);
  }
  static void end(const begun& p, duration length) noexcept { trace_ring::end(p, length); }

 private:
  static std::uint64_t bits(time_point t) noexcept {
    return static_cast<std::uint64_t>(t.time_since_epoch().count());
  }
  trace_ring::label label(traced what) const noexcept {
    return {.kind = static_cast<std::uint8_t>(what),
            .is_virtual = is_virtual_,
            .thread = traced_thread::number()};
  }
  begun record(traced what, const firing& fact, time_point begin, std::uint64_t more) const noexcept {
    const timer_id_parts& id = timer_id_access::parts(fact.id);
    return ring_->begin(label(what),
                        {bits(begin), bits(fact.due), std::uint64_t{scheduler_} << 32 | id.slot,
                         id.generation, fact.run, more},
                        fact.name);
  }

  trace_ring* const ring_;
  const std::uint32_t scheduler_;
  const bool is_virtual_;
  std::array<std::uint64_t, 4> name_{};
  const std::shared_ptr<trace> into_;
};

}  // namespace rondo::detail
