"""Simple mutants: each is named by a function, an operator, and a word of the code that the operator changes."""
import functools
import re

from mutants import Mistake, Mutant, Site, id_of
from places import OTHER_BOUND, Expressions, Statements

WORD = r"\w+|&&|\|\|"
SHOWN = 100  # characters of code in a report


class Function:
    """What can be changed in all bodies of that name."""

    def __init__(self, source, name):
        self.code, self.name = source.code, name
        if name not in source.bodies:
            raise Mistake(f"there is no function {name}()")
        statements, conditions, self.bounds = [], [], {}
        for body in source.bodies[name]:
            found = Statements(self.code, body)
            statements += found.all
            expressions = Expressions(self.code, body, found)
            conditions += expressions.conditions
            self.bounds |= expressions.bounds
        conditions = self._by_word(conditions)
        self.places = {"drop": self._by_word(statements), "true": conditions, "false": conditions,
                       "bound": self._by_word(self.bounds)}

    def _by_word(self, places):
        """The places, in their order, by each word that is in no smaller place."""
        smallest = {}
        for place in sorted(places, key=lambda p: p[0] - p[1]):
            smallest |= dict.fromkeys(range(*place), place)
        by_word = {}
        for i, place in sorted(smallest.items()):
            if re.fullmatch(WORD, self.code.tokens[i]):
                by_word.setdefault(self.code.tokens[i], {})[place] = None
        return {word: list(own) for word, own in by_word.items()}

    def place(self, operator, name):
        """What is named as WORD, or as WORD/NUMBER if several places have that word."""
        if operator not in self.places:
            raise Mistake(f"the operator is none of {', '.join(self.places)}")
        word, number = re.fullmatch(r"(.+?)(?:/(\d+))?", name).groups()
        places = self.places[operator].get(word, [])
        if number and len(places) > 1 and 1 <= int(number) <= len(places):
            return places[int(number) - 1]
        if len(places) != 1 or number:
            raise Mistake(f"{len(places)} places have that word")
        return places[0]

    def names(self, operator):
        """A name for each place, and the code there."""
        names = {}
        for word, places in self.places[operator].items():
            for number, place in enumerate(places, 1):
                names.setdefault(place, []).append(word if len(places) == 1 else f"{word}/{number}")
        for place, own in sorted(names.items()):
            yield min(own, key=lambda name: (not name[0].isalpha(), "/" in name)), self.shown(place)

    def shown(self, place):
        code = self.code.in_one_line(*place)
        return code if len(code) <= SHOWN else code[:SHOWN] + "..."

    def change(self, operator, place):
        """The form of the code there, what replaces it, and what a report says."""
        if operator == "drop":
            return "statement", "", f"without {self.shown(place)}"
        if operator == "bound":
            i = self.bounds[place]
            changed = " ".join([self.code.in_one_line(place[0], i), OTHER_BOUND[self.code.tokens[i]],
                                self.code.in_one_line(i + 1, place[1])])
            return "expression", changed, f"{changed}, not {self.code.tokens[i]}"
        return "condition", operator, f"{self.shown(place)} is {operator}"


@functools.cache
def function_of(source, name):
    return Function(source, name)


def split(text):
    """The operator and the word of each mutant in `OPERATOR WORD ..., OPERATOR WORD ...`."""
    for operator, *words in map(str.split, text.split(",")):
        yield from ((operator, word) for word in words)


def site(part, source, name, operator, word):
    function = function_of(source, name)
    try:
        place = function.place(operator, word)
    except Mistake as mistake:
        raise Mistake(f"{name}, {operator} {word}: {mistake}") from mistake
    form, changed, what = function.change(operator, place)
    mutant = Mutant(part, source.file, id_of(source.file, name, operator, word), f"{name}(): {what}")
    return Site(source.code.begins[place[0]], source.code.ends[place[1] - 1], form, changed, mutant)
