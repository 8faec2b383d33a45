// The values are rows of a PostgreSQL database.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "parts.hpp"
#include "postgresql_connection.hpp"

namespace cache_refresh {
namespace {

// ---- The table that this program creates

// Creating a million rows takes seconds. A program that starts in that time waits for it.
constexpr std::chrono::minutes filling_patience{5};

// Versions come from a sequence, so a row that is deleted and inserted again has a new version.
constexpr const char* table = R"(
  CREATE SCHEMA IF NOT EXISTS cache_refresh;
  CREATE SEQUENCE cache_refresh.item_version;
  CREATE TABLE cache_refresh.item (
    key text PRIMARY KEY,
    value text NOT NULL,
    version bigint NOT NULL DEFAULT nextval('cache_refresh.item_version'),
    ttl_ms int NOT NULL DEFAULT 0))";

// Created after the rows, which need no announcements. Listeners receive what a transaction announces when it has
// committed. NOTIFY takes less than 8000 bytes, so a longer key is announced as "anything".
constexpr const char* triggers = R"(
  CREATE FUNCTION cache_refresh.count_version() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    new.version := nextval('cache_refresh.item_version');
    RETURN new;
  END $$;
  CREATE TRIGGER count_version BEFORE UPDATE OF value ON cache_refresh.item
    FOR EACH ROW EXECUTE FUNCTION cache_refresh.count_version();

  CREATE FUNCTION cache_refresh.tell(key text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('cache_refresh_item', CASE WHEN octet_length(key) < 8000 THEN key ELSE '' END)
  $$;
  CREATE FUNCTION cache_refresh.tell_change() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF tg_op = 'TRUNCATE' THEN
      PERFORM cache_refresh.tell('');
    END IF;
    IF tg_op IN ('DELETE', 'UPDATE') THEN
      PERFORM cache_refresh.tell(old.key);
    END IF;
    IF tg_op IN ('INSERT', 'UPDATE') THEN  -- of two equal announcements in a transaction one is heard
      PERFORM cache_refresh.tell(new.key);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER tell_change AFTER INSERT OR DELETE OR UPDATE OF key, value ON cache_refresh.item
    FOR EACH ROW EXECUTE FUNCTION cache_refresh.tell_change();
  CREATE TRIGGER tell_truncate AFTER TRUNCATE ON cache_refresh.item
    FOR EACH STATEMENT EXECUTE FUNCTION cache_refresh.tell_change();)";

// A column's text, as COPY reads it.
void append_escaped(std::string& to, const std::string& text) {
  for (const char each : text) {
    switch (each) {
      case '\\':
        to += "\\\\";
        break;
      case '\t':
        to += "\\t";
        break;
      case '\n':
        to += "\\n";
        break;
      case '\r':
        to += "\\r";
        break;
      default:
        to += each;
    }
  }
}

void fill(postgresql_connection& opened, const origin_options& wanted) {
  constexpr std::size_t enough = std::size_t{1} << 18;
  opened.begin_copy("COPY cache_refresh.item (key, value, ttl_ms) FROM STDIN");
  std::string rows;
  make_rows(wanted, [&](const new_row& row) {
    append_escaped(rows, row.key);
    rows += '\t';
    append_escaped(rows, row.value);
    rows.append("\t").append(std::to_string(row.ttl_ms)).append("\n");
    if (rows.size() < enough) return;
    opened.copy(rows);
    rows.clear();
  });
  opened.copy(rows);
  opened.end_copy();
}

// Asks the catalogue itself, because to_regclass() may return the state at the start of the transaction.
bool has_table(postgresql_connection& opened) {
  return opened
             .execute(
                 "SELECT FROM pg_class WHERE relname = 'item' AND relnamespace ="
                 " (SELECT oid FROM pg_namespace WHERE nspname = 'cache_refresh')")
             .rows() != 0;
}

// Creates and fills the table unless it exists. If several programs call it at once, one does the work and the others
// wait.
void prepare_postgresql(const std::string& url, const origin_options& wanted) {
  postgresql_connection opened(url, opening_patience);
  if (has_table(opened)) return;
  opened.limit_each(filling_patience);
  // If the connection is closed, its transaction is rolled back and its lock is released.
  opened.execute("BEGIN");
  opened.execute(
      "SELECT pg_advisory_xact_lock(1383023442)");  // "Ro" "CR", as in the file of an SQLite database
  if (has_table(opened)) return;
  opened.execute(table);
  fill(opened, wanted);
  opened.execute(triggers);
  opened.execute("COMMIT");
  opened.execute("ANALYZE cache_refresh.item");
}

// ---- Announcements, received with a thread and a connection of its own

// An announcement with a key means that its row is new, has changed or is gone. An empty one may mean any row.
constexpr const char* news_channel = "cache_refresh_item";

constexpr std::chrono::milliseconds first_pause{50};
constexpr std::chrono::milliseconds longest_pause{5000};

// Receives everything from its creation on, if the server can be reached then. If the connection is lost, it opens
// another one, and then reports once that anything may have changed.
class postgresql_news : public origin_news {
 public:
  postgresql_news(std::string url, std::function<void(const std::string&)> changed);
  ~postgresql_news() override;

