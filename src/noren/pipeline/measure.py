"""Every model's achieved parameter: what a table reaches, whatever anybody asked of it.

Each model that makes a statement about a column is run with some parameter, and the figure that its verdict found is
what the table achieves. The classes are gathered once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from noren.errors import ModelDoesNotApply, QueryError
from noren.io.source import open_source
from noren.models import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    ExpandedK,
    FrequencyLDiversity,
    KAnonymity,
    LEDiversity,
    PSensitiveKAnonymity,
    QSCloseness,
    QSDiversity,
    RecursiveCLDiversity,
    TauLDiversity,
    TCloseness,
)
from noren.models.base import Evidence, Model, Overall
from noren.pipeline.foreign import SUPPRESSED, read_foreign
from noren.pipeline.measure_semantic import semantic_distances
from noren.pipeline.verify import check_store, overall_distributions
from noren.policy.policy import Policy
from noren.policy.reading import open_table
from noren.release.manifest import ColumnEntry
from noren.release.release import Release, open_release
from noren.release.store import Store
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role

MOST_L = 8
"""Up to which l the (tau, l) frontier and the recursive c are measured."""


@dataclass(frozen=True)
class Measure:
    """What a table achieves in one model, on one column or on its quasi-identifiers together."""

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

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"given": dict(self.given)}


@dataclass(frozen=True)
class Measures:
    """All figures of a table, and what they rest on."""

    name: str
    records: int
    suppressed: int
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    found: tuple[Measure, ...]
    skipped: Mapping[str, str]
    """Models that make no statement about the table, and why."""

    def value(self, model: str, column: str | None = None, **given: Any) -> float:
        """One figure: the first with this model, column and other parameters."""
        for one in self.found:
            same = all(one.given.get(name) == value for name, value in given.items())
            if one.model == model and column in (None, one.column) and same:
                return one.achieved
        raise QueryError(f"no figure for {model}.", hint=f"There are {', '.join({m.model: 0 for m in self.found})}.")

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.name,
            "records": self.records,
            "suppressed": self.suppressed,
            "quasi_identifiers": list(self.quasi),
            "sensitive": list(self.sensitive),
            "measures": [one.to_dict() for one in self.found],
            "skipped": dict(self.skipped),
        }


def measure(
    table: Any,
    policy: Policy | str | Path | None = None,
    *,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    suppressed: str | None = SUPPRESSED,
) -> Measures:
    """Measure a release, or any table with a policy or with the names of its columns.

    `suppressed` is what another tool wrote into all quasi-identifiers of a record that it dropped; such rows belong
    to no class.
    """
    policy = Policy.load(policy) if isinstance(policy, str | Path) else policy
    if isinstance(table, Release) or (isinstance(table, str | Path) and Path(table).is_dir()):
        release = table if isinstance(table, Release) else open_release(table)
        return _measured_release(release, policy, quasi, sensitive)
    if policy is None and not (quasi or sensitive):
        raise QueryError(
            "which columns find people and which are secret is not known.",
            hint="Give a policy, or name quasi-identifiers and sensitive columns.",
        )
    source = open_source(table) if policy is None else open_table(table, policy)
    named = _named(source.columns, quasi, sensitive)
    roles = named or {name: attribute.role for name, attribute in policy.attributes.items()}  # type: ignore[union-attr]
    known = {} if policy is None else dict(policy.knowledge)
    foreign = read_foreign(
        source,
        roles,
        hierarchies={} if policy is None else policy.hierarchies,
        values={} if policy is None else {n: a.values for n, a in policy.attributes.items() if a.values is not None},
        knowledge=known,
        suppressed=suppressed,
    )
    return _measured(foreign.name, foreign.entries, foreign.store, foreign.records, foreign.suppressed, known)


def _named(columns: Sequence[str], quasi: Sequence[str], sensitive: Sequence[str]) -> dict[str, Role]:
    roles = dict.fromkeys(sensitive, Role.SENSITIVE)
    for name in quasi:
        roles[name] = Role.SENSITIVE_QUASI_IDENTIFIER if name in roles else Role.QUASI_IDENTIFIER
    absent = [name for name in roles if name not in columns]
    if absent:
        raise QueryError(f"there is no column {', '.join(map(repr, absent))}.", hint=f"Columns: {', '.join(columns)}.")
    return roles


def _measured_release(
    release: Release, policy: Policy | None, quasi: Sequence[str], sensitive: Sequence[str]
) -> Measures:
    roles = _named(release.columns, quasi, sensitive)
    if not roles and policy is not None:
        roles = {name: attribute.role for name, attribute in policy.attributes.items()}
    entries = tuple(
        entry.model_copy(update={"role": roles[entry.name]}) if entry.name in roles else entry
        for entry in release.manifest.columns
    )
    models = [TCloseness(on=tuple(release.designs), t=0.5)] if release.designs else []
    overall = overall_distributions(release, models, policy, None)
    return _measured(
        str(release.path or "release"),
        entries,
        release._store,
        release.records,
        release.manifest.suppressed,
        release.knowledge,
        overall,
        release.tables,
    )


def _measured(
    name: str,
    entries: Sequence[ColumnEntry],
    store: Store,
    records: int,
    suppressed: int,
    knowledge: Mapping[str, Knowledge],
    overall: Mapping[str, Overall] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Measures:
    published = {entry.name: entry.published for entry in entries}
    skipped: dict[str, str] = {}
    published |= {name: replace(published[name], groups=one) for name, one in (tables or {}).items()}
    published |= {name: replace(published[name], knowledge=one) for name, one in knowledge.items()}
    evidence = Evidence(published, overall or {})
    models = [model for model in candidates(evidence) if _speaks(model, evidence, skipped)]
    verdicts = check_store(store, entries, models, overall or {}, tables=tables, knowledge=knowledge)
    found = []
    for model, verdict in zip(models, verdicts, strict=True):
        given = {n: v for n, v in model.parameters().items() if n != model.parameter and v is not None}
        given = {n: v for n, v in given.items() if (model.model, n) not in MEANINGLESS}
        safer = bool(getattr(model, "higher_is_safer", model.parameter in ("k", "l", "p")))
        found.append(
            Measure(
                verdict.column,
                model.model,
                model.parameter,
                given,
                verdict.achieved,
                safer,
                verdict.basis,
                verdict.statement,
            )
        )
    found = _reachable(found)
    found += [
        Measure(column, "semantic-diversity", "d", {"l": size}, distance, True, "the release alone", words)
        for column, size, distance, words in semantic_distances(store, entries)
    ]
    sensitive = [e.name for e in entries if e.role.needs_requirement]
    return Measures(name, records, suppressed, evidence.quasi_identifiers(), tuple(sensitive), tuple(found), skipped)


def _reachable(found: Sequence[Measure]) -> list[Measure]:
    """The figures, without those of a larger l than the first that no parameter reaches."""
    out: list[Measure] = []
    ended: set[tuple[str, str]] = set()
    for one in found:
        key = (one.column, one.model)
        if key in ended:
            continue
        nothing = {"recursive-cl-diversity": float("inf"), "tau-l-diversity": 1.0}.get(one.model)
        if nothing is not None and one.achieved >= nothing:
            ended.add(key)
        out.append(one)
    return out


MEANINGLESS = {("alpha-k-anonymity", "k"), ("p-sensitive-k-anonymity", "k"), ("le-diversity", "l")}
"""Parameters that do not change the figure."""


def candidates(evidence: Evidence) -> list[Model]:
    """All models that may say something about the columns, each with parameters that do not matter."""
    out: list[Model] = [KAnonymity(k=2)] if evidence.quasi_identifiers() else []
    for name, column in evidence.columns.items():
        if column.role is None or not column.role.needs_requirement:
            continue
        if column.form == "terms":
            out += [QSDiversity(on=name, c=1.0, l=size) for size in (2, 3, 5, 10)]
            out += [QSCloseness(on=name, t=1.0), QSCloseness(on=name, t=1.0, distance="emd")]
            continue
        height = 0 if column.hierarchy is None else column.hierarchy.height
        out += [
            AlphaKAnonymity(on=name, alpha=0.5, k=1),
            DistinctLDiversity(on=name, l=2),
            FrequencyLDiversity(on=name, l=2),
            EntropyLDiversity(on=name, l=2),
            *(RecursiveCLDiversity(on=name, c=1.0, l=size) for size in range(2, min(MOST_L, column.d) + 1)),
            *(TauLDiversity(on=name, tau=0.9, l=size) for size in range(2, min(MOST_L, column.d) + 1)),
            PSensitiveKAnonymity(on=name, p=2, k=2),
            TCloseness(on=name, t=0.5),
            TCloseness(on=name, t=0.5, distance="ordered"),
            TCloseness(on=name, t=0.5, distance="tree"),
            BetaLikeness(on=name, beta=1.0, form="basic"),
            BetaLikeness(on=name, beta=1.0),
            DeltaDisclosure(on=name, delta=1.0),
            ExpandedK(on=name, k=2),
            *(LEDiversity(on=name, l=2, e=depth) for depth in range(1, height + 1)),
        ]
    return out


def _speaks(model: Model, evidence: Evidence, skipped: dict[str, str]) -> bool:
    """Whether the model applies to its column; otherwise the reason is noted."""
    way = model.distance if isinstance(model, TCloseness) else "equal"
    called = " on ".join([model.model if way == "equal" else f"{model.model} ({way})", *model.on])
    if way == "ordered" and not evidence.columns[model.on[0]].ordered:
        skipped.setdefault(called, "the values have no declared order.")
        return False
    try:
        model.checks(evidence)
    except ModelDoesNotApply as error:
        skipped.setdefault(called, error.message)
        return False
    return True
