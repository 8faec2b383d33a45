"""Finds the functions of a file."""
from dataclasses import dataclass

from cpp import PAIRS, is_word

NO_NAMES = {"requires", "alignas", "decltype", "explicit", "noexcept"}  # though a parenthesis may follow
ACCESS = {"public", "private", "protected"}
UNNAMED = {"namespace", "extern"}
SCOPES = {"class", "struct", "union", *UNNAMED}


@dataclass(frozen=True)
class Body:
    """A function's tokens: from what follows its parameters to the brace that ends it."""
    begin: int
    opening: int  # the brace
    end: int


class _Declaration:
    """Reads a declaration. If it is a namespace or a class, adds its functions to those found."""

    def __init__(self, code, scope, found):
        self.code, self.scope, self.found = code, scope, found
        self.name = ""  # the last one that was read, with what qualifies it
        self.words = set()  # that were read
        self.function = ""
        self.begin = 0  # what follows the function's parameters

    def read(self, i):
        """Returns what follows the declaration."""
        code = self.code
        while not code.has(i, ";", "}"):
            if code.has(i, ":") and self.name in ACCESS:
                break
            if code.has(i, "=") and not self.function:
                return self._after_value(i)
            if code.has(i, "{") and (self.function or self.words & SCOPES):  # otherwise it is an initializer
                return self._braces(i)
            i = self._part(i)
        return i + 1

    def _after_value(self, i):
        while not self.code.has(i, ";"):
            i = self.code.partner[i] + 1 if self.code.has(i, *PAIRS) else i + 1
        return i + 1

    def _braces(self, i):
        end = self.code.partner[i]
        if self.function:
            name = "::".join([*self.scope, self.function])
            self.found.setdefault(name, []).append(Body(self.begin, i, end))
        elif "enum" not in self.words:
            scope = self.scope if self.words & UNNAMED else [*self.scope, self.name]
            _read(self.code, i + 1, end, scope, self.found)
        return end + 1

    def _part(self, i):
        """Reads a token, or what is in the brackets that open there."""
        code = self.code
        if self.function:
            return self._initializers(i) if code.has(i, ":") else code.partner[i] + 1 if code.has(i, *PAIRS) else i + 1
        if code.has(i, "operator"):
            return self._operator(i)
        if code.has(i, "(") and self.name and self.name not in NO_NAMES:
            self.function, self.begin = self.name, code.partner[i] + 1
            return self.begin
        if code.has(i, *PAIRS):
            return code.partner[i] + 1
        if code.has(i, "<"):
            return code.after_angles(i)  # the name may go on: map<key>::insert
        if code.has(i, ":"):  # the class's bases follow
            while not code.has(i, "{", ";"):
                i += 1
            return i
        if not code.has(i, "final"):
            self._name(code.tokens[i])
        return i + 1

    def _name(self, token):
        goes_on = token == "::" or self.name.endswith(("::", "~"))
        self.name = (self.name if goes_on else "") + token
        self.words.add(token)

    def _operator(self, i):
        """Reads the name of an operator."""
        end = i + 3 if self.code.has(i + 1, "(") else i + 1
        while not self.code.has(end, "("):
            end += 1
        self._name(self.code.in_one_line(i, end))
        return end

    def _initializers(self, i):
        """Up to the constructor's body."""
        code = self.code
        while not code.has(i, "{") or code.has(i - 1, ">") or is_word(code.tokens[i - 1]):
            i = code.after_angles(i) if code.has(i, "<") else code.partner[i] + 1 if code.has(i, *PAIRS) else i + 1
        return i


def _read(code, i, end, scope, found):
    while i < end:
        i = _Declaration(code, scope, found).read(i)


def bodies(code):
    """The bodies of a file's functions, by name: core::cancel, without namespaces. Those of overloads are together."""
    found = {}
    _read(code, 0, len(code.tokens), [], found)
    return found
