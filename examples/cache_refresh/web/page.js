"use strict";

const byId = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

// ---- Formats

const whole = (n) => Math.round(n).toLocaleString("en-US");
const rate = (n) => (n < 10 ? n.toFixed(1) : whole(n));
const percent = (share) => (100 * share).toFixed(share > 0 && share < 0.1 ? 2 : 1) + " %";

function duration(seconds) {
  if (seconds === 0) return "0";
  const [unit, size] = seconds >= 1 ? ["s", 1] : seconds >= 1e-3 ? ["ms", 1e-3] : ["µs", 1e-6];
  const n = seconds / size;
  return (n >= 100 ? whole(n) : n.toPrecision(3)) + " " + unit;
}

// For people who wait: "240 ms", "3 min 20 s".
function wait(seconds) {
  if (seconds < 0.001) return "0";
  if (seconds < 0.9995) return Math.round(1000 * seconds) + " ms";
  if (seconds < 10) return seconds.toFixed(1) + " s";
  const [days, hours, minutes] = [86400, 3600, 60].map((unit) => Math.floor(seconds / unit));
  return days > 0 ? `${days} d ${hours % 24} h`
    : hours > 0 ? `${hours} h ${minutes % 60} min`
    : minutes > 0 ? `${minutes} min ${Math.floor(seconds % 60)} s`
    : Math.floor(seconds) + " s";
}

// The time of day of what began `ago` seconds ago. Answers take more or less time, so a small difference from what was
// said before is ignored.
const said = new Map();
function timeOfDay(what, ago) {
  const at = Date.now() - 1000 * ago;
  if (!(Math.abs(at - said.get(what)) < 3000)) said.set(what, at);
  const date = new Date(said.get(what));
  return ago < 43200 ? date.toLocaleTimeString() : date.toLocaleString();
}

function clockTime(seconds) {
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  return (hours > 0 ? hours + ":" + two((seconds / 60) % 60) : Math.floor(seconds / 60)) + ":" + two(seconds % 60);
}

const figure = (state, path) => path.split(".").reduce((part, name) => part[name], state);

// ---- State

let latest = null;   // the server's last answer
let heard = 0;       // when it arrived; performance.now()
let lost = null;     // when the server stopped answering
let landed = null;   // the number of the last landing seen
const flashes = [];  // {bucket, good, at, depth}
const recent = [];   // the server's answers of the last seconds
let past = [];       // {at, loads, failed, stale}, about one a second, of the last two hours
let shown = 120;     // how many seconds of them the charts show
const turning = { offset: [], shown: null };  // the server's ticks relative to our clock

// An answer describes an earlier moment: it is up to 200 ms old and took time to arrive. Of the answers of the last ten
// seconds, the one with the largest offset is nearest to the truth.
function ticksNow(now) {
  const wheel = latest.wheel;
  return Math.max(...turning.offset) + now / 1000 / wheel.tick;
}

function receive(state, now) {
  if (latest && state.elapsed < latest.elapsed) {  // another run of the program
    recent.length = flashes.length = turning.offset.length = past.length = 0;
    said.clear();
    landed = turning.shown = null;
  }
  const sinceLast = latest ? Math.min(now - heard, 2000) : 0;
  latest = state;
  heard = now;
  turning.offset.push(state.wheel.now - now / 1000 / state.wheel.tick);
  if (turning.offset.length > 20) turning.offset.shift();

  // Spreads the landings since the last answer over the time until the next one.
  const fresh = state.wheel.landings.filter((each) => landed !== null && each.number > landed);
  fresh.forEach((each, i) =>
    flashes.push({ bucket: each.bucket, good: each.succeeded, at: now + (sinceLast * i) / fresh.length,
                   depth: (each.number * 0.618034) % 1 }));  // away from its neighbours
  if (flashes.length > 500) flashes.splice(0, flashes.length - 500);
  const last = state.wheel.landings.at(-1);
  landed = Math.max(landed ?? 0, last ? last.number : 0);

  if (recent.length === 0 || state.elapsed > recent.at(-1).elapsed) {
    recent.push(state);
    if (past.length > 1 && state.elapsed < past.at(-2).at + 1) past.pop();
    past.push({ at: state.elapsed, loads: perSecond("cache.loads"), failed: perSecond("cache.failed"),
                stale: staleShare(state.keys) });
  }
  while (recent.length > 2 && recent[1].elapsed <= state.elapsed - 2) recent.shift();
  while (past[0].at < state.elapsed - 7200) past.shift();
}

// Replaces all that this page has seen, except the newest, by the server's samples, which have no gaps.
function remember({ at, loads, failed, stale }) {
  const samples = at.map((time, i) => ({ at: time, loads: loads[i], failed: failed[i], stale: stale[i] }));
  const own = past.at(-1);
  past = [...samples.filter((each) => each.at < own.at), own];
}

const staleShare = ({ stale, empty, all }) => (all > 0 ? (stale + empty) / all : 0);

// Over the last two seconds; null while only one answer is known.
function perSecond(path) {
  const [from, to] = [recent[0], recent.at(-1)];
  return to === from ? null : (figure(to, path) - figure(from, path)) / (to.elapsed - from.elapsed);
}

// ---- Text

