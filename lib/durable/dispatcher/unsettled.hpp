// What the database does not know yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "durable/dispatcher/run.hpp"

namespace rondo::durable::detail {

/// What the next turn reports. It stays here until a turn succeeds. Only the database thread uses it.
class unsettled {
 public:
  /// Runs that are over, or must not be executed after all.
  run_list ended;
  /// Claimed tasks whose run has not begun, to be given back.
  run_list returned;
  /// Claimed tasks whose run should begin.
  run_list beginning;

  bool empty() const noexcept { return ended.empty() && returned.empty() && beginning.empty(); }
  std::size_t size() const noexcept { return ended.size() + returned.size() + beginning.size(); }

  /// No run may begin from now on.
  void give_up_beginning() noexcept { returned.splice(returned.end(), beginning); }

  /// The answer was lost, so anything in the turn may have been done.
  void answer_lost() noexcept {
    for (run_list* list : {&ended, &returned, &beginning})
      for (run& r : *list) r.perhaps_told = true;
  }

  /// Adds everything except the ends to a turn. Throws std::bad_alloc.
  void put_rest_into(turn& t) const {
    for (const run& r : returned) {
      t.returned.push_back(r.of());
      if (r.perhaps_told) t.unstarted.push_back(r.of());  // its run may have begun in the database
    }
    for (const run& r : beginning) put_beginning(r, t);
  }

  /// Adds the ends to a turn. Throws std::bad_alloc.
  void put_ends_into(turn& t) const {
    for (const run& r : ended) {
      if (r.ends_point()) {
        t.passed.push_back(passage_of(r));
        continue;
      }
      if (r.how == run::outcome::finished) t.finished.push_back(r.of());
      if (r.how == run::outcome::failed || r.how == run::outcome::dead)
        t.failed.push_back({r.of(), r.retry_after, r.retry_after ? "" : r.reason});
      if (r.how == run::outcome::snoozed) t.failed.push_back({r.of(), r.retry_after, "", false});
      if (r.how == run::outcome::not_started) t.unstarted.push_back(r.of());
    }
  }

  /// Whether a task of these ends, or the next one of its lane, can run within this time. (The next point of a repeated
  /// task may not be so soon.)
  bool release_before(duration window) const noexcept {
    return std::ranges::any_of(ended, [&](const run& r) {
      return r.in_lane || r.what.point || r.how == run::outcome::not_started ||
             (r.retry_after && *r.retry_after < window);
    });
  }

  /// Adds the tickets of all tasks that the database may still have as claims of this session. Throws std::bad_alloc.
  void add_tickets_to(std::vector<ticket>& all) const {
    for (const run_list* list : {&ended, &returned, &beginning})
      for (const run& r : *list) all.push_back(r.of());
  }

 private:
  static passage passage_of(const run& r) {
    const bool given_up = r.how != run::outcome::finished && r.how != run::outcome::passed_over;
    return {r.of(), r.next, given_up, given_up ? r.reason : ""};
  }
};

}  // namespace rondo::durable::detail
