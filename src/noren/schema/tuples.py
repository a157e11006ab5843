"""Composite columns, whose values are tuples of their members' values.

A tuple is written as a person reads it, "1010 | 10 | 11-1011"; a bar or a backslash inside a value is escaped, so that
every text gives its parts back. A tuple whose parts are all missing is the missing value, one whose parts are all
"(other)" is "(other)".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import MISSING, OTHER, Domain, bin_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import reader

BETWEEN = " | "
ESCAPED = re.compile(r"([\\|])")
UNESCAPED = re.compile(r"\\(.)", re.DOTALL)
MOST_MEMBERS = 16
"""Columns of one composite."""


def tuple_name(names: Sequence[str]) -> str:
    """Return the default name of a composite: "OCCP02 + OCCP10"."""
    return " + ".join(names)


def tuple_text(parts: Sequence[str]) -> str:
    """Return a tuple as one text."""
    for special in (MISSING, OTHER):
        if all(part == special for part in parts):
            return special
    return BETWEEN.join(ESCAPED.sub(r"\\\1", part) for part in parts)


def tuple_parts(text: str, size: int) -> tuple[str, ...]:
    """Return the parts of a text by `tuple_text`; raise ValueError for another text."""
    if text in (MISSING, OTHER):
        return (text,) * size
    parts = text.split(BETWEEN)  # a bar inside a value has a backslash before it, so that only these are left
    plain = tuple(UNESCAPED.sub(r"\1", part) for part in parts)
    if len(plain) != size or tuple_text(plain) != text:
        raise ValueError(f"not a tuple of {size} values")
    return plain


@dataclass(frozen=True)
class Member:
    """One column of a composite: its name, its own values, and their relations."""

    name: str
    domain: Domain
    tree: Hierarchy | None = None

    def canonical(self, texts: Sequence[str]) -> list[str]:
        """Return texts of the table as the member's values; unknown texts stay, unless "(other)" takes them in."""
        domain, known = self.domain, self.domain.index
        written = _bin_texts(domain, texts) if domain.edges is not None else domain.canonical(texts)
        rest = OTHER if OTHER in known else None
        return [value if value in known or value == MISSING else rest or value for value in written]

    def restrict_to(self, used: Sequence[bool] | NDArray[np.bool_]) -> Member:
        """Restrict the member to the values of some tuple, unless its domain was declared."""
        domain = self.domain
        if all(used) or domain.edges is not None or domain.source != "data":
            return self
        values = tuple(value for value, stays in zip(domain.values, used, strict=True) if stays)
        tree = None if self.tree is None else self.tree.restrict_to(values)
        return Member(self.name, replace(domain, values=values), tree)


def _bin_texts(domain: Domain, texts: Sequence[str]) -> list[str]:
    """Return numbers as their intervals; labels of intervals and numbers outside stay unchanged."""
    assert domain.edges is not None
    edges, labels, read = np.asarray(domain.edges), bin_labels(domain.edges), reader("number", domain.format)
    out = []
    for text in texts:
        number = None if text in domain.index else read(text)
        slot = -1 if number is None else int(np.searchsorted(edges, float(number), side="right")) - 1
        if number is not None and float(number) == edges[-1]:
            slot = len(labels) - 1
        out.append(labels[slot] if 0 <= slot < len(labels) else text)
    return out


@dataclass(frozen=True)
class TupleDomain(Domain):
    """Tuples as the values of one column, and their members."""

    members: tuple[Member, ...] = ()
    differ: tuple[str, ...] = ()
    """Members of which any two tuples of a set must have different values."""

    @property
    def made_of(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def is_ordered(self) -> bool:
        return False

    @property
    def value_word(self) -> str:
        return "tuples"

    @property
    def rewrites(self) -> bool:
        return True

    def canonical(self, texts: Sequence[str]) -> list[str]:
        return canonical_tuples(texts, self.members)

    @cached_property
    def codes(self) -> Mapping[str, NDArray[np.int64]]:
        """Return for every member the code of its value in each tuple."""
        rows = [tuple_parts(value, len(self.members)) for value in self.values]
        out = {}
        for number, member in enumerate(self.members):
            index = member.domain.index
            out[member.name] = np.array([index[row[number]] for row in rows], np.int64)
        return out

    def member(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    @property
    def views(self) -> tuple[NDArray[np.int64], ...]:
        return tuple(self.codes[name] for name in self.differ)

    def written_as(self, other: Domain) -> Domain:
        known = {member.name: member.domain for member in other.members} if isinstance(other, TupleDomain) else {}
        members = (replace(m, domain=m.domain.written_as(known.get(m.name, m.domain))) for m in self.members)
        return replace(self, members=tuple(members))

    def trim_members(self) -> TupleDomain:
        """Return the domain without member values that no tuple has."""
        kept = []
        for member in self.members:
            used = np.zeros(len(member.domain), bool)
            used[self.codes[member.name]] = True
            kept.append(member.restrict_to(used))
        return replace(self, members=tuple(kept))

    @cached_property
    def apart(self) -> NDArray[np.int64]:
        """Number the tuples so that two with different numbers differ in all members that must differ."""
        return link_tuples(self.views, len(self))


def canonical_tuples(texts: Sequence[str], members: Sequence[Member]) -> list[str]:
    """Return tuples of the table's texts as tuples of the members' values."""
    if not texts:
        return []
    columns = zip(*(tuple_parts(text, len(members)) for text in texts), strict=True)
    written = []
    for member, column in zip(members, columns, strict=True):
        different = list(dict.fromkeys(column))
        place = dict(zip(different, member.canonical(different), strict=True))
        written.append([place[text] for text in column])
    return [tuple_text(row) for row in zip(*written, strict=True)]


def link_tuples(views: Sequence[NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    """Number groups of tuples that share a value directly or through other tuples."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns, width = [], [], size
    for view in views:
        rows.append(np.arange(size))
        columns.append(width + view)
        width += int(view.max(initial=-1)) + 1
    if not rows:
        return np.arange(size)
    ends = np.concatenate(rows), np.concatenate(columns)
    edges = coo_array((np.ones(len(ends[0]), bool), ends), (width, width))
    found = connected_components(edges, directed=False)[1][:size]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)
