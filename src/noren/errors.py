"""Every error says what is wrong, with which value, and what to do next.

Messages may name parameters, columns and values of a declared domain. They never quote a record's cell:
logs and bug reports travel further than the table does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

NAMED_FROM = 5
"""A value that was found in the data is named only if this many records share it."""
MOST_LISTED = 10
"""Problems that one message lists; the others are counted."""
MOST_NAMED = 5
"""Columns of a table that one message names."""
_BASES = r"(?:jdbc|postgres(?:ql)?|mysql|mariadb|mssql|sqlserver|oracle|redis|mongodb)"
_MASKS = (
    (
        re.compile(r"([\w.-]*(?:password|passwd|pwd|passphrase)\s*=\s*)('(?:[^'\\]|\\.)*'?|\"[^\"]*\"?|\S+)", re.I),
        r"\1***",
    ),
    (re.compile(r"([?&;][\w.-]*(?:secret|token|signature|sig|key)=)[^\s&;]+", re.IGNORECASE), r"\1***"),
    (re.compile(r"\b([a-z][a-z0-9+.-]+://)[^\n]*@", re.IGNORECASE), r"\1***@"),
    (re.compile(rf"\b({_BASES}(?:\+\w+)?:)(?:[^\n]*@|[^\s:?]*:\S+)", re.IGNORECASE), r"\1***"),
    (re.compile(r"\b([a-z][a-z0-9+.-]+:)\S*@", re.IGNORECASE), r"\1***@"),
)
"""What looks like an address with a password, and what is shown of it."""
_DATUM = re.compile(r"\s*[-+]?[\d.][\d.,:/\s+-]*(?:e[+-]?\d+)?\s*", re.IGNORECASE)


def mask(text: str) -> str:
    """Return the text without passwords: addresses that may contain one are shortened to scheme and host.

    Every error passes through here. What is no text (a file name in another encoding) becomes printable.
    """
    for pattern, shown in _MASKS:
        text = pattern.sub(shown, text)
    return text.encode("utf-8", "backslashreplace").decode()


def is_utf8(text: str) -> bool:
    """Return whether a text of the operating system is UTF-8."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def looks_like_data(names: Iterable[str]) -> bool:
    """Return whether a column name is a number, a date or a time."""
    return any(_DATUM.fullmatch(name) for name in names)


def list_columns(columns: Iterable[str]) -> str:
    """Name some columns of a table and count the others. If one looks like data, name none: the header may be
    somebody's record."""
    names = list(columns)
    if looks_like_data(names):
        return f"{len(names):,} columns"
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def suggest_columns(asked: Sequence[str], columns: Sequence[str]) -> str:
    """Return a hint about missing columns. If none of the requested columns exists, the header may be somebody's
    record; then at most a similar name is shown."""
    near = [name for word in asked if word not in columns for name in get_close_matches(word, columns, n=1)]
    if near:
        return f"Did you mean {near[0]!r}?"
    if not set(asked) & set(columns):
        return "Check that its first line holds the names of the columns."
    return f"It has {list_columns(columns)}."


class NorenError(Exception):
    """Base of all errors this package raises on purpose."""

    exit_code = 2
    way_out = ""
    """A command that finds what would work, where one was refused."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = mask(message)
        self.hint = None if hint is None else mask(hint)
        super().__init__(self.message if hint is None else f"{self.message}\n  Hint: {self.hint}")


@dataclass(frozen=True)
class Problem:
    """One problem of a policy: its place, the message, and a hint."""

    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n    Hint: {self.hint}" if self.hint else text


class PolicyError(NorenError):
    """The policy contradicts itself or the data. Carries every problem found, and lists the first ones."""

    def __init__(self, problems: Iterable[Problem], *, source: str = "policy") -> None:
        self.problems: Sequence[Problem] = tuple(
            replace(one, where=mask(one.where), message=mask(one.message), hint=mask(one.hint)) for one in problems
        )
        self.source = source
        count = len(self.problems)
        head = f"{source}: {count:,} problem{'s' if count != 1 else ''}"
        more = [f"  and {count - MOST_LISTED:,} more."] if count > MOST_LISTED else []
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems[:MOST_LISTED]), *more]))


class DataError(NorenError):
    """The table cannot be read: a ragged row, a missing column, a wrong encoding, or no rows."""


class RequirementNotMet(NorenError):
    """A privacy requirement does not hold. Nothing is published."""

    exit_code = 1


class ModelDoesNotApply(NorenError):
    """The model makes no statement about this form of release."""


class ReleaseError(NorenError):
    """A release directory is missing, incomplete, tampered with, or would overwrite another one."""

    @classmethod
    def distrust(cls, message: str) -> ReleaseError:
        """Return the error for a release that differs from what its holder published."""
        return cls(message, hint="Do not use it; ask the holder for it again.")


class OutOfReach(NorenError):
    """The computation failed here: not enough memory, or a fault of the program. This says nothing about the table."""

    exit_code = 4


class SecretError(NorenError):
    """A secret file or its register does not fit the release that was asked for."""


class QueryError(NorenError):
    """The release cannot answer this question."""
