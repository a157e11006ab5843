"""Measures the parameter that a table reaches in every model.

Each model that makes a statement about a column is run with some parameter, and the figure that its verdict found is
what the table achieves. The classes are gathered once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from noren.engines import Engine, engine_for
from noren.errors import ModelDoesNotApply, QueryError, suggest_columns
from noren.models import MODELS
from noren.models.base import Check, Evidence, Judgement, Model
from noren.policy.policy import Policy
from noren.release.published import Published
from noren.release.release import is_release, open_release
from noren.release.store import names_people
from noren.results import Results, make_frame, one_line, plain
from noren.schema.roles import Role
from noren.sources.source import open_source
from noren.workflow.foreign import SUPPRESSED, CellForm, describe_cells, foreign_table, read_foreign
from noren.workflow.prepare import read_policy
from noren.workflow.truth import overall_distributions

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Measure:
    """The achieved parameter of one model, on one column or on the quasi-identifiers together."""

    column: str
    model: str
    parameter: str
    """The figure's name: k, l, t, ..."""
    given: Mapping[str, Any]
    """The model's other parameters."""
    achieved: float
    higher_is_safer: bool
    basis: str
    statement: str

    def __repr__(self) -> str:
        model = one_line(f"{self.model} ({self.others})" if self.given else self.model, 50)
        return f"<Measure: {model} on {one_line(self.column, 24)}: {self.parameter} = {self.achieved:.4g}>"

    @property
    def others(self) -> str:
        """Return the model's other parameters in words."""
        return ", ".join(f"{name} = {value}" for name, value in self.given.items())

    def to_dict(self) -> dict[str, Any]:
        """The figure as plain data, for JSON."""
        return dict(plain(vars(self)))


COLUMNS: dict[str, type] = {
    "column": str,
    "model": str,
    "given": str,
    "parameter": str,
    "achieved": float,
    "higher_is_safer": bool,
    "basis": str,
    "statement": str,
}


