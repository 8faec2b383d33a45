#!/bin/sh
# SQLite 3.53.4: which of two equal local times 'utc' takes depends on the side of Greenwich.
#
# Expected: datetime(LOCAL, 'utc') treats all zones alike: of a local time that occurs twice it takes the first (or
#   always the second), and one in the gap is moved forward (or always back).
# Seen: west of Greenwich it takes the first and moves forward, in the east it takes the second and moves back. The
#   documentation says only that 'utc' expects a local time.
# Why it matters: a due time computed in SQL and the same one computed by the program agree in the tests of an American
#   author and differ by an hour in Europe. A job of the gap runs early there, before its time of day.
# Source: the modifier searches the instant whose local time fits, starting from the local time read as UTC
#   (parseModifier in date.c), and so comes from the late side in the east and from the early side in the west.

. "$(dirname "$0")/suite_root"
unpack sid sqlite3=3.53.4-2 libsqlite3-0=3.53.4-2 tzdata

# What clocks show and the offset that was taken, for the repeated time and for the one in the gap.
taken() {
  export TZ="$1"
  in_root sqlite3 :memory: "
    SELECT ((unixepoch('$2') - unixepoch('$2', 'utc')) / 3600) || ' ' || strftime('%H:%M', '$3', 'utc', 'localtime')"
}

seen="New York $(taken America/New_York '2026-11-01 01:30' '2026-03-08 02:30')"
seen="$seen, Berlin $(taken Europe/Berlin '2026-10-25 02:30' '2026-03-29 02:30')"

compare "New York -4 03:30, Berlin 2 03:30 (the first of two; forward)" "New York -4 03:30, Berlin 1 01:30" "$seen"
