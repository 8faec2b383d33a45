#!/usr/bin/env python3
"""Fails unless what README and its like (READMES) show is what the tests run: listings.py ROOT BUILD

A block that names its language must stand, line for line but for its indentation, in a file of that language which
is compiled and run; shell commands each by itself in a script, which may give them arguments. It says which of these
files BUILD does not compile, as it lacks what they are about. Blocks without a language are drawings; those in SQL are
what tests/durable/operators_sql.cpp runs.
"""
import json
import pathlib
import re
import sys
import textwrap

READMES = ("README.md", "lib/durable/README.md", "examples/http_timeouts/README.md")
TESTED = ("examples", "tests/readme", "tests/consumer")
FILES = {
    "cpp": [f"{folder}/**/*.cpp" for folder in TESTED],
    "text": ["examples/**/*.expected"],
    "meson": ["tests/consumer/**/meson.build"],
    "cmake": ["tests/consumer/**/CMakeLists.txt"],
    "sh": [".ci/run", "tests/run", "tests/check", "tests/consumer/run", "examples/run"],
}


def listings(readme):
    """(line number, language, lines) of each block that names a language."""
    number, language, block = 0, None, []
    for n, line in enumerate(readme.splitlines(), start=1):
        fence = re.fullmatch(r"```(\w*)", line)
        if fence is None:
            block.append(line)
        elif language is None:
            number, language, block = n, fence[1], []
        else:
            if language and language != "sql":
                yield number, language, block
            language = None


def dedent(lines):
    return textwrap.dedent("\n".join(lines)).splitlines()


def stands_in(block, source):
    wanted = dedent(block)
    return any(dedent(source[i : i + len(block)]) == wanted for i in range(len(source) - len(block) + 1))


def is_run_by(line, script):
    command = re.sub(r"\s+#.*", "", line).strip()
    return not command or any(command in s for s in script)


def untested(language, block, sources):
    """The part of the listing that stands nowhere, or nothing."""
    if language == "sh":
        return [line for line in block if not any(is_run_by(line, s) for s in sources)]
    return [] if any(stands_in(block, s) for s in sources) else block


def compiled_in(build):
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    return {(build / command["file"]).resolve() for command in commands}


def main(root, build):
    compiled = compiled_in(build)
    wrong = count = 0
    for readme in READMES:
        for number, language, block in listings((root / readme).read_text(encoding="utf-8")):
            texts = {
                file.resolve(): file.read_text(encoding="utf-8").splitlines()
                for pattern in FILES[language]
                for file in root.glob(pattern)
            }
            lines = untested(language, block, texts.values())
            count += 1
            if language == "cpp" and not lines:
                files = {file for file, text in texts.items() if stands_in(block, text)}
                if not files & compiled:
                    print(f"{readme}:{number}: not compiled in this build:", *(file.name for file in files))
            if lines:
                wrong += 1
                print(f"{readme}:{number}: nothing that is tested has this:", *lines, sep="\n    ")
    print(f"{count} listings, {wrong} of them not tested")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
