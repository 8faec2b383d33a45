// When tasks begin in a simulation, and in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

#include "durable/dispatcher/run.hpp"
#include "durable/simulated_clocks.hpp"
#include "durable/simulated_database.hpp"
#include "durable/simulation_ledger.hpp"

namespace durable_test {

/// What is known of a process that lives.
struct server {
  std::string owner;
  const rondo::durable::dispatcher_options* options;
  rondo::time_point calm_since;  ///< since then nothing but tasks has happened to it
  rondo::time_point able_since;  ///< since then, it has also had an idle thread, and room for more tasks
  rondo::duration longest_step;
};

/// A process that has been calm, and had an idle thread and room, does not leave a task waiting that it could run. It
/// keeps the leases of its runs, gives back what it cannot run, and begins first what became due first.
class simulation_lateness {
 public:
  struct habits {
    rondo::duration most_late{};   ///< from when a task may begin until it does: some steps of all processes
    rondo::duration slow_claim{};  ///< what a claim takes besides
    /// Whether, while a transaction of one process has locked rows, another one may not see them. It finds them by its
    /// next periodic look.
    bool locked = false;
  };

  simulation_lateness(const simulated_clocks& clocks, const simulated_database& database,
                      const simulation_ledger& ledger, const habits& h)
      : clocks_(clocks), database_(database), ledger_(ledger), habits_(h) {}

  // They say what is wrong; nothing, if the text is empty.

  /// Looks at all rows. To be called often.
  std::string check(const std::vector<server>& all);
  /// Another task should have begun before this one.
  std::string begins(const server& by, const rondo::durable::detail::run& r) const;
  /// The run has lost its lease.
  std::string ends(const server& by, const rondo::durable::detail::run& r) const;

 private:
  using time_point = rondo::time_point;

  enum class duty { nobodys, holders, everybodys };
  /// Of a row, since it was first seen so.
  struct seen {
    std::int64_t id = 0, fence = 0;
    std::string owner = {};
    time_point before_claim = {}, claimed = {};  // with this fence: between these
    bool runs = false;
    time_point kept = time_point::max();   // due, with this fence, and since then either held or begun
    time_point waits = time_point::max();  // due, and with nobody who could not run it
  };
  struct lane {
    std::pair<std::int64_t, std::int64_t> first{std::numeric_limits<std::int64_t>::max(), 0};  // place and id
    bool runs = false;
  };

  void look_at_lanes();
  duty duty_of(const row& r, const server* holder) const;
  bool is_due(const row& r) const;
  bool is_first(const row& r) const;
  std::string look_at(const row& r, seen& s, const std::vector<server>& all) const;
  std::string check_holder(const row& r, seen& s, const server& holder) const;
  std::string check_everybody(const row& r, const seen& s, const std::vector<server>& all) const;
  rondo::duration most_late(const server& s) const {
    // Slow claims ask for one task after the other.
    return habits_.most_late + 2 * s.longest_step + static_cast<int>(5 + 2 * most_rows_) * habits_.slow_claim;
  }
  time_point connected() const;
  time_point disturbed() const;

  const simulated_clocks& clocks_;
  const simulated_database& database_;
  const simulation_ledger& ledger_;
  const habits habits_;
  std::vector<seen> all_, next_;  // in the order of the rows
  std::size_t most_rows_ = 0;     // at a time
  std::map<std::pair<std::string, std::string>, lane> lanes_;
  std::set<std::string> paused_;
  time_point pauses_changed_at_ = simulated_clocks::never, last_look_ = simulated_clocks::never;
};

}  // namespace durable_test
