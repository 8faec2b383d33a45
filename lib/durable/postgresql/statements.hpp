// The statements sent to the server. Times come only from its clock. Index searches use statement_timestamp(), because
// they need a value that is constant during a statement. Everything else uses clock_timestamp(), because now() is the
// beginning of the caller's transaction, perhaps long ago. Rows whose state decides what happens are locked first, so that
// the state cannot change between two parts of a statement. States have names here, see with_states(); triggers make
// `waiting` `in_lane` if a task has a lane, and give a task that has no `place` the one of its due time (see schema.cpp).
#pragma once

#include "durable/postgresql/pipeline.hpp"

namespace rondo::durable::detail::postgresql {

/// Dispatchers listen on one channel, whose payload is the name of a queue.
constexpr const char* listen = "listen rondo_task";

// Statements of a store.

/// Adds a task without a key and a lane, which cannot conflict with another, and with an inline payload. In a transaction of
/// the caller nothing is prepared, and planning is most of the cost of a submission, so this statement is small. $1: the queue,
/// $2: the payload, $3 and $4: whether the due time is a delay from now, and that time in microseconds, $5: how soon a task
/// must be due to wake the dispatchers, $6: the maximum number of attempts.
inline constexpr statement submit_keyless{"rondo_submit_keyless", R"sql(
  insert into rondo_task (queue, inline_payload, max_attempts, due)
  values ($1::text, $2::bytea, $6::integer, case when $3::boolean then clock_timestamp() else timestamptz 'epoch' end
    + $4::bigint * interval '1 microsecond')
  returning id, case when due < clock_timestamp() + $5::bigint * interval '1 microsecond'
    then pg_notify('rondo_task', $1::text)::text end
)sql"};

/// Here and below, the dispatchers are also woken by the cancellation of a run in progress, so that its stop token is
/// requested.
///
/// Cancels the task that has the key if $6 is true, adds a task ($9: its payload if that lies apart, $8: its size, $11: its
/// lane), and wakes the dispatchers if it is due soon. If the key is taken, finds the task that has it. Returns no row if
/// another task with the key was added or removed during the statement. $1: the queue, $2: the key, $3: the inline payload, $4
/// and $5: whether the due time is a delay from now, and that time in microseconds, $7: how soon a task must be due to wake the
/// dispatchers, $10: the maximum number of attempts.
inline constexpr statement submit{"rondo_submit", R"sql(
  with old as materialized (
    select id, state from rondo_task where $6::boolean and queue = $1::text and key = $2::text and state <> {dead} for update
  ), gone as (
    delete from rondo_task where id = any(array(select id from old where state in ({not_begun}))) returning id
  ), going as (
    update rondo_task set state = {cancelled}, key = null where id = any(array(select id from old where state = {running}))
    returning pg_notify('rondo_task', queue)::text
  ), made as (
    insert into rondo_task (queue, key, inline_payload, payload_apart, max_attempts, lane, due)
    select $1::text, $2::text, $3::bytea, $8::integer, $10::integer, $11::text, case when $4::boolean then clock_timestamp() else timestamptz 'epoch' end
      + $5::bigint * interval '1 microsecond'
    from (select count(*) from gone) g, (select count(*) from going) h  -- after these
    on conflict (queue, key) where key is not null and state <> {dead} do nothing
    returning id, due
  ), apart as (
    insert into rondo_payload (id, payload) select id, $9::bytea from made where $8::integer > 0
  )
  select id, true, case when due < clock_timestamp() + $7::bigint * interval '1 microsecond'
    then pg_notify('rondo_task', $1::text)::text end from made
  union all
  select id, false, null from rondo_task
  where queue = $1::text and key = $2::text and state <> {dead} and not exists (select from made)
)sql"};

/// Adds many tasks, and cancels those whose keys they have and that $7 says to replace. $1: the queues, $2: the keys,
/// $3: the inline payloads, $4: the sizes of the others, $5 and $6: the due times, $8: how soon a task must be due to
/// wake the dispatchers, $9: the maximum numbers of attempts, $10: the lanes. Returns the ids in ascending order, which is that of the
/// list. They are fewer than the submissions if a key is taken: then the caller undoes the statement. Two lists lock the tasks
/// that they replace in the same order, that of the keys.
inline constexpr statement submit_many{"rondo_submit_many", R"sql(
  with old as materialized (
    select t.id, t.state from unnest($1::text[], $2::text[], $7::boolean[]) as u(queue, key, replace)
    join rondo_task t on t.queue = u.queue and t.key = u.key and t.state <> {dead}
    where u.replace order by t.queue, t.key for update of t
  ), gone as (
    delete from rondo_task where id = any(array(select id from old where state in ({not_begun}))) returning id
  ), going as (
    update rondo_task set state = {cancelled}, key = null where id = any(array(select id from old where state = {running}))
    returning pg_notify('rondo_task', queue)::text
  ), made as (
    insert into rondo_task (queue, key, inline_payload, payload_apart, max_attempts, lane, due)
    select queue, key, payload, apart, attempts, lane, case when from_now then clock_timestamp() else timestamptz 'epoch' end
      + time * interval '1 microsecond'
    from (select count(*) from gone) g, (select count(*) from going) h,  -- after these
      unnest($1::text[], $2::text[], $3::bytea[], $4::integer[], $5::boolean[], $6::bigint[],
        $9::integer[], $10::text[]) with ordinality as u(queue, key, payload, apart, from_now, time, attempts, lane, nth)
    order by nth
    on conflict (queue, key) where key is not null and state <> {dead} do nothing
    returning id, queue, due
  )
  select id, (select count(pg_notify('rondo_task', queue)) from (
    select distinct queue from made where due < clock_timestamp() + $8::bigint * interval '1 microsecond') soon)
  from made order by id
)sql"};

/// Adds payloads that lie apart. $1: the ids of their tasks, $2: the payloads.
inline constexpr statement add_payloads{"rondo_add_payloads", R"sql(
  insert into rondo_payload (id, payload) select id, payload from unnest($1::bigint[], $2::bytea[]) as u(id, payload)
)sql"};

/// The first submission of a list whose key a live task has. $1: the queues, $2: the keys, $3: whether each replaces.
inline constexpr statement first_taken{"rondo_first_taken", R"sql(
  select u.place, t.id from unnest($1::text[], $2::text[], $3::boolean[]) with ordinality as u(queue, key, replace, place)
  join rondo_task t on t.queue = u.queue and t.key = u.key and t.state <> {dead}
  where not u.replace order by u.place limit 1
)sql"};

/// The server's time, the live task with the key, whether it is equal, and whether it is not repeated. $1: the queue, $2:
/// the key, $3: the schedule, $4: what to do with missed points, $5: the lane, $6: the payload.
inline constexpr statement find_repeated{"rondo_find_repeated", R"sql(
  select clock_timestamp(), t.id,
    coalesce(t.schedule = $3::text and t.missed = $4::smallint and coalesce(t.next_lane, t.lane, '') = coalesce($5::text, '') and $6::bytea =
      case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end, false),
    t.id is not null and t.schedule is null
  from (select 1) one left join rondo_task t on t.queue = $1::text and t.key = $2::text and t.state <> {dead}
)sql"};

/// Adds or replaces a repeated task. $1 to $6: as above, $7: whether the payload lies apart, $8: the point, $9: how soon that
/// must be to wake the dispatchers, $10: the offset. Returns no row if somebody else has just declared the same, or if a task
/// that is not repeated has the key. A run in progress goes on, and its fence and lane stay (but its place is that of the
/// point, so that the lane does not wait for that once the run has ended); whoever holds the task must claim it anew.
inline constexpr statement repeat{"rondo_repeat", R"sql(
  with made as (
    insert into rondo_task as t (queue, key, schedule, missed, lane, inline_payload, payload_apart, due, point, point_offset)
    select $1::text, $2::text, $3::text, $4::smallint, $5::text, case when $7::boolean then '' else $6::bytea end,
      case when $7::boolean then octet_length($6::bytea) else 0 end, due, due, $10::integer
    from (select timestamptz 'epoch' + $8::bigint * interval '1 microsecond' as due) u
    on conflict (queue, key) where key is not null and state <> {dead} do update
    set schedule = excluded.schedule, missed = excluded.missed, due = excluded.due, point = excluded.point,
      point_offset = excluded.point_offset,
      lane = case when t.state = {running} then t.lane else excluded.lane end,
      next_lane = case when t.state = {running} and t.lane is distinct from excluded.lane then coalesce(excluded.lane, '') end,
      inline_payload = excluded.inline_payload, payload_apart = excluded.payload_apart, attempt = 0, reason = null,
      state = case when t.state = {running} then {running} else {waiting} end, place = case when t.state = {running} and t.lane is not null then excluded.due end,
      fence = t.fence + case when t.state = {running} then 0 else 1 end,
      owner = case when t.state = {running} then t.owner end, lease_until = case when t.state = {running} then t.lease_until end
    where t.schedule is not null and ((t.schedule, t.missed, coalesce(t.next_lane, t.lane, '')) is distinct from
        (excluded.schedule, excluded.missed, coalesce(excluded.lane, ''))
      or $6::bytea is distinct from
        case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end)
    returning id, due
  ), apart as (
    insert into rondo_payload (id, payload) select id, $6::bytea from made where $7::boolean
    on conflict (id) do update set payload = excluded.payload
  ), inline as (
    delete from rondo_payload where id = any(array(select id from made where not $7::boolean))
  )
  select id, case when due < clock_timestamp() + $9::bigint * interval '1 microsecond'
    then pg_notify('rondo_task', $1::text)::text end from made
)sql"};

/// $1: the id.
inline constexpr statement cancel_id{"rondo_cancel_id", R"sql(
  with old as materialized (
    select id, state from rondo_task where id = $1::bigint and state in ({waiting}, {held}, {running}, {in_lane}, {behind}) for update
  ), going as (
    update rondo_task set state = {cancelled}, key = null where id = any(array(select id from old where state = {running}))
    returning pg_notify('rondo_task', queue)::text
  )
  delete from rondo_task where id = any(array(select id from old where state in ({not_begun}))) returning id
)sql"};

/// $1: the queue, $2: the key.
inline constexpr statement cancel_key{"rondo_cancel_key", R"sql(
  with old as materialized (
    select id, state from rondo_task where queue = $1::text and key = $2::text and state <> {dead} for update
  ), going as (
    update rondo_task set state = {cancelled}, key = null where id = any(array(select id from old where state = {running}))
    returning pg_notify('rondo_task', queue)::text
  )
  delete from rondo_task where id = any(array(select id from old where state in ({not_begun}))) returning id
)sql"};

/// $1: the id, $2 and $3: whether the due time is a delay from now, and that time in microseconds, $4: how soon a task must
/// be due to wake the dispatchers.
inline constexpr statement reschedule{"rondo_reschedule", R"sql(
  with moved as (
    update rondo_task set state = {waiting}, place = null, owner = null, lease_until = null, fence = fence + 1,
      due = case when $2::boolean then clock_timestamp() else timestamptz 'epoch' end + $3::bigint * interval '1 microsecond'
    where id = $1::bigint and state in ({not_begun})
    returning queue, due
  )
  select case when due < clock_timestamp() + $4::bigint * interval '1 microsecond'
    then pg_notify('rondo_task', queue)::text end from moved
)sql"};

/// $1: the queue, $2: the key, $3 to $5: as $2 to $4 above.
inline constexpr statement reschedule_key{"rondo_reschedule_key", R"sql(
  with moved as (
    update rondo_task set state = {waiting}, place = null, owner = null, lease_until = null, fence = fence + 1,
      due = case when $3::boolean then clock_timestamp() else timestamptz 'epoch' end + $4::bigint * interval '1 microsecond'
    where queue = $1::text and key = $2::text and state <> {dead} and state in ({not_begun})
    returning queue, due
  )
  select case when due < clock_timestamp() + $5::bigint * interval '1 microsecond'
    then pg_notify('rondo_task', queue)::text end from moved
)sql"};

/// $1: the id.
inline constexpr statement find{"rondo_find", R"sql(
  select id, fence, attempt, queue, key, case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end, due, point
  from rondo_task t where id = $1::bigint and state <> {dead}
)sql"};

/// $1: the queue, $2: the key.
inline constexpr statement find_key{"rondo_find_key", R"sql(
  select id, fence, attempt, queue, key, case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end, due, point
  from rondo_task t where queue = $1::text and key = $2::text and state <> {dead}
)sql"};

/// $1: the queue.
inline constexpr statement pause{"rondo_pause", R"sql(
  insert into rondo_paused (queue) values ($1::text) on conflict do nothing
)sql"};

/// $1: the queue.
inline constexpr statement resume{"rondo_resume", R"sql(
  with gone as (delete from rondo_paused where queue = $1::text returning queue)
  select pg_notify('rondo_task', queue)::text from gone
)sql"};

/// $1: the queue.
inline constexpr statement is_paused{"rondo_is_paused", R"sql(
  select exists (select from rondo_paused where queue = $1::text)
)sql"};

/// $1: the queue, $2: the id before the first, $3: the maximum number, $4: the states.
inline constexpr statement list{"rondo_list", R"sql(
  select id, fence, attempt, queue, key, case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end, due, point,
    state, owner, reason
  from rondo_task t where queue = $1::text and id > $2::bigint and state = any($4::smallint[]) order by id limit $3::bigint
)sql"};

/// As `list`, for the dead, which have an index. $1 to $3: as for list.
inline constexpr statement list_dead{"rondo_list_dead", R"sql(
  select id, fence, attempt, queue, key, case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end, due, point,
    state, owner, reason
  from rondo_task t where queue = $1::text and id > $2::bigint and state = {dead} order by id limit $3::bigint
)sql"};

/// Returns the queue and the key of the dead task, and the live task that has the key, if there is one. $1: the id.
inline constexpr statement retry{"rondo_retry", R"sql(
  with dead as materialized (
    select id, queue, key from rondo_task where id = $1::bigint and state = {dead} for update
  ), other as materialized (
    select t.id from dead join rondo_task t on t.queue = dead.queue and t.key = dead.key and t.state <> {dead}
  ), revived as (
    update rondo_task set state = {waiting}, attempt = 0, due = clock_timestamp(), place = null, reason = null
    where id = any(array(select id from dead)) and not exists (select from other)
    returning pg_notify('rondo_task', queue)::text
  )
  select queue, key, (select id from other) from dead
)sql"};

// Statements of a session. $1 and $2 are the ids and fences of tickets. Each names the owner, too: a server that has lost its
// last commits in a failover may give the fence of a lost claim to another session. Rows that an open transaction has locked are
// skipped, as that transaction may take long: see `locked`. "+ 0" keeps the server from using the index of the leases.
// If few tasks were held when the statistics were last taken, it would otherwise read all held tasks instead of each
// ticket's row by its id. If the table was empty then, a join would read all of it, and compare each row with each
// ticket: a subquery that is not made part of the join, because it locks (or has "offset 0"), is run once for each.
//
// What is done for each task (claim, begin, finish) finds the rows that it has locked by their ctid, without another search
// in an index, which would take 2 of 28 µs. That does not find a row that was changed between the beginning of the
// statement and the lock. So these statements return what they have changed. What a beginning or an end misses counts as
// locked. A claim that misses tasks says that there may be more.

/// $3: the owner.
inline constexpr statement finish{"rondo_finish", R"sql(
  with old as materialized (
    select t.tid from unnest($1::bigint[], $2::bigint[]) as u(id, fence) cross join lateral (
      select ctid as tid from rondo_task
      where id = u.id and fence = u.fence and owner = $3::text and state + 0 in ({begun}) for update skip locked) t
  )
  delete from rondo_task where ctid = any(array(select tid from old)) returning id, fence
)sql"};

/// $1: the ids, $2: the fences, $3: after how long each task is tried again (null if never), $4: the reasons, $5: how soon a
/// retry must be to wake the other dispatchers, $6: which runs count as attempts, $7: the owner. (The caller itself may have no
/// place or thread for it, or may be about to stop.) A running task with no attempt is a repeated one that has been declared
/// anew meanwhile: it stays due at its new point. A task that is already dead for that reason, as the answer was lost, counts
/// as failed.
inline constexpr statement fail{"rondo_fail", R"sql(
  with old as materialized (
    select t.id, t.fence, t.state, t.queue, u.retry_after, u.why, u.counts
    from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $6::boolean[]) as u(id, fence, retry_after, why, counts)
    cross join lateral (
      select id, fence, state, queue from rondo_task
      where id = u.id and fence = u.fence and owner = $7::text and state + 0 in ({begun}) for update skip locked) t
  ), gone as (
    delete from rondo_task where id = any(array(select id from old where state = {cancelled}))
  ), failed as (
    update rondo_task t
    set state = case when retry_after is null then {dead} else {waiting} end, owner = null, lease_until = null, reason = case when retry_after is null then why else t.reason end,
      attempt = greatest(attempt - case when counts then 0 else 1 end, 0),
      due = case when retry_after is null or attempt = 0 then due else clock_timestamp() + retry_after * interval '1 microsecond' end
    from old where t.id = old.id and old.state = {running}
      and t.id = any(array(select id from old))  -- as above
  )
  select id, fence, state = {cancelled},
    case when state = {running} and retry_after < $5::bigint then pg_notify('rondo_task', queue)::text end from old
  union all select t.id, t.fence, false, null
  from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) as u(id, fence, retry_after, why) cross join lateral (
    select id, fence from rondo_task
    where id = u.id and fence = u.fence and state + 0 = {dead} and reason = u.why offset 0) t
  where u.retry_after is null
)sql"};

