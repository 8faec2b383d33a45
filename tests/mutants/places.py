"""Finds what simple mutants change in a function: statements, conditions and comparisons. A place is a pair of the tokens'
numbers, [begin, end)."""
from cpp import PAIRS, is_word

BEFORE_BLOCK = {")", "]", "const", "noexcept", "mutable", "else", "try", "do"}
DECLARING = {"const", "constexpr", "static", "auto", "using", "struct", "class", "enum", "static_assert"}
NO_TYPES = {"return", "co_return", "co_await", "throw", "delete", "goto"}
AT_COMPILE_TIME = {"constexpr", "static_assert", "noexcept", "decltype", "requires", "sizeof"}
BETWEEN_EXPRESSIONS = {";", ",", "?", ":", "=", "+=", "-=", "|=", "&=", "return", "co_return", "throw", "else", "case"}
OTHER_BOUND = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
COMPARISONS = {"==", "!=", *OTHER_BOUND}


class Statements:
    """The statements of a body, and of the lambdas and local classes in it."""

    def __init__(self, code, body):
        self.code = code
        self.begins, self.braces = set(), set()  # of all statements and blocks
        self.all = []  # without those that declare something: a switch would hide it from what follows
        self._inside(body.begin, body.opening)
        self._block(body.opening)

    def _block(self, i):
        """Reads the block that opens there. Returns what follows it."""
        end = self.code.partner[i]
        self.braces |= {i, end}
        i += 1
        while i < end:
            i = self._statement(i)
        return end + 1

    def _statement(self, begin):
        self.begins.add(begin)
        code, i = self.code, begin
        if code.has(i, "{"):
            return self._block(i)
        if code.has(i, "case", "default"):
            while not code.has(i, ":"):
                i += 1
            return i + 1
        if code.has(i, "if", "for", "while", "switch"):
            i = self._controlled(i)
        elif code.has(i, "try"):
            i = self._block(i + 1)
            while code.has(i, "catch"):
                i = self._block(code.partner[i + 1] + 1)
        else:
            i = self._simple(self._statement(i + 1) if code.has(i, "do") else i)
            if self._declares(begin):
                return i
        self.all.append((begin, i))
        return i

    def _controlled(self, i):
        """Reads if, for, while or switch, with what it controls."""
        code = self.code
        i += 2 if code.has(i + 1, "constexpr") else 1
        self._inside(i + 1, code.partner[i])
        i = code.partner[i] + 1
        while code.has(i, "["):  # [[unlikely]]
            i = code.partner[i] + 1
        i = self._statement(i)
        return self._statement(i + 1) if code.has(i, "else") else i

    def _simple(self, i):
        """Up to the semicolon."""
        while not self.code.has(i, ";", "}"):
            i = self._part(i)
        return i + 1 if self.code.has(i, ";") else i

    def _inside(self, i, end):
        while i < end:
            i = self._part(i)

    def _part(self, i):
        """Reads a token, or what is in the brackets that open there."""
        code = self.code
        if code.has(i, "{") and (code.has(i - 1, *BEFORE_BLOCK) or self._follows_type_of_lambda(i)):
            return self._block(i)
        if code.has(i, *PAIRS):
            self._inside(i + 1, code.partner[i])
            return code.partner[i] + 1
        return i + 1

    def _follows_type_of_lambda(self, i):
        while is_word(self.code.tokens[i - 1]) or self.code.has(i - 1, "::", "<", ">", "*", "&", ","):
            i -= 1
        return self.code.has(i - 1, "->") and self.code.has(i - 2, ")", "mutable", "noexcept")

    def _declares(self, i):
        """Whether the statement begins with two words, or with a type and a word."""
        code = self.code
        if code.has(i, *DECLARING, *NO_TYPES):
            return code.has(i, *DECLARING)
        while is_word(code.tokens[i]) or code.has(i, "::"):
            i += 1
            if code.has(i, "<") and not code.is_spaced(i):
                i = code.after_angles(i)
            name = i + 1 if code.has(i, "&", "*", "&&") and not code.is_spaced(i) else i
            if is_word(code.tokens[name]) and not code.has(i - 1, "::"):
                return True
        return False


class Expressions:
    """The conditions of a body, and its comparisons of order."""

    def __init__(self, code, body, statements):
        self.code, self.statements = code, statements
        self.conditions = {}  # the places (a dictionary keeps their order, and each once)
        self.bounds = {}  # the comparisons of order, each with the operator's number
        self._split(body.begin, body.end, "")

    def _split(self, i, end, keyword):
        """Reads the expressions in [i, end). The keyword is what is before the brackets around them."""
        code, begin, semicolons = self.code, i, 0
        while i < end:
            if i in self.statements.begins:
                self._expression(begin, i, False)
                begin = i
            if code.has(i, *AT_COMPILE_TIME):
                i = begin = self._after_constant(i)
            elif i in self.statements.braces or code.has(i, *BETWEEN_EXPRESSIONS):
                self._expression(begin, i, code.has(i, "?") or (keyword == "for" and semicolons == 1))
                semicolons += code.has(i, ";")
                i = begin = i + 1
            else:
                i = self._part(i)
        self._expression(begin, end, keyword in ("if", "while") and not code.has(begin - 1, "="))

    def _part(self, i):
        """Reads a token, or what is in the brackets that open there."""
        code = self.code
        if code.has(i, *PAIRS):
            self._split(i + 1, code.partner[i], code.tokens[i - 1])
        return self._after(i)

    def _after(self, i):
        code = self.code
        if code.has(i, "<") and not code.is_spaced(i):
            return code.after_angles(i)
        return code.partner[i] + 1 if code.has(i, *PAIRS) else i + 1

    def _after_constant(self, i):
        """What follows the part that is evaluated at compile time, and cannot be switched."""
        code = self.code
        if code.has(i + 1, "("):
            return code.partner[i + 1] + 1
        if code.has(i, "constexpr"):
            while not code.has(i, ";"):
                i = self._after(i)
            return i
        return i + 1

    def _expression(self, begin, end, decides):
        """Notes the condition, if it decides something or its form shows that it is one, and its operands."""
        code = self.code
        while begin < end and code.has(begin, "(") and code.partner[begin] == end - 1:
            begin, end = begin + 1, end - 1
        operators = self._operators(begin, end)
        for kind in ("||", "&&"):
            if limits := [i for i in operators if code.has(i, kind)]:
                self.conditions[begin, end] = None
                for first, last in zip([begin, *(i + 1 for i in limits)], [*limits, end]):
                    self._expression(first, last, True)
                return
        if begin < end and (decides or operators or code.has(begin, "!")):
            self.conditions[begin, end] = None
        if operators and code.has(operators[0], *OTHER_BOUND):
            self.bounds[begin, end] = operators[0]

    def _operators(self, i, end):
        """The logical operators and comparisons, except for those in brackets."""
        found = []
        while i < end:
            if self.code.has(i, "||", "&&", *COMPARISONS) and self.code.is_spaced(i):
                found.append(i)
            i = self._after(i)
        return found
