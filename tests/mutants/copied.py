"""Makes a copy of the project with all mutants in it, each behind a switch, and builds programs from it."""
import os
import re
import shlex
import subprocess

from mutants import FOLDER, PROJECT
from trial import program_of


def switch(site, original):
    """C++ that is `changed` if the mutant is on, and otherwise the original, which has inner switches."""
    number = f"0x{site.mutant.id}"
    on = f"rondo_mutant({number})"
    if site.form == "raw string":  # with rondo_mutant() this would be a constant
        return f"(rondo_is_chosen({number}) ? {site.changed} : {original})"
    if site.form == "statement":
        return f"if ({on}) {{ {site.changed} }} else {{ {original} }}"
    if site.form == "condition":  # perhaps of another type than bool
        return f"({on} ? {site.changed} : static_cast<bool>({original}))"
    return f"({on} ? ({site.changed}) : ({original}))"


CONSTANT = re.compile(r"\bconstexpr (?=[^;}=]*?(\w+)\s*[={][^;}]*$)")  # that is not yet complete


def with_switches(text, sites):
    """Replaces the outermost sites first, because their originals contain the inner ones."""
    switched = set()  # the constants with raw strings: a constant cannot be switched

    def rewrite(begin, end, inside):
        result = ""
        while inside:
            outer, *inside = inside
            held = [s for s in inside if outer.holds(s)]
            inside = inside[len(held):]
            before = text[begin:outer.begin]
            if outer.form == "raw string":
                switched.update(CONSTANT.findall(before))
                before = CONSTANT.sub("", before)
            result += before + switch(outer, rewrite(outer.begin, outer.end, held))
            begin = outer.end
        return result + text[begin:end]

    result = rewrite(0, len(text), sorted(sites, key=lambda s: (s.begin, -s.end)))
    for name in switched:  # what contains one is no constant either
        result = re.sub(rf"\bconstexpr (?=[^;]*\b{name}\b)", "", result)
    return result


def write(path, content):
    """Writes only if the content changes, so that little is compiled again."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy_project(target, sites):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True).stdout
    files = {name for name in listed.split("\0") if name and (PROJECT / name).is_file()}
    for name in files:
        content = (PROJECT / name).read_bytes()
        if name in sites:
            content = with_switches(content.decode(), sites[name]).encode()
        write(target / name, content)
    for path in target.rglob("*"):
        if path.is_file() and str(path.relative_to(target)) not in files:
            path.unlink()


def errors(log, target, source, sites):
    """The compiler's errors, with the mutants at those places."""
    for file, line, text in sorted(set(re.findall(r"^(\S+?):(\d+):\d+: error: (.*)$", log, re.MULTILINE))):
        name = str((target / file).resolve()).removeprefix(f"{source}/")
        original = (PROJECT / name).read_text(encoding="utf-8") if name in sites else ""
        yield f"{name}:{line}: {text}"
        for site in sites.get(name, ()):
            first = original.count("\n", 0, site.begin) + 1
            if first <= int(line) <= first + original.count("\n", site.begin, site.end):
                yield f"    {site.mutant}"


def with_later_boost():
    """The environment, with the Boost that tests/run_long has unpacked unless the environment names one."""
    unpacked = PROJECT / "build-boost" / "usr"
    return {**({"BOOST_ROOT": str(unpacked)} if unpacked.exists() else {}), **os.environ}


def build(folder, suites, options, sites, jobs):
    """Returns the folder with the programs of the suites. If they cannot be built, exits and says why."""
    source, target = folder / "source", folder / ("-".join(["build", *options]) or "build")
    copy_project(source, sites)
    meson = ["meson", "setup", target, source, "-Dbuildtype=debug", "-Doptimization=g", "-Ddebug=false",
             "-Dwarning_level=0", "-Dexamples=disabled", "-Dbenchmarks=disabled", "-Dtests=enabled",
             f"-Dcpp_args={shlex.join(['-w', '-include', str(FOLDER / 'switch.hpp')])}", *options.values()]
    if not (target / "build.ninja").exists():
        done = subprocess.run(meson, stdout=subprocess.PIPE, text=True, env=with_later_boost())
        if done.returncode != 0:
            raise SystemExit(done.stdout)
    ninja = ["ninja", "-C", target, "-k", "0", f"-j{jobs}", *(f"tests/{program_of(suite)}" for suite in suites)]
    done = subprocess.run(ninja, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        (folder / "build.log").write_text(done.stdout, encoding="utf-8")
        raise SystemExit("\n".join([*errors(done.stdout, target, source, sites), f"See {folder / 'build.log'}"]))
    return target / "tests"
