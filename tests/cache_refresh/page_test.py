#!/usr/bin/python3
"""Tests the page of cache_refresh in a headless Chromium (Debian: chromium chromium-driver python3-selenium).

  page_test.py [--state STATE] [--screenshots DIR] [--ripe SECONDS] PROGRAM [ARGUMENT ...]

The program serves the page, and prints "Listening on http://.../" in a line of its standard output. The state says how
its origin does: "healthy" for all checks; "part" or "outage" for those of a page that shows failures. Exit status: 0 if
all checks pass, 1 if not, 77 if there is no browser to test with.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SKIPPED = 77
LIMIT = 60  # seconds, for every wait: a busy machine must not cause a failure

# The contrast that a reader sees: each text's colour against the nearest background. Colours are "rgb(1, 2, 3)".
CONTRASTS = """
const parts = (colour) => colour.match(/[0-9.]+/g).map(Number);
const luminance = (colour) => {
  const [r, g, b] = parts(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if ((parts(colour)[3] ?? 1) > 0) return colour;
  }
  return "rgb(255, 255, 255)";
};
const contrast = (a, b) => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};
const found = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  const text = texts.currentNode.textContent.trim();
  if (!text || !element.checkVisibility() || element.matches("script, noscript")) continue;
  found.push([text, contrast(getComputedStyle(element).color, behind(element))]);
}
// Text on the canvases has the colours of variables.
const probe = document.querySelector("#wheel").parentElement.appendChild(document.createElement("i"));
for (const name of ["text", "muted", "turn"]) {
  probe.style.color = `var(--${name})`;
  found.push(["on the wheel: " + name, contrast(getComputedStyle(probe).color, behind(probe))]);
}
probe.remove();
return {texts: found, ground: luminance(getComputedStyle(document.body).backgroundColor)};
"""

TOO_WIDE = """
const tooWide = (each) => each.getBoundingClientRect().right > innerWidth + 0.5 ||
  (each.matches("td") && each.scrollWidth > each.clientWidth);
return [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility() && tooWide(each))
  .map((each) => each.outerHTML.slice(0, 80));
"""

FIGURES = """
return {
  elapsed: latest.elapsed,
  cells: [...document.querySelectorAll("[data-metric]")].map((each) => [each.dataset.metric, each.textContent]),
  keys: ["all", "fresh", "stale", "empty"].map((n) => document.querySelector(`[data-count="keys.${n}"]`).textContent),
};
"""


class Failures:
    def __init__(self):
        self.checks = 0
        self.found = 0

    def check(self, good, what):
        self.checks += 1
        if not good:
            self.found += 1
            print(f"FAILED: {what}")


def wait_for(what, condition):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise TimeoutError(f"not within {LIMIT} s: {what}")


class Program:
    """The program under test. Its other output is read and ignored."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.url = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            said = re.search(r"Listening on (http://\S+)", line)
            if said and not self.url:
                self.url = said.group(1)

    def wait_until_it_listens(self):
        wait_for("the program listens or ends", lambda: self.url or self.process.poll() is not None)
        if not self.url:
            raise RuntimeError(f"the program has ended with {self.process.returncode}, and did not listen")

    def metrics(self):
        with urllib.request.urlopen(self.url + "metrics", timeout=LIMIT) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (x.rsplit(" ", 1) for x in lines if x and x[0] != "#")}

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Browser:
    def __init__(self, profile):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for each in (f"--user-data-dir={profile}", "--headless=new", "--disable-dev-shm-usage", "--disable-gpu"):
            options.add_argument(each)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # with the sandbox, Chromium refuses to run as root
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_page_load_timeout(LIMIT)
        self.driver.set_script_timeout(LIMIT)

    def run(self, script):
        return self.driver.execute_script(script)

    def size(self, width, height, phone=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone})
        wait_for(f"a window of {width} pixels", lambda: self.run("return innerWidth") == width)
        self.run("return document.body.offsetHeight")

    def prefer(self, **features):
        wanted = {"prefers-" + name.replace("_", "-"): value for name, value in features.items()}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": name, "value": value} for name, value in wanted.items()]})
        for name, value in wanted.items():
            query = f"({name}: {value})"
            wait_for(query, lambda: self.run(f"return matchMedia('{query}').matches"))

    def next_answer(self):
        elapsed = self.run("return latest.elapsed")
        wait_for("a new answer from the server", lambda: self.run("return latest.elapsed") != elapsed)

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def save(self, file, height="document.documentElement.scrollHeight"):
        width, height = self.run(f"return [innerWidth, {height}]")
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "scale": 1, "width": width, "height": height}})
        file.write_bytes(base64.b64decode(picture["data"]))


