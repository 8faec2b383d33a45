#!/bin/sh
# cron-parser 5.10.6 (npm): prev() does not go back over the times that next() gives.
#
# Expected: prev() gives next()'s times in reverse order. A daily job at midnight has one run on each day, also on the
#   one that starts at 01:00 because summer time starts at midnight (Beirut, Cairo, and others).
# Seen: next() gives 01:00 on that day; prev() throws "loop limit exceeded" there. (In New York a daily 02:30 has 03:30
#   on the day of the gap with next() and no run with prev(); a daily 01:30 has one run in autumn with next() and two
#   with prev().)
# Why it matters: prev() is how schedulers find missed runs after a restart. Two directions need two sets of tests, or
#   one test: walk forward, walk back, compare.

. "$(dirname "$0")/suite_root"
npm_install cron-parser@5.10.6

seen=$(cd "$work" && node --input-type=module -e '
  import {CronExpressionParser} from "cron-parser";
  const walk = (from, step) => {
    const times = CronExpressionParser.parse("0 0 * * *", {tz: "Asia/Beirut", currentDate: new Date(from)});
    const found = [];
    try {
      for (let n = 0; n < 3; ++n) found.push(times[step]().toISOString().slice(5, 16));
    } catch (error) {
      found.push(error.message);
    }
    return found.join(" ");
  };
  console.log("next", walk("2026-03-27T12:00Z", "next") + ", prev", walk("2026-03-30T12:00Z", "prev"));
')

compare "next 03-27T22:00 03-28T22:00 03-29T21:00, prev 03-29T21:00 03-28T22:00 03-27T22:00" \
  "next 03-27T22:00 03-28T22:00 03-29T21:00, prev 03-29T21:00 Invalid expression, loop limit exceeded" "$seen"
