#include "durable/postgresql/engine.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "durable/microseconds.hpp"
#include "durable/store_access.hpp"
#include "durable/postgresql/schema.hpp"
#include "durable/postgresql/session.hpp"
#include "durable/postgresql/statements.hpp"
#include "durable/schedule_access.hpp"
#include "durable/text.hpp"

namespace rondo::durable::detail {

namespace postgresql {
namespace {

/// Adds two parameters: whether `due` counts from the server's now, and microseconds.
void add_due(parameters& to, const due_time& due) {
  const auto* delay = std::get_if<duration>(&due);
  to.boolean(delay != nullptr);
  to.integer(delay != nullptr ? microseconds_of_delay(*delay) : microseconds_of(std::get<wall_time>(due)));
}

/// How often a submission is tried while others add and remove tasks with its key.
constexpr int most_attempts = 100;

[[noreturn]] void refuse_to_go_on(const std::string& queue, const std::string& key) {
  throw store_error("rondo: PostgreSQL: the tasks with the key " + detail::quoted(key) + " of the queue " +
                    detail::quoted(queue) +
                    " are added and removed too fast, or the transaction does not see them");
}

/// Not larger than this, so that neither this process nor the server needs much memory for it.
constexpr std::size_t largest_part = 10'000, largest_part_bytes = std::size_t{16} << 20;

/// The beginning of the list that one statement adds: at least one task.
std::span<const planned> first_part(std::span<const planned> all) {
  std::size_t count = 0;
  for (std::size_t bytes = 0; count != std::min(all.size(), largest_part); ++count) {
    bytes += all[count].what.payload.size();
    if (count != 0 && bytes > largest_part_bytes) break;
  }
  return all.first(count);
}

template <class Value, class Member>
std::vector<Value> each_of(std::span<const planned> all, Member member) {
  std::vector<Value> values;
  values.reserve(all.size());
  for (const planned& p : all) values.push_back(member(p));
  return values;
}

parameters names_of(std::span<const planned> all) {
  parameters with;
  with.texts_or_nulls(
      each_of<std::string_view>(all, [](const planned& p) { return std::string_view(p.what.queue); }));
  with.texts_or_nulls(
      each_of<std::string_view>(all, [](const planned& p) { return std::string_view(p.what.key); }));
  return with;
}

std::vector<bool> replacing(std::span<const planned> all) {
  return each_of<bool>(all, [](const planned& p) { return p.what.replace && !p.what.key.empty(); });
}

parameters many(std::span<const planned> all) {
  parameters with = names_of(all);
  with.byte_strings(each_of<std::string_view>(all, [](const planned& p) {
    return lies_apart(p.what.payload) ? std::string_view() : std::string_view(p.what.payload);
  }));
  with.integers(each_of<std::int64_t>(all, [](const planned& p) {
    return lies_apart(p.what.payload) ? static_cast<std::int64_t>(p.what.payload.size()) : 0;
  }));
  with.booleans(
      each_of<bool>(all, [](const planned& p) { return std::holds_alternative<duration>(p.when); }));
  with.integers(each_of<std::int64_t>(all, [](const planned& p) {
    const auto* delay = std::get_if<duration>(&p.when);
    return delay != nullptr ? microseconds_of_delay(*delay) : microseconds_of(std::get<wall_time>(p.when));
  }));
  with.booleans(replacing(all)).integer(microseconds_of(soon));
  with.integers(each_of<std::int64_t>(all, [](const planned& p) { return p.what.max_attempts; }));
  with.texts_or_nulls(
      each_of<std::string_view>(all, [](const planned& p) { return std::string_view(p.what.lane); }));
  return with;
}

void add_ids(const result& from, std::vector<std::int64_t>& to) {
  for (int row = 0; row < from.rows(); ++row) to.push_back(from.integer(row, 0));
}

/// Adds the payloads that lie apart. `ids` are those of the tasks.
template <class Run>
void add_payloads_of(std::span<const planned> all, std::span<const std::int64_t> ids, Run run) {
  std::vector<std::int64_t> of;
  std::vector<std::string_view> payloads;
  for (std::size_t i = 0; i != all.size(); ++i) {
    if (!lies_apart(all[i].what.payload)) continue;
    of.push_back(ids[i]);
    payloads.push_back(all[i].what.payload);
  }
  if (!of.empty()) run(add_payloads, parameters().integers(of).byte_strings(payloads));
}

/// A key was taken during a statement.
struct conflict {};

/// Precondition: no key is twice in the list. Throws `conflict`.
template <class Run>
std::vector<std::int64_t> add_all(std::span<const planned> rest, Run run) {
  std::vector<std::int64_t> ids;
  ids.reserve(rest.size());
  while (!rest.empty()) {
    const auto part = first_part(rest);
    const std::size_t before = ids.size();
    add_ids(run(submit_many, many(part)), ids);
    if (ids.size() != before + part.size()) throw conflict();
    add_payloads_of(part, std::span(ids).subspan(before), run);
    rest = rest.subspan(part.size());
  }
  return ids;
}

/// Whether one statement adds the list, or throws and changes nothing.
bool is_simple(std::span<const planned> all) {
  return first_part(all).size() == all.size() && std::ranges::all_of(all, [](const planned& p) {
           return p.what.key.empty() && !lies_apart(p.what.payload);
         });
}

listed listed_of(const result& answer, int row) {
  return {task_of(answer, row), task_state_of(answer.integer(row, 8)), answer.bytes(row, 9),
          answer.bytes(row, 10)};
}

/// The states of the rows of these tasks.
std::vector<std::int64_t> row_states_of(std::optional<task_state> only) {
  if (only && (*only < task_state::waiting || *only > task_state::dead))
    throw std::invalid_argument("rondo: there is no task_state " + std::to_string(static_cast<int>(*only)));
  std::vector<std::int64_t> all;
  for (auto row = std::int64_t{0}; row <= static_cast<std::int64_t>(row_state::behind); ++row)
    if (!only || task_state_of(row) == *only) all.push_back(row);
  return all;
}

}  // namespace

std::unique_ptr<connection> connection_pool::take() {
  std::unique_lock hold(mutex_);
  given_back_.wait(hold, [&] { return in_use_ < most; });
  std::unique_ptr<connection> one;
  if (idle_.empty()) {
    idle_.reserve(most);  // so that give_back() needs no memory
    one = std::make_unique<connection>(url_);
  } else {
    one = std::move(idle_.back());
    idle_.pop_back();
  }
  ++in_use_;
  return one;
}

void connection_pool::give_back(std::unique_ptr<connection> one) noexcept {
  const std::lock_guard hold(mutex_);
  idle_.push_back(std::move(one));
  --in_use_;
  given_back_.notify_one();
}

/// - The connection was made anew: before, its statements were those of a table that somebody has altered (0A000), or it
///   searched a schema where the tables are no more (42P01).
/// - Somebody else has just committed a task with the key, which the statement finds now; or an index was being built anew
///   (23505: "…_ccnew").
/// - Two lists with keys in different orders waited for each other (40P01); the other one went on.
bool connection_pool::may_succeed_now(const store_error& error) {
  const auto state = state_of(error);
  return state == "0A000" || state == "42P01" || state == "23505" || state == "40P01";
}

task task_of(const result& answer, int row) {
  return {
      .id = answer.integer(row, 0),
      .queue = answer.bytes(row, 3),
      .key = answer.bytes(row, 4),
      .payload = answer.bytes(row, 5),
      .due = wall_time_of(answer.microseconds(row, 6)),
      .attempt = static_cast<int>(answer.integer(row, 2)),
      .fence = answer.integer(row, 1),
      .point = answer.null(row, 7) ? std::nullopt : std::optional(wall_time_of(answer.microseconds(row, 7)))};
}

/// While a transaction of one connection is in progress, a pooler of transactions executes what another connection sends
/// elsewhere than before, unless it has not yet used that for the first one. Says nothing where there is no second session.
void refuse_pooler_of_transactions(const std::string& url) {
  connection first(url);
  connection second(url);
  const auto process = [&] { return first.run_plain("select pg_backend_pid()").integer(0, 0); };
  const auto before = process();
  try {
    second.begin();
  } catch (const store_error&) {
    if (second.pooled_by_transactions()) throw store_error(pools_transactions);
    return;
  }
  const bool pooled = second.server_process() == before || process() != before;
  second.roll_back();
  if (pooled) throw store_error(pools_transactions);
}

server_engine::server_engine(std::string url) : url_(std::move(url)), connections_(url_) {
  refuse_pooler_of_transactions(url_);
  // A migration may be silent for long, and so may the wait for one of another process.
  connection patient(url_, lock_wait::as_configured, std::chrono::hours(24));
  migrate(patient);
  home_ = patient
              .run_plain(
                  "select quote_ident(nspname) from pg_class c join pg_namespace n on n.oid = c.relnamespace "
                  "where c.oid = 'rondo_task'::regclass")
              .bytes(0, 0);
  database_ = PQdb(patient.get());
}

/// Qualifies the tables for the caller's connection, which may search other schemas than the URL's connections.
std::string server_engine::in_home(std::string statement) const {
  constexpr std::string_view table = " rondo_";  // how the names of all tables begin
  const std::string home = home_ + '.';
  // Continues after what it has inserted, as the schema's name may contain that of a table.
  for (auto at = statement.find(table); at != std::string::npos;
       at = statement.find(table, at + home.size() + 1))
    statement.insert(at + 1, home);
  return statement;
}

/// Throws std::invalid_argument if it is not a transaction in the store's database.
void server_engine::check(const transaction& in) const {
  if (in.postgresql() == nullptr)
    throw std::invalid_argument("rondo: the transaction is SQLite's, but the store is PostgreSQL's");
  const char* database = PQdb(in.postgresql());
  if (database != nullptr && database != database_)
    throw std::invalid_argument("rondo: the transaction is in the database " + detail::quoted(database) +
                                ", but the store is in " + detail::quoted(database_));
}

result server_engine::run(const statement& what, const parameters& with, const transaction* in) {
  if (in == nullptr) return connections_.with_one([&](connection& own) { return own.run(what, with); });
  check(*in);
  return run_on(in->postgresql(), in_home(with_states(what.text)), with);
}

std::int64_t server_engine::submit(const due_time& due, const submission& what, const transaction* in) {
  parameters with;
  const bool apart = lies_apart(what.payload);
  with.text(what.queue);
  if (what.key.empty() && what.lane.empty() && !apart) {
    with.bytes(what.payload);
    add_due(with, due);
    with.integer(microseconds_of(soon)).integer(what.max_attempts);
    return run(submit_keyless, with, in).integer(0, 0);
  }
  what.key.empty() ? with.null() : with.text(what.key);
  with.bytes(apart ? "" : what.payload);
  add_due(with, due);
  with.boolean(what.replace).integer(microseconds_of(soon));
  if (apart)
    with.integer(static_cast<std::int64_t>(what.payload.size())).bytes(what.payload);
  else
    with.integer(0).null();
  with.integer(what.max_attempts);
  what.lane.empty() ? with.null() : with.text(what.lane);
  // No row means that the task with the key was not yet visible when the statement began, or has gone since.
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const auto answer = run(postgresql::submit, with, in);
    if (answer.rows() == 0) continue;
    const auto id = answer.integer(0, 0);
    if (answer.boolean(0, 1)) return id;
    if (!what.replace) refuse_key(what, id);
  }
  refuse_to_go_on(what.queue, what.key);
}

/// Calls `f` with a function that runs statements. They take effect together, or not at all if one throws: in a
/// transaction of our own, or in a part of the caller's.
template <class Function>
auto server_engine::together(const transaction* in, Function f) {
  if (in == nullptr)
    return connections_.with_one([&](connection& own) {
      own.begin();
      try {
        auto made = f([&](const statement& what, const parameters& with) { return own.run(what, with); });
        own.commit_all();
        return made;
      } catch (...) {
        own.roll_back();
        throw;
      }
    });
  check(*in);
  PGconn* const theirs = in->postgresql();
  const bool alone = PQtransactionStatus(theirs) == PQTRANS_IDLE;
  run_on(theirs, alone ? "begin" : "savepoint rondo", {});
  try {
    auto made = f([&](const statement& what, const parameters& with) { return run(what, with, in); });
    run_on(theirs, alone ? "commit" : "release savepoint rondo", {});
    return made;
  } catch (...) {
    try {
      run_on(theirs, alone ? "rollback" : "rollback to savepoint rondo", {});
      if (!alone) run_on(theirs, "release savepoint rondo", {});
    } catch (
        const store_error&) {  // the connection broke, and with it the transaction. NOLINT(bugprone-empty-catch)
    }
    throw;
  }
}

void server_engine::refuse_if_taken(std::span<const planned> all, const transaction* in) {
  if (all.empty()) return;
  const auto taken = run(first_taken, names_of(all).booleans(replacing(all)), in);
  if (taken.rows() != 0)
    refuse_key(all[static_cast<std::size_t>(taken.integer(0, 0)) - 1].what, taken.integer(0, 1));
}

std::vector<std::int64_t> server_engine::submit_all(std::span<const planned> all, const transaction* in) {
  const std::size_t repeated = first_repeated_key(all);
  if (repeated != all.size()) {
    refuse_if_taken(all.first(repeated), in);
    refuse_key(all[repeated].what, 0);
  }
  if (is_simple(all))
    return add_all(all, [&](const statement& what, const parameters& with) { return run(what, with, in); });
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    try {
      return together(in, [&](const auto& run_one) { return add_all(all, run_one); });
    } catch (const conflict&) {
      refuse_if_taken(all, in);  // otherwise the task with the key has gone again
    }
  }
  throw store_error(
      "rondo: PostgreSQL: tasks with the keys of the list are added and removed too fast, or the transaction "
      "does not see them");
}