/// $1: the ids, $2: the fences, $3: the next points (null if there are none), $4: whether each point was given up, $5: the
/// reasons, $6: how soon a point must be to wake the other dispatchers, $7: the owner, $8: the offsets of the next points.
inline constexpr statement pass{"rondo_pass", R"sql(
  with old as materialized (
    select t.id, t.fence, t.state, t.queue, u.given_up, u.why,
      case when t.state = {running} and t.attempt = 0 then t.point else timestamptz 'epoch' + u.next * interval '1 microsecond' end as next,
      case when t.state = {running} and t.attempt = 0 then t.point_offset else u.next_offset end as next_offset
    from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::text[], $8::bigint[]) as u(id, fence, next, given_up, why, next_offset)
    cross join lateral (
      select id, fence, state, queue, attempt, point, point_offset from rondo_task
      where id = u.id and fence = u.fence and owner = $7::text and state + 0 in ({claimed}) for update skip locked) t
  ), gone as (
    delete from rondo_task where id = any(array(select id from old where state = {cancelled} or next is null and not given_up))
  ), passed as (
    update rondo_task t
    set state = case when next is null then {dead} else {waiting} end, owner = null, lease_until = null, reason = case when given_up then why end,
      attempt = case when next is null then attempt else 0 end, place = case when next is null then place end,
      due = coalesce(next, due), point = coalesce(next, point),
      point_offset = case when next is null then point_offset else next_offset end
    from old where t.id = old.id and old.state <> {cancelled} and (next is not null or given_up)
      and t.id = any(array(select id from old))  -- as above
  )
  select id, fence, state = {cancelled},
    case when state <> {cancelled} and next < clock_timestamp() + $6::bigint * interval '1 microsecond' then pg_notify('rondo_task', queue)::text end
  from old
)sql"};

