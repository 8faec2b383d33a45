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
const history = [];  // {elapsed, state}, of the last two minutes
const turning = { offset: [], shown: null };  // the server's ticks relative to our clock

// An answer describes an earlier moment: it is up to 200 ms old and took time to arrive. Of the answers of the last ten
// seconds, the one with the largest offset is nearest to the truth.
function ticksNow(now) {
  const wheel = latest.wheel;
  return Math.max(...turning.offset) + now / 1000 / wheel.tick;
}

function receive(state, now) {
  if (latest && state.elapsed < latest.elapsed) {  // another run of the program
    history.length = flashes.length = turning.offset.length = 0;
    landed = turning.shown = null;
  }
  const wait = latest ? Math.min(now - heard, 2000) : 0;
  latest = state;
  heard = now;
  turning.offset.push(state.wheel.now - now / 1000 / state.wheel.tick);
  if (turning.offset.length > 20) turning.offset.shift();

  // Spreads the landings since the last answer over the time until the next one.
  const fresh = state.wheel.landings.filter((each) => landed !== null && each.number > landed);
  fresh.forEach((each, i) =>
    flashes.push({ bucket: each.bucket, good: each.succeeded, at: now + (wait * i) / fresh.length,
                   depth: (each.number * 0.618034) % 1 }));  // away from its neighbours
  if (flashes.length > 500) flashes.splice(0, flashes.length - 500);
  const last = state.wheel.landings.at(-1);
  landed = Math.max(landed ?? 0, last ? last.number : 0);

  if (history.length === 0 || state.elapsed > history.at(-1).elapsed) {
    const { stale, empty, all } = state.keys;
    history.push({ elapsed: state.elapsed, state, stale: all > 0 ? (stale + empty) / all : 0, loads: null });
    history.at(-1).loads = perSecond("cache.loads");
  }
  while (history[0].elapsed < state.elapsed - 125) history.shift();
}

// Over the last two seconds; null while only one answer is known.
function perSecond(path) {
  const to = history.at(-1);
  const from = history.findLast((each) => each.elapsed <= to.elapsed - 2) ?? history[0];
  if (to === from) return null;
  return (figure(to.state, path) - figure(from.state, path)) / (to.elapsed - from.elapsed);
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
  byId("stale-now").textContent = percent(history.at(-1).stale);
  byId("what").textContent = `${latest.mode} · ${latest.origin}`;
  byId("due").tBodies[0].replaceChildren(...latest.wheel.next.map((timer) => {
    const row = document.createElement("tr");
    const key = document.createElement("th");
    key.scope = "row";
    key.textContent = key.title = timer.key;
    row.append(key);
    row.insertCell().textContent = timer.in > 0 ? "in " + duration(timer.in) : "now";
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

function showState() {
  const chip = byId("state"), notice = byId("notice");
  const [kind, word, line] =
    lost ? ["bad", "no answer", `The server has not answered since ${lost.toLocaleTimeString()}. ` +
                                "These figures are older. Trying again…"]
    : latest.healthy ? ["good", "healthy", ""]
    : ["warn", "not healthy", latest.health];
  chip.className = kind;
  chip.textContent = word;
  notice.className = kind;
  notice.hidden = line === "";
  if (notice.textContent !== line) notice.textContent = line;  // screen readers read it aloud when it changes
  document.body.classList.toggle("offline", lost !== null);
}
