#include "durable/postgresql/schema.hpp"

#include <array>
#include <string>
#include <string_view>

#include <rondo/durable.hpp>

namespace rondo::durable::detail::postgresql {
namespace {

// state: see row_state.
//
// Texts are compared as bytes (collate "C"), which is what SQLite does and is faster.
//
// Storage. Each task leaves some dead rows behind: one when it is claimed, one when its run begins, one when it ends.
// - By default a table is vacuumed when a fifth of its rows are dead. With a million far-off tasks that would be
//   200,000 dead entries at the beginning of the index that each claim reads, so the settings are 2,000 and one
//   percent. Vacuum does not pause, because a queue's index soon needs another vacuum.
// - vacuum_truncate would lock everybody out for a moment to shorten a file that grows again at once.
// - fillfactor stays at 100: an update changes `state`, `due` or `lease_until`, which the indices contain, so none can
//   stay within its page, and space reserved for that would only make the table larger.
constexpr const char* version_1 = R"sql(
  create table rondo_schema (version integer not null);
  insert into rondo_schema values (1);
  create table rondo_task (
    id bigint generated always as identity primary key,
    queue text collate "C" not null,
    key text collate "C",
    payload bytea not null,
    due timestamp with time zone not null,
    state smallint not null default 0,
    attempt integer not null default 0,
    fence bigint not null default 0,
    owner text,
    lease_until timestamp with time zone,
    reason text
  ) with (
    autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
  );
  create index rondo_task_due on rondo_task (queue, due) where state = 0;
  create index rondo_task_lease on rondo_task (queue, lease_until) where state in (1, 2, 4);
  create unique index rondo_task_key on rondo_task (queue, key) where key is not null and state <> 3;
)sql";

// The columns are designed in lib/durable/operators.md. What takes long for many rows is left out: payloads of old rows
// stay where they are, and the new indices contain none of them. As the old column of the payloads has another name,
// programs that know only version 1 get an error rather than a wrong payload.
//
// The trigger removes a payload with its task, whoever deletes that. A foreign key would cost a query for each task,
// also for one without such a payload.
//
// rondo_owner is unlogged, so that it is empty after a crash of the server. That ends all sessions and may undo the last
// beginnings, so what then seems to be held by a session that is gone may be running.
constexpr const char* version_2 = R"sql(
  alter table rondo_task rename column payload to inline_payload;
  alter table rondo_task
    add column payload_apart integer not null default 0,
    add column lane text collate "C",
    add column place timestamp with time zone,
    add column max_attempts integer not null default 0,
    add column point timestamp with time zone,
    add column schedule text,
    add column missed smallint;
  create table rondo_payload (id bigint primary key, payload bytea not null) with (
    autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
  );
  create function rondo_task_gone() returns trigger language plpgsql as $$ begin
    execute format('delete from %I.rondo_payload where id = $1', tg_table_schema) using old.id;
    return null;
  end $$;
  create trigger rondo_task_gone after delete on rondo_task for each row when (old.payload_apart > 0)
    execute function rondo_task_gone();
  create table rondo_paused (queue text collate "C" primary key);
  create unlogged table rondo_owner (
    id bigint generated always as identity primary key, name text collate "C" not null unique
  );
  create index rondo_task_dead on rondo_task (queue, id) where state = 3;
  create index rondo_task_lane on rondo_task (queue, lane, place, id) where lane is not null and state <> 3;
  create index rondo_task_lane_due on rondo_task (queue, due) where state = 5;
  create index rondo_task_lane_busy on rondo_task (queue, lane) where lane is not null and state in (1, 2, 4);
  create table rondo_lane_stuck (queue text collate "C" not null, lane text collate "C" not null);
)sql";

