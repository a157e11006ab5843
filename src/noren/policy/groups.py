"""Secrets that tell each other, for a draft: which of them are hidden together, and how many values that leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from noren.policy.guessing import FEW, SMALL, Guess
from noren.policy.relations import Codes
from noren.policy.toml import value
from noren.schema.roles import Role
from noren.schema.tuples import linked, tuple_name

MOST_TUPLES = 1_000
"""Tuples beyond which columns are not drafted together."""
LEAST_TUPLES = 4
MOST_MEMBERS = 4
"""Columns that are put together because drafts showed it; more would leave little of each."""
MOST_RARE = 0.1
"""Share of the records that may have a rare tuple."""


@dataclass(frozen=True)
class Group:
    """Columns that are drafted together."""

    names: tuple[str, ...]
    tuples: int
    """Tuples that are common enough to be named."""
    apart: int
    """Groups of them that share no value."""
    rare: bool
    whole: bool = False
    """Whether only tuples are asked for, not members."""

    @property
    def size(self) -> int:
        """Values to hide one among: of every member where enough tuples have nothing in common, else of the tuples."""
        return self.apart if self.by_member else self.tuples

    @property
    def by_member(self) -> bool:
        return self.apart >= LEAST_TUPLES and not self.whole

    @property
    def asked(self) -> tuple[str, ...]:
        """What a requirement names: the members, or the composite."""
        return self.names if self.by_member else (tuple_name(self.names),)


def groups(
    guesses: Mapping[str, Guess], pairs: Mapping[tuple[str, str], bool], codes: Codes, amounts: Sequence[str]
) -> list[Group]:
    """Secrets that tell each other, as far as their tuples are few and common; amounts are not tuples."""
    group: dict[str, set[str]] = {}
    for pair in pairs:
        if all(guesses[name].role is Role.SENSITIVE and name not in amounts for name in pair):
            both = group.get(pair[0], {pair[0]}) | group.get(pair[1], {pair[1]})
            group |= dict.fromkeys(both, both)
    different = {tuple(name for name in guesses if name in names) for names in group.values()}
    found = [_judged(names, codes) for names in sorted(different)]
    return [one for one in found if one is not None]


def joined(
    found: Sequence[Group],
    pairs: Sequence[tuple[str, str]],
    guesses: Mapping[str, Guess],
    codes: Codes,
    amounts: Sequence[str],
) -> list[Group]:
    """The groups with further pairs put together, as far as each group stays small and its tuples common."""
    out = list(found)
    for pair in pairs:
        if any(guesses[name].role is not Role.SENSITIVE or name in amounts for name in pair):
            continue
        old = [one for one in out if set(one.names) & set(pair)]
        both = set(pair).union(*(one.names for one in old))
        if len(both) > MOST_MEMBERS or any(both <= set(one.names) for one in old):
            continue
        new = _judged(tuple(name for name in guesses if name in both), codes)
        if new is not None:
            out = [one for one in out if one not in old] + [new]
    return sorted(out, key=lambda one: one.names)


def _judged(names: tuple[str, ...], codes: Codes) -> Group | None:
    of = codes.numbers(names)
    first = np.unique(of, return_index=True)[1]
    counts = np.bincount(of)
    common = counts >= (FEW if codes.records >= SMALL else 1)
    rare = float(counts[~common].sum()) / max(1, codes.records)
    if not LEAST_TUPLES <= int(common.sum()) <= MOST_TUPLES or rare > MOST_RARE:
        return None
    rows = first[common]
    apart = len(np.unique(linked([codes.columns[name][rows] for name in names], len(rows))))
    return Group(names, int(common.sum()) + (rare > 0), apart + (rare > 0), rare > 0)


def group_lines(found: Sequence[Group]) -> tuple[str, str]:
    """What a draft says of them: a line above its columns, or tables behind them where rare tuples are merged."""
    if not found:
        return "", ""
    why = (
        "# These columns say the same or nearly so: sets of each would meet in the truth, so tuples are hidden whole.\n"
    )
    if not any(one.rare for one in found):
        lists = [list(one.names) for one in found]
        return why + f"together = {value(lists[0] if len(lists) == 1 else lists)}", ""
    tables = [f'[[together]]\ncolumns = {value(list(one.names))}\nmin_count = {FEW}\nrare = "merge"' for one in found]
    return "", why + "\n\n".join(tables)