/// $1: the ids, $2: the fences, $3: the owner.
inline constexpr statement take_back{"rondo_take_back", R"sql(
  with old as materialized (
    select t.* from unnest($1::bigint[], $2::bigint[]) as u(id, fence) cross join lateral (
      select id, fence, state, queue from rondo_task
      where id = u.id and fence = u.fence and owner = $3::text and state + 0 in ({begun}) for update skip locked) t
  ), gone as (
    delete from rondo_task where id = any(array(select id from old where state = {cancelled}))
  ), back as (
    update rondo_task set state = {waiting}, attempt = greatest(attempt - 1, 0), owner = null, lease_until = null
    where id = any(array(select id from old where state = {running}))
  )
  select id, fence, case when state = {running} then pg_notify('rondo_task', queue)::text end from old  -- once for each queue
)sql"};

/// $1: the ids, $2: the fences, $3: the owner.
inline constexpr statement give_back{"rondo_give_back", R"sql(
  with old as materialized (
    select t.id from unnest($1::bigint[], $2::bigint[]) as u(id, fence) cross join lateral (
      select id from rondo_task where id = u.id and fence = u.fence and owner = $3::text and state + 0 = {held} for update skip locked) t
  )
  update rondo_task set state = {waiting}, owner = null, lease_until = null
  where id = any(array(select id from old))
  returning id, fence, pg_notify('rondo_task', queue)::text
)sql"};

