#include "postgresql_schema.hpp"

#include <chrono>

#include <fmt/core.h>

#include "limits.hpp"
#include "new_rows.hpp"
#include "postgresql_connection.hpp"

namespace cache_refresh {
namespace {

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

}  // namespace

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

}  // namespace cache_refresh