std::int64_t server_engine::repeat(const repeated& what, const transaction* in) {
  parameters contents;
  contents.text(what.queue).text(what.key).text(what.when.text());
  contents.integer(static_cast<std::int64_t>(what.missed));
  what.lane.empty() ? contents.null() : contents.text(what.lane);
  contents.bytes(what.payload);
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const auto there = run(find_repeated, contents, in);
    if (there.boolean(0, 2)) return there.integer(0, 1);
    if (there.boolean(0, 3)) refuse_key({.queue = what.queue, .key = what.key}, there.integer(0, 1));
    const wall_time now = wall_time_of(there.microseconds(0, 0));
    parameters with = contents;
    const zoned_point point = checked_point(what, first_point(what.when, now));
    with.boolean(lies_apart(what.payload)).integer(microseconds_of(point.at)).integer(microseconds_of(soon));
    point.offset ? with.integer(point.offset->count()) : with.null();
    const auto made = run(postgresql::repeat, with, in);
    if (made.rows() != 0) return made.integer(0, 0);
  }
  refuse_to_go_on(what.queue, what.key);
}

bool server_engine::cancel(std::int64_t id, const transaction* in) {
  return run(cancel_id, parameters().integer(id), in).rows() != 0;
}

bool server_engine::cancel(const std::string& queue, const std::string& key, const transaction* in) {
  return run(cancel_key, parameters().text(queue).text(key), in).rows() != 0;
}

