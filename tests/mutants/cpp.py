"""The tokens of C++."""
import re

TOKEN = re.compile(r"""(?P<skipped>//[^\n]*|/\*.*?\*/|^[ ]*\#(?:\\\n|[^\n])*)"""  # comments, and the preprocessor's lines
                   r"""|R"(?P<raw>\w*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|\w+(?:'\w+)*"""
                   r"|&&|\|\||<=>|[<>=!+\-*/%&|^]=|<<|>>|->|::|\+\+|--|\S", re.DOTALL | re.MULTILINE)
PAIRS = {"(": ")", "[": "]", "{": "}"}


def is_word(token):
    return re.match(r"\w", token) is not None


class Code:
    """The tokens of a file, without comments and the preprocessor's lines."""

    def __init__(self, text):
        self.text = text
        found = [m for m in TOKEN.finditer(text) if m["skipped"] is None]
        self.tokens = [m[0] for m in found]
        self.begins, self.ends = [m.start() for m in found], [m.end() for m in found]
        self.partner = self._partners()  # of each bracket

    def _partners(self):
        partner, open_ones = {}, []
        for i, token in enumerate(self.tokens):
            if token in PAIRS:
                open_ones.append(i)
            elif token in PAIRS.values() and open_ones:
                partner[i] = open_ones.pop()
                partner[partner[i]] = i
        return partner

    def has(self, i, *tokens):
        return 0 <= i < len(self.tokens) and self.tokens[i] in tokens

    def is_spaced(self, i):
        """Whether white space surrounds that token: a binary operator, no reference or bracket of a template."""
        return self.text[self.begins[i] - 1].isspace() and self.text[self.ends[i]].isspace()

    def after_angles(self, i):
        """What follows the template's arguments that begin there."""
        depth = 0
        while True:
            depth += {"<": 1, ">": -1, ">>": -2}.get(self.tokens[i], 0)
            i = self.partner[i] + 1 if self.tokens[i] in PAIRS else i + 1
            if depth <= 0:
                return i

    def in_one_line(self, begin, end):
        """The tokens in [begin, end), without comments and line breaks."""
        parts = self.tokens[begin:begin + 1]
        for i in range(begin + 1, end):
            parts += [" "] * (self.ends[i - 1] != self.begins[i]) + [self.tokens[i]]
        return "".join(parts)
