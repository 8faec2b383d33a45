#include "durable/postgresql/engine.hpp"

#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "durable/microseconds.hpp"
#include "durable/open.hpp"
#include "durable/postgresql/schema.hpp"
#include "durable/postgresql/session.hpp"
#include "durable/postgresql/statements.hpp"
#include "durable/text.hpp"

namespace rondo::durable::detail {

namespace postgresql {
namespace {

/// Adds two parameters: whether `due` counts from the server's now, and microseconds.
void add_due(parameters& to, const due_time& due) {
  const auto* delay = std::get_if<duration>(&due);
  to.boolean(delay != nullptr);
  to.integer(delay != nullptr ? microseconds_of(*delay) : microseconds_of(std::get<wall_time>(due)));
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

task task_of(const result& answer, int row) {
  return {.id = answer.integer(row, 0),
          .queue = answer.bytes(row, 3),
          .key = answer.bytes(row, 4),
          .payload = answer.bytes(row, 5),
          .due = wall_time_of(answer.microseconds(row, 6)),
          .attempt = static_cast<int>(answer.integer(row, 2)),
          .fence = answer.integer(row, 1)};
}

server_engine::server_engine(std::string url) : url_(std::move(url)), connections_(url_) {
  // A migration may be silent for long, and so may the wait for one of another process.
  connection patient(url_, "", std::chrono::hours(24));
  migrate(patient);
  home_ = patient
              .run_plain(
                  "select quote_ident(nspname) from pg_class c join pg_namespace n on n.oid = c.relnamespace "
                  "where c.oid = 'rondo_task'::regclass")
              .bytes(0, 0);
  database_ = PQdb(patient.get());
}

/// Qualifies the table for the caller's connection, which may search other schemas than the URL's connections.
std::string server_engine::in_home(const char* text) const {
  constexpr std::string_view table = " rondo_task";
  std::string qualified = text;
  const std::string home = home_ + '.';
  // Continues after what it has inserted, as the schema's name may contain that of the table.
  for (auto at = qualified.find(table); at != std::string::npos;
       at = qualified.find(table, at + home.size() + 1))
    qualified.insert(at + 1, home);
  return qualified;
}

result server_engine::run(const statement& what, const parameters& with, const transaction* in) {
  if (in == nullptr) return connections_.with_one([&](connection& own) { return own.run(what, with); });
  if (in->postgresql() == nullptr)
    throw std::invalid_argument("rondo: the transaction is SQLite's, but the store is PostgreSQL's");
  const char* database = PQdb(in->postgresql());
  if (database != nullptr && database != database_)
    throw std::invalid_argument("rondo: the transaction is in the database " + detail::quoted(database) +
                                ", but the store is in " + detail::quoted(database_));
  return run_on(in->postgresql(), in_home(what.text), with);
}

std::int64_t server_engine::submit(const due_time& due, const submission& what, const transaction* in) {
  parameters with;
  with.text(what.queue);
  if (what.key.empty()) {
    with.bytes(what.payload);
    add_due(with, due);
    with.integer(microseconds_of(soon));
    return run(submit_keyless, with, in).integer(0, 0);
  }
  with.text(what.key).bytes(what.payload);
  add_due(with, due);
  with.boolean(what.replace).integer(microseconds_of(soon));
  // No row means that the task with the key was not yet visible when the statement began, or has gone since.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto answer = run(postgresql::submit, with, in);
    if (answer.rows() == 0) continue;
    const auto id = answer.integer(0, 0);
    if (answer.boolean(0, 1)) return id;
    if (!what.replace)
      throw key_taken("rondo: task " + std::to_string(id) + " of the queue " + detail::quoted(what.queue) +
                          " has the key " + detail::quoted(what.key),
                      id);
  }
  throw store_error("rondo: PostgreSQL: the tasks with the key " + detail::quoted(what.key) +
                    " of the queue " + detail::quoted(what.queue) +
                    " are added and removed too fast, or the transaction does not see them");
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

std::optional<task> server_engine::find(std::int64_t id, const transaction* in) {
  const auto answer = run(postgresql::find, parameters().integer(id), in);
  if (answer.rows() == 0) return std::nullopt;
  return task_of(answer, 0);
}

std::unique_ptr<session> server_engine::connect(const std::string& owner, const claim_rules& rules) {
  return std::make_unique<server_session>(url_, owner, rules);
}

}  // namespace postgresql

std::shared_ptr<engine> open_postgresql(const std::string& url) {
  return std::make_shared<postgresql::server_engine>(url);
}

}  // namespace rondo::durable::detail
