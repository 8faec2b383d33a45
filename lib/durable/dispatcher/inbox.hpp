// What other threads leave for the database thread.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "durable/dispatcher/run.hpp"
#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// What has happened since the database thread last took the contents. Adding to it needs no memory and does not wait
/// for the database, so the scheduler's driver may do it.
class inbox {
 public:
  enum signal : unsigned {
    look = 1U << 0,     ///< check for tasks to claim
    renew = 1U << 1,    ///< renew the leases of the runs in progress
    retry = 1U << 2,    ///< repeat the turn that failed
    due = 1U << 3,      ///< a held task has become due
    closing = 1U << 4,  ///< stop claiming and beginning tasks
    last = 1U << 5,     ///< no run is left: report the rest, and end
  };

  struct contents {
    run_list ended;
    unsigned signals = 0;
    bool empty() const noexcept { return ended.empty() && signals == 0; }
  };

  /// `woken` outlives this object.
  explicit inbox(session& woken) noexcept : session_(woken) {}

  // From any thread.

  /// Moves one run from a list into the inbox.
  void ended(run_list& from, run_list::iterator which) noexcept {
    add([&] { contents_.ended.splice(contents_.ended.end(), from, which); });
  }

  void raise(unsigned signals) noexcept {
    add([&] { contents_.signals |= signals; });
  }

  /// Adds the tickets of the ended runs in it. Throws std::bad_alloc.
  void add_ended_to(std::vector<ticket>& all) const {
    const std::lock_guard hold(mutex_);
    for (const run& r : contents_.ended) all.push_back(r.of());
  }

  // From the database thread.

  contents take() noexcept {
    const std::lock_guard hold(mutex_);
    return std::exchange(contents_, {});
  }

 private:
  template <class Change>
  void add(const Change& change) noexcept {
    bool is_first = false;
    {
      const std::lock_guard hold(mutex_);
      is_first = contents_.empty();
      change();
    }
    if (is_first) session_.interrupt();  // the thread finds later additions together with the first
  }

  session& session_;
  mutable std::mutex mutex_;
  contents contents_;
};

}  // namespace rondo::durable::detail