/// $1: the ids, $2: the fences, $3: the lease, $4: whether leases of which at least half is left are also renewed, $5: the
/// owner.
inline constexpr statement renew{"rondo_renew", R"sql(
  with old as materialized (
    select t.id from unnest($1::bigint[], $2::bigint[]) as u(id, fence) cross join lateral (
      select id from rondo_task where id = u.id and fence = u.fence and owner = $5::text and state + 0 in ({begun})
        and ($4::boolean or lease_until < clock_timestamp() + $3::bigint / 2 * interval '1 microsecond')
      for update skip locked) t
  )
  update rondo_task set lease_until = clock_timestamp() + $3::bigint * interval '1 microsecond'
  where id = any(array(select id from old))
  returning id, fence
)sql"};

/// Locks the tasks of lanes whose runs should begin, so that `begin`, which comes next, sees all others of their lanes that have
/// begun before these were locked. $3: the owner.
inline constexpr statement lock_in_lanes{"rondo_lock_in_lanes", R"sql(
  select t.id from unnest($1::bigint[], $2::bigint[]) as u(id, fence) cross join lateral (
    select id from rondo_task
    where id = u.id and fence = u.fence and owner = $3::text and state + 0 in ({held}, {running}) for update skip locked) t
)sql"};

/// $1: the ids, $2: the fences, $3: the lease, $4: the owner, who may repeat the statement, $5: the points of repeated tasks,
/// or null, $6: their offsets, $7: the ids of those in lanes, which this transaction must have locked before. (Whoever has
/// locked one of these since may just have begun a run of its lane that this statement does not see.) The last column is true
/// for a task that must not begin yet. Of two tasks of a lane that are both
/// held, only the first may begin, and only if the other one is certain not to begin at the same time: it is locked here, and
/// still held. While somebody else's transaction has locked the other one, the first one is left out, as if that were locked.
/// (That the first one was not yet there when the other one was claimed is no exception: whoever begins sees all that was
/// claimed before.)
inline constexpr statement begin{"rondo_begin", R"sql(
  with old as materialized (
    select t.tid, t.id, t.fence, t.state, t.queue, t.lane, t.place, t.due,
      case when t.state = {held} and u.point <> t.point then u.point end as other_point,
      t.state = {held} and (u.point <> t.point or u.point = t.point and u.point_offset is distinct from t.point_offset) as is_other,
      u.point_offset
    from (
      select id, fence, timestamptz 'epoch' + point * interval '1 microsecond' as point, point_offset
      from unnest($1::bigint[], $2::bigint[], $5::bigint[], $6::bigint[]) as v(id, fence, point, point_offset)
    ) u cross join lateral (
      select ctid as tid, id, fence, state, queue, lane, place, due, point, point_offset from rondo_task
      where id = u.id and fence = u.fence and owner = $4::text and state + 0 in ({held}, {running})
        and (id <> all($7::bigint[]) or xmax::text::bigint = txid_current() % 4294967296)
      for update skip locked) t
  ), rival as materialized (
    select o.id as of, r.id, r.excludes from old o cross join lateral (
      (select id, true as excludes from rondo_task
        where queue = o.queue and lane = o.lane and lane is not null and state <> {dead} and (place, id) < (o.place, o.id)
        order by place, id limit 1)
      union all
      select id, state <> {held} from rondo_task
        where queue = o.queue and lane = o.lane and lane is not null and state in ({claimed}) and id <> o.id
    ) r where o.lane is not null and o.state = {held}
  ), stopped as materialized (
    select id from rondo_task where id = any(array(select id from rival where not excludes)) and state + 0 = {held}
    for share skip locked
  ), excluded as materialized (
    select of from rival where excludes
  ), undecided as materialized (
    select of from rival where id <> all(array(select id from stopped)) and of <> all(array(select of from excluded))
  ), decided as materialized (
    select tid, id, fence, state = {held} and (coalesce(other_point, due) > clock_timestamp() or queue = any(array(select queue from rondo_paused)))
      or id = any(array(select of from excluded)) as early
    from old
  ), pointed as materialized (
    select id, other_point as point, point_offset from old where is_other  -- mostly none
  ), begun as (
    update rondo_task t set state = {running}, attempt = attempt + case state when {held} then 1 else 0 end,
      lease_until = clock_timestamp() + $3::bigint * interval '1 microsecond',
      due = coalesce((select p.point from pointed p where p.id = t.id), due),
      point = coalesce((select p.point from pointed p where p.id = t.id), point),
      point_offset = case when id = any(array(select id from pointed))
        then (select p.point_offset from pointed p where p.id = t.id) else point_offset end
    where ctid = any(array(select tid from decided where not early and id <> all(array(select of from undecided))))
    returning id, fence
  )
  select id, fence, false from begun union all select id, fence, true from decided where early
)sql"};

