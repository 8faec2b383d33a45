// The points of the repeated tasks of a simulation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

#include "durable/dispatcher/run.hpp"
#include "durable/engine.hpp"
#include "durable/row.hpp"
#include "durable/simulated_clocks.hpp"
#include "durable/simulated_database.hpp"

namespace durable_test {

/// A schedule that no dispatcher here can read.
inline constexpr const char* unreadable = "phases of the moon";

/// Each point is run, until a run of it is done or it is given up; or it is passed over, as its row says. Members that
/// return a text say what is wrong; nothing, if it is empty.
class simulation_points {
  struct known {
    std::int64_t first = 0;
    std::set<std::int64_t> over = {};
    std::optional<std::int64_t> begun = {};  // the last one of which a run has begun
  };

 public:
  using memory = std::map<std::int64_t, known>;  // by task

  /// What is known of the process of a run.
  struct runner {
    const rondo::durable::dispatcher_options* options;
    rondo::time_point calm_since;
    rondo::duration longest_step;
    rondo::time_point asked;  ///< when the first transaction was sent in which the run was to begin
  };

  simulation_points(const simulated_clocks& clocks, const simulated_database& database)
      : clocks_(clocks), database_(database) {}

  /// Declared, or declared anew.
  void declared(const row& r);
  /// The server has crashed: it may have forgotten that runs have begun.
  void forgot();
  ///@{
  /// The history goes back to when this was all that was known.
  const memory& known_now() const noexcept { return tasks_; }
  void went_back(const memory& to) {
    tasks_ = to;
    forgot();
  }
  ///@}
  std::string begins(const runner& by, const rondo::durable::detail::run& r);
  void is_done(std::int64_t id, std::int64_t point) { tasks_[id].over.insert(point); }
  /// What a dispatcher says of the row, before that takes effect. `done`: a run has returned.
  std::string passes(const rondo::durable::dispatcher_options& by, const row& r,
                     const rondo::durable::detail::passage& p, bool done);
  /// At the end of the simulation.
  std::string check_all(const row& r) const;

 private:
  bool is_too_old(std::int64_t point, rondo::durable::wall_time now, rondo::duration window) const;
  std::string check_missed(const runner& by, const rondo::durable::detail::run& r) const;
  std::string check_next(const rondo::durable::dispatcher_options& by, const row& r,
                         const rondo::durable::detail::passage& p) const;

  const simulated_clocks& clocks_;
  const simulated_database& database_;
  memory tasks_;
  rondo::time_point forgot_ = simulated_clocks::never;
};

}  // namespace durable_test
