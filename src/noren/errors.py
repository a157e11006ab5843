"""Every error says what is wrong, with which value, and what to do next.

Messages may name parameters, columns and values of a declared domain. They never quote a record's cell:
logs and bug reports travel further than the table does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NAMED_FROM = 5
"""A value that was found in the data is named only if this many records share it."""


class NorenError(Exception):
    """Base of all errors this package raises on purpose."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\n  Hint: {hint}")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a policy: where it stands, what it is, what would mend it."""

    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n    Hint: {self.hint}" if self.hint else text


class PolicyError(NorenError):
    """The policy contradicts itself or the data. Carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem], *, source: str = "policy") -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        self.source = source
        count = len(self.problems)
        head = f"{source}: {count} problem{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


class DataError(NorenError):
    """The table cannot be read as it should be: ragged row, missing column, broken encoding, no rows."""


class RequirementNotMet(NorenError):
    """A privacy requirement does not hold. Nothing is published."""

    exit_code = 1


class ModelDoesNotApply(NorenError):
    """A model was asked about a form of release it makes no statement about."""


class ReleaseError(NorenError):
    """A release directory is missing, incomplete, tampered with, or would overwrite another one."""


class OutOfReach(NorenError):
    """It could not be computed here: not enough memory, or a fault of the program. Nothing follows for the table."""

    exit_code = 4


class SecretError(NorenError):
    """A secret file or its register does not fit the release that was asked for."""


class QueryError(NorenError):
    """A recipient asked for something the release cannot answer."""