def number(text):
    return float(text.replace(",", ""))


def test_loads(browser, program, failures):
    browser.driver.get(program.url)
    browser.size(1240, 900)
    browser.prefer(color_scheme="light")
    wait_for("figures on the page",
             lambda: browser.run("return document.querySelector('[data-count=\"keys.all\"]').textContent"))
    wait_for("timers that are due next", lambda: browser.run("return document.querySelector('#due').rows.length"))
    label = browser.run("return document.querySelector('#wheel').getAttribute('aria-label')")
    failures.check("pending" in label, f"the wheel's label describes it: {label}")
    empty = browser.run("return [...document.querySelectorAll('td')].filter((td) => !td.textContent.trim()).length")
    failures.check(empty == 0, f"{empty} cells of tables are empty")
    unnamed = browser.run("return document.querySelectorAll('th:not([scope]), canvas:not([role=img])').length")
    failures.check(unnamed == 0, f"{unnamed} heads of rows or columns have no scope, or pictures no role")


def test_health(browser, failures):
    def text(name):
        return browser.run(f"return document.querySelector('#{name}').textContent")

    failures.check(text("state") == "healthy", f"the state is {text('state')}")
    failures.check(re.fullmatch(r"[\d,]+ of [\d,]+( \(.*\))?", text("failing-share")), text("failing-share"))
    failures.check(re.fullmatch(r"[\d,]+|none; the (first|next) in .* m?s", text("without")), text("without"))
    boxes = browser.run("""return ["health", "turning", "failing"].map((each) =>
        document.querySelector("#" + each).getBoundingClientRect()).map((box) => [box.top, box.left]);""")
    health, wheel, failing = boxes
    failures.check(wheel[0] == health[0] < failing[0] and wheel[1] < health[1],
                   f"on a wide screen the wheel is beside the health figures: {boxes}")


def test_reload(browser, failures):
    wait_for("some seconds of history", lambda: browser.run("return latest.elapsed > 6"))
    browser.driver.refresh()
    wait_for("the history after a reload", lambda: browser.run("""
        return latest && past.length > 5 && past[0].at < 3 && past.at(-1).at - past.at(-2).at < 3"""))
    # On a busy machine a sample comes late, and its rate is not known.
    rates = browser.run("return past.slice(0, -1).map((each) => each.loads ?? 0)")
    failures.check(max(rates) > 0, f"loads per second, from before the reload: {rates}")
    for span, most in ((7200, "2 hours"), (120, "2 minutes")):
        pressed = browser.run(f"""document.querySelector('[data-span="{span}"]').click();
            return [...document.querySelectorAll('[aria-pressed="true"]')].map((each) => each.textContent);""")
        failures.check(pressed == [most] and browser.run("return shown") == span, f"the charts show {pressed}")


def test_moves(browser, failures):
    def picture():
        return browser.run("const all = document.querySelector('#wheel'); return [all.dataset.now, all.toDataURL()]")

    wait_for("the wheel is drawn", lambda: picture()[0])
    now, pixels = picture()
    wait_for("the wheel has turned", lambda: int(picture()[0]) > int(now))
    wait_for("the wheel is drawn again", lambda: picture()[1] != pixels)
    inked = browser.run("""const c = document.querySelector('#wheel');
        const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return data.filter((value, i) => i % 4 === 3 && value > 0).length / data.length * 4;""")
    failures.check(inked > 0.1, f"something is drawn: {inked:.2f} of the wheel's pixels")
    wait_for("the hand has moved without a new answer", lambda: browser.run("""
        return Number(document.querySelector('#wheel').dataset.now) > latest.wheel.now + 1"""))


def test_figures(browser, program, failures):
    browser.next_answer()
    before = program.metrics()
    uptime = "cache_refresh_uptime_seconds"
    wait_for("the page is as new as the metrics", lambda: browser.run("return latest.elapsed") >= before[uptime])
    page = browser.run(FIGURES)
    after = wait_for("the metrics are as new as the page",
                     lambda: next((m for m in [program.metrics()] if m[uptime] >= page["elapsed"]), None))
    counters = 0
    moved = 0
    for name, text in page["cells"]:
        failures.check(name in after, f"{name} is among the metrics")
        if not name.endswith(("_total", "_count")):
            continue  # it may have risen and fallen in between
        counters += 1
        moved += number(text) > 0
        failures.check(before[name] <= number(text) <= after[name],
                       f"{name}: {before[name]:.0f} before, {text} on the page, {after[name]:.0f} after")
    failures.check(counters >= 20, f"{counters} counters are on the page")
    failures.check(moved >= 8, f"{moved} counters are not 0")
    keys = [number(text) for text in page["keys"]]
    failures.check(keys[0] == sum(keys[1:]) > 0, f"keys: {keys[0]:.0f} are {keys[1:]}")


