BEGIN TRANSACTION;
CREATE TABLE rondo_owner (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
CREATE TABLE rondo_paused (queue TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE rondo_payload (id INTEGER PRIMARY KEY, payload BLOB NOT NULL);
CREATE TABLE rondo_schema (version INTEGER NOT NULL);
INSERT INTO "rondo_schema" VALUES(2);
CREATE TABLE rondo_task (
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         queue TEXT NOT NULL,
         key TEXT,
         due INTEGER NOT NULL,
         state INTEGER NOT NULL DEFAULT 0,
         attempt INTEGER NOT NULL DEFAULT 0,
         fence INTEGER NOT NULL DEFAULT 0,
         owner TEXT,
         lease_until INTEGER,
         reason TEXT,
         inline_payload BLOB NOT NULL, payload_apart INTEGER NOT NULL DEFAULT 0, lane TEXT, place INTEGER, max_attempts INTEGER NOT NULL DEFAULT 0, point INTEGER, schedule TEXT, missed INTEGER);
INSERT INTO "rondo_task" VALUES(1,'run','r',1577836800000000,2,1,5,'gone',4102444800000000,NULL,X'78',0,'a',1577836800000000,0,1577836800000000,'every 1h',0);
INSERT INTO "rondo_task" VALUES(2,'run',NULL,1577923200000000,6,0,0,NULL,NULL,NULL,X'7365636F6E64',0,'a',1577923200000000,0,NULL,NULL,NULL);
INSERT INTO "rondo_task" VALUES(3,'run',NULL,1578009600000000,6,0,0,NULL,NULL,NULL,X'7468697264',0,'a',1578009600000000,0,NULL,NULL,NULL);
INSERT INTO "rondo_task" VALUES(4,'run',NULL,1578009600000000,5,0,0,NULL,NULL,NULL,X'737475636B',0,'b',1578009600000000,0,NULL,NULL,NULL);
CREATE INDEX rondo_task_due ON rondo_task (queue, due) WHERE state = 0;
CREATE INDEX rondo_task_lease ON rondo_task (queue, lease_until) WHERE state IN (1, 2, 4);
CREATE UNIQUE INDEX rondo_task_key ON rondo_task (queue, key) WHERE key IS NOT NULL AND state <> 3;
CREATE INDEX rondo_task_dead ON rondo_task (queue, id) WHERE state = 3;
CREATE INDEX rondo_task_lane ON rondo_task (queue, lane, place) WHERE place IS NOT NULL;
CREATE INDEX rondo_task_lane_due ON rondo_task (queue, due) WHERE state = 5;
CREATE INDEX rondo_task_lane_busy ON rondo_task (queue, lane)
         WHERE lane IS NOT NULL AND state IN (2, 4);
CREATE TRIGGER rondo_task_gone AFTER DELETE ON rondo_task
         WHEN OLD.payload_apart > 0 OR OLD.lane IS NOT NULL BEGIN
           DELETE FROM rondo_payload WHERE id = OLD.id AND OLD.payload_apart > 0;
    UPDATE OR FAIL rondo_task SET state = 5 WHERE state = 6 AND id = (
      SELECT id FROM rondo_task WHERE queue = OLD.queue AND lane = OLD.lane AND place IS NOT NULL
      ORDER BY place, id LIMIT 1); END;
CREATE TRIGGER rondo_lane_changed AFTER UPDATE OF queue, lane, place, state ON rondo_task
         WHEN (OLD.lane IS NOT NULL OR NEW.lane IS NOT NULL) AND (NEW.state = 0 OR NEW.state IN (5, 6) AND (NEW.queue <> OLD.queue OR NEW.lane IS NOT OLD.lane OR NEW.place IS NOT OLD.place) OR NEW.state = 3 AND NEW.place IS NOT NULL OR OLD.state IN (2, 4) AND NEW.state NOT IN (2, 4) OR OLD.state <> 3 AND NEW.state = 3 OR (NEW.queue <> OLD.queue OR NEW.lane IS NOT OLD.lane OR NEW.place IS NOT OLD.place)) BEGIN 
    UPDATE rondo_task SET
      place = iif(lane IS NULL OR state = 3, NULL, ifnull(place, due)),
      state = CASE WHEN state = 3 THEN 3 WHEN lane IS NULL THEN 0 ELSE 5 + EXISTS (
        SELECT 1 FROM rondo_task AS other
        WHERE other.queue = NEW.queue AND other.lane = NEW.lane AND other.place IS NOT NULL
          AND (other.place, other.id) < (ifnull(NEW.place, NEW.due), NEW.id)) END
    WHERE id = NEW.id AND (NEW.state = 0 OR NEW.state IN (5, 6) AND (NEW.queue <> OLD.queue OR NEW.lane IS NOT OLD.lane OR NEW.place IS NOT OLD.place) OR NEW.state = 3 AND NEW.place IS NOT NULL); 
    UPDATE OR FAIL rondo_task SET state = 5 WHERE state = 6 AND id = (
      SELECT id FROM rondo_task WHERE queue = OLD.queue AND lane = OLD.lane AND place IS NOT NULL
      ORDER BY place, id LIMIT 1) AND (OLD.state IN (2, 4) AND NEW.state NOT IN (2, 4) OR OLD.state <> 3 AND NEW.state = 3 OR (NEW.queue <> OLD.queue OR NEW.lane IS NOT OLD.lane OR NEW.place IS NOT OLD.place)); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('rondo_task',4);
COMMIT;
