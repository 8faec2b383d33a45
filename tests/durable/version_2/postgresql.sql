SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET client_min_messages = warning;
CREATE FUNCTION rondo_lane_enter() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ begin
    if tg_name = 'rondo_lane_entered' and new.state not in (0, 3) then
      return new;
    end if;
    new.place := case when new.state <> 3 and new.lane is not null then coalesce(new.place, new.due) end;
    new.state := case when new.state = 3 then 3 when new.lane is null then 0 else 5 end;
    return new;
  end $$;
CREATE FUNCTION rondo_lane_next() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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
    if current_setting('transaction_isolation') = 'read committed' then
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
    insert into rondo_lane_stuck values (old.queue, old.lane);
    return null;
  end $$;
CREATE FUNCTION rondo_task_gone() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$ begin
    execute format('delete from %I.rondo_payload where id = $1', tg_table_schema) using old.id;
    return null;
  end $_$;
CREATE TABLE rondo_lane_stuck (
    queue text NOT NULL COLLATE pg_catalog."C",
    lane text NOT NULL COLLATE pg_catalog."C"
);
CREATE UNLOGGED TABLE rondo_owner (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE rondo_owner ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME rondo_owner_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE rondo_paused (
    queue text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE rondo_payload (
    id bigint NOT NULL,
    payload bytea NOT NULL
)
WITH (autovacuum_vacuum_threshold='2000', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_cost_delay='0', vacuum_truncate=off);
CREATE TABLE rondo_schema (
    version integer NOT NULL
);
CREATE TABLE rondo_task (
    id bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    inline_payload bytea NOT NULL,
    due timestamp with time zone NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    owner text,
    lease_until timestamp with time zone,
    reason text,
    payload_apart integer DEFAULT 0 NOT NULL,
    lane text COLLATE pg_catalog."C",
    place timestamp with time zone,
    max_attempts integer DEFAULT 0 NOT NULL,
    point timestamp with time zone,
    schedule text,
    missed smallint
)
WITH (autovacuum_vacuum_threshold='2000', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_cost_delay='0', vacuum_truncate=off);
ALTER TABLE rondo_task ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME rondo_task_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO rondo_lane_stuck VALUES ('run', 'b');
INSERT INTO rondo_lane_stuck VALUES ('run', 'b');
INSERT INTO rondo_schema VALUES (2);
INSERT INTO rondo_task OVERRIDING SYSTEM VALUE VALUES (1, 'run', 'r', '\x78', '2020-01-01 00:00:00+00', 2, 1, 5, 'gone', '2100-01-01 00:00:00+00', NULL, 0, 'a', '2020-01-01 00:00:00+00', 0, '2020-01-01 00:00:00+00', 'every 1h', 0);
INSERT INTO rondo_task OVERRIDING SYSTEM VALUE VALUES (2, 'run', NULL, '\x7365636f6e64', '2020-01-02 00:00:00+00', 6, 0, 0, NULL, NULL, NULL, 0, 'a', '2020-01-02 00:00:00+00', 0, NULL, NULL, NULL);
INSERT INTO rondo_task OVERRIDING SYSTEM VALUE VALUES (3, 'run', NULL, '\x7468697264', '2020-01-03 00:00:00+00', 6, 0, 0, NULL, NULL, NULL, 0, 'a', '2020-01-03 00:00:00+00', 0, NULL, NULL, NULL);
INSERT INTO rondo_task OVERRIDING SYSTEM VALUE VALUES (4, 'run', NULL, '\x737475636b', '2020-01-03 00:00:00+00', 6, 0, 0, NULL, NULL, NULL, 0, 'b', '2020-01-03 00:00:00+00', 0, NULL, NULL, NULL);
SELECT pg_catalog.setval('rondo_owner_id_seq', 1, false);
SELECT pg_catalog.setval('rondo_task_id_seq', 4, true);
ALTER TABLE ONLY rondo_owner
    ADD CONSTRAINT rondo_owner_name_key UNIQUE (name);
ALTER TABLE ONLY rondo_owner
    ADD CONSTRAINT rondo_owner_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rondo_paused
    ADD CONSTRAINT rondo_paused_pkey PRIMARY KEY (queue);
ALTER TABLE ONLY rondo_payload
    ADD CONSTRAINT rondo_payload_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rondo_task
    ADD CONSTRAINT rondo_task_pkey PRIMARY KEY (id);
CREATE INDEX rondo_task_dead ON rondo_task USING btree (queue, id) WHERE (state = 3);
CREATE INDEX rondo_task_due ON rondo_task USING btree (queue, due) WHERE (state = 0);
CREATE UNIQUE INDEX rondo_task_key ON rondo_task USING btree (queue, key) WHERE ((key IS NOT NULL) AND (state <> 3));
CREATE INDEX rondo_task_lane ON rondo_task USING btree (queue, lane, place, id) WHERE ((lane IS NOT NULL) AND (state <> 3));
CREATE INDEX rondo_task_lane_busy ON rondo_task USING btree (queue, lane) WHERE ((lane IS NOT NULL) AND (state = ANY (ARRAY[1, 2, 4])));
CREATE INDEX rondo_task_lane_due ON rondo_task USING btree (queue, due) WHERE (state = 5);
CREATE INDEX rondo_task_lease ON rondo_task USING btree (queue, lease_until) WHERE (state = ANY (ARRAY[1, 2, 4]));
CREATE TRIGGER rondo_lane_changed BEFORE UPDATE OF queue, lane, place ON rondo_task FOR EACH ROW WHEN ((new.state = ANY (ARRAY[5, 6]))) EXECUTE FUNCTION rondo_lane_enter();
CREATE TRIGGER rondo_lane_entered BEFORE INSERT OR UPDATE ON rondo_task FOR EACH ROW WHEN ((new.lane IS NOT NULL)) EXECUTE FUNCTION rondo_lane_enter();
CREATE TRIGGER rondo_lane_gone AFTER DELETE ON rondo_task FOR EACH ROW WHEN ((old.lane IS NOT NULL)) EXECUTE FUNCTION rondo_lane_next();
CREATE TRIGGER rondo_lane_left AFTER UPDATE ON rondo_task FOR EACH ROW WHEN ((old.lane IS NOT NULL)) EXECUTE FUNCTION rondo_lane_next();
CREATE TRIGGER rondo_task_gone AFTER DELETE ON rondo_task FOR EACH ROW WHEN ((old.payload_apart > 0)) EXECUTE FUNCTION rondo_task_gone();
