"""How many steps a pattern takes over a text: what Python's engine does, done slowly enough to be counted.

It reads the tree that `re` itself makes of a pattern, and tries in the same order: greedy repeats from the longest, one
start after another. A step is one letter compared. Time says less: it depends on the machine and on who else uses it.
"""

import re
from re import _constants as names, _parser as parser

_SPACE = " \t\n\r\f\v"


class Steps:
    """One search over one text. `count` is the number of letters compared."""

    def __init__(self, pattern, text):
        self.count = 0
        self._text = text if isinstance(text, str) else text.decode("latin-1")
        source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        self._tree = parser.parse(source, pattern.flags)
        self._flags = pattern.flags

    def run(self):
        """Find every match, as `sub` and `finditer` do."""
        start = 0
        while start <= len(self._text):
            end = self._match(self._tree, 0, start, lambda place: place)
            start = start + 1 if end is None or end == start else end
        return self.count

    def run_from_start(self):
        """Match the whole text once, as `fullmatch` does."""
        self._match(self._tree, 0, 0, lambda place: place if place == len(self._text) else None)
        return self.count

    def _match(self, tree, index, place, then):
        if index == len(tree):
            return then(place)
        op, value = tree[index]

        def follow(reached):
            return self._match(tree, index + 1, reached, then)

        if op in (names.LITERAL, names.NOT_LITERAL, names.ANY, names.IN):
            return follow(place + 1) if self._fits(op, value, place) else None
        if op in (names.MAX_REPEAT, names.POSSESSIVE_REPEAT):
            return self._repeat(*value, place, follow, backs=op is names.MAX_REPEAT)
        if op is names.SUBPATTERN:
            return self._match(value[-1], 0, place, follow)
        if op is names.ATOMIC_GROUP:
            end = self._match(value, 0, place, lambda reached: reached)
            return None if end is None else follow(end)
        if op is names.BRANCH:
            ends = (self._match(branch, 0, place, follow) for branch in value[1])
            return next((end for end in ends if end is not None), None)
        if op is names.AT:
            return follow(place) if self._stands_at(value, place) else None
        if op in (names.ASSERT, names.ASSERT_NOT):
            way, inside = value
            begin = place if way > 0 else place - inside.getwidth()[0]
            found = None if begin < 0 else self._match(inside, 0, begin, lambda reached: reached)
            return follow(place) if (found is not None) is (op is names.ASSERT) else None
        raise NotImplementedError(op)

    def _repeat(self, least, most, inside, place, follow, *, backs):
        ends = [place]
        while len(ends) <= (len(self._text) + 1 if most is names.MAXREPEAT else most):
            end = self._match(inside, 0, ends[-1], lambda reached: reached)
            if end is None or end == ends[-1]:
                break
            ends.append(end)
        for end in reversed(ends[least:] if backs else ends[least:][-1:]):
            found = follow(end)
            if found is not None:
                return found
        return None

    def _fits(self, op, value, place):
        self.count += 1
        if place >= len(self._text):
            return False
        letter = self._text[place]
        if op is names.ANY:
            return letter != "\n" or bool(self._flags & re.DOTALL)
        if op is names.NOT_LITERAL:
            return ord(letter) != value
        if op is names.LITERAL:
            return self._same(letter, value)
        items = [item for item in value if item[0] is not names.NEGATE]
        return any(self._in_class(letter, *item) for item in items) is (len(items) == len(value))

    def _same(self, letter, code):
        return ord(letter) == code or (bool(self._flags & re.IGNORECASE) and letter.lower() == chr(code).lower())

    def _in_class(self, letter, op, value):
        if op is names.LITERAL:
            return self._same(letter, value)
        if op is names.RANGE:
            return value[0] <= ord(letter) <= value[1]
        found = {
            names.CATEGORY_DIGIT: letter.isdigit(),
            names.CATEGORY_SPACE: letter in _SPACE,
            names.CATEGORY_NOT_SPACE: letter not in _SPACE,
            names.CATEGORY_WORD: letter.isalnum() or letter == "_",
        }
        return found[value]

    def _stands_at(self, where, place):
        if where in (names.AT_BEGINNING, names.AT_BEGINNING_STRING):
            return place == 0
        if where in (names.AT_END, names.AT_END_STRING):
            return place == len(self._text)
        raise NotImplementedError(where)
