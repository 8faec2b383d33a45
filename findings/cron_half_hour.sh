#!/bin/sh
# cron 4.4.0, cron-parser 5.10.6, croner 11.0.1, cronosjs 1.7.1 (npm): a gap of half an hour.
#
# On Lord Howe Island summer time is half an hour: clocks go from 01:59 to 02:30. All four libraries know time zones and
# handle a gap of an hour well: a daily 02:30 in New York runs once, at 03:00 or 03:30.
# Expected: a daily 02:15 there runs once on that day too, at 02:30 or 02:45.
# Seen: cron runs it twice, first at 01:45, which is before the gap and not in the expression. cron-parser, which moves
#   a time by the length of the gap in New York, has no run on that day. Only croner and cronosjs run it once.
# Why it matters: code that steps over a gap hour by hour is right in all zones but two (the other is Antarctica/Troll,
#   with two hours). One test in Australia/Lord_Howe finds it.

. "$(dirname "$0")/suite_root"
npm_install cron@4.4.0 cron-parser@5.10.6 croner@11.0.1 cronosjs@1.7.1 luxon@3.7.2

seen=$(cd "$work" && node --input-type=module -e '
  import {CronTime} from "cron";
  import {CronExpressionParser} from "cron-parser";
  import {Cron} from "croner";
  import {CronosExpression} from "cronosjs";
  import {DateTime} from "luxon";

  const expression = "15 2 * * *", timezone = "Australia/Lord_Howe";
  const start = DateTime.fromISO("2026-10-03T12:00", {zone: timezone}), from = start.toJSDate();
  const parsed = CronExpressionParser.parse(expression, {tz: timezone, currentDate: from});
  const time = new CronTime(expression, timezone);
  let last = start;
  const runs = {
    cron: [1, 2, 3].map(() => (last = time.getNextDateFrom(last, timezone)).toJSDate()),
    "cron-parser": [1, 2, 3].map(() => parsed.next().toDate()),
    croner: new Cron(expression, {timezone, paused: true}).nextRuns(3, from),
    cronosjs: CronosExpression.parse(expression, {timezone}).nextNDates(from, 3),
  };
  console.log(Object.entries(runs).map(([name, dates]) => {
    const local = dates.map((date) => DateTime.fromJSDate(date, {zone: timezone}));
    return [name, ...local.filter((date) => date.day === 4).map((date) => date.toFormat("HH:mm"))].join(" ");
  }).join(", "));
')

compare "one run each, at 02:30 or 02:45" "cron 01:45 02:45, cron-parser, croner 02:30, cronosjs 02:45" "$seen"
