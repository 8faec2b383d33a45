// graphile-worker's part of the comparison. Arguments: the URL of a database. Reads commands, one a line:
//   submit N           adds N jobs, one after the other
//   list N             adds a list of N jobs
//   run N PRESET       runs N jobs that are due and do nothing but add up numbers; PRESET is defaults or batches
// and answers each with the time in µs, and a checksum of what was done.
import readline from "node:readline";
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const connectionString = process.argv[2];
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();

const presets = {
  defaults: {},
  // As graphile-worker's own performance test sets it: jobs are fetched and completed many at a time.
  batches: {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};

const ask = async (sql) => (await utils.withPgClient((client) => client.query(sql))).rows[0];
const jobs = async () => Number((await ask("select count(*) from graphile_worker._private_jobs")).count);
const clear = () => ask("delete from graphile_worker._private_jobs");
const specs = (n, runAt) => Array.from({ length: n }, (_, i) => ({ identifier: "add", payload: { i }, runAt }));
const inAnHour = () => new Date(Date.now() + 3_600_000);

async function submit(n) {
  const runAt = inAnHour();
  let made = 0;
  const start = performance.now();
  for (let i = 0; i !== n; ++i) made += Number((await utils.addJob("add", { i }, { runAt })).id) > 0 ? 1 : 0;
  return [performance.now() - start, made];
}

async function list(n) {
  const all = specs(n, inAnHour());
  const start = performance.now();
  const made = (await utils.addJobs(all)).length;
  return [performance.now() - start, made];
}

async function runAll(n, preset) {
  for (let done = 0; done < n; done += 10_000)
    await utils.addJobs(specs(Math.min(n - done, 10_000), new Date(Date.now() - 1000)).map((s, i) => ({ ...s, payload: { i: done + i } })));
  let sum = 0;
  let left = n;
  let allRan;
  const ran = new Promise((resolve) => (allRan = resolve));
  const add = ({ i }) => {
    sum += i + 1;
    if (--left === 0) allRan();
  };
  const worker = { connectionString, ...presets[preset] };
  const start = performance.now();
  const runner = await run({ logger, noHandleSignals: true, taskList: { add }, preset: { worker } });
  await ran;
  while ((await jobs()) !== 0);
  const took = performance.now() - start;
  await runner.stop();
  return [took, sum];
}

const commands = { submit, list, run: runAll };
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [command, n, ...rest] = line.split(" ");
  const [milliseconds, checksum] = await commands[command](Number(n), ...rest);
  await clear();
  process.stdout.write(`${(1000 * milliseconds) / Number(n)} ${checksum}\n`);
}
await utils.release();
