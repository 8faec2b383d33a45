// What others leave for the database thread.
#pragma once

#include <mutex>
#include <utility>

#include "durable/dispatcher/run.hpp"
#include "durable/engine.hpp"

namespace rondo::durable::detail {

/// What has happened since the database thread last asked. Adding to it takes no memory and does not wait for the
/// database, so the scheduler's driver may.
class inbox {
 public:
  enum signal : unsigned {
    look = 1U << 0,     ///< see whether there is something to be claimed
    renew = 1U << 1,    ///< the leases of the runs in progress
    retry = 1U << 2,    ///< the turn that failed
    due = 1U << 3,      ///< a held task has become due
    closing = 1U << 4,  ///< claim and begin nothing any more
    last = 1U << 5,     ///< no run is left: tell what is to be told, and end
  };

  struct contents {
    run_list ended;
    unsigned signals = 0;
    bool empty() const noexcept { return ended.empty() && signals == 0; }
  };

  /// `woken` outlives this object.
  explicit inbox(session& woken) noexcept : session_(woken) {}

  // From any thread.

  /// Takes one run out of a list.
  void ended(run_list& from, run_list::iterator which) noexcept {
    add([&] { contents_.ended.splice(contents_.ended.end(), from, which); });
  }

  void raise(unsigned signals) noexcept {
    add([&] { contents_.signals |= signals; });
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
    if (is_first) session_.interrupt();  // later ones are found with the first
  }

  session& session_;
  std::mutex mutex_;
  contents contents_;
};

}  // namespace rondo::durable::detail
