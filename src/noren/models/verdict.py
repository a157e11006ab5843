"""Results of checks: one verdict per requirement and column, and all verdicts of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from noren.results import Results, make_frame, one_line, plain

if TYPE_CHECKING:
    import polars as pl

Basis = Literal["the release alone", "the published design", "the original", "an estimate from the release"]
WORDS = {True: "holds", False: "FAILS", None: "undecided"}


@dataclass(frozen=True)
class Verdict:
    """The verdict on one requirement and column: required, achieved, holds, and its basis.

    `holds` is None if an estimate is too uncertain; the statement then says what would decide it.
    """

    model: str
    column: str
    required: float
    achieved: float
    holds: bool | None
    basis: str
    records: int
    breaches: int
    statement: str
    short: int = 0
    """Classes or groups that fall short, where the model judges those."""
    shortfalls: Sequence[Shortfall] = ()
    """Some of them, the worst first, where they were asked for."""
    by_holder: bool = False
    """Whether rows satisfy it and only the holder, who knows whose rows are whose, can check it for people."""

    def __repr__(self) -> str:
        return verdict_line(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return dict(plain(asdict(self)))


@dataclass(frozen=True)
class Shortfall:
    """A class that fails a requirement: its published values, its size, and the achieved figure."""

    keys: Mapping[str, str]
    records: int
    achieved: float


class Judged(Protocol):
    """A protocol: a verdict of a check, or its published form."""

    @property
    def model(self) -> str: ...
    @property
    def column(self) -> str: ...
    @property
    def required(self) -> float: ...
    @property
    def achieved(self) -> float | None: ...
    @property
    def holds(self) -> bool | None: ...

    def to_dict(self) -> dict[str, Any]: ...


def verdict_line(verdict: Judged) -> str:
    """Return a verdict in one short line."""
    found = "" if verdict.achieved is None else f", found {verdict.achieved:.4g}"
    where = f"{one_line(verdict.model, 30)} on {one_line(verdict.column, 30)}"
    return f"<Verdict: {where}: asked {verdict.required:g}{found}, {WORDS[verdict.holds]}>"


V = TypeVar("V", bound=Judged)

COLUMNS: dict[str, type] = {
    "model": str,
    "column": str,
    "required": float,
    "achieved": float,
    "holds": bool,
    "basis": str,
    "records": int,
    "breaches": int,
    "statement": str,
}


@dataclass(frozen=True, repr=False, eq=False)
class Verdicts(Results[V]):
    """The verdicts on every requirement and column, in the order of the policy.

    `frame` has one row per verdict; a published verdict has no records, breaches or statement.
    """

    unconfirmed: tuple[str, ...] = ()
    """What the check could not confirm, and who could: sentences about what only a policy or a version knows."""

    @property
    def hold(self) -> bool:
        """Return whether every requirement holds; an undecided requirement does not."""
        return all(verdict.holds is True for verdict in self)

    @property
    def failed(self) -> Verdicts[V]:
        """Return the verdicts that do not hold."""
        return Verdicts([verdict for verdict in self if verdict.holds is False])

    @property
    def undecided(self) -> Verdicts[V]:
        """Return the verdicts that cannot be decided from the available data."""
        return Verdicts([verdict for verdict in self if verdict.holds is None])

    @property
    def open(self) -> Verdicts[V]:
        """Return the undecided verdicts that the holder has not checked according to the release."""
        return Verdicts([verdict for verdict in self.undecided if not getattr(verdict, "by_holder", False)])

    @property
    def frame(self) -> pl.DataFrame:
        rows = ({name: getattr(verdict, name, None) for name in COLUMNS} for verdict in self)
        return make_frame(COLUMNS, rows)

    def to_dict(self) -> dict[str, Any]:
        told = {"hold": self.hold, "verdicts": [verdict.to_dict() for verdict in self]}
        return told | ({"unconfirmed": list(self.unconfirmed)} if self.unconfirmed else {})

    def _notes(self) -> Sequence[str]:
        return [f"Not confirmed: {one}." for one in self.unconfirmed]

    def _headline(self) -> str:
        if not self:
            return "nothing is required"
        fine = sum(verdict.holds is True for verdict in self)
        parts = [f"{fine} of {len(self)} hold{'s' if fine == 1 else ''}"]
        bad = len(self.failed)
        parts += [f"{bad} FAIL{'S' if bad == 1 else ''}"] if bad else []
        parts += [f"{len(self.undecided)} undecided"] if self.undecided else []
        return ", ".join(parts)
