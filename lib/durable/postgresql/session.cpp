#include "durable/postgresql/session.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <poll.h>

#include "durable/microseconds.hpp"
#include "durable/postgresql/engine.hpp"
#include "durable/postgresql/statements.hpp"

namespace rondo::durable::detail::postgresql {
namespace {

template <class Values, class Member>
std::vector<std::int64_t> each(const Values& values, Member member) {
  std::vector<std::int64_t> all;
  all.reserve(values.size());
  for (const auto& value : values) all.push_back(member(value));
  return all;
}

parameters ids_and_fences(const std::vector<ticket>& tickets) {
  parameters with;
  with.integers(each(tickets, [](const ticket& t) { return t.id; }));
  with.integers(each(tickets, [](const ticket& t) { return t.fence; }));
  return with;
}

parameters of_failures(const std::vector<failure>& failures) {
  std::vector<std::optional<std::int64_t>> retries;
  std::vector<std::string> reasons;
  std::vector<bool> counts;
  for (const auto& f : failures) {
    retries.push_back(f.retry_after.has_value() ? std::optional(microseconds_of(*f.retry_after))
                                                : std::nullopt);
    reasons.push_back(f.reason);
    counts.push_back(f.counts);
  }
  parameters with;
  with.integers(each(failures, [](const failure& f) { return f.of.id; }));
  with.integers(each(failures, [](const failure& f) { return f.of.fence; }));
  with.integers(retries).texts(reasons).integer(microseconds_of(soon));
  with.booleans(counts);
  return with;
}

parameters of_passages(const std::vector<passage>& passages, const std::string& owner) {
  std::vector<std::optional<std::int64_t>> next;
  std::vector<std::optional<std::int64_t>> offsets;
  std::vector<std::string> reasons;
  std::vector<bool> given_up;
  for (const auto& p : passages) {
    next.push_back(p.next ? std::optional(microseconds_of(p.next->at)) : std::nullopt);
    offsets.push_back(p.next ? offset_of(*p.next) : std::nullopt);
    reasons.push_back(p.reason);
    given_up.push_back(p.given_up);
  }
  parameters with;
  with.integers(each(passages, [](const passage& p) { return p.of.id; }));
  with.integers(each(passages, [](const passage& p) { return p.of.fence; }));
  with.integers(next).booleans(given_up).texts(reasons).integer(microseconds_of(soon)).text(owner);
  with.integers(offsets);
  return with;
}

/// Adds the points of the runs that begin and their offsets, or null, in the order of the tickets.
void add_points(const turn& what, parameters& to) {
  std::vector<std::optional<std::int64_t>> points(what.begun.size());
  std::vector<std::optional<std::int64_t>> offsets(what.begun.size());
  std::map<ticket, zoned_point> by_ticket;
  for (const pointed& p : what.points) by_ticket.emplace(p.of, p.point);
  for (std::size_t i = 0; i != points.size() && !by_ticket.empty(); ++i)
    if (const auto p = by_ticket.find(what.begun[i]); p != by_ticket.end()) {
      points[i] = microseconds_of(p->second.at);
      offsets[i] = offset_of(p->second);
    }
  to.integers(points).integers(offsets);
}

void add_tickets(const result& from, std::vector<ticket>& to) {
  for (int row = 0; row < from.rows(); ++row) to.push_back({from.integer(row, 0), from.integer(row, 1)});
}

void add_claims(const result& from, turn_result& to) {
  for (int row = 0; row < from.rows(); ++row) {
    const auto kind = from.integer(row, 9);  // 0 claimed, 1 dead; 2 to 4: see below
    if (kind == 1) to.expired.push_back(task_of(from, row));
    if (kind != 0) continue;
    const auto remaining = from.microseconds(row, 6) - from.microseconds(row, 8);
    to.claimed.push_back(
        {task_of(from, row), from_microseconds<duration>(remaining), static_cast<int>(from.integer(row, 10)),
         from.boolean(row, 11), from.bytes(row, 12), static_cast<missed_points>(from.integer(row, 13)),
         from.null(row, 14) ? std::nullopt : std::optional(std::chrono::seconds(from.integer(row, 14)))});
  }
}

/// What a claim says apart from the tasks that it has found.
struct claim_notes {
  bool may_have_more = false, lanes_are_stuck = false;
  bool others_wait = false;  // tasks that `claim_waiting` does not claim, or has missed
  bool found_others = false;
};

claim_notes notes_of(const result& claims) {
  claim_notes all;
  for (int row = 0; row < claims.rows(); ++row) {
    const auto kind = claims.integer(row, 9);
    all.may_have_more = all.may_have_more || kind == 2;
    all.lanes_are_stuck = all.lanes_are_stuck || kind == 3;
    all.others_wait = all.others_wait || kind == 4;
    all.found_others = all.found_others || kind != 0 || claims.boolean(row, 11);
  }
  return all;
}

void add_begun(const result& from, turn_result& to) {
  for (int row = 0; row < from.rows(); ++row)
    (from.boolean(row, 2) ? to.early : to.begun).push_back({from.integer(row, 0), from.integer(row, 1)});
}

/// Adds runs that have ended, of which some had been cancelled.
void add_ends(const result& from, std::vector<ticket>& ended, turn_result& to) {
  add_tickets(from, ended);
  for (int row = 0; row < from.rows(); ++row)
    if (from.boolean(row, 2)) to.removed.push_back({from.integer(row, 0), from.integer(row, 1)});
}

void add(const call& asked, const result& answer, turn_result& to) {
  if (asked.what == &finish)
    add_tickets(answer, to.finished);
  else if (asked.what == &fail)
    add_ends(answer, to.failed, to);
  else if (asked.what == &pass)
    add_ends(answer, to.passed, to);
  else if (asked.what == &renew)
    add_tickets(answer, to.renewed);
  else if (asked.what == &begin)
    add_begun(answer, to);
  else if (asked.what == &postgresql::watch)
    add_tickets(answer, to.cancelled);
  else if (asked.what == &adopt || asked.what == &claim_waiting || asked.what == &claim_all)
    add_claims(answer, to);
}

bool concerns_tickets(const call& asked) {
  return asked.what != &adopt && asked.what != &lock_in_lanes && asked.what != &free_lanes &&
         asked.what != &claim_waiting && asked.what != &claim_all && asked.what != &watch;
}

}  // namespace

server_session::server_session(std::string url, std::string owner, claim_rules rules)
    : database_(std::move(url), lock_wait::one_second),  // not long, because a turn that fails is repeated
      owner_(std::move(owner)),
      rules_(std::move(rules)) {
  // The claim would count the tasks of a queue twice if it were named twice.
  auto& queues = rules_.queues;
  std::sort(queues.begin(), queues.end());
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  connect();
  perhaps_missed_some_ = perhaps_forgotten_ = false;
}

void server_session::connect() {
  database_.make();
  while (listening_ != database_.number()) {  // any call may have connected anew
    const auto number = database_.number();
    perhaps_missed_some_ = perhaps_forgotten_ = true;
    has_lock_ = false;
    database_.run_plain(listen);
    look_at_timeline();
    listening_ = number;
  }
  if (!has_lock_) has_lock_ = database_.run(enter, parameters().text(owner_)).boolean(0, 0);
}

/// A promoted standby, or a server restored to a point in time, has a new timeline. Whatever its clock shows, its fences are
/// greater than those of the timeline before, of which it may have lost some.
void server_session::look_at_timeline() {
  try {
    const result timeline = database_.run_plain(
        "select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint");
    constexpr int bits_of_time = 43;  // of milliseconds since 1970: until 2248
    const std::int64_t before = std::exchange(fences_after_, timeline.integer(0, 0) << bits_of_time);
    if (before != 0 && before != fences_after_) perhaps_went_back_ = true;  // until a turn has said so
  } catch (const store_error& error) {  // not every server lets every role ask
    const bool is_passing = state_of(error).starts_with("57") || state_of(error).starts_with("53");
    if (database_.get() == nullptr || is_passing) throw;
  }
}

std::vector<call> server_session::calls_for(const turn& what) const {
  const auto lease = microseconds_of(rules_.lease);
  std::vector<call> calls;
  if (!what.finished.empty()) calls.push_back({&finish, ids_and_fences(what.finished).text(owner_)});
  if (!what.failed.empty()) calls.push_back({&fail, of_failures(what.failed).text(owner_)});
  if (!what.passed.empty()) calls.push_back({&pass, of_passages(what.passed, owner_)});
  if (!what.unstarted.empty()) calls.push_back({&take_back, ids_and_fences(what.unstarted).text(owner_)});
  if (!what.returned.empty()) calls.push_back({&give_back, ids_and_fences(what.returned).text(owner_)});
  if (!what.renewed.empty())
    calls.push_back({&renew, ids_and_fences(what.renewed).integer(lease).boolean(true).text(owner_)});
  if (!what.kept.empty())
    calls.push_back({&renew, ids_and_fences(what.kept).integer(lease).boolean(false).text(owner_)});
  if (!what.begun.empty()) {
    parameters with = ids_and_fences(what.begun);
    add_points(what, with.integer(lease).text(owner_));
    with.integers(each(what.in_lanes, [](const ticket& t) { return t.id; }));
    if (!what.in_lanes.empty()) calls.push_back({&lock_in_lanes, ids_and_fences(what.in_lanes).text(owner_)});
    calls.push_back({&begin, std::move(with)});
  }
  if (!what.watched.empty()) calls.push_back({&watch, ids_and_fences(what.watched).text(owner_)});
  if (what.adopt) calls.push_back({&adopt, parameters().texts(rules_.queues).text(owner_).integer(lease)});
  if (what.claim_up_to != 0) {
    if (lanes_are_stuck_) calls.push_back({&free_lanes, parameters().texts(rules_.queues)});
    parameters with;
    with.texts(rules_.queues).integer(in_64_bits(what.claim_up_to)).integer(microseconds_of(rules_.window));
    with.integer(lease).text(owner_).integer(in_64_bits(what.claim_bytes)).texts(what.unreadable);
    with.integer(fences_after_);
    if (claims_of_all_ != 0) with.integer(rules_.max_attempts);
    calls.push_back({claims_of_all_ != 0 ? &claim_all : &claim_waiting, std::move(with)});
  }
  return calls;
}

turn_result server_session::take(const turn& what) {
  turn_result done;
  const auto calls = calls_for(what);
  if (calls.empty()) return done;
  connect();
  if (database_.pooled_by_transactions() && !std::exchange(told_of_pooler_, true))
    throw store_error(pools_transactions);
  if (std::exchange(perhaps_went_back_, false))
    throw store_error(
        "rondo: PostgreSQL: the server has another timeline than before: a standby was promoted, or a backup "
        "restored. Claims and ends of runs that it does not know of are lost");
  if (what.adopt) perhaps_forgotten_ = false;
  if (what.concerns_runs() && std::exchange(perhaps_forgotten_, false))
    throw store_error(
        "rondo: PostgreSQL: the connection broke, so the server may have crashed and forgotten which runs "
        "had begun");
  // A crash of the server may undo what is not yet on its disk. A task whose run has ended is then run again, which is
  // acceptable. But a claim must not be undone, as the next one would get the same fence; nor a death, of which somebody
  // is told.
  const bool is_lasting = what.claim_up_to != 0 || what.tells_death();
  const auto answers = database_.run_all(calls, is_lasting ? commit::durable : commit::soon);
  std::vector<ticket> settled;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    add(calls[i], answers[i], done);
    if (concerns_tickets(calls[i])) add_tickets(answers[i], settled);
  }
  if (what.claim_up_to != 0) done.may_have_more = settle_claim(answers.back());
  std::sort(settled.begin(), settled.end());
  done.locked = locked_of(what, settled);
  return done;
}

