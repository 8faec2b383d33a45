#!/bin/sh
# systemd 262.1: a timer with OnCalendar=hourly pauses for two hours when summer time ends.
#
# Expected: 24 hours have 24 runs. The hour that clocks show twice has two, as with cron(8): "hourly" and other
#   patterns with wildcards are not about one time of day.
# Seen: none of the times in the second 01:00 to 02:00 is ever the next one, also not with *:0/15. The pause is an hour
#   longer than the pattern says. (In spring a time of day inside the gap has no run on that day; cron(8) runs it after
#   the gap.) systemd.time(7) mentions neither; systemd knows of it (its issue 8647).
# Why it matters: watchdogs, rotations and renewals that must run "at least hourly" do not. Whoever computes the next
#   time from broken-down local time alone has the same hole: the search must go on from the instant, not from what
#   clocks show.

. "$(dirname "$0")/suite_root"
unpack sid systemd=262.1-1 tzdata

export TZ=America/New_York
seen=$(in_root systemd-analyze calendar --base-time='2026-10-31 23:59:00' --iterations=4 hourly |
  sed -n 's/.*(in UTC): ... 2026-11-01 \(..:..\):00 UTC/\1/p' | xargs)

compare "04:00 05:00 06:00 07:00" "04:00 05:00 07:00 08:00" "$seen"
