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

let answers = 0;
async function poll() {
  const asked = performance.now();
  let state = null;
  try {
    const answer = await fetch("state.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (answer.ok) state = await answer.json();
  } catch {
    // Shown below.
  }
  const now = performance.now();
  lost = state ? null : lost ?? new Date();
  setTimeout(poll, lost ? 1000 : Math.max(500, now - asked));
  if (state) {
    receive(state, now);
    fill();
    redraw();
    if (answers++ % 10 === 0) describe();
  }
  showState();
}

dark.addEventListener("change", redraw);
still.addEventListener("change", () => requestAnimationFrame(frame));
addEventListener("resize", redraw);
readColours();
requestAnimationFrame(frame);
poll();
