"""Checks all rows of a person together, with the original (DEFINITIONS 8.1).

Somebody who knows the quasi-identifiers of all of a person's rows finds for each row the classes that could hold it.
What the rows leave possible together is what the person can have; whoever could have all of the rows could be the
person. Where all rows of a person are in one class, what holds of the class holds of the person, but for one thing: a
class shows how many rows have every secret, and how many rows a person has is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.engines.finding import Cover, row_classes
from noren.engines.records import QUASI
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from noren.methods.mechanism.sight import counted
from noren.methods.whole_people import published_people
from noren.models import KAnonymity
from noren.models.base import Model
from noren.models.class_check import ClassModel
from noren.models.histograms import Histograms
from noren.models.verdict import Verdict
from noren.ragged import chosen, first_of, numbered_sets, offsets_of, owners
from noren.release.published import Published
from noren.release.release import Release
from noren.release.store import PeopleStore
from noren.statements import Statement

EXCEPTIONS = 0.05
"""A secret is constant if at most this share of the people with several rows has several values of it."""
AT_ONCE = 1 << 22
"""Beliefs that are worked out at once."""
JUDGED = "all rows of a person are checked together"
INSTEAD = (
    'Use [method] name = "mondrian", which keeps all rows of a person in one class. If that is not enough, publish '
    "equally many rows of everybody, or fewer rows of people with many."
)
UNSETTLED = "it is not certain in which classes the rows of a person are"


def judge_people(
    verdicts: Sequence[Verdict],
    published: Published,
    table: Records,
    requirements: Sequence[Model],
    *,
    together: bool = False,
) -> list[Verdict]:
    """Return the verdicts about classes, extended to people whose rows are all read together.

    table: the original's rows, each with its person, of everybody who may be in the release. Where the store says whose
    row each is, only people whose rows are in several classes are looked for in all of them. `together`: the release is
    of a method that keeps all rows of a person in one class.
    """
    if table.people is None:
        return list(verdicts)
    people = _People(published, table, together)
    models = {(one.model, name): one for one in requirements for name in one.on}
    out = []
    for verdict in verdicts:
        model = models.get((verdict.model, verdict.column))
        if verdict.model == KAnonymity.model_fields["model"].default:
            sized = next((one for one in requirements if isinstance(one, KAnonymity) and not one.on), None)
            found = None if sized is None or verdict.required != sized.k else people.count_owners(sized.k)
        elif isinstance(model, ClassModel) and _is_read(published.column(verdict.column)):
            found = people.judge_secret(model, published.column(verdict.column), requirements)
        else:
            found = None
        safer = model is None or model.higher_is_safer
        out.append(verdict if found is None else _settle_verdict(verdict, found, people.known, safer))
    return out


def published_rows(table: Records, keep: NDArray[np.bool_]) -> Records:
    """Return the published rows, each with the number of its person."""
    assert table.people is not None
    rows = np.flatnonzero(keep)
    return replace(table.taken(rows), people=table.people[rows])


def advice(verdicts: Sequence[Verdict]) -> str | None:
    """Return advice if people with several rows break a requirement."""
    return INSTEAD if any(v.holds is not True and v.statement.startswith(JUDGED) for v in verdicts) else None


def class_methods(release: Release) -> list[type[ClassMethod]]:
    """Return the methods of a release that form classes."""
    names = [name for one in release.manifest.methods for name in (one.chosen or one.name).split(" + ")]
    kinds = [METHODS[name] for name in names if name in METHODS]
    return [kind for kind in kinds if issubclass(kind, ClassMethod)]


def keeps_together(release: Release) -> bool:
    """Return whether a release's rows are not people, and its method keeps all rows of a person in one class."""
    read = any(one.terms is not None for one in release.statements)  # terms are read row by row
    whole = any(kind.whole_people for kind in class_methods(release))
    return whole and not read and not release.manifest.rows_are_people


