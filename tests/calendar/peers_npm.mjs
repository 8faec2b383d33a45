// For the script peers: asks a tool of npm. Input and output are as in cron_points.cpp, but the last point of a tool that
// throws is "error".
//
//   node peers_npm.mjs TOOL < CASES
import {readFileSync} from "node:fs";
import {mock} from "node:test";
import {Cron} from "croner";
import {CronExpressionParser} from "cron-parser";
import nodeCron from "node-cron";

const count = 200;
const tools = {
  croner: (expression, timezone, from) => new Cron(expression, {timezone, paused: true}).nextRuns(count, from),
  "cron-parser": function* (expression, tz, currentDate) {
    const points = CronExpressionParser.parse(expression, {tz, currentDate});
    for (;;) yield points.next().toDate();
  },
  // After each run its timer asks for the point after the one before, as getNextRuns() does.
  "node-cron": (expression, timezone, from) => {
    mock.timers.enable({apis: ["Date"], now: from});
    try {
      return nodeCron.createTask(expression, () => {}, {timezone}).getNextRuns(count);
    } finally {
      mock.timers.reset();
    }
  },
};

const ask = tools[process.argv[2]];
for (const line of readFileSync(0, "utf8").trim().split("\n")) {
  const [number, zone, from, until, expression] = line.split("|");
  try {
    for (const point of ask(expression, zone, new Date(from * 1000))) {
      if (point >= until * 1000) break;
      console.log(`${number}|${point.getTime() / 1000}`);
    }
  } catch {
    console.log(`${number}|error`);
  }
}
