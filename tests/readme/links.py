#!/usr/bin/env python3
"""Fails unless every link between documents has a target: links.py ROOT

The file must exist and, if it is a document, have the heading that an #anchor names. In tests/README.md, the tests that
tables name (`scheduler/cancel`, or `adapters/asio…` for all that begin so) must exist. README.md must be short: at most 300
lines of at most 120 characters.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # keeps the source tree clean
from documents import blocks, documents  # noqa: E402

LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^]]+\]: (\S+)|<a href=\"([^\"]+)\"")
MOST_LINES = 300
MOST_COLUMNS = 120


def anchors(text):
    """The anchors that GitHub generates from the headings."""
    seen = {}
    for _, language, lines in blocks(text):
        for line in lines if language is None else []:
            heading = re.match(r"#+ +(.*)", line)
            if heading is None:
                continue
            words = re.sub(r"\]\([^)]*\)", "", heading[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            count = seen[anchor] = seen.get(anchor, -1) + 1
            yield f"{anchor}-{count}" if count else anchor


def broken(root, document, target):
    """What is wrong with the link, or None."""
    if re.match(r"\w+:", target):
        return None
    path, _, anchor = target.partition("#")
    # The reference's front page is read in the generated HTML, so its links are relative to that folder.
    folder = root / "build-docs/html" if document.parent.name == "doxygen" else document.parent
    file = (folder / path).resolve() if path else document
    if not file.exists():
        return "no such file"
    if root not in (file, *file.parents):
        return "outside of the project"
    if anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
        return "no such heading"
    return None


def missing_tests(tests):
    """What the last columns of the tables in tests/README.md name, and is no file."""
    rows = re.findall(r"^\|.*\|([^|]*)\|$", (tests / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = re.findall(r"`(\w+/(?!run`)\w+…?)`", "".join(rows))  # not `tests/run`
    if not names:
        yield "its tables name none"
    for name in names:
        if not any(tests.glob(name.replace("…", "*") + ".cpp")):
            yield name


def main(root):
    root = root.resolve()
    wrong = count = 0
    for document in documents(root):
        for number, language, lines in blocks(document.read_text(encoding="utf-8")):
            for n, line in enumerate(lines if language is None else [], start=number):
                for target in ("".join(groups) for groups in LINK.findall(line)):
                    count += 1
                    why = broken(root, document, target)
                    if why:
                        wrong += 1
                        print(f"{document.relative_to(root)}:{n}: {target}: {why}")
    for name in missing_tests(root / "tests"):
        wrong += 1
        print(f"tests/README.md: {name}: no such test")
    lines = (root / "README.md").read_text(encoding="utf-8").splitlines()
    if len(lines) > MOST_LINES:
        wrong += 1
        print(f"README.md has {len(lines)} lines; at most {MOST_LINES} are allowed. Move text next to what it describes")
    for n, line in enumerate(lines, start=1):
        if len(line) > MOST_COLUMNS:
            wrong += 1
            print(f"README.md:{n}: {len(line)} characters")
    print(f"{count} links, {wrong} errors")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
