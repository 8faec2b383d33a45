#include "durable/sqlite/session.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "durable/microseconds.hpp"

namespace rondo::durable::detail::sqlite {

namespace {

// The longest wait for the lock. Dispatchers try again, and stop() gives up after two seconds.
constexpr std::chrono::milliseconds longest_wait{1000};

// Macros, because statements are literals. They are about a row of rondo_task that has a lane.
#define RONDO_IN_ITS_LANE(condition)                                                    \
  "EXISTS (SELECT 1 FROM rondo_task AS other WHERE other.queue = rondo_task.queue AND " \
  "other.lane = rondo_task.lane AND " condition ")"
// A task of the lane has an earlier place. (The condition that it has one is that of the index.)
#define RONDO_PRECEDED                                                            \
  RONDO_IN_ITS_LANE(                                                              \
      "other.place IS NOT NULL AND (other.place, other.id) < (rondo_task.place, " \
      "rondo_task.id)")
// Another task of the lane runs.
#define RONDO_LANE_RUNS RONDO_IN_ITS_LANE("other.state IN ({begun}) AND other.id <> rondo_task.id")
// The parameter is a list of schedules: a line feed, and one after each. No schedule that can be read contains any.
#define RONDO_READABLE "(schedule IS NULL OR instr(?, char(10) || schedule || char(10)) = 0)"

std::optional<std::chrono::seconds> offset_in(const rows& row, int column) {
  return row.null(column) ? std::nullopt : std::optional(std::chrono::seconds(row.integer(column)));
}

}  // namespace

file_session::file_session(std::string file, settings with, std::string owner, claim_rules rules)
    : file_(std::move(file)), with_(std::move(with)), owner_(std::move(owner)), rules_(std::move(rules)) {
  auto& queues = rules_.queues;  // a claim must check each only once
  std::sort(queues.begin(), queues.end());
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  with_.patience = std::min(with_.patience, longest_wait);
  open();
  seen_version_ = data_version();
}

void file_session::open() {
  // A power cut may undo the connection's last commits. It also ends all processes of the host, so their tasks run
  // again.
  with_.leave_old_file();
  connection fresh = open_connection(file_, with_);
  has_lock_ = false;  // the file may be another one
  locks_.emplace(file_);
  database_.emplace(std::move(fresh));
  seen_version_ = -1;  // versions of two connections cannot be compared
}

/// The number by which others see that a session lives. Unlocked again unless the row with it has been committed: the
/// next session gets the same number.
class file_session::entrance {
 public:
  explicit entrance(owner_locks& locks) noexcept : locks_(locks) {}
  ~entrance() {
    if (number_) locks_.unlock(*number_);
  }
  entrance(const entrance&) = delete;
  entrance& operator=(const entrance&) = delete;

  void lock(std::int64_t number) noexcept {
    if (locks_.lock_own(number)) number_ = number;
  }
  /// Returns whether it is locked.
  bool keep() noexcept { return std::exchange(number_, std::nullopt).has_value(); }

