// Draws the wheel and the charts on canvases. Comes after page.js, which holds what to draw.

let colour = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["text", "muted", "line", "ring", "turn", "later", "hand", "good", "bad", "warn", "card"])
    colour[name] = style.getPropertyValue("--" + name).trim();
}

// Returns a cleared context whose unit is the CSS pixel.
function contextOf(canvas) {
  const scale = devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

const bars = { group: 0, turn: [], all: [], top: 4 };

// Moves the bars towards the latest state. With a `step` of 1 they jump there at once.
function moveBars(group, ticks, step) {
  const { this_turn: turn, later, now } = latest.wheel;
  const count = Math.ceil(turn.length / group);
  if (bars.group !== group || bars.turn.length !== count)
    Object.assign(bars, { group, turn: new Array(count).fill(0), all: new Array(count).fill(0) });
  const slow = turn.length * latest.wheel.tick > 3;  // otherwise the next answer arrives too late to fill them again
  const passed = slow ? Math.min(ticks - now, turn.length) : 0;
  let highest = 4;
  for (let i = 0; i < count; ++i) {
    let soon = 0, rest = 0;
    for (let b = i * group; b < Math.min((i + 1) * group, turn.length); ++b) {
      const behind = (b - (now % turn.length) + turn.length) % turn.length;
      if (behind >= passed) soon += turn[b];
      rest += later[b];
    }
    bars.turn[i] += (soon - bars.turn[i]) * step;
    bars.all[i] += (soon + rest - bars.all[i]) * step;
    highest = Math.max(highest, bars.all[i]);
  }
  bars.top += (highest - bars.top) * step;
}

function spokes(context, heights, inner, length) {
  context.beginPath();
  heights.forEach((n, i) => {
    if (n < 0.05) return;
    const angle = ((i + 0.5) / heights.length) * 2 * Math.PI;
    const outer = inner + Math.max((n / bars.top) * length, 1.5);
    context.moveTo(Math.sin(angle) * inner, -Math.cos(angle) * inner);
    context.lineTo(Math.sin(angle) * outer, -Math.cos(angle) * outer);
  });
  context.stroke();
}

function drawFlashes(context, radius, now, buckets) {
  const life = 1100, size = Math.max(radius / 170, 0.65);
  while (flashes.length > 0 && flashes[0].at < now - life) flashes.shift();
  for (const flash of flashes) {
    const age = (now - flash.at) / life;
    if (age < 0 || age > 1) continue;
    const angle = ((flash.bucket + 0.5) / buckets) * 2 * Math.PI;
    const far = radius - 6 - flash.depth * (still.matches ? 1 : 0.6 + 0.4 * age) * radius * 0.18;
    const [x, y] = [Math.sin(angle) * far, -Math.cos(angle) * far];
    context.globalAlpha = still.matches ? 1 : 1 - age ** 2;
    context.strokeStyle = context.fillStyle = flash.good ? colour.good : colour.bad;
    context.beginPath();
    if (flash.good) {
      context.arc(x, y, (1.3 + 1.5 * (1 - age)) * size, 0, 2 * Math.PI);
      context.fill();
    } else {
      const arm = 4 * size;
      context.lineWidth = 2.2 * size;
      context.moveTo(x - arm, y - arm); context.lineTo(x + arm, y + arm);
      context.moveTo(x + arm, y - arm); context.lineTo(x - arm, y + arm);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

function drawHand(context, angle, from, to) {
  if (context.createConicGradient) {  // its trail
    const trail = context.createConicGradient(angle - Math.PI / 2 - 1.1, 0, 0);
    const clear = colour.hand + "00";
    trail.addColorStop(0, clear);
    trail.addColorStop(1.1 / (2 * Math.PI), colour.hand + "38");
    trail.addColorStop(1.1 / (2 * Math.PI) + 0.0005, clear);
    context.fillStyle = trail;
    context.beginPath();
    context.arc(0, 0, to, 0, 2 * Math.PI);
    context.arc(0, 0, from, 0, 2 * Math.PI, true);
    context.fill();
  }
  const [x, y] = [Math.sin(angle), -Math.cos(angle)];
  context.strokeStyle = context.fillStyle = colour.hand;
  context.lineWidth = 2.5;
  context.lineCap = "round";
  context.beginPath();
  context.moveTo(x * from, y * from);
  context.lineTo(x * to, y * to);
  context.stroke();
  context.beginPath();
  context.arc(x * to, y * to, 4.5, 0, 2 * Math.PI);
  context.fill();
  context.lineCap = "butt";
}

function drawMiddle(context, size, seconds, bucket) {
  const text = (words, y, px, weight, style) => {
    context.font = `${weight} ${px}px ${getComputedStyle(document.body).fontFamily}`;
    context.fillStyle = style;
    context.fillText(words, 0, y);
  };
  context.textAlign = "center";
  context.textBaseline = "middle";
  text(clockTime(seconds), -size * 0.035, size * 0.072, 650, colour.text);
  text(whole(latest.timer.pending) + " pending", size * 0.022, Math.max(size * 0.028, 12), 600, colour.turn);
  const small = Math.max(size * 0.021, 10.5);
  text(`bucket ${bucket} of ${latest.wheel.this_turn.length}`, size * 0.064, small, 400, colour.muted);
  text(`tick ${duration(latest.wheel.tick)}`, size * 0.064 + small * 1.35, small, 400, colour.muted);
}

// Draws bucket numbers on the four sides, within the canvas.
function drawLabels(context, buckets, size) {
  context.font = `400 ${Math.max(size * 0.02, 10)}px ${getComputedStyle(document.body).fontFamily}`;
  context.fillStyle = colour.muted;
  ["center", "right", "center", "left"].forEach((align, i) => {
    const angle = (i / 4) * 2 * Math.PI;
    const radius = size / 2 - (align === "center" ? 8 : 1);
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(String(Math.round((buckets * i) / 4)), Math.sin(angle) * radius, -Math.cos(angle) * radius);
  });
}

let drawn = 0;
function drawWheel(now) {
  const canvas = byId("wheel");
  const { context, width: size } = contextOf(canvas);
  const { this_turn: turn, tick, now: known } = latest.wheel;
  const buckets = turn.length;
  if (buckets === 0 || size === 0) return;

  const at = lost ? heard : now;  // without answers the wheel stands still
  const ticks = still.matches ? known : ticksNow(at);
  const step = still.matches ? 1 : 1 - Math.exp(-(now - drawn) / 110);
  const close = turning.shown !== null && Math.abs(ticks - turning.shown) * tick < 1.5;
  turning.shown = close ? turning.shown + (ticks - turning.shown) * Math.max(step, 0.2) : ticks;
  drawn = now;

  const ring = size * 0.305, band = size * 0.06, length = size / 2 - ring - Math.max(size * 0.04, 20);
  let group = 1;
  while ((2 * Math.PI * ring) / Math.ceil(buckets / group) < 2.9) group *= 2;
  moveBars(group, ticks, step);

  context.translate(size / 2, size / 2);
  context.lineWidth = band;
  context.strokeStyle = colour.ring;
  context.beginPath();
  context.arc(0, 0, ring - band / 2, 0, 2 * Math.PI);
  context.stroke();

  context.lineWidth = Math.min(((2 * Math.PI * ring) / bars.all.length) * 0.78, 14);
  context.strokeStyle = colour.later;
  spokes(context, bars.all, ring + 2, length);
  context.strokeStyle = colour.turn;
  spokes(context, bars.turn, ring + 2, length);

  const angle = (((turning.shown % buckets) + buckets) % buckets / buckets) * 2 * Math.PI;
  drawHand(context, angle, size * 0.185, ring);
  drawFlashes(context, ring, now, buckets);
  drawLabels(context, buckets, size);
  drawMiddle(context, size, latest.elapsed + (still.matches ? 0 : (at - heard) / 1000),
             Math.floor(((ticks % buckets) + buckets) % buckets));
  canvas.dataset.now = Math.floor(ticks);
}

// Draws a line for each [field, style] of the past. `limit`, if there is one, is a dashed line. The axis begins at 0.
function drawChart(canvas, lines, least, words, limit) {
  const { context, width, height } = contextOf(canvas);
  const top = 16, bottom = height - 17;
  const end = past.at(-1).at;
  const span = Math.min(shown, Math.max(end, 120));
  const points = past.filter((each) => each.at >= end - span);
  const highest = points.reduce((most, each) => Math.max(most, ...lines.map(([field]) => each[field] ?? 0)), least);
  const x = (at) => width - ((end - at) / span) * width;
  const y = (value) => bottom - (value / highest) * (bottom - top);

  context.font = `400 11.5px ${getComputedStyle(document.body).fontFamily}`;
  context.fillStyle = colour.muted;
  context.textBaseline = "alphabetic";
  context.fillText(words(highest), 0, 11);
  context.fillText(wait(span).replace(/ 0 [a-z]+$/, "") + " ago", 0, height - 3);
  context.textAlign = "right";
  context.fillText("now", width, height - 3);
  context.textAlign = "left";
  context.strokeStyle = colour.line;
  context.lineWidth = 1;
  context.beginPath();
  for (const level of [top, bottom]) { context.moveTo(0, level + 0.5); context.lineTo(width, level + 0.5); }
  context.stroke();
  if (limit <= highest) {
    context.strokeStyle = colour.warn;
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(0, y(limit)); context.lineTo(width, y(limit));
    context.stroke();
    context.setLineDash([]);
  }

  for (const [field, style] of lines) {
    const known = points.filter((each) => each[field] !== null);
    if (known.length < 2) continue;
    const line = new Path2D();
    for (const each of known) line.lineTo(x(each.at), y(each[field]));
    const area = new Path2D(line);
    area.lineTo(x(known.at(-1).at), bottom);
    area.lineTo(x(known[0].at), bottom);
    context.globalAlpha = 0.14;
    context.fillStyle = style;
    context.fill(area);
    context.globalAlpha = 1;
    context.strokeStyle = style;
    context.lineWidth = known.length > width ? 1 : 2;
    context.lineJoin = "round";
    context.stroke(line);
  }
}

function drawCharts() {
  drawChart(byId("loads-chart"), [["loads", colour.turn], ["failed", colour.bad]], 1, rate);
  drawChart(byId("stale-chart"), [["stale", colour.hand]], 0.02, percent, latest.stale_limit);
}