bool server_engine::reschedule(std::int64_t id, const due_time& due, const transaction* in) {
  parameters with;
  with.integer(id);
  add_due(with, due);
  with.integer(microseconds_of(soon));
  return run(postgresql::reschedule, with, in).rows() != 0;
}

bool server_engine::reschedule(const std::string& queue, const std::string& key, const due_time& due,
                               const transaction* in) {
  parameters with;
  with.text(queue).text(key);
  add_due(with, due);
  with.integer(microseconds_of(soon));
  return run(reschedule_key, with, in).rows() != 0;
}

std::optional<task> server_engine::find(std::int64_t id, const transaction* in) {
  const auto answer = run(postgresql::find, parameters().integer(id), in);
  if (answer.rows() == 0) return std::nullopt;
  return task_of(answer, 0);
}

std::optional<task> server_engine::find(const std::string& queue, const std::string& key,
                                        const transaction* in) {
  const auto answer = run(find_key, parameters().text(queue).text(key), in);
  if (answer.rows() == 0) return std::nullopt;
  return task_of(answer, 0);
}

void server_engine::pause(const std::string& queue) {
  run(postgresql::pause, parameters().text(queue), nullptr);
}

void server_engine::resume(const std::string& queue) {
  run(postgresql::resume, parameters().text(queue), nullptr);
}

