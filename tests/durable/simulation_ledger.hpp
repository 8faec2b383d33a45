// What is known of the tasks of a simulation, and of the points of repeated ones, and what must therefore be true.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

/// What a handler does.
enum class ending { done, fails, snoozes, gives_up };

/// What the ledger knows of the process that begins or ends a run.
struct runner {
  std::string owner;
  rondo::time_point calm_since;  ///< since then nothing but tasks has happened to it
  const rondo::durable::dispatcher_options* options;
  /// What a claim took at most, by which its tasks may be late.
  rondo::duration longest_step{};
};

/// Knows only what a store's calls did and what handlers saw, and looks at the rows. Says what is wrong.
class simulation_ledger {
 public:
  using run = rondo::durable::detail::run;
  using ticket = rondo::durable::detail::ticket;

 private:
  static constexpr rondo::time_point never = simulated_clocks::never;

  struct snoozed {
    std::int64_t fence = 0;
    bool is_told = false, is_settled = false;  // its end is in a transaction that will settle it, or has
    rondo::time_point at = never;
    std::int64_t until = 0;
  };
  struct known {
    std::string queue, schedule;
    std::string begun_lane;  // that of the last run when it began
    int max_attempts = 0;
    rondo::time_point changed_at = never;  // by a call, or by the end of a run
    rondo::time_point declared_at = never, revived_at = never, begun_at = never;
    rondo::time_point cancelled_at = never;  // `last_fence` may still run
    rondo::time_point removed_at = never;
    std::int64_t last_fence = 0;
    std::int64_t begun_fence = 0;
    bool is_done = false;  // a run has returned done
    snoozed snooze{};      // of the last run, if it snoozed
  };

 public:
  /// What is known of the tasks of the history so far.
  struct memory {
    std::map<std::int64_t, known> tasks;
    simulation_points::memory points;
    std::size_t claims;
  };

  simulation_ledger(const simulated_clocks& clocks, const simulated_database& database)
      : clocks_(clocks), database_(database), points_(clocks, database) {}

  // A call of a store is between these two; nothing else changes rows meanwhile.
  void before_call();
  void after_call();
  void paused(const std::string& queue) { paused_at_[queue] = clocks_.now(); }
  void resumed(const std::string& queue) { paused_at_.erase(queue); }

  /// `asked`: when the first transaction was sent in which the run was to begin. `sent`: the same of the last one; the
  /// answers to those before it were lost.
  void begins(const runner& by, const run& r, rondo::time_point asked, rondo::time_point sent);
  void ends(const std::string& owner, const run& r, ending how, rondo::duration snoozed_for);
  /// Before the transaction takes effect.
  void commits(const runner& by, const rondo::durable::detail::turn& what);
  /// It has taken effect.
  void committed(const std::string& owner, const rondo::durable::detail::turn& what);
  /// The server has crashed, or gone back, and forgotten the beginning of that run, and refuses to learn of it again.
  void does_not_repeat(const std::string& owner, const ticket& of) { not_repeated_.insert({of, owner}); }
  void told_dead(const rondo::durable::task& t, const std::string& reason);
  /// The server has crashed. With `all`, it may have forgotten claims, too.
  void forgot(bool all);
  ///@{
  /// The database has gone back to when this was all that was known. What is excused: tasks submitted since then are gone,
  /// and their ids given to others. Of the tasks that were there, all that happened since then is undone: they run again, by
  /// other claims. What a session has claimed since then, and what has begun of that, is lost: it may still run at the same
  /// time as what takes its place, and nothing that it does counts.
  memory known_now() const { return {tasks_, points_.known_now(), claims_.size()}; }
  void went_back(const memory& to);
  /// Whether the history has gone back to before that claim.
  bool is_lost(const std::string& owner, const ticket& of) const {
    return went_back_ != never && !claimed_.contains({of, owner});
  }
  ///@}

  /// Whether there is nothing to do but to wait for the points of repeated tasks.
  bool all_is_done() const;
  /// Precondition: all_is_done().
  void check_the_end();
  std::string what_is_left() const;