/// Decides how the next claim looks for tasks. Returns whether it may find more than this one.
bool server_session::settle_claim(const result& claims) {
  const auto notes = notes_of(claims);
  if (notes.others_wait || notes.found_others)
    claims_of_all_ = most_claims_of_all;
  else if (claims_of_all_ != 0)
    --claims_of_all_;
  const bool tried = std::exchange(lanes_are_stuck_, notes.lanes_are_stuck);
  return notes.may_have_more || notes.others_wait || (lanes_are_stuck_ && !tried);
}

/// This is a separate statement, because it is seldom needed: most turns do something for every ticket.
std::vector<ticket> server_session::locked_of(const turn& what, const std::vector<ticket>& settled) {
  std::vector<ticket> rest;
  std::vector<std::int64_t> wanted;
  const auto add_rest = [&](const ticket& t, std::int64_t kind) {
    if (std::binary_search(settled.begin(), settled.end(), t)) return;
    rest.push_back(t);
    wanted.push_back(kind);
  };
  for (const auto& t : what.finished) add_rest(t, 0);
  for (const auto& f : what.failed) add_rest(f.of, 0);
  for (const auto& p : what.passed) add_rest(p.of, 3);
  for (const auto& t : what.unstarted) add_rest(t, 0);
  for (const auto& t : what.returned) add_rest(t, 1);
  for (const auto& t : what.begun) add_rest(t, 2);
  std::vector<ticket> there;
  if (rest.empty()) return there;
  const std::vector<call> asked{{&locked, ids_and_fences(rest).integers(wanted).text(owner_)}};
  try {
    add_tickets(database_.run_all(asked, commit::soon).at(0), there);
  } catch (const store_error&) {  // but the turn is done, and what it has found must not be lost
    return rest;                  // perhaps
  }
  return there;
}

