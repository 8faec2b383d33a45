#!/usr/bin/env python3
"""Fails unless the tests run the listings in the documents: listings.py ROOT BUILD

A block that names its language must appear, line for line except for its indentation, in a file of that language that
is compiled and run. Each shell command for users must appear in a script, which may add arguments, or must start an
example with options that the example has. In documents for developers of the project (WORKSHOP) it is enough that the
files named in the commands exist. The script reports which of the files BUILD does not compile because a library is
missing. Blocks without a language are drawings and sample output; tests/durable/sql_tables.cpp runs those in SQL.
Code in the last column of a table headed "Rondo", which has the calls that replace those of another library, must
appear in a C++ file of CALLS.
"""
import json
import pathlib
import re
import sys
import textwrap

sys.dont_write_bytecode = True  # keeps the source tree clean
from documents import blocks, documents  # noqa: E402

WORKSHOP = ("CONTRIBUTING.md", "lib/README.md", "tests/")
TESTED = ("examples", "tests/readme", "tests/consumer")
CALLS = ("coming_from.cpp", "asio.cpp")
FILES = {
    "cpp": [f"{folder}/**/*.cpp" for folder in TESTED],
    "text": ["examples/**/*.expected", "tests/readme/*.cpp"],
    "meson": ["tests/consumer/**/meson.build"],
    "cmake": ["tests/consumer/**/CMakeLists.txt"],
    "sh": [".ci/run", "tests/run", "tests/check", "tests/consumer/run", "examples/run", "examples/*/test.sh"],
}


def dedent(lines):
    return textwrap.dedent("\n".join(lines)).splitlines()


def stands_in(block, source):
    wanted, first = dedent(block), block[0].strip()
    begins = (i for i in range(len(source) - len(block) + 1) if source[i].strip() == first)
    return any(dedent(source[i : i + len(block)]) == wanted for i in begins)


def commands(block):
    """Yields each command as one line without its comment."""
    for line in "\n".join(block).replace("\\\n", " ").splitlines():
        command = re.sub(r"(^|\s+)#.*", "", line).strip()
        if command:
            yield " ".join(command.split())


def names_missing_files(root, command):
    if command.startswith("ninja "):  # its arguments are build targets
        return False
    named = re.findall(r"(?:^|\s)((?:tests|examples|\.ci)/[\w./-]+)", command)
    return any(not (root / name).exists() for name in named)


def starts_an_example(root, command):
    """Whether the command is `sh examples/run NAME OPTION …`, that example exists, and its sources have the options."""
    words = re.match(r"sh examples/run (\w+)( .*)?", command)
    if words is None or not (root / "examples" / words[1]).is_dir():
        return False
    sources = [file.read_text(encoding="utf-8") for file in (root / "examples" / words[1]).glob("*.cpp")]
    return all(any(option in s for s in sources) for option in re.findall(r"(?<=--)[a-z-]+", words[2] or ""))


def untested(root, document, language, block, sources):
    """The part of the listing that appears in no source, or an empty list."""
    if language != "sh":
        return [] if any(stands_in(block, s) for s in sources) else block
    if document.startswith(WORKSHOP):
        return [c for c in commands(block) if names_missing_files(root, c)]
    return [
        c for c in commands(block) if not any(c in line for s in sources for line in s) and not starts_an_example(root, c)
    ]


def replacements(text):
    """Yields (line number, code) for the last column of the tables headed "Rondo"."""
    in_table = False
    for number, line in enumerate(text.splitlines(), start=1):
        in_table = line.endswith("| Rondo |") or (in_table and line.startswith("|"))
        if in_table:
            for code in re.findall(r"`([^`]+)`", line.split(" | ")[-1]):
                yield number, code


def compiled_in(build):
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {(build / command["file"]).resolve() for command in commands}
    for group in [file for file in files if "-unity" in file.name]:  # it includes the files that are compiled together
        files |= {pathlib.Path(name).resolve() for name in re.findall(r"#include<(.+)>", group.read_text(encoding="utf-8"))}
    return files


def main(root, build):
    compiled = compiled_in(build)
    texts = {
        language: {
            file.resolve(): file.read_text(encoding="utf-8").splitlines()
            for pattern in patterns
            for file in root.glob(pattern)
        }
        for language, patterns in FILES.items()
    }
    called = "\n".join((root / "tests/readme" / name).read_text(encoding="utf-8") for name in CALLS)
    wrong = count = 0
    for file in documents(root):
        document = file.relative_to(root).as_posix()
        document_text = file.read_text(encoding="utf-8")
        for number, code in replacements(document_text):
            count += 1
            if code not in called:
                wrong += 1
                print(f"{document}:{number}: no test calls {code}")
        for number, language, block in blocks(document_text):
            if not language or language == "sql":
                continue
            if language not in texts:
                wrong += 1
                print(f"{document}:{number}: nothing tests listings in {language}")
                continue
            lines = untested(root, document, language, block, texts[language].values())
            count += 1
            if language == "cpp" and not lines:
                files = {file for file, text in texts["cpp"].items() if stands_in(block, text)}
                if not files & compiled:
                    print(f"{document}:{number}: not compiled in this build:", *(file.name for file in files))
            if lines:
                wrong += 1
                print(f"{document}:{number}: no tested file contains this:", *lines, sep="\n    ")
    print(f"{count} listings and calls, {wrong} not tested")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
