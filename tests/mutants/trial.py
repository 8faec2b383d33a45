"""Runs the suites with a mutant switched on."""
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mutants import PROJECT, Mistake

ALL = ("values", "wheel", "scheduler", "on_top", "adapters", "readme", "model", "durable", "threads",
       "interleavings", "durable_servers", "calendar", "durable_simulation")
# The folders of suites that have their own meson.build.
FOLDERS = {"calendar": "calendar/"}
# Programs that are no suites of doctest, with their arguments. (The same random programs, however fast the machine is.)
OTHERS = {"durable_simulation": ("--first", "1", "--crashes", "60000", "--seconds", "0")}


def program_of(suite):
    """The path of the suite's program, relative to the build folder's tests."""
    return suite if suite in OTHERS else f"{FOLDERS.get(suite, '')}{suite}_tests"


# The suites that are most likely to notice a change of a file, by the beginning of its name; the first entry counts.
LIKELY = {
    "include/rondo/detail/key": ("on_top", "readme"),
    "include/rondo/detail/canceller": ("on_top", "readme"),
    "include/rondo/detail/ticks": ("values", "scheduler", "model"),
    "include/rondo/detail/log_linear": ("values", "scheduler", "model"),
    "include/rondo/detail/": ("wheel", "model", "interleavings", "scheduler"),
    "include/rondo/wheel": ("wheel", "model", "interleavings", "scheduler"),
    "lib/wheel/": ("wheel", "model", "interleavings", "scheduler"),
    "lib/scheduler/": ("scheduler", "interleavings", "model", "threads", "on_top"),
    "include/rondo/schedul": ("scheduler", "interleavings", "model", "threads", "on_top"),
    "lib/sync/": ("threads", "scheduler", "adapters", "model"),
    "lib/drivers/": ("scheduler", "threads", "adapters", "model"),
    "include/rondo/coroutine": ("on_top", "readme"),
    "include/rondo/keyed_timers": ("on_top", "readme"),
    "include/rondo/timer_scope": ("on_top", "readme"),
    "lib/on_top/": ("on_top", "readme"),
    "include/rondo/asio": ("adapters",),
    "include/rondo/event_fd": ("adapters",),
    "include/rondo/durable": ("durable",),
    "lib/durable/postgresql/": ("durable_servers",),
    "lib/durable/dispatcher/": ("durable", "durable_simulation"),
    "lib/durable/": ("durable",),
    "include/rondo/calendar": ("calendar",),
    "lib/calendar/": ("calendar",),
    "lib/trace/": ("scheduler", "interleavings", "threads"),
    "lib/values/": ("values", "scheduler", "model"),
    "include/rondo/": ("values", "scheduler", "model"),
}
MEMORY = 8 << 30  # of one program; a mutant may allocate more and more
OUTPUT = 64 << 20


def likely_suites(mutant):
    return mutant.suites or LIKELY[likely_entry(mutant.file)]


def likely_entry(file):
    for start in LIKELY:
        if file.startswith(start):
            return start
    raise Mistake(f"{file}: trial.py does not say which suites are likely to notice changes of it")


def check_likely():
    """Each file of the library has likely suites, and each entry of LIKELY has files."""
    files = [path.relative_to(PROJECT).as_posix()
             for folder in ("include", "lib") for path in PROJECT.glob(f"{folder}/**/*.[ch]pp")]
    # The programs in lib/platform only find out what a system has.
    unused = set(LIKELY) - {likely_entry(file) for file in files if not file.startswith("lib/platform/")}
    if unused:
        raise Mistake(f"trial.py: no file begins with {', '.join(sorted(unused))}, or earlier entries have them all")


def all_suites(mutant):
    first = likely_suites(mutant)
    return [*first, *(suite for suite in ALL if suite not in first)]


def environment(changes):
    return {**os.environ,
            "RONDO_TEST_WHOLE": "1",
            "MALLOC_PERTURB_": "165",
            "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",  # as MALLOC_PERTURB_ does not change cached blocks
            "ASAN_OPTIONS": "hard_rss_limit_mb=8192:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "halt_on_error=1",
            **changes}


def first_failure(output):
    """The name of the test case that failed first, from doctest's output."""
    name = "?"
    for line in output.splitlines():
        if case := re.match(r"TEST CASE:\s+(.*)", line):
            name = case[1]
        elif re.search(r": (FATAL )?ERROR: ", line):
            return name
    return None


@dataclass(frozen=True)
class Case:
    """A test case that passes without a mutant. A program that is no suite of doctest is one case, without a name."""
    name: str
    seconds: float
    reached: frozenset  # the ids of the mutants whose places it comes to


