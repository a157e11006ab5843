"""Who is certain by replaying a method on a public order: a slow attack that shares no code with the check.

The attacker has the release, everybody's quasi-identifiers and knows the method. Along a curve with l = 2 whoever is
next and is passed over has the secret of the first member of the pair (Ghinita et al. 2007: a group takes the next
record whose secret it lacks). Tight ends of intervals name the members of a pair. Equalities are chained by
union-find and joined with what every pair publishes (DEFINITIONS, part 8.2).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

Person = tuple[float, ...]
"""The quasi-identifiers of somebody."""


class Chain:
    """Union-find over people with one and the same secret."""

    def __init__(self, n: int) -> None:
        self.above = list(range(n))

    def find(self, one: int) -> int:
        while self.above[one] != one:
            one = self.above[one]
        return one

    def join(self, one: int, other: int) -> None:
        self.above[self.find(one)] = self.find(other)


def interval(cell: object) -> tuple[float, float]:
    """The least and the largest number that a cell shows."""
    text = str(cell)
    if text.startswith("["):
        low, high = text.strip("[])").split(",")
        return float(low), float(high)
    low, _, high = text.partition(" to ")
    return float(low), float(high or low)


def named_pairs(
    rows: Iterable[Mapping[str, object]], people: Sequence[Person], heads: Sequence[str], secret: str
) -> list[tuple[list[int], list[str]]]:
    """The classes of two whose members their ends name, with the secrets of the two."""
    at: dict[Person, list[int]] = defaultdict(list)
    for number, one in enumerate(people):
        at[one].append(number)
    classes: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows:
        classes[tuple(str(row[name]) for name in heads)].append(str(row[secret]))
    out = []
    for cells, secrets in classes.items():
        if len(secrets) != 2:
            continue
        ends = [interval(cell) for cell in cells]
        found = set()
        for code in range(2 ** len(ends)):
            one = tuple(end[(code >> j) & 1] for j, end in enumerate(ends))
            other = tuple(end[1 - ((code >> j) & 1)] for j, end in enumerate(ends))
            for x in at.get(one, []):
                found |= {(min(x, y), max(x, y)) for y in at.get(other, []) if x != y}
        if len(found) == 1:
            out.append((list(found.pop()), secrets))
    return out


def certain_by_the_curve(
    pairs: list[tuple[list[int], list[str]]], people: Sequence[Person], curve: Sequence[int]
) -> dict[int, str]:
    """Whose secret the attacker knows, and which it is. curve: people in the method's public order."""
    place = {who: at for at, who in enumerate(curve)}
    times = Counter(people)
    ordered = [(sorted(two, key=place.__getitem__), secrets) for two, secrets in pairs]
    ordered.sort(key=lambda pair: place[pair[0][0]])
    begins = {who: place[two[0]] for two, _ in ordered for who in two}
    same = Chain(len(people))
    for (first, second), _ in ordered:
        for who in curve[place[first] + 1 : place[second]]:
            if begins.get(who, -1) > place[first] and times[people[who]] == 1:  # in a later pair, so it was passed over
                same.join(first, who)
    could: dict[int, set[str]] = {}
    for two, secrets in ordered:
        for one in two:
            could[same.find(one)] = could.get(same.find(one), set(secrets)) & set(secrets)
    while True:
        before = sum(map(len, could.values()))
        for (first, second), (one, other) in ordered:
            for mine, partner in ((first, second), (second, first)):
                if len(left := could[same.find(mine)]) == 1 and one != other:
                    could[same.find(partner)] -= left
        if sum(map(len, could.values())) == before:
            break
    known = {who: could[same.find(who)] for two, _ in ordered for who in two}
    return {who: next(iter(left)) for who, left in known.items() if len(left) == 1}