 private:
  owner_locks& locks_;
  std::optional<std::int64_t> number_;
};

/// Precondition: a transaction has begun. The row is not visible to others before it is locked.
void file_session::enter(entrance& by) {
  database_->change("INSERT INTO rondo_owner (name) VALUES (?) ON CONFLICT DO NOTHING", owner_);
  rows own = database_->query("SELECT id FROM rondo_owner WHERE name = ?", owner_);
  own.next();
  by.lock(own.integer(0));
}

/// Frees what sessions that have ended held and had not begun. Returns whether there was such a session.
bool file_session::free_held_by_dead() {
  std::vector<std::pair<std::int64_t, std::string>> dead;
  {
    rows others = database_->query("SELECT id, name FROM rondo_owner WHERE name <> ?", owner_);
    while (others.next())
      if (locks_->lock_dead(others.integer(0))) dead.emplace_back(others.integer(0), others.text(1));
  }
  const struct end {
    owner_locks& locks;
    const decltype(dead)& all;
    ~end() {
      for (const auto& [number, name] : all) locks.unlock(number);
    }
  } at_end{*locks_, dead};
  if (dead.empty()) return false;
  unit_of_work all(*database_);
  for (const auto& [number, name] : dead) {
    database_->change(
        "UPDATE rondo_task INDEXED BY rondo_task_lease SET state = {waiting}, owner = NULL, lease_until = "
        "NULL,"
        " fence = fence + 1 WHERE state IN ({claimed}) AND state = {held} AND owner = ?",
        name);
    database_->change("DELETE FROM rondo_owner WHERE id = ?", number);
  }
  all.commit();
  return true;
}

std::int64_t file_session::data_version() {
  rows version = database_->query("PRAGMA data_version");
  version.next();
  return version.integer(0);
}

std::int64_t file_session::lease_from(std::int64_t when) const {
  return when + microseconds_of(rules_.lease);
}

turn_result file_session::take(const turn& what) {
  if (!database_) open();
  try {
    turn_result done;
    unit_of_work all(*database_);
    entrance own(*locks_);  // ends before the transaction
    if (!has_lock_) enter(own);
    // Reads the clock only now, as waiting for the lock may have taken a while. Rounds down, so that the remaining
    // times are not too short.
    now_ = std::chrono::floor<std::chrono::microseconds>(with_.clock()).time_since_epoch().count();
    finish(what, done);
    fail(what, done);
    pass(what, done);
    put_back(what);
    renew(what, done);
    begin(what, done);
    watch(what, done);
    if (what.adopt) adopt(done);
    if (what.claim_up_to != 0) claim_tasks(what, done);
    all.commit();
    if (own.keep()) has_lock_ = true;
    return done;
  } catch (const error& e) {
    if (e.broken()) database_.reset();
    throw;
  }
}

void file_session::finish(const turn& what, turn_result& done) {
  for (const ticket& t : what.finished) {
    if (database_->change(
            "DELETE FROM rondo_task WHERE id = ? AND fence = ? AND owner = ? AND state IN ({begun})", t.id,
            t.fence, owner_) != 0)
      done.finished.push_back(t);
  }
}

void file_session::fail(const turn& what, turn_result& done) {
  for (const failure& f : what.failed) {
    int changed = 0;
    if (f.retry_after) {
      changed = database_->change(
          "UPDATE rondo_task SET state = {waiting}, due = iif(attempt = 0, due, ?),"
          " attempt = max(attempt - ?, 0), owner = NULL, lease_until = NULL"
          " WHERE id = ? AND fence = ? AND owner = ? AND state = {running}",
          now_ + 1 + microseconds_of(*f.retry_after), std::int64_t{f.counts ? 0 : 1}, f.of.id, f.of.fence,
          owner_);
    } else {
      changed = database_->change(
          "UPDATE rondo_task SET state = {dead}, reason = ?, owner = NULL, lease_until = NULL"
          " WHERE id = ? AND fence = ? AND owner = ? AND state = {running}",
          f.reason, f.of.id, f.of.fence, owner_);
    }
    if (changed == 0) {  // the task may have been cancelled
      changed = database_->change(
          "DELETE FROM rondo_task WHERE id = ? AND fence = ? AND owner = ? AND state = {cancelled}", f.of.id,
          f.of.fence, owner_);
      if (changed != 0) done.removed.push_back(f.of);
    }
    if (changed == 0 && !f.retry_after) {  // or this is a repetition, because the first answer was lost
      rows dead = database_->query(
          "SELECT 1 FROM rondo_task WHERE id = ? AND fence = ? AND state = {dead} AND reason = ?", f.of.id,
          f.of.fence, f.reason);
      changed = dead.next() ? 1 : 0;
    }
    if (changed != 0) done.failed.push_back(f.of);
  }
}

void file_session::pass(const turn& what, turn_result& done) {
  for (const passage& p : what.passed) {
    bool is_cancelled = false;
    std::optional<zoned_point> next = p.next;
    {
      rows row = database_->query(
          "SELECT state = {cancelled}, state = {running} AND attempt = 0, point, point_offset FROM rondo_task"
          " WHERE id = ? AND fence = ? AND owner = ? AND state IN ({claimed})",
          p.of.id, p.of.fence, owner_);
      if (!row.next()) continue;
      is_cancelled = row.integer(0) != 0;
      if (row.integer(1) != 0) next = {wall_time_of(row.integer(2)), offset_in(row, 3)};
    }
    done.passed.push_back(p.of);
    if (is_cancelled) done.removed.push_back(p.of);
    if (!is_cancelled && next) {
      database_->change(
          "UPDATE rondo_task SET state = {waiting}, due = ?1, point = ?1, point_offset = ?2, place = NULL,"
          " attempt = 0, owner = NULL, lease_until = NULL, reason = iif(?3, ?4, NULL) WHERE id = ?5",
          microseconds_of(next->at), offset_of(*next), static_cast<std::int64_t>(p.given_up), p.reason,
          p.of.id);
    } else if (!is_cancelled && p.given_up) {
      database_->change(
          "UPDATE rondo_task SET state = {dead}, reason = ?, owner = NULL, lease_until = NULL WHERE "
          "id = ?",
          p.reason, p.of.id);
    } else {
      database_->change("DELETE FROM rondo_task WHERE id = ?", p.of.id);
    }
  }
}

void file_session::put_back(const turn& what) {
  for (const ticket& t : what.unstarted) {
    database_->change(
        "UPDATE rondo_task SET state = {waiting}, attempt = max(attempt - 1, 0), owner = NULL, lease_until = "
        "NULL"
        " WHERE id = ? AND fence = ? AND owner = ? AND state = {running}",
        t.id, t.fence, owner_);
    database_->change(
        "DELETE FROM rondo_task WHERE id = ? AND fence = ? AND owner = ? AND state = {cancelled}", t.id,
        t.fence, owner_);
  }
  for (const ticket& t : what.returned) {
    database_->change(
        "UPDATE rondo_task SET state = {waiting}, owner = NULL, lease_until = NULL"
        " WHERE id = ? AND fence = ? AND owner = ? AND state = {held}",
        t.id, t.fence, owner_);
  }
}

void file_session::renew(const turn& what, turn_result& done) {
  for (const ticket& t : what.renewed) {
    if (database_->change("UPDATE rondo_task SET lease_until = ? WHERE id = ? AND fence = ? AND owner = ? "
                          "AND state IN ({begun})",
                          lease_from(now_), t.id, t.fence, owner_) != 0)
      done.renewed.push_back(t);
  }
  for (const ticket& t : what.kept) {
    database_->change(
        "UPDATE rondo_task SET lease_until = ? WHERE id = ? AND fence = ? AND owner = ? AND state IN "
        "({begun}) "
        "AND "
        "lease_until < ?",
        lease_from(now_), t.id, t.fence, owner_, now_ + microseconds_of(rules_.lease) / 2);
  }
}

void file_session::begin(const turn& what, turn_result& done) {
  std::map<ticket, zoned_point> points;
  for (const pointed& p : what.points) points.emplace(p.of, p.point);
  // Asked once, as the condition costs each beginning 0.5 us.
  const std::int64_t none_paused = database_->query("SELECT 1 FROM rondo_paused").next() ? 0 : 1;
  for (const ticket& t : what.begun) {
    const auto found = points.find(t);
    const auto p = found != points.end() ? std::optional(found->second) : std::nullopt;
    // State 2 means that this request is a repetition, because the first answer was lost.
    if (database_->change("UPDATE OR FAIL rondo_task SET state = {running}, attempt = attempt + (state = "
                          "{held}), lease_until = ?1,"
                          " due = iif(state = {held} AND point <> ?2, ?2, due),"
                          " point = iif(state = {held} AND point <> ?2, ?2, point),"
                          " point_offset = iif(state = {held} AND ?2 IS NOT NULL, ?8, point_offset)"
                          " WHERE id = ?3 AND fence = ?4 AND owner = ?6 AND (state = {held}"
                          " AND iif(point <> ?2, ?2, due) <= ?5 AND (?7 OR NOT EXISTS"
                          " (SELECT 1 FROM rondo_paused WHERE rondo_paused.queue = rondo_task.queue))"
                          " AND (lane IS NULL OR NOT " RONDO_PRECEDED " AND NOT " RONDO_LANE_RUNS
                          ") OR state = {running})",
                          lease_from(now_), p ? std::optional(microseconds_of(p->at)) : std::nullopt, t.id,
                          t.fence, now_, owner_, none_paused, p ? offset_of(*p) : std::nullopt) != 0) {
      done.begun.push_back(t);
      continue;
    }
    rows held = database_->query(
        "SELECT 1 FROM rondo_task WHERE id = ? AND fence = ? AND owner = ? AND state = {held}", t.id, t.fence,
        owner_);
    if (held.next()) done.early.push_back(t);
  }
}

void file_session::watch(const turn& what, turn_result& done) {
  for (const ticket& t : what.watched) {
    rows own = database_->query(
        "SELECT 1 FROM rondo_task WHERE id = ? AND fence = ? AND owner = ? AND state IN ({held}, {running})",
        t.id, t.fence, owner_);
    if (!own.next()) done.cancelled.push_back(t);
  }
}

claim file_session::claim_of(const rows& row) const {
  return {task_of(row),
          time_until(row.integer(3), now_),
          static_cast<int>(row.integer(8)),
          row.integer(9) != 0,
          row.text(10),
          static_cast<missed_points>(row.integer(11)),
          offset_in(row, 12)};
}

void file_session::adopt(turn_result& done) {
  // The leases start again, so that a claim in the same turn does not find the tasks expired.
  for (const std::string& queue : rules_.queues) {
    rows held = database_->query(
        "UPDATE rondo_task SET lease_until = max(due, ?) + ?"
        " WHERE queue = ? AND state IN ({claimed}) AND state = {held} AND owner = ?"
        " RETURNING id, queue, key, due, attempt, fence, " RONDO_PAYLOAD
        ", point, max_attempts, lane IS NOT NULL, schedule, missed, point_offset",
        now_, microseconds_of(rules_.lease), queue, owner_);
    while (held.next()) {
      done.claimed.push_back(claim_of(held));
    }
  }
}

void file_session::claim_tasks(const turn& what, turn_result& done) {
  const std::size_t limit = what.claim_up_to;
  std::vector<candidate> found;
  std::string unreadable = "\n";  // as RONDO_READABLE wants it
  for (const std::string& schedule : what.unreadable) unreadable += schedule + '\n';
  for (const std::string& queue : rules_.queues) {
    if (is_paused(*database_, queue)) continue;
    end_expired(queue, done);
    find_claimable(queue, limit, unreadable, found);
    find_in_lanes(queue, limit, unreadable, found, done);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > limit) found.resize(limit);
  std::size_t bytes = 0;
  for (const auto& [due, id] : found) {
    if (bytes >= what.claim_bytes) break;
    take_over(id, done);
    bytes += done.claimed.back().what.payload.size();
  }
}

void file_session::end_expired(const std::string& queue, turn_result& done) {
  database_->change(
      "DELETE FROM rondo_task WHERE queue = ? AND state IN ({claimed}) AND lease_until < ? AND state = "
      "{cancelled}",
      queue, now_);
  rows dead = database_->query(
      "UPDATE rondo_task SET state = {dead}, reason = 'lease ran out', owner = NULL, lease_until = NULL"
      " WHERE queue = ? AND state IN ({claimed}) AND lease_until < ? AND state = {running}"
      " AND schedule IS NULL AND attempt >= iif(max_attempts = 0, ?, max_attempts)"
      " RETURNING id, queue, key, due, attempt, fence, '', point",
      queue, now_, rules_.max_attempts);
  while (dead.next()) done.expired.push_back(task_of(dead));
}

void file_session::find_claimable(const std::string& queue, std::size_t limit, const std::string& unreadable,
                                  std::vector<candidate>& found) {
  const std::int64_t most = in_64_bits(limit);
  rows waiting = database_->query(
      "SELECT due, id FROM rondo_task WHERE queue = ? AND state = {waiting} AND due < ? AND " RONDO_READABLE
      " ORDER BY due, id LIMIT ?",
      queue, now_ + microseconds_of(rules_.window), unreadable, most);
  while (waiting.next()) found.emplace_back(waiting.integer(0), waiting.integer(1));
  // In the order of the index, not of the due times, as there may be more expired tasks than the limit.
  rows expired = database_->query(
      "SELECT due, id FROM rondo_task WHERE queue = ? AND state IN ({claimed}) AND lease_until < ? "
      "AND " RONDO_READABLE " ORDER BY lease_until LIMIT ?",
      queue, now_, unreadable, most);
  while (expired.next()) found.emplace_back(expired.integer(0), expired.integer(1));
}

/// Makes tasks behind others no candidates of further claims, until a trigger finds one first in its lane.
void file_session::find_in_lanes(const std::string& queue, std::size_t limit, const std::string& unreadable,
                                 std::vector<candidate>& found, turn_result& done) {
  std::vector<std::int64_t> behind;
  {
    rows waiting = database_->query(
        "SELECT due, id, " RONDO_PRECEDED " OR " RONDO_LANE_RUNS
        " FROM rondo_task WHERE queue = ? AND state = {in_lane} AND due < ? AND " RONDO_READABLE
        " ORDER BY due LIMIT ?",
        queue, now_ + microseconds_of(rules_.window), unreadable, in_64_bits(limit));
    while (waiting.next()) {
      if (waiting.integer(2) != 0)
        behind.push_back(waiting.integer(1));
      else
        found.emplace_back(waiting.integer(0), waiting.integer(1));
    }
  }
  for (const std::int64_t id : behind)
    database_->change("UPDATE rondo_task SET state = {behind} WHERE id = ?", id);
  if (!behind.empty()) done.may_have_more = true;
}

void file_session::take_over(std::int64_t id, turn_result& done) {
  rows found = database_->query("SELECT id, queue, key, due, attempt, max(fence + 1, ?), " RONDO_PAYLOAD
                                ", point, max_attempts, coalesce(next_lane, lane, '') <> '', schedule, "
                                "missed, point_offset FROM rondo_task WHERE id = ?",
                                now_ / 1000,
                                id);  // greater than that of a claim which the file, a backup, does not know
  found.next();
  done.claimed.push_back(claim_of(found));
  database_->change(
      "UPDATE OR FAIL rondo_task SET state = {held}, owner = ?, lease_until = ?, fence = ? WHERE id = ?",
      owner_, lease_from(std::max(found.integer(3), now_)), found.integer(5), id);
}

bool file_session::changed() {
  try {
    if (!database_) open();
    if (!database_->is_in_place()) return true;
    const bool any_died = free_held_by_dead();
    const std::int64_t version = data_version();
    return std::exchange(seen_version_, version) != version || any_died;
  } catch (const std::exception&) {  // also if out of memory
    return true;                     // the turn that follows reports what is wrong
  }
}

bool file_session::wait() { return with_.due_soon->wait(waits_); }

void file_session::interrupt() noexcept { with_.due_soon->interrupt(waits_); }

}  // namespace rondo::durable::detail::sqlite