def test_late(browser, program, failures):
    def answer(path):
        with urllib.request.urlopen(program.url + path, timeout=LIMIT) as said:
            return json.load(said)

    for each in answer("late.json"):
        failures.check(each["runs"] > 0 and each["longest"] > 0.01, f"late for a reason: {each}")
    reasons = [{"reason": name, "runs": 1234, "longest": 0.025} for name in "abcd"]
    rows = browser.run(f"""fillLate({json.dumps(reasons)});
        return [...byId("late-rows").rows].map((row) => [...row.cells].map((cell) => cell.textContent));""")
    failures.check(rows == [[name, "1,234", "25.0 ms"] for name in "abc"], f"the three most frequent reasons: {rows}")
    file = browser.run("return document.querySelector('a[download]').getAttribute('href')")
    runs = [each for each in answer(file)["traceEvents"] if each["ph"] == "X"]
    failures.check(len(runs) > 100, f"{len(runs)} runs and passes are in the trace")


def test_contrast(browser, failures, what, dark):
    seen = browser.run(CONTRASTS)
    failures.check((seen["ground"] < 0.05) == dark, f"{what}: the background's luminance is {seen['ground']:.2f}")
    failures.check(len(seen["texts"]) > 60, f"{what}: {len(seen['texts'])} texts")
    for text, contrast in seen["texts"]:
        failures.check(contrast >= 4.5, f"{what}: the contrast of {text!r} is {contrast:.2f}")


def test_phone(browser, failures):
    browser.size(360, 740, phone=True)
    browser.next_answer()
    width = browser.run("return document.documentElement.scrollWidth")
    failures.check(width <= 360, f"the page is {width} pixels wide on a phone of 360")
    for each in browser.run(TOO_WIDE):
        failures.check(False, f"too wide on a phone: {each}")
    wheel = browser.run("return document.querySelector('#wheel').getBoundingClientRect().width")
    failures.check(wheel >= 280, f"the wheel is {wheel} pixels wide on a phone of 360")
    tops = browser.run("""return ["health", "failing", "turning"].map((each) =>
        document.querySelector("#" + each).getBoundingClientRect().top);""")
    failures.check(tops == sorted(tops), f"on a phone the wheel comes after the health figures: {tops}")


def test_still(browser, failures):
    """Readers who prefer reduced motion see the server's answers, and no movement between them."""
    browser.prefer(color_scheme="light", reduced_motion="reduce")
    browser.next_answer()
    for _ in range(3):
        drawn, said = browser.run("return [document.querySelector('#wheel').dataset.now, latest.wheel.now]")
        failures.check(int(drawn) == said, f"with reduced motion the wheel shows {drawn}, the server has said {said}")
        browser.next_answer()
    browser.prefer(color_scheme="light", reduced_motion="no-preference")
    wait_for("the hand moves again", lambda: browser.run("""
        return Number(document.querySelector('#wheel').dataset.now) > latest.wheel.now + 1"""))


def test_lost(browser, program, failures):
    failures.check(program.stop() == 0, f"the program ends well: {program.process.returncode}")
    wait_for("the page says that the server does not answer", lambda: browser.run("""
        const notice = document.querySelector('#notice');
        return notice.checkVisibility() && notice.textContent.includes('has not answered since');"""))
    state = browser.run("return document.querySelector('#state').textContent")
    failures.check(state == "no answer", f"the state is {state}")

    def tick():
        return browser.run("return document.querySelector('#wheel').dataset.now")

    browser.errors()
    drawn = tick()
    wait_for("another try", browser.errors)
    failures.check(tick() == drawn, "the wheel stands still")


def test_failures(browser, program, failures, state):
    browser.driver.get(program.url)
    browser.size(1200, 900)
    word, line = {"part": ("not healthy", "More than 10 % of the keys are stale or empty."),
                  "outage": ("outage", "No load has succeeded since ")}[state]
    wait_for(f"the state is {word}", lambda: browser.run("return document.querySelector('#state').textContent") == word)
    wait_for(line, lambda: line in browser.run("return document.querySelector('#notice').textContent"))
    colours = browser.run("""return ["#state", "#notice", "#error"].map((each) =>
        getComputedStyle(document.querySelector(each)).color);""")
    wanted = browser.run(f"""const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = "var(--{'warn' if state == 'part' else 'bad'})";
        const seen = getComputedStyle(probe).color; probe.remove(); return seen;""")
    failures.check(colours == 3 * [wanted], f"the colours are {colours}, not {wanted}")
    error = browser.run("return document.querySelector('#error').textContent")
    failures.check(error == "failed on purpose (--fail-percent)", f"the latest error is {error}")
    since = browser.run("return document.querySelector('#error-since').textContent")
    failures.check(re.fullmatch(r"\d+:\d\d:\d\d.*, .* m?s ago", since), f"the latest error began {since}")
    wait_for("failures per second", lambda: re.fullmatch(
        r"[\d,.]+ failed", browser.run("return document.querySelector('#failed-now').textContent")))
    test_search(browser, failures)
    for width, phone in ((1200, False), (400, True)):
        browser.size(width, 900, phone)
        browser.next_answer()
        for each in browser.run(TOO_WIDE):
            failures.check(False, f"too wide at {width} pixels: {each}")
        test_contrast(browser, failures, f"{state} at {width} pixels", dark=False)
    for error in browser.errors():
        failures.check(False, f"in the console: {error}")


