#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/store_access.hpp"
#include "durable/text.hpp"

namespace rondo::durable {

namespace detail {

namespace {

constexpr const char* scheme_characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-";

}  // namespace

std::shared_ptr<engine> open_engine(const std::string& url) {
  constexpr const char* kinds = "it must begin with sqlite: or postgresql://";
  // Messages show no more of the URL than this, as it may contain a password.
  const std::string scheme = url.substr(0, url.find_first_not_of(scheme_characters));
  if (scheme.empty() || scheme.size() == url.size() || url[scheme.size()] != ':') {
    throw store_error(std::string("rondo: the string to open is not the URL of a store: ") + kinds);
  }
  if (url.find('\0') != std::string::npos) {
    throw store_error("rondo: the URL of the store (" + scheme + ":...) contains a zero byte");
  }
  if (scheme == "sqlite") {
#if defined(RONDO_DURABLE_SQLITE)
    return open_sqlite(url.substr(scheme.size() + 1));
#else
    throw store_error("rondo: this librondo-durable was built without SQLite");
#endif
  }
  if (scheme == "postgresql" || scheme == "postgres") {
    // libpq would take a URL with only one slash for a database name, and show it in its messages.
    if (url.compare(scheme.size(), 3, "://") != 0) {
      throw store_error("rondo: a PostgreSQL URL must begin with postgresql://");
    }
#if defined(RONDO_DURABLE_POSTGRESQL)
    return open_postgresql(url);
#else
    throw store_error("rondo: this librondo-durable was built without PostgreSQL (libpq)");
#endif
  }
  throw store_error("rondo: " + quoted(scheme + ":") + " does not begin the URL of a store: " + kinds);
}

}  // namespace detail

namespace {

detail::due_time after(duration delay) { return delay; }
detail::due_time at(wall_time due) { return due; }

std::int64_t submit_to(detail::engine& e, const detail::due_time& due, const submission& what,
                       const transaction* in) {
  detail::check(what);
  return e.submit(due, what, in);
}

/// Whether a task can have that key. Throws std::invalid_argument if it is not valid.
bool is_name(const std::string& queue, const std::string& key) {
  detail::check_queue(queue);
  detail::check_key(key);
  return !key.empty();
}

bool cancel_in(detail::engine& e, const std::string& queue, const std::string& key, const transaction* in) {
  return is_name(queue, key) && e.cancel(queue, key, in);
}

bool reschedule_in(detail::engine& e, const std::string& queue, const std::string& key,
                   const detail::due_time& due, const transaction* in) {
  return is_name(queue, key) && e.reschedule(queue, key, due, in);
}

std::optional<task> find_in(detail::engine& e, const std::string& queue, const std::string& key,
                            const transaction* in) {
  return is_name(queue, key) ? e.find(queue, key, in) : std::nullopt;
}

std::vector<std::int64_t> submit_all_to(detail::engine& e, std::span<const planned> all,
                                        const transaction* in) {
  detail::check(all);
  return e.submit_all(all, in);
}

std::int64_t repeat_in(detail::engine& e, const repeated& what, const transaction* in) {
  detail::check(what);
  return e.repeat(what, in);
}

detail::engine& checked(detail::engine& e, const std::string& queue) {
  detail::check_queue(queue);
  return e;
}

}  // namespace

transaction::transaction(sqlite3* connection) : sqlite_(connection) {
  if (connection == nullptr) throw std::invalid_argument("rondo: the sqlite3* of a transaction is null");
}

transaction::transaction(pg_conn* connection) : postgresql_(connection) {
  if (connection == nullptr) throw std::invalid_argument("rondo: the PGconn* of a transaction is null");
}

store::store(std::shared_ptr<detail::engine> engine) : engine_(std::move(engine)) {}

store::~store() {
  // Otherwise a child made by fork() would close the connections of its parent.
  if (engine_->is_copy()) engine_->keep(engine_);
}

std::unique_ptr<store> store::open(const std::string& url) {
  return std::unique_ptr<store>(new store(detail::open_engine(url)));
}

std::int64_t store::submit_after(any_duration delay, const submission& what) {
  return submit_to(engine_->own(), after(delay), what, nullptr);
}
std::int64_t store::submit_after(transaction in, any_duration delay, const submission& what) {
  return submit_to(engine_->own(), after(delay), what, &in);
}
std::int64_t store::submit_at(any_wall_time due, const submission& what) {
  return submit_to(engine_->own(), at(due), what, nullptr);
}
std::int64_t store::submit_at(transaction in, any_wall_time due, const submission& what) {
  return submit_to(engine_->own(), at(due), what, &in);
}

std::vector<std::int64_t> store::submit_all(std::span<const planned> all) {
  return submit_all_to(engine_->own(), all, nullptr);
}
std::vector<std::int64_t> store::submit_all(transaction in, std::span<const planned> all) {
  return submit_all_to(engine_->own(), all, &in);
}

std::int64_t store::repeat(const repeated& what) { return repeat_in(engine_->own(), what, nullptr); }
std::int64_t store::repeat(transaction in, const repeated& what) {
  return repeat_in(engine_->own(), what, &in);
}

bool store::cancel(std::int64_t id) { return engine_->own().cancel(id, nullptr); }
bool store::cancel(transaction in, std::int64_t id) { return engine_->own().cancel(id, &in); }
bool store::cancel(const std::string& queue, const std::string& key) {
  return cancel_in(engine_->own(), queue, key, nullptr);
}
bool store::cancel(transaction in, const std::string& queue, const std::string& key) {
  return cancel_in(engine_->own(), queue, key, &in);
}

bool store::reschedule_after(std::int64_t id, any_duration delay) {
  return engine_->own().reschedule(id, after(delay), nullptr);
}
bool store::reschedule_after(transaction in, std::int64_t id, any_duration delay) {
  return engine_->own().reschedule(id, after(delay), &in);
}
bool store::reschedule_at(std::int64_t id, any_wall_time due) {
  return engine_->own().reschedule(id, at(due), nullptr);
}
bool store::reschedule_at(transaction in, std::int64_t id, any_wall_time due) {
  return engine_->own().reschedule(id, at(due), &in);
}

bool store::reschedule_after(const std::string& queue, const std::string& key, any_duration delay) {
  return reschedule_in(engine_->own(), queue, key, after(delay), nullptr);
}
bool store::reschedule_after(transaction in, const std::string& queue, const std::string& key,
                             any_duration delay) {
  return reschedule_in(engine_->own(), queue, key, after(delay), &in);
}
bool store::reschedule_at(const std::string& queue, const std::string& key, any_wall_time due) {
  return reschedule_in(engine_->own(), queue, key, at(due), nullptr);
}
bool store::reschedule_at(transaction in, const std::string& queue, const std::string& key,
                          any_wall_time due) {
  return reschedule_in(engine_->own(), queue, key, at(due), &in);
}

std::optional<task> store::find(std::int64_t id) { return engine_->own().find(id, nullptr); }
std::optional<task> store::find(transaction in, std::int64_t id) { return engine_->own().find(id, &in); }
std::optional<task> store::find(const std::string& queue, const std::string& key) {
  return find_in(engine_->own(), queue, key, nullptr);
}
std::optional<task> store::find(transaction in, const std::string& queue, const std::string& key) {
  return find_in(engine_->own(), queue, key, &in);
}

void store::pause(const std::string& queue) { checked(engine_->own(), queue).pause(queue); }
void store::resume(const std::string& queue) { checked(engine_->own(), queue).resume(queue); }
bool store::paused(const std::string& queue) { return checked(engine_->own(), queue).paused(queue); }

std::vector<listed> store::list(const std::string& queue, std::optional<task_state> only,
                                std::int64_t after_id, std::size_t limit) {
  return checked(engine_->own(), queue).list(queue, only, after_id, limit);
}

bool store::retry(std::int64_t id) { return engine_->own().retry(id); }

}  // namespace rondo::durable