@dataclass(frozen=True)
class _Found:
    """The result of a requirement for the checked people."""

    people: int
    achieved: float
    breaches: int
    settles: bool = True


def _settle_verdict(verdict: Verdict, found: _Found, known: bool, higher_is_safer: bool) -> Verdict:
    if not found.people:
        return verdict
    worse = min if higher_is_safer else max
    holds = None if not found.settles else found.breaches == 0
    if known and verdict.holds is False:
        holds = False
    text = JUDGED if found.settles else f"{JUDGED}; {UNSETTLED}"
    if found.breaches:
        text = f"{text}: {found.breaches:,} people fall short"
    return replace(
        verdict,
        achieved=worse(found.achieved, verdict.achieved) if known else found.achieved,
        holds=holds,
        basis="the original",
        breaches=max(found.breaches, verdict.breaches if known else 0),
        statement=text,
    )


def _is_read(statement: Statement) -> bool:
    return statement.design is None and statement.terms is None and statement.lists_values


class _People:
    """All people of a release, with the classes that could contain their rows."""

    def __init__(self, published: Published, table: Records, together: bool) -> None:
        assert table.people is not None
        self.published = published
        self.table = table
        self.people = table.people
        self.n = int(table.people.max(initial=-1)) + 1
        self.known = isinstance(published.store, PeopleStore)
        self.together = together
        self.rows = np.bincount(table.people, minlength=self.n)
        self.quasi = [one for one in published.statements if one.role in QUASI]

    # ------------------------------------------------------------------ classes of rows

    @cached_property
    def row_class(self) -> NDArray[np.int64]:
        """Return the class of every published row."""
        return row_classes(self.published, self.quasi)

    @cached_property
    def whole(self) -> NDArray[np.int64]:
        """Return the class of everybody whose rows are all in one; -1 for others, and if unknown."""
        out = np.full(self.n, -1, np.int64)
        if not self.known:
            return out
        whose = published_people(self.published)
        pairs = np.unique(np.stack([whose, self.row_class], axis=1), axis=0)
        once = np.bincount(pairs[:, 0], minlength=self.n)[pairs[:, 0]] == 1
        out[pairs[once, 0]] = pairs[once, 1]
        return out

    @cached_property
    def searched_people(self) -> NDArray[np.int64]:
        """Return the people who must be searched for in all classes that could contain their rows."""
        return np.flatnonzero((self.whole < 0) & (self.rows > 1) if self.known else self.rows > 0)

    # ------------------------------------------------------------------ which classes cover whom

    @cached_property
    def cover(self) -> _Cover:
        return _Cover.of(self)

    @cached_property
    def lost(self) -> bool:
        """Return whether more people than were suppressed have rows that no class could contain."""
        return self.cover.count_uncovered(self.searched_people) > (0 if self.known else self.published.suppressed)

    def count_owners(self, k: int) -> _Found:
        """Return a lower bound of how many people could have all rows of somebody."""
        if not len(self.searched_people):
            return _Found(0, 0.0, 0)
        found = self.cover.owners(self.searched_people, k)
        found = found[found > 0]
        return _Found(
            len(self.searched_people), float(found.min(initial=self.n)), int((found < k).sum()), not self.lost
        )

    def judge_secret(self, model: ClassModel, secret: Statement, requirements: Sequence[Model]) -> _Found | None:
        """Check a requirement on a secret for people whose rows together could disclose more than each by itself."""
        if secret.is_class and not self.known:
            return None
        truth = self.table.published(secret)
        own, constant = self._constant(truth)
        counts = self._by_counts(model, secret, own) if constant else _Found(0, 0.0, 0)
        if not len(self.searched_people) or secret.is_class:  # a group holds whole people
            return counts
        several = self._judge_intersections(model, secret, own, constant)
        if not counts.people or not counts.breaches:
            return several
        return replace(several, breaches=several.breaches + counts.breaches)

    def _constant(self, truth: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
        """Return everybody's value, -1 for people with several; and whether the secret is constant."""
        low, high = np.full(self.n, np.iinfo(np.int64).max), np.full(self.n, -1)
        np.minimum.at(low, self.people, truth)
        np.maximum.at(high, self.people, truth)
        own = np.where(low == high, high, -1)
        several = self.rows > 1
        return own, bool((own[several] < 0).sum() <= EXCEPTIONS * max(1, several.sum()))

    # ------------------------------------------------------------------ one class: how many rows have what

    def _by_counts(self, model: ClassModel, secret: Statement, own: NDArray[np.int64]) -> _Found:
        """Find the people to whom the numbers of rows in their class leave too few possible values."""
        place = self.whole
        if secret.is_class:
            cells = self.published.cells([secret.name])[secret.name]
            place = np.full(self.n, -1, np.int64)
            place[published_people(self.published)] = secret.check_cells(cells)
        who = np.flatnonzero((place >= 0) & (own >= 0) & (self.rows > 0))
        if not len(who):
            return _Found(0, 0.0, 0)
        left = possible_by_counts(place[who], self.rows[who], own[who])
        if secret.nodes is not None:  # a general value stands for all under it
            left = np.maximum(left, _least_leaves(self, secret))
        asked = model.parameters().get("l", model.parameters().get("p"))
        held = np.bincount(place[who][_firsts(place[who], own[who])], minlength=int(place.max()) + 1)[place[who]]
        needed = np.full(len(who), ceil(float(asked)) if asked is not None else 2)
        short = left < (needed if asked is not None else np.minimum(needed, held))
        return _Found(len(who), float(left.min()), int(short.sum())) if short.any() else _Found(0, 0.0, 0)

    # ------------------------------------------------------------------ several classes: all that could hold a row

    def _judge_intersections(
        self, model: ClassModel, secret: Statement, own: NDArray[np.int64], constant: bool
    ) -> _Found:
        cells = self.published.cells([secret.name])[secret.name]
        classes = int(self.row_class.max(initial=-1)) + 1
        counts = counted(secret, cells, self.row_class, classes)
        total = counts.sum(axis=0)
        overall = np.asarray(total / max(1.0, float(total.sum())))
        figures, breaches = [], 0
        together = self.together and not self.known
        for who, found in self.cover.beliefs(self.searched_people, counts, together):
            here = found.sum(axis=1) > 0
            some, belief = who[here], found[here]
            if not constant:  # every row is judged by itself; together they must not leave one value of several
                alone = ((belief > 0).sum(axis=1) < 2) & (own[some] >= 0) & (self.rows[some] > 1)
                breaches += int((alone & self.cover.each_leaves_several(some, counts, together)).sum())
                continue
            if not len(some):
                continue
            line, value = np.nonzero(belief)
            starts = offsets_of(np.bincount(line, minlength=len(some)))
            n = np.full(len(some), 1 << 20)  # a belief is judged, not a number of people
            part = Histograms(n, starts, value.astype(np.int64), belief[line, value] * n[line])
            figure, good = model.judge_histograms(part, secret, overall)
            figures.append(np.asarray(figure, np.float64))
            breaches += int((~good).sum())
        if not figures:
            return _Found(len(self.searched_people), 0.0 if breaches else model.required, breaches, not self.lost)
        every = np.concatenate(figures)
        worst = float(every.min() if model.higher_is_safer else every.max())
        alike = bool((self.rows == self.rows.max()).all())
        settles = not self.lost and (self.known or not breaches or not self.together or alike)
        return _Found(len(self.searched_people), worst, breaches, settles)


@dataclass(frozen=True)
class _Cover:
    """The sets of classes that could contain everybody's rows."""

    n: int
    classes: int
    set_bounds: NDArray[np.int64]
    set_classes: NDArray[np.int64]
    """Every different set of classes."""
    bounds: NDArray[np.int64]
    sets: NDArray[np.int64]
    """The different sets of everybody's rows, person by person."""

    @classmethod
    def of(cls, people: _People) -> _Cover:
        cover = Cover.find(people.published, people.table, people.quasi)
        offsets = offsets_of(np.bincount(cover.pair_item, minlength=cover.items))
        number = numbered_sets(offsets, cover.pair_class)
        which = first_of(number)
        set_bounds, entries = chosen(offsets, which)
        pairs = np.unique(people.people * np.int64(len(which)) + number[cover.item])
        bounds = offsets_of(np.bincount(pairs // len(which), minlength=people.n))
        return cls(people.n, cover.classes, set_bounds, cover.pair_class[entries], bounds, pairs % len(which))

    def joint(self, who: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the classes that could contain all rows of some people: offsets, and the classes."""
        bounds, at = chosen(self.bounds, who)
        lists, entries = chosen(self.set_bounds, self.sets[at])
        key = np.repeat(owners(bounds), np.diff(lists)) * np.int64(self.classes) + self.set_classes[entries]
        pair, times = np.unique(key, return_counts=True)
        pair = pair[times == np.diff(bounds)[pair // self.classes]]
        return offsets_of(np.bincount(pair // self.classes, minlength=len(who))), pair % self.classes

    def _parts(self, who: NDArray[np.int64], width: int) -> Iterator[NDArray[np.int64]]:
        step = max(1, AT_ONCE // max(1, width))
        for begin in range(0, len(who), step):
            yield who[begin : begin + step]

    def beliefs(
        self, who: NDArray[np.int64], counts: NDArray[np.float64], together: bool
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield the beliefs about some people at a time: the product over their sets of classes.

        Where all rows are known to be in one class, what the classes say together that could hold all of them.
        """
        from scipy.sparse import csr_array

        for part in self._parts(who, 8 * counts.shape[1]):
            some = part
            if together:
                bounds, classes = self.joint(some)
                held = csr_array((np.ones(len(classes)), classes, bounds), shape=(len(some), self.classes))
                yield some, _shares(np.asarray(held @ counts))
                some = part[np.diff(bounds) == 0]
            if not len(some):
                continue
            bounds, at = chosen(self.bounds, some)
            place, pooled = self._pool_classes(at, counts)
            with np.errstate(divide="ignore"):
                logs = np.log(_shares(pooled))
            summed = np.add.reduceat(logs[place], bounds[:-1])
            highest = summed.max(axis=1, keepdims=True)
            yield some, _shares(np.exp(summed - np.where(np.isfinite(highest), highest, 0.0)))

    def each_leaves_several(
        self, who: NDArray[np.int64], counts: NDArray[np.float64], together: bool
    ) -> NDArray[np.bool_]:
        """Return whether each row of these people, by itself, leaves several values possible. Classes of one value are
        checked elsewhere, as are people with all rows in one class (`together`)."""
        bounds, at = chosen(self.bounds, who)
        place, held = self._pool_classes(at, counts)
        several = (held > 0).sum(axis=1) > 1
        out = np.logical_and.reduceat(several[place], bounds[:-1])
        return np.asarray(out & (np.diff(self.joint(who)[0]) == 0) if together else out)

    def _pool_classes(
        self, at: NDArray[np.int64], counts: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the combined contents of some sets of classes: the line of every position, and the lines."""
        from scipy.sparse import csr_array

        used, place = np.unique(self.sets[at], return_inverse=True)
        lists, entries = chosen(self.set_bounds, used)
        held = csr_array((np.ones(len(entries)), self.set_classes[entries], lists), shape=(len(used), self.classes))
        return place.ravel(), np.asarray(held @ counts)

    def owners(self, who: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Return how many people could have all rows of each of these people; at least k if it says k or more, and 0 if
        some row is in no class."""
        could = np.zeros(self.classes, np.int64)
        for some in self._parts(np.arange(self.n), 256):
            could += np.bincount(self.joint(some)[1], minlength=self.classes)
        out = np.zeros(len(who), np.int64)
        begin = 0
        for some in self._parts(who, 256):
            bounds, classes = self.joint(some)
            np.maximum.at(out, begin + owners(bounds), could[classes])
            begin += len(some)
        few = np.flatnonzero(out < k)
        out[few] = self._exactly(who[few])
        return out

    def count_uncovered(self, who: NDArray[np.int64]) -> int:
        """Return how many of these people have a row that no class could contain."""
        lost = np.zeros(self.n, bool)
        lost[owners(self.bounds)[(np.diff(self.set_bounds) == 0)[self.sets]]] = True
        return int(lost[who].sum())

    def _exactly(self, who: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count exactly, one by one, the people whose rows could be in a class of every set."""
        if not len(who):
            return np.zeros(0, np.int64)
        person = owners(self.bounds)
        of_set = np.argsort(self.sets, kind="stable")
        set_people = offsets_of(np.bincount(self.sets, minlength=len(self.set_bounds) - 1))
        by_class = np.argsort(self.set_classes, kind="stable")
        in_class = owners(self.set_bounds)[by_class]
        class_sets = offsets_of(np.bincount(self.set_classes, minlength=self.classes))
        held: dict[int, NDArray[np.int64]] = {}
        known: dict[tuple[int, ...], int] = {}

        def having(number: int) -> NDArray[np.int64]:
            if number not in held:
                classes = self.set_classes[self.set_bounds[number] : self.set_bounds[number + 1]]
                sets = np.unique(in_class[chosen(class_sets, classes)[1]])
                held[number] = np.unique(person[of_set[chosen(set_people, sets)[1]]])
            return held[number]

        out = np.zeros(len(who), np.int64)
        for i, one in enumerate(who.tolist()):
            mine = tuple(self.sets[self.bounds[one] : self.bounds[one + 1]].tolist())
            if mine not in known:
                found = having(mine[0])
                for number in mine[1:]:
                    found = np.intersect1d(found, having(number), assume_unique=True)
                known[mine] = len(found)
            out[i] = known[mine]
        return out


def possible_by_counts(classes: NDArray[np.int64], rows: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray:
    """Return a lower bound of the possible values for everybody, if a class shows how many rows have every value.

    A value is possible for a person if some others in the class have it who have as many rows together: then the two
    could have changed places. Only where too few have as many rows alone are sums looked at, class by class.
    """
    width, span = int(values.max(initial=0)) + 1, int(rows.max(initial=0)) + 1
    stratum = classes * np.int64(span) + rows
    pairs = np.unique(stratum * width + values) // width
    found, times = np.unique(pairs, return_counts=True)
    out = times[np.searchsorted(found, stratum)]
    held = np.unique(classes * np.int64(width) + values) // width
    every = np.bincount(held, minlength=int(classes.max(initial=-1)) + 1)[classes]
    mixed = np.unique(classes[out < every])
    order = np.argsort(classes, kind="stable")
    order = order[np.isin(classes[order], mixed)]
    for some in np.split(order, np.flatnonzero(np.diff(classes[order])) + 1) if len(order) else ():
        sums: dict[int, int] = {}
        for value, many in zip(values[some].tolist(), rows[some].tolist(), strict=True):
            reached = sums.get(value, 1)
            sums[value] = (reached | reached << many) & ((1 << span) - 1)
        for number in np.unique(rows[some]).tolist():
            ways = sum(reached >> number & 1 for reached in sums.values())
            out[some[rows[some] == number]] = ways
    return out


def _least_leaves(people: _People, secret: Statement) -> int:
    """Return the number of values of the narrowest published secret."""
    assert secret.nodes is not None
    cells = people.published.cells([secret.name])[secret.name]
    return int(secret.nodes.sizes[np.unique(secret.key(cells))].min(initial=secret.d))


def _firsts(classes: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one position of every pair of class and value."""
    return np.unique(np.stack([classes, values], axis=1), axis=0, return_index=True)[1]


def _shares(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    total = weight.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, weight / np.where(total > 0, total, 1.0), 0.0))