/// Which of these runs have been cancelled, or are the owner's ($3) no more. (`held`: the server has crashed and forgotten the
/// beginning, which will be repeated.) $1: the ids, $2: the fences.
inline constexpr statement watch{"rondo_watch", R"sql(
  select u.id, u.fence from unnest($1::bigint[], $2::bigint[]) as u(id, fence) left join lateral (
    select id from rondo_task
    where id = u.id and fence = u.fence and owner = $3::text and state + 0 in ({held}, {running}) offset 0) t on true
  where t.id is null
)sql"};

/// Takes tickets for which a statement above has done nothing, and returns those for which it could. $3: for each ticket, 0 if
/// its run was to end, 1 if it was to be given back, 2 if its run was to begin, 3 if its point is over; $4: the owner. $1: the
/// ids, $2: the fences.
inline constexpr statement locked{"rondo_locked", R"sql(
  select t.id, t.fence from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as u(id, fence, wanted)
  cross join lateral (
    select id, fence from rondo_task where id = u.id and fence = u.fence and owner = $4::text
      and case wanted when 0 then state + 0 in ({begun}) when 1 then state + 0 = {held} when 3 then state + 0 in ({claimed})
        else state + 0 in ({held}, {running}) end offset 0) t
)sql"};

/// $1: the queues, $2: the owner, $3: the lease. The leases start again, so that a claim in the same turn does not find
/// the tasks expired.
inline constexpr statement adopt{"rondo_adopt", R"sql(
  with own as materialized (
    select id from rondo_task
    where queue = any($1::text[]) and state in ({claimed}) and state = {held} and owner = $2::text
    for update skip locked
  )
  update rondo_task t set lease_until = greatest(due, clock_timestamp()) + $3::bigint * interval '1 microsecond'
  where id = any(array(select id from own))
  returning id, fence, attempt, queue, key, case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end, due, point,
    clock_timestamp(), 0, max_attempts, lane is not null, schedule, missed, point_offset
)sql"};

