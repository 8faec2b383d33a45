// What is known of the tasks of a simulation, and what must therefore be true.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/time.hpp>

#include "durable/dispatcher/run.hpp"
#include "durable/engine.hpp"
#include "durable/simulated_clocks.hpp"
#include "durable/simulated_database.hpp"
#include "durable/simulation_points.hpp"

namespace durable_test {

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
  void ends(const run& r, ending how, rondo::duration snoozed_for);
  /// Before the transaction takes effect.
  void commits(const runner& by, const rondo::durable::detail::turn& what);
  /// It has taken effect.
  void committed(const rondo::durable::detail::turn& what);
  /// The server has crashed and forgotten the beginning of that run, and refuses to learn of it again.
  void does_not_repeat(const rondo::durable::detail::ticket& of) { tasks_[of.id].not_repeated = of.fence; }
  void told_dead(const rondo::durable::task& t, const std::string& reason);
  /// The server has crashed. With `all`, it may have forgotten claims, too.
  void forgot(bool all);

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
  /// When the run of that claim was cancelled, or `never`. (Once its lease has run out, another dispatcher may remove
  /// the row. Then nobody tells the run.)
  rondo::time_point cancelled_at(const rondo::durable::detail::ticket& of) const;
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
  bool has_begun(const rondo::durable::detail::ticket& of) const {
    const auto t = tasks_.find(of.id);
    return t != tasks_.end() && t->second.begun_fence == of.fence;
  }

 private:
  static constexpr rondo::time_point never = simulated_clocks::never;

  struct snoozed {
    std::int64_t fence = 0;
    bool is_told = false, is_settled = false;  // its end is in a transaction that will settle it, or has
    rondo::time_point at = never;
    std::int64_t until = 0;
  };
  struct known {
    std::string queue, lane, schedule;
    int max_attempts = 0;
    rondo::time_point changed_at = never;  // by a call, or by the end of a run
    rondo::time_point declared_at = never, revived_at = never, begun_at = never;
    rondo::time_point cancelled_at = never;  // `last_fence` may still run
    rondo::time_point removed_at = never;
    std::int64_t last_fence = 0;
    std::int64_t begun_fence = 0;
    std::int64_t not_repeated = 0;  // a fence
    bool is_done = false;           // a run has returned done
    struct ended {
      ending how;
      std::string reason;
    };
    std::map<std::int64_t, ended> endings;  // by fence
    snoozed snooze{};                       // of the last run, if it snoozed
  };
  struct brief {
    std::int64_t id, due, fence, point;
    row_state state;
    std::size_t declared;  // a hash
  };

  static std::int64_t point_of(const row& r) { return r.point.value_or(0); }
  std::vector<brief> all_brief() const;
  void learn(const row& r);
  void compare(const brief& before, const row* after);
  void check_claim(const runner& by, const run& r, rondo::time_point sent, const known& t);
  void check_time(const runner& by, const run& r, rondo::time_point asked, const known& t);
  void check_lane(const run& r, rondo::time_point asked, const known& t);
  int most_attempts(const runner& by, const known& t) const noexcept {
    return t.max_attempts != 0 ? t.max_attempts : by.options->max_attempts;
  }
  void wrong(const run& r, const std::string& what);

  const simulated_clocks& clocks_;
  const simulated_database& database_;
  std::map<std::int64_t, known> tasks_;
  std::vector<brief> before_;
  std::map<std::string, rondo::time_point> paused_at_;
  simulation_points points_;
  rondo::time_point forgot_ = never, taken_away_ = never;
  std::string wrong_;
  std::uint64_t checksum_ = 0xcbf29ce484222325ULL, runs_ = 0;
};

}  // namespace durable_test
