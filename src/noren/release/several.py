"""What rows of one person do to errors, in one place for everything that a release is asked.

Rows of a person share draws and are not independent, and nobody knows whose they are. Where the manifest bounds how
many a person has, the variance of any sum over records is at most that many times what it is of independent ones: of m
numbers the square of the sum is at most m times the sum of the squares, whatever they have to do with each other.
"""

from __future__ import annotations

from typing import NamedTuple

from noren.estimates.counts.estimate import SEVERAL_ROWS, UP_TO_ROWS
from noren.release.manifest import Manifest


class SeveralRows(NamedTuple):
    """By how much variances of independent rows are multiplied, and what an error then rests on; "" for nothing."""

    inflation: int = 1
    told: str = ""

    @classmethod
    def of(cls, manifest: Manifest) -> SeveralRows:
        """As the manifest says. Without a bound nothing is multiplied, and the error says that it is too small."""
        if manifest.rows_are_people or manifest.most_rows == 1:
            return NOTHING
        if manifest.most_rows is None:
            return cls(1, SEVERAL_ROWS)
        return cls(manifest.most_rows, UP_TO_ROWS.format(manifest.most_rows))

    @property
    def after(self) -> str:
        """What it rests on, behind other words."""
        return f"; {self.told}" if self.told else ""


NOTHING = SeveralRows()
"""Records are people."""
