// Asks the server twice a second, and draws at the refresh rate of the screen.

function frame(now) {
  if (latest) drawWheel(now);
  if (!still.matches) requestAnimationFrame(frame);
}

function redraw() {
  readColours();
  if (!latest) return;
  drawCharts();
  if (still.matches) drawWheel(performance.now());
}

// Returns null if there is no answer.
async function ask(path) {
  try {
    const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

let answers = 0;
async function poll() {
  const asked = performance.now();
  const state = await ask("state.json");
  const now = performance.now();
  lost = state ? null : lost ?? new Date();
  setTimeout(poll, lost ? 1000 : Math.max(500, now - asked));
  if (state) {
    const step = latest ? state.elapsed - latest.elapsed : Infinity;
    receive(state, now);
    if (step < 0 || step > 5) askForPast();  // another run, a pause, or this page is new
    fill();
    if (answers % 2 === 0) askForFailing();
    if (answers % 20 === 0) askForLate();
    redraw();
    if (answers++ % 10 === 0) describe();
  }
  showState();
}

async function askForPast() {
  const samples = await ask("history.json");
  if (samples) {
    remember(samples);
    redraw();
  }
}

async function askForLate() {
  const reasons = await ask("late.json");
  if (reasons) fillLate(reasons);
}

let search = 0;  // only the answer to the latest question counts
async function askForFailing() {
  const number = ++search;
  const keys = latest.keys.failing === 0 ? { all: 0, matching: 0, first: [] }
    : await ask("failing.json?find=" + encodeURIComponent(byId("find").value));
  if (keys && number === search) fillFailing(keys);
}

byId("find").addEventListener("input", () => latest && askForFailing());
for (const button of document.querySelectorAll("[data-span]")) {
  button.addEventListener("click", () => {
    shown = Number(button.dataset.span);
    for (const each of document.querySelectorAll("[data-span]")) each.setAttribute("aria-pressed", each === button);
    redraw();
  });
}
dark.addEventListener("change", redraw);
still.addEventListener("change", () => requestAnimationFrame(frame));
addEventListener("resize", redraw);
readColours();
requestAnimationFrame(frame);
poll();