/// Says that the owner $1 lives, for as long as this session does. The row is not visible to others before it is locked.
/// Returns false if an earlier session of the owner still has the lock: the server has not noticed its end.
inline constexpr statement enter{"rondo_enter", R"sql(
  with own as (
    insert into rondo_owner (name) values ($1::text) on conflict (name) do update set name = excluded.name returning id
  )
  select pg_try_advisory_lock(1919905636, (id % 2147483648)::integer) from own
)sql"};

/// Finds the owners, except $1, whose sessions have ended, and locks them.
inline constexpr statement find_gone{"rondo_find_gone", R"sql(
  select id, name from rondo_owner
  where case when name = $1::text then false else pg_try_advisory_lock(1919905636, (id % 2147483648)::integer) end
)sql"};

/// Frees what the owners $1 held, and forgets those who hold no more. (Somebody's open transaction may have a task.)
inline constexpr statement free_held{"rondo_free_held", R"sql(
  with held as materialized (
    select id from rondo_task where state in ({claimed}) and state = {held} and owner = any($1::text[]) for update skip locked
  ), freed as (
    update rondo_task set state = {waiting}, owner = null, lease_until = null, fence = fence + 1
    where id = any(array(select id from held))
    returning pg_notify('rondo_task', queue)::text
  )
  delete from rondo_owner o where name = any($1::text[]) and not exists (
    select from rondo_task t
    where t.state in ({claimed}) and t.state = {held} and t.owner = o.name and t.id <> all(array(select id from held)))
)sql"};

/// $1: the ids of owners that find_gone has locked.
inline constexpr statement unlock{"rondo_unlock", R"sql(
  select pg_advisory_unlock(1919905636, (id % 2147483648)::integer) from unnest($1::bigint[]) as u(id)
)sql"};