bool server_engine::paused(const std::string& queue) {
  return run(is_paused, parameters().text(queue), nullptr).boolean(0, 0);
}

std::vector<listed> server_engine::list(const std::string& queue, std::optional<task_state> only,
                                        std::int64_t after_id, std::size_t limit) {
  parameters with;
  with.text(queue).integer(after_id).integer(in_64_bits(limit));
  const auto answer = only == task_state::dead
                          ? run(list_dead, with, nullptr)
                          : run(postgresql::list, with.integers(row_states_of(only)), nullptr);
  std::vector<listed> all;
  all.reserve(static_cast<std::size_t>(answer.rows()));
  for (int row = 0; row < answer.rows(); ++row) all.push_back(listed_of(answer, row));
  return all;
}

bool server_engine::retry(std::int64_t id) {
  const auto answer = run(postgresql::retry, parameters().integer(id), nullptr);
  if (answer.rows() == 0) return false;
  if (!answer.null(0, 2))
    refuse_key({.queue = answer.bytes(0, 0), .key = answer.bytes(0, 1)}, answer.integer(0, 2));
  return true;
}

std::unique_ptr<session> server_engine::connect(const std::string& owner, const claim_rules& rules) {
  return std::make_unique<server_session>(url_, owner, rules);
}

}  // namespace postgresql

std::shared_ptr<engine> open_postgresql(const std::string& url) {
  return std::make_shared<postgresql::server_engine>(url);
}

}  // namespace rondo::durable::detail
