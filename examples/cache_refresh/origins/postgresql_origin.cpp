#include "postgresql_origin.hpp"

#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "limits.hpp"
#include "mark.hpp"
#include "postgresql_connection.hpp"
#include "postgresql_news.hpp"
#include "postgresql_schema.hpp"

namespace cache_refresh {
namespace {

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
    const rondo::time_point until = rondo::time_point::clock::now() + whole_milliseconds(limit);
    try {
      if (!open_) open(limit);
      open_->limit_each(until - rondo::time_point::clock::now());
      return read(key, held);
    } catch (const origin_error&) {
      if (open_ && !open_->usable()) open_.reset();
      throw;
    }
  }

 private:
  void open(rondo::duration limit) {
    postgresql_connection next(which_.url, limit);
    next.execute(
        "SELECT set_config('statement_timeout', $1, false), set_config('default_transaction_read_only', "
        "'on', false)",
        {std::to_string(whole_milliseconds(limit).count())});
    next.prepare("load", which_.load);
    open_.emplace(std::move(next));
  }

  answer read(const std::string& key, const record* held) {
    std::vector<std::optional<std::string>> parameters{key};
    if (which_.ours) parameters.emplace_back(held == nullptr ? "" : held->validator);
    const auto found = open_->execute_prepared("load", parameters);
    if (found.rows() == 0) no_such(key);
    answer given;
    if (found.columns() > 2 && !found.null(0, 2)) given.ttl = ttl_in(found.text(0, 2));
    std::string validator = found.text(0, 1);
    if (held == nullptr || validator.empty() || held->validator != validator)
      given.changed = record{found.text(0, 0), std::move(validator)};
    return given;
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