@dataclass(frozen=True, repr=False, eq=False)
class Measures(Results[Measure]):
    """The achieved parameters of a table in every model."""

    name: str = ""
    records: int = 0
    suppressed: int = 0
    quasi: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Models that make no statement about the table, and why."""
    cells: tuple[str, ...] = ()
    """How cells were read that are no single values."""
    counted: Literal["people", "rows"] = "people"
    """Whether the figures count people, or rows of people who may have several: then they say too much."""

    @property
    def found(self) -> tuple[Measure, ...]:
        """Return the figures."""
        return tuple(self)

    @property
    def frame(self) -> pl.DataFrame:
        return make_frame(COLUMNS, (vars(one) | {"given": one.others} for one in self))

    def value(self, model: str, column: str | None = None, **given: Any) -> float:
        """Return one figure: the first with this model, column and other parameters."""
        for one in self:
            same = all(one.given.get(name) == value for name, value in given.items())
            if one.model == model and column in (None, one.column) and same:
                return one.achieved
        raise QueryError(f"no figure for {model}.", hint=f"There are {', '.join({m.model: 0 for m in self})}.")

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.name,
            "records": self.records,
            "suppressed": self.suppressed,
            "quasi_identifiers": list(self.quasi),
            "sensitive": list(self.sensitive),
            "cells": list(self.cells),
            "counted": self.counted,
            "measures": [one.to_dict() for one in self],
            "skipped": dict(self.skipped),
        }

    def _subject(self) -> str:
        return self.name

    def _headline(self) -> str:
        left_out = f", {self.suppressed:,} suppressed" if self.suppressed else ""
        of = "" if self.counted == "people" else " (rows, not people)"
        return f"{len(self)} figure{'' if len(self) == 1 else 's'}, {self.records:,} records{of}{left_out}"


def measure(
    table: Any,
    policy: Policy | str | Path | None = None,
    *,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    suppressed: str | None = SUPPRESSED,
    cells: Mapping[str, CellForm] | None = None,
    engine: str | Engine | None = None,
) -> Measures:
    """Measure a release, or any table with a policy or with the names of its columns.

    `suppressed` is what another tool wrote into all quasi-identifiers of a record that it dropped; such rows belong
    to no class. `cells` says what the cells of a table's sensitive columns are ("values", "sets", "shuffled"); those
    that are all written as sets are read as sets without it. People are counted where the policy names their key and
    the table has it; a release leaves the key out, so where its people may have several rows the figures are of rows,
    and say so.

    >>> import noren as nr
    >>> import polars as pl
    >>> visits = pl.DataFrame({"who": [1, 1, 2, 3], "town": ["Ulm"] * 3 + ["Bonn"], "ill": list("abba")})
    >>> nr.measure(visits, quasi=["town"], sensitive=["ill"]).value("k-anonymity")
    1
    >>> roles = {"who": "identifier", "town": "quasi-identifier", "ill": "sensitive"}
    >>> diverse = nr.models.DistinctLDiversity(on="ill", l=2)
    >>> policy = nr.Policy(attributes=roles, require=[diverse], method="mondrian", people={"key": "who"})
    >>> found = nr.measure(visits[:3], policy)
    >>> found.value("k-anonymity"), found.counted
    (2, 'people')
    """
    policy = None if policy is None else read_policy(policy)
    if is_release(table):
        release = open_release(table)
        roles = _read_roles(release.columns, quasi, sensitive)
        if not roles and policy is not None:
            roles = {name: column.role for name, column in policy.attributes.items()}
        return _measure_release(_in_roles(release, roles), engine, several=not release.manifest.rows_are_people)
    if policy is None and not (quasi or sensitive):
        raise QueryError(
            "quasi-identifiers and sensitive columns are not known.",
            hint="Give a policy, or list quasi-identifiers and sensitive columns.",
        )
    if policy is not None and not (quasi or sensitive):
        foreign = foreign_table(table, policy, suppressed=suppressed, cells=cells)
        return _measured_table(foreign, policy.people.key, engine)
    source = open_source(table)
    named = _read_roles(source.columns, quasi, sensitive)
    key = () if policy is None else policy.people.key
    foreign = read_foreign(source, named, people=key, suppressed=suppressed, cells=cells)
    return _measured_table(foreign, key, engine)


def _in_roles(published: Published, roles: Mapping[str, Role]) -> Published:
    """Return the same cells, with other roles of some columns."""
    changed = {}
    for statement in published.statements:
        if statement.name in roles:
            column = statement.column
            domain = None if column.is_open else column.domain
            changed[statement.name] = statement.over(column.over(column.name, domain, role=roles[column.name]))
    return published.over(changed)


def _read_roles(columns: Sequence[str], quasi: Sequence[str], sensitive: Sequence[str]) -> dict[str, Role]:
    roles = dict.fromkeys(sensitive, Role.SENSITIVE)
    for name in quasi:
        roles[name] = Role.SENSITIVE_QUASI_IDENTIFIER if name in roles else Role.QUASI_IDENTIFIER
    absent = [name for name in roles if name not in columns]
    if absent:
        raise QueryError(
            f"there is no column {', '.join(map(repr, absent))}.", hint=suggest_columns(list(roles), columns)
        )
    return roles


def _measured_table(foreign: Published, key: Sequence[str], engine: str | Engine | None) -> Measures:
    """The same of a table that another tool made, where `key` may say whose row each is."""
    people, cells = names_people(foreign.store), describe_cells(foreign)
    return _measure_release(foreign, engine, people=people, several=bool(key) and not people, cells=cells)


def _measure_release(
    published: Published,
    engine: str | Engine | None,
    *,
    people: bool = False,
    several: bool = False,
    cells: Sequence[str] = (),
) -> Measures:
    """Return every model that applies to the table, with arbitrary parameters.

    With `people`, the store says whose row each is; with `several`, people may have several rows and nobody knows.
    `cells` says how cells were read.
    """
    asked = [model for model in candidates(published) if "prior" in model.needs]
    overall = overall_distributions(published, asked)
    skipped: dict[str, str] = {}

    def checks(noted: dict[str, str]) -> list[tuple[Model, Check]]:
        evidence = Evidence(published.by_name, overall, people)
        found = [(model, _check(model, evidence, noted)) for model in candidates(published)]
        return [(model, check) for model, check in found if check is not None]

    def make() -> Judgement:
        return Judgement([check for _, check in checks({})], several=several)

    speaking = [model for model, _ in checks(skipped)]
    verdicts = engine_for(published, engine).judge(published, make)
    found = []
    for model, verdict in zip(speaking, verdicts, strict=True):
        ignored = {model.measured_parameter, *model.figure_ignores}
        given = {n: v for n, v in model.parameters().items() if n not in ignored and v is not None}
        found.append(
            Measure(
                verdict.column,
                model.model,
                model.measured_parameter,
                given,
                verdict.achieved,
                model.higher_is_safer,
                verdict.basis,
                verdict.statement,
            )
        )
    evidence = Evidence(published.by_name, overall)
    return Measures(
        _reachable(found),
        name=published.title,
        records=published.records,
        suppressed=published.suppressed,
        quasi=evidence.quasi_identifiers(),
        sensitive=tuple(statement.name for statement in evidence.secrets()),
        skipped=skipped,
        cells=tuple(cells),
        counted="rows" if several else "people",
    )


def _reachable(found: Sequence[Measure]) -> list[Measure]:
    """Return the figures, without those for l beyond the first that no parameter reaches."""
    out: list[Measure] = []
    ended: set[tuple[str, str]] = set()
    for one in found:
        key = (one.column, one.model)
        if key in ended:
            continue
        nothing = MODELS[one.model].hopeless
        if nothing is not None and one.achieved >= nothing:
            ended.add(key)
        out.append(one)
    return out


def candidates(published: Published) -> list[Model]:
    """Return all models that may apply to the table and its secrets, each with arbitrary parameters."""
    evidence = Evidence(published.by_name, {})
    out: list[Model] = []
    for statement in (None, *evidence.secrets()):
        for kind in MODELS.values():
            terms = statement is not None and statement.role is Role.QUASI_SENSITIVE
            if statement is None or (kind.about == "terms") == terms:
                out += kind.probes(statement)
    return out


def _check(model: Model, evidence: Evidence, skipped: dict[str, str]) -> Check | None:
    """Return the check that measures a column; None, with the reason noted, if the model does not apply."""
    name, _, way = model.identity.partition("/")
    called = " on ".join([name if way in ("", "equal") else f"{name} ({way})", *model.on])
    if "order" in model.needs and not evidence.columns[model.on[0]].column.is_ordered:
        skipped.setdefault(called, "the values have no declared order.")
        return None
    try:
        return model.measuring(evidence)
    except ModelDoesNotApply as error:
        if model.on or evidence.quasi_identifiers():
            skipped.setdefault(called, error.message)
        return None
