"""Reads the lists of mutants, *.toml, and finds each mutant in the sources."""
import hashlib
import pathlib
import re
import tomllib
from dataclasses import dataclass

FOLDER = pathlib.Path(__file__).resolve().parent
PROJECT = FOLDER.parents[1]
REQUIRED = {"what", "from", "to"}
OPTIONAL = {"function", "within", "suites", "unnoticed", "unsimulated"}


class Mistake(Exception):
    """Something is wrong with the lists: one line for each entry."""


@dataclass(frozen=True)
class Mutant:
    part: str  # the list's name
    file: str  # relative to the project
    what: str
    before: str
    after: str
    function: str
    within: str
    suites: tuple
    unnoticed: str
    unsimulated: str

    @property
    def id(self):
        """Stays the same until the code of the entry changes. Its place in the list and white space do not matter."""
        text = "\0".join([self.file, *(" ".join(tokens(t)) for t in (self.before, self.after, self.function, self.within) if t)])
        return hashlib.sha1(text.encode()).hexdigest()[:6]

    def __str__(self):
        return f"{self.part}.toml, {self.id}: {self.file}: {self.what}"


@dataclass(frozen=True)
class Site:
    """The code in its file that a mutant replaces."""
    begin: int
    end: int
    changed: str  # what replaces it
    mutant: Mutant

    def holds(self, other):
        return self.begin <= other.begin and other.end <= self.end

    def meets(self, other):
        return self.begin < other.end and other.begin < self.end


def tokens(code):
    return re.findall(r"\w+|[^\w\s]", code)


def pattern(code):
    """Matches the code, whatever its line breaks."""
    parts = tokens(code)
    text = r"(?<!\w)" if parts[0][0].isalnum() else ""
    for part, following in zip(parts, [*parts[1:], ""]):
        both_words = re.match(r"\w", part) and re.match(r"\w", following)
        text += re.escape(part) + (r"\s+" if both_words else r"\s*" if following else "")
    return re.compile(text + (r"(?!\w)" if re.match(r"\w", parts[-1]) else ""))


BINARY = r"&&|\|\||[=!<>]=|<<|>>|[?=,.]|:(?!:)|->"


def without_brackets(code):
    """The code without what is in (), [] and {}, and without the text of its strings."""
    code = re.sub(r'"(\\.|[^"\\])*"', '""', code)
    shorter = re.sub(r"\([^()[\]{}]*\)|\[[^()[\]{}]*\]|\{[^()[\]{}]*\}", "", code)
    return code if shorter == code else without_brackets(shorter)


def is_whole(code):
    """Whether this is statements, or an expression, as far as can be told."""
    code, outside = code.strip(), without_brackets(code).strip()
    balanced = all(code.count(opening) == code.count(closing) for opening, closing in ("()", "[]", "{}"))
    is_cut = re.match(rf"{BINARY}|else\b", code) or re.search(rf"({BINARY})$", code)
    is_list = "," in outside and not outside.endswith(";")
    begins_statement = re.match(r"(return|if|for|while|break|continue|throw)\b", code)
    has_no_end = begins_statement and not code.endswith((";", "}"))
    declares = re.match(r"(const|auto)\b[^;]*;$", outside)  # a switch would hide it from the statements after it
    return balanced and not (is_cut or is_list or has_no_end or declares)


def bodies(function, text):
    """The places of all functions of that name, from the line of the definition to the brace that ends it."""
    begin = rf"^(?P<indent> *)(?![ /#]|return\b)[^\n]*(?<![\w:.>]){re.escape(function)}\([^;]*?\{{"
    found = [m.span() for m in re.finditer(begin + r"(?:[^\n]*\}$|.*?^(?P=indent)\})", text, re.MULTILINE | re.DOTALL)]
    if not found:
        raise Mistake(f"there is no function {function}()")
    return found


def only_match(code, text, areas):
    found = [match for area in areas for match in pattern(code).finditer(text, *area)]
    if len(found) != 1:
        raise Mistake(f"found {len(found)} times, not once: {' '.join(code.split())}")
    return found[0]


def is_in_literal(text, position):
    """Whether that is inside of a string, which cannot be switched in part. (Not of a raw one of several lines.)"""
    line = text[text.rfind("\n", 0, position) + 1:position]
    return re.sub(r"\\.|'\"'", "", line).count('"') % 2 == 1


def raw_literal_around(match):
    """The raw string with that code, such as an SQL statement, or None."""
    literals = re.finditer(r'R"(\w*)\(.*?\)\1"', match.string, re.DOTALL)
    return next((raw for raw in literals if raw.start() < match.start() and match.end() < raw.end()), None)


def locate(mutant, text):
    areas = bodies(mutant.function, text) if mutant.function else [(0, len(text))]
    if mutant.within:
        areas = [only_match(mutant.within, text, areas).span()]
    match = only_match(mutant.before, text, areas)
    if raw := raw_literal_around(match):  # switched as a whole
        changed = text[raw.start():match.start()] + mutant.after + text[match.end():raw.end()]
        return Site(raw.start(), raw.end(), changed, mutant)
    if is_in_literal(text, match.start()) or is_in_literal(text, match.end()):
        raise Mistake("a part of a string")
    if not (is_whole(mutant.before) and is_whole(mutant.after)):
        raise Mistake("neither statements nor an expression")
    changed = " ".join(mutant.after.split())  # in one line: errors keep the original line numbers
    return Site(match.start(), match.end(), changed, mutant)


def read_list(path):
    for file, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for entry in entries:
            missing, unknown = REQUIRED - entry.keys(), entry.keys() - REQUIRED - OPTIONAL
            if missing or unknown or not tokens(entry["from"]):
                what = f"lacks {missing}" if missing else f"has unknown {unknown}" if unknown else "changes nothing"
                raise Mistake(f"{path.name}: {file}: {entry.get('what', entry)}: the entry {what}")
            yield Mutant(path.stem, file, entry["what"], entry["from"], entry["to"],
                         entry.get("function", ""), entry.get("within", ""),
                         tuple(entry.get("suites", ())), entry.get("unnoticed", ""), entry.get("unsimulated", ""))


def read_lists():
    return [mutant for path in sorted(FOLDER.glob("*.toml")) for mutant in read_list(path)]


def sites_by_file(mutants):
    """Returns {file: [sites]}. Raises Mistake, naming each entry that does not fit the sources."""
    sites, wrong = {}, []
    for mutant in mutants:
        try:
            text = (PROJECT / mutant.file).read_text(encoding="utf-8")
            sites.setdefault(mutant.file, []).append(locate(mutant, text))
        except (Mistake, OSError) as reason:
            wrong.append(f"{mutant}: {reason}")
    wrong += [f"{b.mutant}: meets, and is neither inside nor around, {a.mutant}"
              for own in sites.values() for i, a in enumerate(own) for b in own[:i]
              if a.meets(b) and not a.holds(b) and not b.holds(a)]
    wrong += [f"{mutant}: listed twice, or `to` is `from`" for i, mutant in enumerate(mutants)
              if mutant.id in {m.id for m in mutants[:i]} or tokens(mutant.before) == tokens(mutant.after)]
    if wrong:
        raise Mistake("\n".join(wrong))
    return sites