/// Frees the first tasks of lanes where a trigger could not. Runs before a claim, if the last one has found such lanes:
/// before each, it would make a claim of few tasks take half as long again. $1: the queues.
inline constexpr statement free_lanes{"rondo_free_lanes", R"sql(
  with stuck as materialized (
    select s.queue, s.lane, t.id from rondo_lane_stuck s left join lateral (
      select id from rondo_task where queue = s.queue and lane = s.lane and lane is not null and state <> {dead}
      order by place, id limit 1
    ) t on true where s.queue = any($1::text[])
  ), first as materialized (
    select id from rondo_task where id = any(array(select id from stuck)) for update skip locked
  ), freed as (
    update rondo_task set state = {in_lane} where id = any(array(select id from first)) and state + 0 = {behind}
  )
  delete from rondo_lane_stuck s using stuck
  where s.queue = stuck.queue and s.lane = stuck.lane and (stuck.id is null or stuck.id = any(array(select id from first)))
)sql"};

/// Claims tasks that wait in no lane, which is what most claims find. $1: the queues, $2: the maximum number of tasks, $3:
/// the window, $4: the lease, $5: the owner, $6: the claim ends with the task whose payload reaches this number of bytes.
/// (The server knows the length of a payload without reading it.) $7: schedules of tasks that are not claimed, $8: what
/// fences of the server's timeline are greater than. One more row says that `claim_all` may find more: other tasks, or some that were missed. For one task, that takes 1.5 times as
/// long as this, because its plan is three times as large.
///
/// The part for each queue reads its index from the beginning, skips rows that others are about to take, and stops
/// after $2 rows. "= any(array(…))" makes the server look up rows by their ids or ctids, whatever number of rows it
/// expects.
inline constexpr statement claim_waiting{"rondo_claim_waiting", R"sql(
  with q as materialized (
    select name from unnest($1::text[]) as u(name) where not exists (select from rondo_paused where queue = name)
  ), fences as materialized (
    select $8::bigint + (extract(epoch from clock_timestamp()) * 1000)::bigint as lowest
  ), waiting as materialized (
    select t.* from q cross join lateral (
      select ctid as tid, id, due, octet_length(inline_payload) + payload_apart as size from rondo_task
      where queue = q.name and state = {waiting} and due < statement_timestamp() + $3::bigint * interval '1 microsecond'
        and (schedule is null or schedule <> all($7::text[]))
      order by due limit $2::bigint for update skip locked
    ) t
  ), chosen as materialized (
    select tid from (
      select tid, sum(size) over (order by due, id) - size as bytes_before from (
        select * from waiting order by due limit $2::bigint
      ) sized
    ) summed where bytes_before < $6::bigint
  ), claimed as (
    update rondo_task t set state = {held}, owner = $5::text, fence = greatest(fence + 1, (select lowest from fences)),
      lease_until = greatest(due, clock_timestamp()) + $4::bigint * interval '1 microsecond'
    where ctid = any(array(select tid from chosen))
    returning id, fence, attempt, queue, key,
      case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end as payload, due, point, max_attempts, lane, schedule, missed, point_offset
  )
  select id, fence, attempt, queue, key, payload, due, point, clock_timestamp(), 0, max_attempts, lane is not null, schedule, missed, point_offset from claimed
  union all select 0, 0, 0, '', null, '', timestamptz 'epoch', null, clock_timestamp(), 4, 0, false, null, null, null
    where exists (
      select from q cross join lateral (
        (select from rondo_task
          where queue = q.name and state = {in_lane} and due < statement_timestamp() + $3::bigint * interval '1 microsecond'
            and (schedule is null or schedule <> all($7::text[])) limit 1)
        union all
        (select from rondo_task
          where queue = q.name and state in ({claimed}) and lease_until < statement_timestamp()
            and (state = {cancelled} or schedule is null or schedule <> all($7::text[])) limit 1)
      ) t)
      or exists (select from rondo_lane_stuck where queue = any($1::text[]))
      or (select count(*) from claimed) < (select count(*) from chosen)
  order by due
)sql"};

