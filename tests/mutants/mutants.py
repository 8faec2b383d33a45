"""What a mutant is, and where it is."""
import functools
import hashlib
import pathlib
from dataclasses import dataclass

import cpp
import functions

FOLDER = pathlib.Path(__file__).resolve().parent
PROJECT = FOLDER.parents[1]


class Mistake(Exception):
    """Something is wrong with the lists: one line for each entry."""


@dataclass(frozen=True)
class Mutant:
    part: str  # the list's name
    file: str  # relative to the project
    id: str
    what: str
    suites: tuple = ()
    unnoticed: str = ""
    unsimulated: str = ""

    def __str__(self):
        return f"{self.part}.toml, {self.id}: {self.file}: {self.what}"


@dataclass(frozen=True)
class Site:
    """The code in its file that a mutant replaces."""
    begin: int
    end: int
    form: str  # of the code: "statement", "condition", "expression" or "raw string"
    changed: str  # what replaces it
    mutant: Mutant

    def holds(self, other):
        return self.begin <= other.begin and other.end <= self.end

    def meets(self, other):
        return self.begin < other.end and other.begin < self.end


class Source:
    """A file with mutants. Its functions are read when they are first needed."""

    def __init__(self, file):
        self.file = file
        self.text = (PROJECT / file).read_text(encoding="utf-8")

    @functools.cached_property
    def code(self):
        return cpp.Code(self.text)

    @functools.cached_property
    def bodies(self):
        return functions.bodies(self.code)


def id_of(*parts):
    return hashlib.sha1("\0".join(parts).encode()).hexdigest()[:6]
