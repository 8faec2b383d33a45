"""Finds and parses the project's documents, for the checks next to this file."""
import re

FOLDERS = ("include", "lib", "examples", "tests")


def documents(root):
    """All Markdown files except those in build folders."""
    found = sorted(root.glob("*.md"))
    for folder in FOLDERS:
        found += sorted((root / folder).glob("**/*.md"))
    return found


def blocks(text):
    """Yields (line number, language or None for prose, lines) for each fenced block and for the prose in between."""
    number, language, block = 1, None, []
    for n, line in enumerate(text.splitlines(), start=1):
        fence = re.fullmatch(r"```(\w*)", line)
        if fence is None:
            block.append(line)
        else:
            yield number, language, block
            number, language, block = n + 1, fence[1] if language is None else None, []
    yield number, language, block