  void wrong(const std::string& what);
  /// Empty if nothing is wrong.
  const std::string& what_is_wrong() const noexcept { return wrong_; }
  /// Changes whenever anything else happens.
  std::uint64_t checksum() const noexcept { return checksum_; }
  void note(std::uint64_t what) noexcept { checksum_ = (checksum_ ^ what) * 0x100000001b3ULL; }
  std::uint64_t runs() const noexcept { return runs_; }
  /// When the run of that claim was cancelled, or its claim was lost; or `never`. (Once its lease has run out, another
  /// dispatcher may remove the row. Then nobody tells the run.)
  rondo::time_point cancelled_at(const std::string& owner, const ticket& of) const;
  /// Whether a task was cancelled, moved, replaced or declared anew since then.
  bool taken_away_since(rondo::time_point t) const noexcept { return taken_away_ >= t; }
  bool forgot_since(rondo::time_point t) const noexcept { return forgot_ >= t; }
  /// Or `never`.
  rondo::time_point forgot_at() const noexcept { return forgot_; }
  /// When a call last changed the task, or a run of it has begun or ended; or `never`.
  rondo::time_point touched_at(std::int64_t id) const {
    const auto t = tasks_.find(id);
    return t != tasks_.end() ? std::max(t->second.changed_at, t->second.begun_at) : never;
  }
  /// Whether the task was dead and has been revived since then.
  bool revived_since(std::int64_t id, rondo::time_point t) const {
    const auto at = tasks_.find(id);
    return at != tasks_.end() && at->second.revived_at >= t;
  }
  /// Whether a handler has been called for that claim.
  bool has_begun(const std::string& owner, const ticket& of) const { return begun_.contains({of, owner}); }
  /// Whether that claim of the session is the one after the other claim of the task.
  bool follows(const ticket& one, const ticket& other) const {
    const auto at = previous_.find(one);
    return at != previous_.end() && at->second == other.fence;
  }

 private:
  /// A fence may be that of two claims if one of them is lost, and simulated_database::let_fences_repeat() was called.
  using claim = std::pair<ticket, std::string>;
  struct ended {
    ending how;
    std::string reason;
  };
  struct brief {
    std::int64_t id, due, fence, point;
    row_state state;
    std::size_t declared;  // a hash
  };

  static std::int64_t point_of(const row& r) { return r.point.value_or(0); }
  std::vector<brief> all_brief() const;
  void learn(const row& r);
  void note_beginning(const runner& by, const run& r);
  bool begins_lost(const runner& by, const run& r, rondo::time_point sent);
  std::optional<ending> ending_of(const std::string& owner, const ticket& of) const;
  bool is_dead_for(const row& r) const;
  void compare(const brief& before, const row* after);
  void check_claim(const runner& by, const run& r, rondo::time_point sent, const known& t);
  void check_time(const runner& by, const run& r, rondo::time_point asked, const known& t);
  void check_lane(const run& r, const row& own, rondo::time_point asked, const known& t);
  bool has_left_lane(std::int64_t id);
  void find_leaving();
  int most_attempts(const runner& by, const known& t) const noexcept {
    return t.max_attempts != 0 ? t.max_attempts : by.options->max_attempts;
  }
  void wrong(const run& r, const std::string& what);

  const simulated_clocks& clocks_;
  const simulated_database& database_;
  std::map<std::int64_t, known> tasks_;
  std::vector<brief> before_;
  std::set<std::int64_t> leaving_;  // tasks that run, and then change their lane
  std::map<std::string, rondo::time_point> paused_at_;
  simulation_points points_;
  // Claims of the history, in their order; of each, the fence of the claim before; when those that are not were lost.
  std::vector<claim> claims_;
  std::set<claim> claimed_;
  std::map<ticket, std::int64_t> previous_;
  std::map<std::int64_t, std::int64_t> last_claim_;  // a fence, by task
  std::map<claim, rondo::time_point> lost_at_;
  // Of all histories.
  std::set<claim> begun_, not_repeated_;
  std::set<ticket> told_dead_;  // by on_dead
  std::map<claim, ended> endings_;
  rondo::time_point forgot_ = never, went_back_ = never, taken_away_ = never;
  std::string wrong_;
  std::uint64_t checksum_ = 0xcbf29ce484222325ULL, runs_ = 0;
};

}  // namespace durable_test