// Lanes. Whoever changes a row, triggers keep the states 5 and 6 and the places right, so that other statements need only know that a
// task waits (0). The first task of a lane may have state 6 only while another one runs, or nobody would claim it. Others
// may have state 5: a claim that meets one makes it 6, and locks the row that is in its way until the end of the
// transaction, so that whoever removes that row afterwards sees the 6.
// - rondo_lane_next() does not wait for a row that somebody's open transaction has. A transaction with another isolation
//   than read committed does not see what claims have done since it began. In both cases it notes the lane in
//   rondo_lane_stuck, and the next claim looks at that.
// - The first task of a lane is found behind all entries of the index that the same transaction has removed. So a
//   transaction that removes or moves many waiting tasks looks only for the first few (it counts them in a setting of its
//   own), and notes the lanes of the others. (Of runs, there is hardly more than one in a lane.)
// - If the first task waits already, some dispatcher may just have passed it over because of the row that is now gone. So
//   dispatchers are notified then, too.
// - A run keeps its lane. If its task is declared with another one, that is its `next_lane` ('' for none), until it does not
//   run any more.
// - The server parses the condition of a trigger anew for each statement. So the conditions are short, and the functions
//   decide the rest: with everything in the conditions, statements for one task without a lane take a tenth longer.
//
// No function depends on the name of the schema, which may be renamed, or the tables moved to another one; and the caller
// may search others. rondo_lane_next() searches the schema of its table, until it ends: the "set" of its definition limits
// what it sets to that time. The definition names the schema of the first day because setting another one takes 4 of 35 µs
// for the end of a run in a lane.
//
// Databases of development versions have version 2 with other functions, perhaps in another schema than their tables.
constexpr const char* version_3 = R"sql(
  do $$ declare
    f regprocedure;
  begin
    perform set_config('search_path', relnamespace::regnamespace || ', pg_temp', true)
      from pg_class where oid = 'rondo_task'::regclass;
    for f in select distinct tgfoid from pg_trigger where tgrelid = 'rondo_task'::regclass and tgname like 'rondo\_lane\_%' loop
      execute format('drop function %s cascade', f);
    end loop;
  end $$;
  alter table rondo_task add column next_lane text collate "C";
  delete from rondo_lane_stuck s using rondo_lane_stuck o where (s.queue, s.lane) = (o.queue, o.lane) and s.ctid < o.ctid;
  alter table rondo_lane_stuck
    add column by_transaction bigint not null default txid_current(), add primary key (queue, lane, by_transaction);
  create function rondo_lane_enter() returns trigger language plpgsql as $$ begin
    if new.next_lane is not null and new.state not in (2, 4) then
      new.lane := nullif(new.next_lane, '');
      new.next_lane := null;
      new.place := null;
    elsif tg_name = 'rondo_lane_entered' and new.state not in (0, 3) then
      return new;
    end if;
    new.place := case when new.state <> 3 and new.lane is not null then coalesce(new.place, new.due) end;
    new.state := case when new.state in (1, 3) then new.state when new.lane is null then 0 else 5 end;
    return new;
  end $$;
  create function rondo_lane_next() returns trigger language plpgsql set search_path from current as $$
  declare
    head record;
  begin
    if old.state = 3 or tg_op = 'UPDATE' and (old.state not in (2, 4) or new.state in (2, 4))  -- does not leave its lane
        and (old.queue, old.lane, old.place) is not distinct from (new.queue, new.lane, new.place) then
      return null;
    end if;
    if current_schema() is distinct from tg_table_schema then
      perform set_config('search_path', quote_ident(tg_table_schema) || ', pg_temp', true);
    end if;
    if current_setting('transaction_isolation') = 'read committed' and (old.state not in (5, 6) or
        length(set_config('rondo.waiting_left', left(concat(current_setting('rondo.waiting_left', true), '.'), 9), true)) < 9) then
      select id, state, due into head from rondo_task
        where queue = old.queue and lane = old.lane and lane is not null and state <> 3 order by place, id limit 1;
      if not found or head.state not in (5, 6) then
        return null;
      end if;
      if head.due < clock_timestamp() + interval '5 seconds' then
        perform pg_notify('rondo_task', old.queue);
      end if;
      if head.state = 5 then
        return null;
      end if;
      perform from rondo_task where id = head.id and state = 6 for update skip locked;
      if found then
        update rondo_task set state = 5 where id = head.id;
        return null;
      end if;
    end if;
    insert into rondo_lane_stuck (queue, lane) values (old.queue, old.lane) on conflict do nothing;
    if found then
      perform pg_notify('rondo_task', old.queue);
    end if;
    return null;
  end $$;
  create trigger rondo_lane_entered before insert or update on rondo_task for each row
    when (new.lane is not null or new.next_lane is not null) execute function rondo_lane_enter();
  create trigger rondo_lane_changed before update of queue, lane, place on rondo_task for each row
    when (new.state in (5, 6)) execute function rondo_lane_enter();
  create trigger rondo_lane_left after update on rondo_task for each row
    when (old.lane is not null) execute function rondo_lane_next();
  create trigger rondo_lane_gone after delete on rondo_task for each row
    when (old.lane is not null) execute function rondo_lane_next();
)sql";