def test_waits(browser, failures):
    for seconds, text in ((0, "0"), (0.0004, "0"), (0.2404, "240 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"),
                          (9.94, "9.9 s"), (59.9, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (90000, "1 d 1 h")):
        seen = browser.run(f"return wait({seconds})")
        failures.check(seen == text, f"{seconds} s are shown as {seen}, not {text}")


def test_search(browser, failures):
    def search(text):
        browser.run(f"""const find = document.querySelector("#find"); find.value = "{text}";
            find.dispatchEvent(new Event("input"));""")

    def rows():
        return browser.run("return [...document.querySelectorAll('#failing-rows th')].map((each) => each.textContent)")

    wait_for("failing keys are listed", rows)
    search("ITEM/000012")
    found = wait_for("the keys that were searched for",
                     lambda: (lambda all: all and all[0].startswith("item/000012") and all)(rows()))
    failures.check(len(found) <= 10 and all(each.startswith("item/000012") for each in found), f"found {found}")
    failures.check(all("failed on purpose" in each for each in found), f"the errors are shown: {found}")
    search("no such key")
    wait_for("no key is found", lambda: not rows())
    search("on purpose")
    wait_for("keys are found by their error", lambda: len(rows()) > 10)
    search("")


def test_all(browser, program, failures, pictures, ripe):
    def save(name, *height):
        if pictures:
            wait_for("it has run long enough", lambda: browser.run("return latest.elapsed") >= ripe)
            browser.next_answer()
            browser.save(pictures / f"{name}.png", *height)

    test_loads(browser, program, failures)
    test_health(browser, failures)
    test_waits(browser, failures)
    test_reload(browser, failures)
    test_moves(browser, failures)
    test_figures(browser, program, failures)
    test_contrast(browser, failures, "light", dark=False)
    save("light")
    browser.prefer(color_scheme="dark")
    test_contrast(browser, failures, "dark", dark=True)
    save("dark")
    test_phone(browser, failures)
    save("phone-dark", "innerHeight")
    browser.prefer(color_scheme="light")
    save("phone", "innerHeight")
    browser.size(1240, 900)
    test_still(browser, failures)
    test_late(browser, program, failures)
    for error in browser.errors():
        failures.check(False, f"in the console: {error}")
    test_lost(browser, program, failures)
    if pictures:
        browser.save(pictures / "lost.png")


def lacks():
    missing = [package for command, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver"))
               if not shutil.which(command)]
    try:
        import selenium.webdriver  # noqa: F401
    except ImportError:
        missing.append("python3-selenium")
    return missing


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--state", choices=("healthy", "part", "outage"), default="healthy")
    arguments.add_argument("--screenshots", metavar="DIR", type=pathlib.Path, help="save pictures of the page there")
    arguments.add_argument("--ripe", metavar="SECONDS", type=float, default=0,
                           help="take them once the program has run that long")
    arguments.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT ...]")
    options = arguments.parse_args()
    if not options.command:
        arguments.error("which program?")
    if lacks():
        print("skipped: this needs (Debian)", " ".join(lacks()))
        return SKIPPED
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)

    failures = Failures()
    program = Program(options.command)
    browser = None
    with tempfile.TemporaryDirectory(prefix="page_test.", ignore_cleanup_errors=True) as profile:
        try:
            program.wait_until_it_listens()
            browser = Browser(profile)
            if options.state == "healthy":
                test_all(browser, program, failures, options.screenshots, options.ripe)
            else:
                test_failures(browser, program, failures, options.state)
        except (TimeoutError, RuntimeError) as error:
            failures.check(False, error)
        finally:
            if browser:
                browser.driver.quit()
            if program.process.poll() is None:
                program.stop()
    print(f"{failures.checks} checks, {failures.found} failed")
    return 1 if failures.found else 0


if __name__ == "__main__":
    sys.exit(main())
