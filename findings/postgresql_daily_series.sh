#!/bin/sh
# PostgreSQL 18.6: a daily generate_series() stays moved after the night of the gap.
#
# Expected: the n-th value is START + n days. 02:30 does not exist on the day that summer time starts, so it is 03:30 on
#   that day, and 02:30 again on the next, as START + n * interval '1 day' is.
# Seen: each value is computed from the one before it, so that one night's move remains: 03:30 for ever. (In the same
#   way a monthly series from the 31st ends up on the 28th.) The documentation of the function does not say so.
# Why it matters: this is how recurring tasks are laid out in advance in SQL. "The next due time is the last one plus
#   the interval" has the same fault everywhere: a recurrence must remember its start or its time of day.
# Source: generate_series_timestamptz_internal in src/backend/utils/adt/timestamp.c adds the step to the current value.

. "$(dirname "$0")/suite_root"
unpack sid postgresql-18=18.6-3 dash tzdata

echo 'postgres:x:65534:65534::/tmp:/bin/sh' > "$work/root/etc/passwd"
as_postgres() {
  LC_ALL=C chroot --userspec=65534:65534 "$work/root" "$@"
}
bin=/usr/lib/postgresql/18/bin
as_postgres $bin/initdb --auth=trust --no-sync --no-instructions -D /tmp/data > /dev/null || cannot "initdb has failed"

# A backend on its own, without a server: it prints "1: s = "VALUE"" for each row.
query() {
  echo "$1" | as_postgres $bin/postgres --single -j -D /tmp/data -c timezone=America/New_York \
    -c log_min_messages=fatal postgres | sed -n 's/.*1: s = "\([^"]*\)".*/\1/p'
}

seen=$(query "SELECT string_agg(to_char(t, 'HH24:MI'), ' ') AS s FROM
  generate_series(timestamptz '2026-03-07 02:30', '2026-03-10 12:00', '1 day') AS t")
added=$(query "SELECT string_agg(to_char(timestamptz '2026-03-07 02:30' + n * interval '1 day', 'HH24:MI'), ' ') AS s
  FROM generate_series(0, 3) AS n")

compare "02:30 03:30 02:30 02:30 (added: the same)" "02:30 03:30 03:30 03:30 (added: 02:30 03:30 02:30 02:30)" \
  "$seen (added: $added)"