 private:
  void run();
  bool connect();
  void listen();

  const std::string url_;
  const std::function<void(const std::string&)> changed_;
  stop_event stop_;
  std::optional<postgresql_connection> connection_;  // used by the thread, once it runs
  std::thread thread_;
};

postgresql_news::postgresql_news(std::string url, std::function<void(const std::string&)> changed)
    : url_(std::move(url)), changed_(std::move(changed)) {
  connect();
  thread_ = std::thread([this] { run(); });
}

postgresql_news::~postgresql_news() {
  stop_.set();
  thread_.join();
}

void postgresql_news::run() {
  auto pause = first_pause;
  bool missed = !connection_;
  while (true) {
    if (connection_) {
      if (std::exchange(missed, true)) changed_("");
      pause = first_pause;
      listen();
    }
    if (stop_.wait(static_cast<int>(pause.count()))) return;
    pause = std::min(2 * pause, longest_pause);
    connect();
  }
}

bool postgresql_news::connect() {
  try {
    connection_.emplace(url_, opening_patience, &stop_);
    connection_->execute(fmt::format("LISTEN {}", news_channel).c_str());
  } catch (const origin_error&) {
    connection_.reset();  // the failing loads report why
  }
  return connection_.has_value();
}

// Listens until the connection fails or the event is set.
void postgresql_news::listen() {
  PGconn* const handle = connection_->handle();
  do {
    while (PGnotify* const each = PQnotifies(handle)) {
      const std::string key = each->extra;
      PQfreemem(each);
      changed_(key);
    }
  } while (!stop_.wait(-1, PQsocket(handle)) && PQconsumeInput(handle) == 1);
  connection_.reset();
}

// ---- The origin

// Listing a million keys takes seconds.
constexpr std::chrono::minutes listing_patience{1};
constexpr std::chrono::seconds editing_patience{5};

struct server_database {
  std::string url;
  std::string list;
  std::string load;
  bool ours;
};

constexpr const char* our_list = "SELECT key FROM cache_refresh.item ORDER BY key";
// Does not send a value again that the caller has.
constexpr const char* our_load =
    "SELECT CASE WHEN version::text = $2 THEN NULL ELSE value END, version, ttl_ms"
    " FROM cache_refresh.item WHERE key = $1";

[[noreturn]] void no_such(const std::string& key) {
  throw origin_error(fmt::format("{}: there is no such row", key));
}

class postgresql_loader : public origin_connection {
 public:
  explicit postgresql_loader(const server_database& which) : which_(which) {}

  answer load(const std::string& key, const record* held, rondo::duration limit) override {
    const auto found = ask(key, held, limit);
    if (found.rows() == 0) no_such(key);
    answer given;
    if (found.columns() > 2 && !found.null(0, 2)) given.ttl = ttl_in(found.text(0, 2));
    std::string validator = found.text(0, 1);
    if (held == nullptr || validator.empty() || held->validator != validator)
      given.changed = record{found.text(0, 0), std::move(validator)};
    return given;
  }

 private:
  void open(rondo::duration limit, rondo::time_point until) {
    const auto left = [until] { return until - rondo::time_point::clock::now(); };
    postgresql_connection next(which_.url, limit);
    next.limit_each(left());
    next.execute(
        "SELECT set_config('statement_timeout', $1, false), set_config('default_transaction_read_only', "
        "'on', false)",
        {std::to_string(whole_milliseconds(limit).count())});
    next.limit_each(left());
    next.prepare("load", which_.load);
    open_.emplace(std::move(next));
  }

