"""Measures how well secrets can be guessed from a release.

A requirement limits what cells show. What somebody concludes who reads all of a row, and has learned from the other
rows how columns go together, is another matter, and is measured here from the release alone: nothing is told that
anybody could not compute. Of large releases some rows are measured, and a few columns are read, each by itself; the
attack `bayes` of `audit` reads more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.estimates import believed, closest_columns
from noren.models.base import QUASI
from noren.release.published import Published
from noren.statements import Cells, CodeCells, Statement, concat

ROWS = 2_000
"""Rows on which a secret in sets is measured; they lie in a random order."""
CLASS_ROWS = 200_000
"""Rows on which a secret in classes is measured: all rows of some classes."""
SURE = 0.9
"""A belief from which somebody may act on it."""
MOST_SURE = 0.05
"""Share of the people with such a belief from which the holder is warned."""
WAYS_OUT = (
    "Generalise quasi-identifiers or publish them as sets too, or require t-closeness, belief (which limits this "
    "figure) or local-privacy (which limits what a set discloses)."
)


@dataclass(frozen=True)
class Guess:
    """How well an adversary guesses one secret from the release."""

    column: str
    right: float
    """Share of the people whose secret is guessed right, as far as the release shows."""
    before: float
    """The same without the release's rows: the share of the commonest value."""
    sure: float
    """Share of the people whose secret is believed above 0.9 and would not be without the release."""
    by_class: bool
    """Whether only the class of a person's row is known, not the row."""
    rows: int
    """Rows on which it was measured."""
    whole: bool
    """Whether these are all."""

    @property
    def is_loud(self) -> bool:
        """Return whether so many secrets are nearly certain that the holder should know."""
        return self.sure > MOST_SURE

    @property
    def sentence(self) -> str:
        """Return the figure in plain words."""
        who = "all other published columns of the row"
        if self.by_class:
            who = "a person's quasi-identifiers"
        some = "" if self.whole else f", measured on {self.rows:,} rows"
        return (
            f"Somebody who knows {who} guesses {self.column!r} right for {self.right:.1%} of the people "
            f"({self.before:.1%} without the release{some})."
        )

    @property
    def warning(self) -> str:
        """Return a warning for the holder; empty if few secrets are nearly certain."""
        if not self.is_loud:
            return ""
        return f"{self.column!r} is believed above {SURE:g} for {self.sure:.1%} of the people"

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "sentence": self.sentence, "is_loud": self.is_loud}


def warn_of_guesses(guesses: Sequence[Guess]) -> str:
    """Return a warning about secrets that are nearly certain for many people; empty if there are none."""
    loud = [one.warning for one in guesses if one.is_loud]
    return "" if not loud else f"WARNING: {'; '.join(loud)}. {WAYS_OUT}"


def measure_guesses(
    published: Published,
    knows_row: bool = False,
    among: Collection[str] | None = None,
    most: int | None = None,
) -> tuple[Guess, ...]:
    """How well every secret is guessed; those of which single cells say nothing are not among them.

    With `knows_row` the adversary knows which row is the person's, beside generalised quasi-identifiers too. `among`
    names the secrets that are asked for, by default all; of more than `most` those that other columns disclose most.
    """
    readable = [one for one in published.statements if one.terms is None and one.rows_per_record == 1]
    secrets = [one.name for one in readable if one.role.needs_requirement and (among is None or one.name in among)]
    if published.rows_per_record > 1 or not secrets or not published.records:
        return ()
    keys = [one.name for one in readable if one.is_key and one.role in QUASI]
    grouped = any(published.by_name[name].hides for name in keys)
    apart = [name for name in secrets if published.by_name[name].hides and (knows_row or not grouped)]
    out = {}
    for names, by_class in ((apart, False), ([name for name in secrets if name not in apart], True)):
        if not names:
            continue
        cells = _some(published, readable, keys if by_class else ())
        rows = len(next(iter(cells.values())))
        closest = closest_columns(names, readable, cells) if rows else {}
        for name, given in list(closest.items())[:most]:
            read = [one for one in readable if one.name in {name, *given, *keys}]
            found = believed(name, read, cells, given=given, knows_row=knows_row, singly=True)
            if found is None:
                continue
            usual = found.before > SURE  # then whoever has the commonest value is nearly certain anyhow
            common = np.bincount(found.top).argmax()
            sure = found.above(SURE) & ~((found.top == common) & usual)
            right, share, whole = float(found.belief.mean()), float(sure.mean()), rows == published.rows
            out[name] = Guess(name, right, found.before, share, found.by_class, rows, whole)
    return tuple(out[name] for name in secrets if name in out)


def _some(published: Published, columns: Sequence[Statement], keys: Sequence[str]) -> dict[str, Cells]:
    """Return the first rows, which are in random order; with keys, all rows of some classes."""
    names = [one.name for one in columns]
    share = min(1.0, CLASS_ROWS / max(1, published.rows))
    parts, rows = [], 0
    for batch in published.batches(names):
        found = batch
        if keys:
            if share < 1:
                kept = np.flatnonzero(_hash_rows(batch, keys) < np.uint64(int(share * (2**64 - 1))))
                found = {name: cells.take(kept) for name, cells in batch.items()}
        elif rows + len(batch[names[0]]) > ROWS:
            found = {name: cells.take(np.arange(ROWS - rows)) for name, cells in batch.items()}
        parts.append(found)
        rows += len(found[names[0]])
        if not keys and rows >= ROWS:
            break
    return concat(parts)


def _hash_rows(batch: Mapping[str, Cells], keys: Sequence[str]) -> NDArray[np.uint64]:
    """Return a number for every row, equal in one class."""
    out = np.zeros(len(batch[keys[0]]), np.uint64)
    for name in keys:
        cells = batch[name]
        if isinstance(cells, CodeCells):
            out = (out ^ (cells.data.astype(np.uint64) + np.uint64(1))) * np.uint64(0x9E3779B97F4A7C15)
            out ^= out >> np.uint64(29)
    return out * np.uint64(0xBF58476D1CE4E5B9)
