"""The project's documents, for the checks beside this file."""
import re

FOLDERS = ("include", "lib", "examples", "tests")


def documents(root):
    """All Markdown files, those of build folders excepted."""
    found = sorted(root.glob("*.md"))
    for folder in FOLDERS:
        found += sorted((root / folder).glob("**/*.md"))
    return found


def blocks(text):
    """(line number, language or None for prose, lines) of each fenced block, and of the prose between them."""
    number, language, block = 1, None, []
    for n, line in enumerate(text.splitlines(), start=1):
        fence = re.fullmatch(r"```(\w*)", line)
        if fence is None:
            block.append(line)
        else:
            yield number, language, block
            number, language, block = n + 1, fence[1] if language is None else None, []
    yield number, language, block