/// Claims also the first tasks of lanes and tasks whose lease has run out. $1 to $8: as above, $9: the maximum number of
/// attempts.
///
/// A repeated task is claimed also after its last attempt, as the dispatcher finds the next point.
///
/// A task behind another one of its lane is set aside (`behind`) if that one can be locked; otherwise it may just be about to
/// go, so the task is left to the next claim. If there is nothing but such tasks, the claim reads on for others (`past_these`),
/// as an open transaction may have the first of them for long. Two more rows may say that some were set aside or missed, or
/// that tasks ended that others of their lanes waited for; and that `free_lanes` has something to do. $1 to $8: as for
/// claim_waiting.
inline constexpr statement claim_all{"rondo_claim_all", R"sql(
  with q as materialized (
    select name from unnest($1::text[]) as u(name) where not exists (select from rondo_paused where queue = name)
  ), fences as materialized (
    select $8::bigint + (extract(epoch from clock_timestamp()) * 1000)::bigint as lowest
  ), waiting as materialized (
    select t.* from q cross join lateral (
      select ctid as tid, id, due, octet_length(inline_payload) + payload_apart as size from rondo_task
      where queue = q.name and state = {waiting} and due < statement_timestamp() + $3::bigint * interval '1 microsecond'
        and (schedule is null or schedule <> all($7::text[]))
      order by due limit $2::bigint for update skip locked
    ) t
  ), in_lanes as materialized (
    select t.* from q cross join lateral (
      select ctid as tid, id, due, octet_length(inline_payload) + payload_apart as size, queue, lane, place
      from rondo_task
      where queue = q.name and state = {in_lane} and due < statement_timestamp() + $3::bigint * interval '1 microsecond'
        and (schedule is null or schedule <> all($7::text[]))
      order by due limit $2::bigint for update skip locked
    ) t
  ), behind as materialized (
    select c.*, o.id as other from in_lanes c cross join lateral (
      (select id from rondo_task
        where queue = c.queue and lane = c.lane and lane is not null and state <> {dead} and (place, id) < (c.place, c.id)
        order by place, id limit 1)
      union all
      (select id from rondo_task
        where queue = c.queue and lane = c.lane and lane is not null and state in ({claimed}) and state <> {held} limit 1)
    ) o
  ), still_behind as materialized (
    select b.id from behind b cross join lateral (
      select t.id from rondo_task t
      where t.id = b.other and t.queue = b.queue and t.lane = b.lane
        and (t.state + 0 in ({begun}) or t.state + 0 <> {dead} and (t.place, t.id) < (b.place, b.id))
      for share skip locked
    ) t
  ), past_these as materialized (
    select t.* from q cross join lateral (
      select ctid as tid, id, due, octet_length(inline_payload) + payload_apart as size from rondo_task c
      where queue = q.name and state = {in_lane} and due < statement_timestamp() + $3::bigint * interval '1 microsecond'
        and (schedule is null or schedule <> all($7::text[]))
        and not exists (select from rondo_task where queue = c.queue and lane = c.lane and lane is not null
          and state <> {dead} and (place, id) < (c.place, c.id))
        and not exists (select from rondo_task where queue = c.queue and lane = c.lane and lane is not null
          and state in ({claimed}) and state <> {held})
      order by due limit $2::bigint for update skip locked
    ) t where (select count(*) from in_lanes) >= $2::bigint and not exists (select from still_behind)
      and not exists (select from in_lanes where id <> all(array(select id from behind)))
  ), passed as (
    update rondo_task set state = {behind} where id = any(array(select id from still_behind)) returning id
  ), expired as materialized (
    select t.* from q cross join lateral (
      select ctid as tid, id, due, octet_length(inline_payload) + payload_apart as size, state,
        attempt < case max_attempts when 0 then $9::integer else max_attempts end or schedule is not null as goes_on
      from rondo_task
      where queue = q.name and state in ({claimed}) and lease_until < statement_timestamp()
        and (state = {cancelled} or schedule is null or schedule <> all($7::text[]))
      order by lease_until limit $2::bigint for update skip locked
    ) t
  ), gone as (
    delete from rondo_task where id = any(array(select id from expired where state = {cancelled})) returning lane
  ), dead as (
    update rondo_task set state = {dead}, owner = null, lease_until = null, reason = 'lease ran out'
    where id = any(array(select id from expired where state = {running} and not goes_on))
    returning id, fence, attempt, queue, key, bytea '' as payload, due, max_attempts, lane
  ), chosen as materialized (
    select tid from (
      select tid, sum(size) over (order by due, id) - size as bytes_before from (
        select tid, id, due, size from waiting
        union all select tid, id, due, size from in_lanes, (select count(*) from still_behind) s  -- locked before it is claimed
          where id <> all(array(select id from behind))
        union all select tid, id, due, size from past_these
        union all select tid, id, due, size from expired where state = {held} or state = {running} and goes_on
        order by due limit $2::bigint
      ) sized
    ) summed where bytes_before < $6::bigint
  ), claimed as (
    update rondo_task t set state = {held}, owner = $5::text, fence = greatest(fence + 1, (select lowest from fences)),
      lease_until = greatest(due, clock_timestamp()) + $4::bigint * interval '1 microsecond'
    where ctid = any(array(select tid from chosen))
    returning id, fence, attempt, queue, key,
      case when t.payload_apart = 0 then t.inline_payload else (select p.payload from rondo_payload p where p.id = t.id) end as payload, due, point, max_attempts, lane, schedule, missed, point_offset
  )
  select id, fence, attempt, queue, key, payload, due, point, clock_timestamp(), 0, max_attempts, lane is not null, schedule, missed, point_offset from claimed
  union all select id, fence, attempt, queue, key, payload, due, null, clock_timestamp(), 1, max_attempts, lane is not null, null, null, null from dead
  union all select 0, 0, 0, '', null, '', timestamptz 'epoch', null, clock_timestamp(), 2, 0, false, null, null, null
    where exists (select from passed) or exists (select from gone where lane is not null)
      or exists (select from dead where lane is not null)
      or (select count(*) from claimed) < (select count(*) from chosen)
  union all select 0, 0, 0, '', null, '', timestamptz 'epoch', null, clock_timestamp(), 3, 0, false, null, null, null
    where exists (select from rondo_lane_stuck where queue = any($1::text[]))
  order by due
)sql"};
}  // namespace rondo::durable::detail::postgresql
