"""Runs the suites with a mutant switched on."""
import os
import re
import resource
import signal
import subprocess
import time

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


def environment(mutant):
    changes = {"RONDO_TEST_WHOLE": "1",
               "MALLOC_PERTURB_": "165",
               "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",  # as MALLOC_PERTURB_ does not change cached blocks
               "ASAN_OPTIONS": "hard_rss_limit_mb=8192:allocator_may_return_null=1",
               "UBSAN_OPTIONS": "halt_on_error=1"}
    changes["RONDO_MUTANT"] = mutant.id if mutant else ""
    return {**os.environ, **changes}


def first_failure(output):
    """The name of the test case that failed first, from doctest's output."""
    name = "?"
    for line in output.splitlines():
        if case := re.match(r"TEST CASE:\s+(.*)", line):
            name = case[1]
        elif re.search(r": (FATAL )?ERROR: ", line):
            return name
    return None


class Programs:
    """The built suites. Their output is in `log`."""
    def __init__(self, folder, log, sanitized=False):
        self.folder, self.log, self.sanitized = folder, log, sanitized
        self.normal = {}  # how many seconds each suite takes, by name
        log.mkdir(parents=True, exist_ok=True)

    def limit_resources(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
        if not self.sanitized:  # shadow memory is larger than that
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def run(self, suite, mutant, seconds):
        """What went wrong, in words, or None if the suite passed."""
        path = self.log / f"{mutant.id if mutant else 'none'}-{suite}.txt"
        with path.open("wb") as output:
            child = subprocess.Popen([self.folder / program_of(suite), *OTHERS.get(suite, ("--abort-after=1",))], stdout=output,
                                     stderr=subprocess.STDOUT, env=environment(mutant),
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

    def measure(self, suites):
        """Runs the suites without a mutant, and exits if one fails."""
        for suite in suites:
            begun = time.monotonic()
            if wrong := self.run(suite, None, 3600):
                raise SystemExit(f"{suite} fails without any mutant: {wrong}\nSee {self.log}/none-{suite}.txt")
            self.normal[suite] = time.monotonic() - begun
            print(f"{suite} takes {self.normal[suite]:.1f} s", flush=True)

    def noticed(self, mutant, suites):
        """Which suite notices the mutant, and how; None if none does."""
        for suite in suites:
            if wrong := self.run(suite, mutant, 4 * self.normal[suite] + 20):
                return f"{suite}: {wrong}"
        return None