constexpr const char* version_4 = "alter table rondo_task add column point_offset integer";

constexpr std::array known_versions{migration{1, version_1}, migration{2, version_2}, migration{3, version_3},
                                    migration{4, version_4}};

// "rondo" in ASCII. A process that creates or migrates a schema holds this lock until the end of its transaction.
constexpr const char* lock = "select pg_advisory_xact_lock(491495777391)";

[[noreturn]] void damaged(const std::string& why) {
  throw store_error(
      "rondo: PostgreSQL: the tables rondo_schema and rondo_task are damaged, or not this library's: " + why);
}

/// What an error says, for an error that names the source itself.
std::string_view without_source(std::string_view said) {
  constexpr std::string_view source = "rondo: PostgreSQL: ";
  if (said.starts_with(source)) said.remove_prefix(source.size());
  return said;
}

/// Only an error about an unknown table or column means damage.
result ask(connection& database, const char* what) {
  try {
    return database.run_plain(what);
  } catch (const store_error& error) {
    if (state_of(error) == "42P01" || state_of(error) == "42703")
      damaged(std::string(without_source(error.what())));
    throw;
  }
}

/// Returns zero if there are no tables.
int version_of(connection& database) {
  const auto tables = database.run_plain(
      "select to_regclass('rondo_schema') is not null, to_regclass('rondo_task') is not null");
  if (!tables.boolean(0, 0) && !tables.boolean(0, 1)) return 0;
  if (!tables.boolean(0, 0)) damaged("rondo_schema is missing");
  const auto versions = ask(database, "select version from rondo_schema");
  if (versions.rows() != 1 || versions.null(0, 0))
    damaged(
        "rondo_schema does not have exactly one row (was a dump of the data alone restored here? Restore a "
        "full dump)");
  if (versions.integer(0, 0) < 1) damaged("rondo_schema must have a version greater than zero");
  return static_cast<int>(versions.integer(0, 0));
}

/// Finds a dropped column or index now, rather than at some submission in the night.
void check(connection& database) {
  for (const char* all :
       {R"(select id, queue, key, due, state, attempt, fence, owner, lease_until, reason, inline_payload,
             payload_apart, lane, next_lane, place, max_attempts, point, schedule, missed, point_offset from rondo_task limit 0)",
        "select id, payload from rondo_payload limit 0", "select queue from rondo_paused limit 0",
        "select id, name from rondo_owner limit 0",
        "select queue, lane, by_transaction from rondo_lane_stuck limit 0"})
    ask(database, all);
  const auto indices = database.run_plain(
      "select bool_and(to_regclass('rondo_task_' || name) is not null) from unnest("
      "'{due, lease, key, dead, lane, lane_due, lane_busy}'::text[]) name");
  if (!indices.boolean(0, 0)) damaged("an index of rondo_task is missing");
  const auto trigger = database.run_plain(
      "select min(name) from unnest("
      "'{rondo_task_gone, rondo_lane_entered, rondo_lane_changed, rondo_lane_left, "
      "rondo_lane_gone}'::text[]) name "
      "where not exists (select from pg_trigger where tgrelid = 'rondo_task'::regclass and tgname = name)");
  if (!trigger.null(0, 0)) damaged("the trigger " + trigger.bytes(0, 0) + " is missing");
}

void migrate_from(int version, connection& database, std::span<const migration> to) {
  if (version > to.back().version)
    throw store_error("rondo: PostgreSQL: the schema has version " + std::to_string(version) +
                      ", and this program knows only versions up to " + std::to_string(to.back().version) +
                      ": it needs a later version of rondo-durable");
  for (const auto& step : to) {
    if (step.version <= version) continue;
    database.run_script(step.statements);
    database.run_script(("update rondo_schema set version = " + std::to_string(step.version)).c_str());
  }
}

}  // namespace

std::span<const migration> migrations() noexcept { return known_versions; }

void migrate(connection& database, std::span<const migration> to) {
  database.begin();
  try {
    database.run_plain(lock);
    migrate_from(version_of(database), database, to);
    check(database);
    database.commit_all();
  } catch (...) {
    database.roll_back();
    throw;
  }
}

}  // namespace rondo::durable::detail::postgresql
