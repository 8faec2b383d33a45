"""Mutants that quote the code: what is replaced, and what replaces it."""
import re

from mutants import Mistake, Mutant, Site, id_of

REQUIRED = {"from", "to"}
OPTIONAL = {"where", "suites", "unnoticed", "unsimulated"}
BINARY = r"&&|\|\||[=!<>]=|<<|>>|[?=,.]|:(?!:)|->"


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
    return balanced and not (is_cut or is_list or has_no_end or declares or "//" in outside)


def form_of(code):
    is_statement = code.endswith(";") or (code.endswith("}") and ";" in code)  # in contrast, type{1} is an expression
    return "statement" if is_statement else "expression"


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


def areas(source, where):
    """The function or the code of that name, as places in the text."""
    if not where:
        return [(0, len(source.text))]
    if bodies := source.bodies.get(where):
        return [(source.code.begins[body.begin], source.code.ends[body.end]) for body in bodies]
    return [only_match(where, source.text, [(0, len(source.text))]).span()]


def as_table(entry):
    """An entry is [from, to] or [from, to, where], or a table with more keys."""
    table = dict(zip(("from", "to", "where"), entry)) if isinstance(entry, list) else dict(entry)
    if missing := REQUIRED - table.keys():
        raise Mistake(f"the entry lacks {missing}")
    if unknown := table.keys() - REQUIRED - OPTIONAL:
        raise Mistake(f"the entry has unknown {unknown}")
    if not tokens(table["from"]) or tokens(table["from"]) == tokens(table["to"]):
        raise Mistake("the entry changes nothing")
    return {"where": "", "suites": (), **table}


def site(part, source, what, entry):
    try:
        entry = as_table(entry)
        before, after, where = entry.pop("from"), entry.pop("to"), entry.pop("where")
        name = id_of(source.file, *(" ".join(tokens(t)) for t in (before, after, where) if t))
        mutant = Mutant(part, source.file, name, what, tuple(entry.pop("suites")), **entry)
        return _site(mutant, source, before, after, where)
    except Mistake as mistake:
        raise Mistake(f"{what}: {mistake}") from mistake


def _site(mutant, source, before, after, where):
    match, text = only_match(before, source.text, areas(source, where)), source.text
    if raw := raw_literal_around(match):  # switched as a whole
        changed = text[raw.start():match.start()] + after + text[match.end():raw.end()]
        return Site(raw.start(), raw.end(), "raw string", changed, mutant)
    if is_in_literal(text, match.start()) or is_in_literal(text, match.end()):
        raise Mistake("a part of a string")
    if not (is_whole(before) and is_whole(after)):
        raise Mistake("neither statements nor an expression")
    changed = " ".join(after.split())  # in one line: errors keep the original line numbers
    return Site(match.start(), match.end(), form_of(match[0]), changed, mutant)