def chosen_by(names):
    """The option of doctest that runs these cases. (It would split names at commas, and unescape them: ? is any character.)"""
    return ["--test-case=" + ",".join(re.sub(r"[,\\]", "?", name) for name in names)] if all(names) else []


class Programs:
    """The built suites. Their output is in `log`."""
    def __init__(self, folder, log, ids, jobs, sanitized=False):
        self.folder, self.log, self.ids, self.jobs, self.sanitized = folder, log, ids, jobs, sanitized
        self.known = {}  # the cases of each suite that was needed, by its name
        self.measuring = threading.Lock()
        log.mkdir(parents=True, exist_ok=True)

    def limit_resources(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
        if not self.sanitized:  # shadow memory is larger than that
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def run(self, suite, names, changes, path, seconds):
        """What went wrong, in words, or None if the cases of the suite passed. Their output is in `path`."""
        with path.open("wb") as output:
            child = subprocess.Popen([self.folder / program_of(suite), *OTHERS.get(suite, ("--abort-after=1",)),
                                      *chosen_by(names)], stdout=output, stderr=subprocess.STDOUT, env=environment(changes),
                                     start_new_session=True, preexec_fn=self.limit_resources)
            try:
                code = child.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:
                    os.killpg(child.pid, signal.SIGKILL)  # including its children from fork()
                except ProcessLookupError:
                    pass
                child.wait()
        if code == 0:
            return None
        case = first_failure(path.read_text(encoding="utf-8", errors="replace"))
        return case or ("it does not end" if code is None else f"it ends with {code}")

    def names(self, suite):
        if suite in OTHERS:
            return [""]
        listed = subprocess.run([self.folder / program_of(suite), "--list-test-cases", "--no-intro"], check=True, text=True,
                                stdout=subprocess.PIPE, env=environment({})).stdout
        return list(dict.fromkeys(re.findall(r"^(?!\[doctest\]|===)(.+)$", listed, re.MULTILINE)))

    def measured_case(self, suite, name, number):
        path = self.log / f"none-{suite}-{number}.txt"
        with tempfile.NamedTemporaryFile(dir=self.log) as bytes_of_ids:
            bytes_of_ids.truncate(1 << 24)
            begun = time.monotonic()
            wrong = self.run(suite, [name], {"RONDO_MUTANTS_REACHED": bytes_of_ids.name}, path, 3600)
            seconds = time.monotonic() - begun
            if wrong:
                raise SystemExit(f"{suite} fails without any mutant: {wrong}\nSee {path}")
            reached = [i for i in self.ids if os.pread(bytes_of_ids.fileno(), 1, int(i, 16)) != b"\0"]
        path.unlink()
        return Case(name, seconds, frozenset(reached))

    def measured_since_built(self, suite):
        """What measure() has written, or None if a program or a library is newer."""
        # Meson links to a library before that is built, and another suite may not need it.
        built = [self.folder / program_of(suite), *filter(os.path.exists, self.folder.parent.glob("lib/**/*.so"))]
        path = self.folder / f"cases-{suite}.json"
        if not path.exists() or path.stat().st_mtime < max(file.stat().st_mtime for file in built):
            return None
        return [Case(name, seconds, frozenset(reached)) for name, seconds, reached in json.loads(path.read_text(encoding="utf-8"))]

    def measure(self, suite):
        names = self.names(suite)
        with ThreadPoolExecutor(self.jobs) as pool:
            cases = list(pool.map(self.measured_case, [suite] * len(names), names, range(len(names))))
        (self.folder / f"cases-{suite}.json").write_text(
            json.dumps([(case.name, case.seconds, sorted(case.reached)) for case in cases]), encoding="utf-8")
        return cases

    def cases(self, suite):
        """The cases of the suite. Runs each without a mutant, unless that is known, and exits if one fails."""
        with self.measuring:
            if suite not in self.known:
                self.known[suite] = self.measured_since_built(suite) or self.measure(suite)
                seconds = sum(case.seconds for case in self.known[suite])
                print(f"{suite}: {len(self.known[suite])} cases take {seconds:.0f} s", flush=True)
            return self.known[suite]

    def noticed(self, mutant, suites):
        """Which suite notices the mutant, and how; None if none does. Runs the cases that come to its place."""
        for suite in suites:
            if cases := [case for case in self.cases(suite) if mutant.id in case.reached]:
                seconds = 2 * sum(case.seconds for case in cases) + 20
                path = self.log / f"{mutant.id}-{suite}.txt"
                if wrong := self.run(suite, [case.name for case in cases], {"RONDO_MUTANT": mutant.id}, path, seconds):
                    return f"{suite}: {wrong}"
        return None
