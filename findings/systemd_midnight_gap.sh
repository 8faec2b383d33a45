#!/bin/sh
# systemd 262.1: every six hours, where summer time starts at midnight.
#
# In Santiago (as in Beirut, Cairo and Havana) clocks go from 23:59 to 01:00. OnCalendar=0/6:00 and 0,6,12,18:00 name the
# same times.
# Expected: both have 06:00 as their next time in that night, because 00:00 does not exist.
# Seen: with the list, it is 06:00. With the step, from 18:00 on, no next time is found: "Infinite loop in calendar
#   calculation". So it is with 0/2, 0/3 and 0/12, but not in Berlin, where midnight exists. (By its source, not run: a
#   timer without a next time, in src/core/timer.c, waits for nothing, so it ends in that night.)
# Why it matters: a step is shorthand for a list, so whoever tests one seems to have tested the other. And a test in which
#   02:00 is skipped says nothing about midnight, where the date changes as well.

. "$(dirname "$0")/suite_root"
unpack sid systemd=262.1-1 tzdata

export TZ=America/Santiago
for hours in 0,6,12,18 0/6; do
  next=$(in_root systemd-analyze calendar --base-time='2027-09-04 18:00:00' "$hours:00" 2>&1 |
    sed -n 's/.*Next elapse: .*-\(.*\):00 .*/\1/p; s/\(Infinite loop\).*/\1/p')
  seen="${seen+$seen, }$hours: $next"
done

compare "0,6,12,18: 05 06:00, 0/6: 05 06:00" "0,6,12,18: 05 06:00, 0/6: Infinite loop" "$seen"