  // An error ends the connection, and with it the prepared query, which fails for ever once the type of a column has
  // changed.
  postgresql_connection::result ask(const std::string& key, const record* held, rondo::duration limit) {
    const rondo::time_point until = rondo::time_point::clock::now() + whole_milliseconds(limit);
    std::vector<std::optional<std::string>> parameters{key};
    if (which_.ours) parameters.emplace_back(held == nullptr ? "" : held->validator);
    try {
      if (!open_) open(limit, until);
      open_->limit_each(until - rondo::time_point::clock::now());
      return open_->execute_prepared("load", parameters);
    } catch (const origin_error&) {
      open_.reset();
      throw;
    }
  }

  static time_to_live ttl_in(const std::string& text) {
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size())
      throw origin_error(fmt::format("{} is not a whole number of milliseconds", text));
    return ttl_of(number);
  }

  const server_database which_;
  std::optional<postgresql_connection> open_;
};

class postgresql_editor : public origin_editor {
 public:
  explicit postgresql_editor(std::string url) : url_(std::move(url)) {}

  std::string change(const std::string& key, const std::string& mark,
                     const std::function<void()>& before) override {
    try {
      if (!open_) {
        open_.emplace(url_, editing_patience);
        open_->execute("SET lock_timeout = '1s'");
      }
      open_->execute("BEGIN");
      std::string version = change_row(key, mark);
      before();
      open_->execute("COMMIT");
      return version;
    } catch (...) {
      open_.reset();  // which rolls back
      throw;
    }
  }

 private:
  std::string change_row(const std::string& key, const std::string& mark) {
    const auto found =
        open_->execute("SELECT value FROM cache_refresh.item WHERE key = $1 FOR UPDATE", {key});
    if (found.rows() == 0) no_such(key);
    return open_
        ->execute("UPDATE cache_refresh.item SET value = $2 WHERE key = $1 RETURNING version",
                  {key, marked(found.text(0, 0), mark)})
        .text(0, 0);
  }

  const std::string url_;
  std::optional<postgresql_connection> open_;
};

class postgresql_origin : public origin {
 public:
  explicit postgresql_origin(server_database which) : which_(std::move(which)) {
    postgresql_connection opened(which_.url, opening_patience);
    name_ = fmt::format("{} on {}:{}, a PostgreSQL database", PQdb(opened.handle()), PQhost(opened.handle()),
                        PQport(opened.handle()));
    check_queries(opened);
  }

  std::string name() const override { return name_; }

  std::vector<std::string> keys(std::size_t most) override {
    postgresql_connection opened(which_.url, opening_patience);
    opened.limit_each(listing_patience);
    // A cursor can stop after any number of rows, whatever the query is.
    opened.execute("BEGIN READ ONLY");
    opened.execute(("DECLARE list NO SCROLL CURSOR FOR " + which_.list).c_str());
    const auto found =
        opened.execute(most == 0 ? "FETCH ALL FROM list" : fmt::format("FETCH {} FROM list", most).c_str());
    std::vector<std::string> all;
    all.reserve(static_cast<std::size_t>(found.rows()));
    for (int i = 0; i < found.rows(); ++i) all.push_back(found.text(i, 0));
    return all;
  }

  std::unique_ptr<origin_connection> connect() override {
    return std::make_unique<postgresql_loader>(which_);
  }
  std::unique_ptr<origin_editor> edit() override {
    return which_.ours ? std::make_unique<postgresql_editor>(which_.url) : nullptr;
  }
  // Also for a database of the user's own, which may have a trigger that announces keys.
  std::unique_ptr<origin_news> watch(std::function<void(const std::string&)> changed) override {
    return std::make_unique<postgresql_news>(which_.url, std::move(changed));
  }

 private:
  // Reports what would otherwise be reported at the first load.
  void check_queries(postgresql_connection& opened) const {
    opened.prepare("list", which_.list);
    opened.prepare("load", which_.load);
    const auto list = opened.describe("list");
    if (list.columns() < 1 || list.parameters() != 0)
      throw origin_error("the query that lists keys must return a column and have no parameter");
    const auto load = opened.describe("load");
    if (load.columns() < 2 || load.columns() > 3 || load.parameters() != (which_.ours ? 2 : 1))
      throw origin_error(
          "the query that loads must have one parameter, and return value, validator and optionally "
          "milliseconds");
  }

  const server_database which_;
  std::string name_;
};

}  // namespace

std::unique_ptr<origin> open_postgresql_origin(const origin_options& wanted) {
  if (!wanted.load_query.empty())
    return std::make_unique<postgresql_origin>(
        server_database{wanted.url, wanted.list_query, wanted.load_query, false});
  prepare_postgresql(wanted.url, wanted);
  return std::make_unique<postgresql_origin>(server_database{wanted.url, our_list, our_load, true});
}

}  // namespace cache_refresh