for (const row of document.querySelectorAll("[data-durations]")) {
  for (const name of ["p50", "p99", "max", "count"]) {
    const cell = row.insertCell();
    if (name !== "count") {
      cell.dataset.duration = row.dataset.durations + "." + name;
    } else {
      cell.dataset.count = row.dataset.durations + ".count";
      cell.dataset.metric = row.dataset.metric;
      cell.className = "optional";
      delete row.dataset.metric;
    }
  }
}

function fill() {
  const each = (kind, text) => {
    for (const at of document.querySelectorAll(`[data-${kind}]`)) at.textContent = text(at.dataset[kind]);
  };
  const orDash = (text, n) => (n === null ? "–" : text(n));
  each("count", (path) => whole(figure(latest, path)));
  each("duration", (path) => duration(figure(latest, path)));
  each("rate", (path) => orDash(rate, perSecond(path)));
  byId("loads-now").textContent = orDash(rate, perSecond("cache.loads"));
  const failed = perSecond("cache.failed");
  byId("failed-now").textContent = failed > 0 ? rate(failed) + " failed" : "";
  byId("stale-now").textContent = percent(staleShare(latest.keys));
  byId("what").textContent = `${latest.mode} · ${latest.origin}`;
  byId("due").tBodies[0].replaceChildren(...latest.wheel.next.map((timer) => {
    const row = document.createElement("tr");
    const key = document.createElement("th");
    key.scope = "row";
    key.textContent = key.title = timer.key;
    row.append(key);
    row.insertCell().textContent = soon(timer.in);
    return row;
  }));
  fillHealth();
}

const soon = (seconds) => (seconds >= 0.001 ? "in " + wait(seconds) : "now");

function fillHealth() {
  const { keys, error, served_for: served } = latest;
  byId("health").className = "card " + latest.grade;
  byId("error").textContent = error ? error.text : "none";
  byId("error-since").textContent = error ? `${timeOfDay("error", error.lasts)}, ${wait(error.lasts)} ago` : "–";
  byId("failing-share").textContent = `${whole(keys.failing)} of ${whole(keys.all)}` +
    (keys.failing > 0 ? ` (${percent(keys.failing / keys.all)})` : "");
  byId("without").textContent =
    (keys.empty > 0 ? whole(keys.empty) : "none") +
    (served === null ? "" : `; the ${keys.empty > 0 ? "next" : "first"} ${soon(served)}`);
}

function fillFailing({ all, matching, first }) {
  byId("failing-count").textContent =
    all === 0 ? "none" :
    first.length < matching ? `the most urgent ${first.length} of ${whole(matching)}` :
    matching < all ? `${whole(matching)} of ${whole(all)}` : whole(all);
  byId("failing-rows").replaceChildren(...first.map((each) => {
    const row = document.createElement("tr");
    const key = document.createElement("th");
    key.scope = "row";
    key.textContent = each.key;
    const error = document.createElement("small");
    error.textContent = each.error;
    key.append(error);
    row.append(key);
    row.insertCell().textContent = wait(each.since);
    row.insertCell().textContent = each.next_load === null ? "loading" : soon(each.next_load);
    row.insertCell().textContent = each.served_for > 0 ? "for " + wait(each.served_for) : "no";
    return row;
  }));
}

function fillLate(reasons) {
  byId("late-rows").replaceChildren(...reasons.slice(0, 3).map((each) => {
    const row = document.createElement("tr");
    const reason = document.createElement("th");
    reason.scope = "row";
    reason.textContent = each.reason;
    row.append(reason);
    row.insertCell().textContent = whole(each.runs);
    row.insertCell().textContent = duration(each.longest);
    return row;
  }));
}

function describe() {
  const wheel = latest.wheel;
  const buckets = wheel.this_turn.length;
  const soon = wheel.this_turn.reduce((sum, n) => sum + n, 0);
  byId("wheel").setAttribute("aria-label",
    `The timer's wheel of ${buckets} buckets: ${whole(latest.timer.pending)} timers are pending, ` +
    `${whole(soon)} of them due within this turn of ${duration(buckets * wheel.tick)}.`);
}

// Figures that change all the time are not in these lines, because screen readers would read each line aloud.
function outageLine() {
  const since = timeOfDay("outage", latest.failing_for);
  return `No load has succeeded since ${since}.` + (latest.error ? ` The latest error: ${latest.error.text}` : "");
}

function partLine() {
  const limit = 100 * latest.stale_limit + " %";
  return staleShare(latest.keys) > latest.stale_limit ? `More than ${limit} of the keys are stale or empty.`
                                                      : `The last load of more than ${limit} of the keys failed.`;
}

function showState() {
  const chip = byId("state"), notice = byId("notice");
  const [kind, word, line] =
    lost ? ["bad", "no answer", `The server has not answered since ${lost.toLocaleTimeString()}. ` +
                                "These figures are older. Trying again…"]
    : latest.grade === "outage" ? ["bad", "outage", outageLine()]
    : latest.grade === "part" ? ["warn", "not healthy", partLine()]
    : ["good", "healthy", ""];
  chip.className = kind;
  chip.textContent = word;
  notice.className = kind;
  notice.hidden = line === "";
  if (notice.textContent !== line) notice.textContent = line;  // screen readers read it aloud when it changes
  document.body.classList.toggle("offline", lost !== null);
}