/// Takes all notifications. Ignores those of this session, which knows the tasks that it gave back.
bool server_session::heard_news() {
  bool news = std::exchange(perhaps_missed_some_, false);
  if (database_.get() == nullptr) return news;
  struct free_memory {
    void operator()(PGnotify* n) const noexcept { PQfreemem(n); }
  };
  while (const std::unique_ptr<PGnotify, free_memory> told{PQnotifies(database_.get())})
    if (told->be_pid != database_.server_process() &&
        std::find(rules_.queues.begin(), rules_.queues.end(), told->extra) != rules_.queues.end())
      news = true;
  return news;
}

bool server_session::changed() {
  try {
    connect();
    const auto gone = database_.run(find_gone, parameters().text(owner_));
    if (gone.rows() == 0) return false;
    std::vector<std::int64_t> ids;
    std::vector<std::string> names;
    for (int row = 0; row < gone.rows(); ++row) {
      ids.push_back(gone.integer(row, 0));
      names.push_back(gone.bytes(row, 1));
    }
    // With the connection that has the locks.
    database_.run_all({{&free_held, parameters().texts(names)}}, commit::durable);
    database_.run_all({{&unlock, parameters().integers(ids)}}, commit::soon);
    return true;
  } catch (const std::exception&) {  // also if out of memory
    return true;                     // the turn that follows reports what is wrong
  }
}

bool server_session::wait() {
  for (;;) {
    if (interrupts_.woken()) return false;
    if (heard_news()) return true;
    // Without a connection the socket is -1, which poll() ignores. The next turn connects.
    std::array<pollfd, 2> sockets{{{.fd = interrupts_.descriptor(), .events = POLLIN, .revents = 0},
                                   {.fd = PQsocket(database_.get()), .events = POLLIN, .revents = 0}}};
    if (::poll(sockets.data(), sockets.size(), -1) > 0 && sockets[1].revents != 0 &&
        PQconsumeInput(database_.get()) == 0)
      return true;  // the connection broke: the next turn reconnects
  }
}

}  // namespace rondo::durable::detail::postgresql
