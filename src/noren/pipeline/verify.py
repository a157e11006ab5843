"""Independent verification: every requirement, on every published cell, by code that made none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from noren.cells import GroupTable, OpenCells, SetCells, TermCells, batch_length
from noren.designs.decoys import DecoyDesign
from noren.engines.local import LocalEngine
from noren.errors import DataError, ReleaseError, RequirementNotMet
from noren.methods.base import TermColumn
from noren.models import MODELS, LEDiversity, SemanticDiversity
from noren.models.base import Evidence, Model, Overall, PublishedColumn, Verdict
from noren.models.t_closeness import TCloseness
from noren.pipeline.terms import priors, true_terms
from noren.policy.policy import Policy
from noren.policy.reading import dropping, open_table
from noren.policy.resolve import declared_meaning
from noren.release.manifest import ColumnEntry
from noren.release.release import Release
from noren.release.store import Store
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role

Progress = Callable[[int], None]


def check_store(
    store: Store,
    columns: Sequence[ColumnEntry],
    requirements: Sequence[Model],
    overall: Mapping[str, Overall],
    progress: Progress | None = None,
    meanings: Mapping[str, PublishedColumn] | None = None,
    tables: Mapping[str, GroupTable] | None = None,
    knowledge: Mapping[str, Knowledge] | None = None,
    show: int = 0,
) -> list[Verdict]:
    """One pass over the cells that the requirements name. `meanings` replaces what the manifest says of a column."""
    published = {entry.name: entry.published for entry in columns}
    for name, known in (knowledge or {}).items():
        published[name] = replace(published[name], knowledge=known)
    published |= dict(meanings or {})
    for name, table in (tables or {}).items():
        published[name] = replace(published[name], groups=table)
    evidence = Evidence(published, overall)
    absent = sorted({name for model in requirements for name in model.on} - evidence.columns.keys())
    if absent:
        raise ReleaseError(
            f"the requirements name columns that the release does not have: {', '.join(map(repr, absent))}.",
            hint=f"It has {', '.join(evidence.columns)}.",
        )
    checks = [check for model in requirements for check in model.checks(evidence)]
    for check in checks:
        check.show = show
    names = {name for check in checks for name in check.needs}
    wanted = [entry for entry in columns if entry.name in names]
    if wanted:
        for batch in store.batches(wanted):
            for check in checks:
                check.observe_batch(batch)
            if progress is not None:
                progress(batch_length(batch))
    return [check.verdict() for check in checks]


def demand(verdicts: Sequence[Verdict]) -> None:
    """Raise where a requirement does not hold."""
    failed = [verdict for verdict in verdicts if verdict.holds is not True]
    if failed:
        lines = [
            f"{v.model} on {v.column!r}: asked {v.required:g}, found {v.achieved:g} "
            f"({v.breaches} of {v.records} records fall short)"
            for v in failed
        ]
        raise RequirementNotMet("not met, so nothing is published: " + "; ".join(lines) + ".")


def verify(
    release: Release,
    policy: Policy | None = None,
    *,
    original: Any = None,
    progress: Progress | None = None,
    show: int = 0,
) -> list[Verdict]:
    """Check a release against a policy, or against the requirements it claims itself.

    Without the original, closeness is judged from the published design where that suffices, else from an estimate of
    the overall distribution; the verdict says which. With the original, its exact distribution is used, and every
    value must be possible often enough. `show` names up to so many classes that fall short, per requirement.
    """
    requirements = list(policy.require if policy is not None else claimed(release))
    overall = overall_distributions(release, requirements, policy, original)
    truth = {} if original is None else true_terms(release, policy, original)
    overall |= priors(truth)
    meanings = {} if policy is None else _declared(release, requirements, policy)
    seen = 0

    def count(rows: int) -> None:
        nonlocal seen
        seen += rows
        if progress is not None:
            progress(rows)

    store, columns = release._store, release.manifest.columns
    tables, knowledge = release.tables, release.knowledge
    verdicts = check_store(store, columns, requirements, overall, count, meanings, tables, knowledge, show)
    if policy is not None:
        verdicts += _unwanted(release, policy)
    if requirements and seen != release.rows and not any(v.holds is False for v in verdicts):
        raise ReleaseError(
            f"the data hold {seen} rows, the manifest says {release.rows}.",
            hint="Do not use it; ask the holder for it again.",
        )
    if original is not None:
        verdicts += _truth_verdicts(release, policy, original)
        verdicts += [_term_verdict(release, column) for column in truth.values()]
    return verdicts


def _term_verdict(release: Release, column: TermColumn) -> Verdict:
    """No term is published more often than it is true. Which record had which is not known any more."""
    entry = release.manifest.column(column.name)
    shown = np.zeros(entry.d, np.int64)
    for batch in release.batches([entry.name]):
        cells = batch[entry.name]
        assert isinstance(cells, TermCells)
        shown += cells.counts()
    place = [column.domain.index[value] for value in entry.values or ()]
    over = np.maximum(shown - column.cells.counts()[place], 0)
    records, people = len(column.cells), release.records + release.manifest.suppressed
    text = "no term is published more often than it is true"
    if over.any():
        text = "some terms are published more often than they are true"
    if records != people:
        text = f"the original has {records} records, the release speaks of {people}"
    return Verdict(
        model="terms-are-true",
        column=entry.name,
        required=1.0,
        achieved=float(1 - over.sum() / max(1, int(shown.sum()))),
        holds=not over.any() and records == people,
        basis="the original",
        records=records,
        breaches=int(over.sum()),
        statement=text,
    )


def _declared(release: Release, requirements: Sequence[Model], policy: Policy) -> dict[str, PublishedColumn]:
    """Columns with the roles of the policy that is checked; those of semantic requirements with its distances too."""
    semantic = {name for m in requirements if isinstance(m, SemanticDiversity) for name in m.on}
    trees = {name for m in requirements if isinstance(m, LEDiversity) for name in m.on}
    trees |= {name for m in requirements if isinstance(m, TCloseness) and m.distance == "tree" for name in m.on}
    out = {}
    for entry in release.manifest.columns:
        if entry.name in policy.attributes:
            known = policy.knowledge.get(entry.name, release.knowledge.get(entry.name))
            out[entry.name] = replace(entry.published, role=policy.attributes[entry.name].role, knowledge=known)
        sets = entry.form in ("set", "member")
        if (entry.name in semantic and sets) or (entry.name in trees and entry.form != "open"):
            distances, tree = declared_meaning(policy, entry.name, entry.domain, entry.meaning.hierarchy)
            out[entry.name] = replace(out[entry.name], distances=distances, hierarchy=tree)
    return out


def _unwanted(release: Release, policy: Policy) -> list[Verdict]:
    """A failing verdict for every published column that the policy drops or does not know."""
    out = []
    for entry in release.manifest.columns:
        known = policy.attributes.get(entry.name)
        if known is None or known.role is Role.IDENTIFIER:
            why = "which the policy does not name" if known is None else "which the policy calls an identifier"
            text = f"the release publishes {entry.name!r}, {why}"
            ground = "the release alone"
            out.append(
                Verdict(
                    "published-columns", entry.name, 0.0, 1.0, False, ground, release.records, release.records, text
                )
            )
    return out


def claimed(release: Release) -> list[Model]:
    """The requirements that the manifest states."""
    unknown = sorted({str(item.get("model")) for item in release.manifest.requirements} - MODELS.keys())
    if unknown:
        raise ReleaseError(
            f"the release claims models that this version does not know: {', '.join(map(repr, unknown))}.",
            hint="Install the version of noren that wrote it, or a newer one.",
        )
    try:
        models = [MODELS[item["model"]].model_validate(item) for item in release.manifest.requirements]
    except ValidationError:
        raise ReleaseError(
            "the release claims a requirement with parameters that no model has.",
            hint="Do not use it; ask the holder for it again.",
        ) from None
    named = {name for model in models for name in model.on}
    bare = [c.name for c in release.manifest.columns if c.role.needs_requirement and c.name not in named]
    if bare:
        raise ReleaseError(
            f"the release claims nothing about sensitive columns: {', '.join(map(repr, bare))}.",
            hint="Check it against a policy, or ask the holder for it again.",
        )
    return models


def overall_distributions(
    release: Release, requirements: Sequence[Model], policy: Policy | None, original: Any
) -> dict[str, Overall]:
    """What closeness of decoy columns is judged against: the original's shares, or an estimate from the release."""
    plain = {name for name, design in release.designs.items() if isinstance(design, DecoyDesign)}
    names = [n for m in requirements if isinstance(m, TCloseness) for n in m.on if n in plain]
    names = list(dict.fromkeys(names))
    if not names:
        return {}
    if original is not None:
        counts = original_counts(release, names, policy, original)
        return {name: Overall(c / c.sum(), "the original") for name, c in counts.items()}
    inclusions: dict[str, np.ndarray] = {}
    for batch in release.batches(names):
        for name in names:
            cells = batch[name]
            assert isinstance(cells, SetCells)
            inclusions[name] = inclusions.get(name, 0) + cells.inclusions()
    out = {}
    for name in names:
        design = release.designs[name]
        if isinstance(design, DecoyDesign):
            out[name] = _estimated(design, inclusions[name], release.records)
    return out


def _estimated(design: DecoyDesign, inclusions: np.ndarray, records: int) -> Overall:
    """The overall distribution by linear inversion, with its standard errors."""
    if design.p_gap == 0:
        return Overall(np.full(design.d, 1 / design.d), "an estimate from the release")
    p_true, p_other, gap = design.p_true, design.p_other, design.p_gap
    shares = np.maximum((inclusions / records - p_other) / gap, 0)
    shares = shares / shares.sum()
    inside = (p_true * (1 - p_other) ** 2 + (1 - p_true) * p_other**2) / gap**2
    outside = p_other * (1 - p_other) / gap**2
    variance = outside + (inside - outside) * shares - shares
    return Overall(shares, "an estimate from the release", np.sqrt(np.maximum(variance, 0) / records))


def original_counts(
    release: Release, names: Sequence[str], policy: Policy | None, original: Any, strangers: bool = False
) -> dict[str, np.ndarray]:
    """How often each value of the published domains occurs in the original.

    With `strangers`, one entry more counts cells outside a domain taken from the data: only records have them that
    were left out.
    """
    from noren.io.source import open_source

    source = open_source(original) if policy is None else open_table(original, policy)
    domains = {name: release.manifest.column(name).domain for name in names}
    if strangers:
        domains = {name: _with_rest(domain) for name, domain in domains.items()}
    absent = [name for name in names if name not in source.columns]
    if absent:
        raise DataError(
            f"{source.name}: no column {', '.join(map(repr, absent))}, which the release has.",
            hint="Give the table that the release was made from.",
        )
    drop = dropping(policy, source.columns) if policy is not None else []
    loose = [name for name in drop if name not in names]
    counts = {name: np.zeros(len(domain), np.int64) for name, domain in domains.items()}
    for batch in LocalEngine().encode(source, domains, open_columns=loose, drop_missing=drop):
        for name in names:
            counts[name] += np.bincount(batch.codes[name], minlength=len(domains[name]))
    return counts


def _with_rest(domain: Domain) -> Domain:
    """A domain taken from the data, with a place for all other values and for missing ones."""
    if domain.source != "data":
        return domain
    added = tuple(label for label in (OTHER, MISSING) if label not in domain.index)
    return Domain((*domain.values, *added), "string", "data")


def _truth_verdicts(release: Release, policy: Policy | None, original: Any) -> list[Verdict]:
    """Every true value must be possible at least as often as it is true, less the records that were left out."""
    names = [name for name, design in release.designs.items() if design.p == 1.0]
    names += [entry.name for entry in release.manifest.columns if entry.form in ("node", "group")]
    if not names:
        return []
    missing = release.manifest.suppressed
    truth = original_counts(release, names, policy, original, strangers=missing > 0)
    possible = _possible(release, names)
    out = []
    for name in names:
        d = len(possible[name])
        strange = int(truth[name][d:].sum())
        short = np.maximum(truth[name][:d] - possible[name], 0)
        short = np.append(short, strange)
        records = int(truth[name].sum())
        holds = int(short.sum()) <= missing and records == release.records + missing
        text = "every value is possible at least as often as it is true"
        if missing:
            text += f", apart from the {missing} records left out"
        if not holds:
            text = "some true values are not possible"
        if records != release.records + missing:
            text = f"the original has {records} records, the release {release.records} and {missing} left out"
        out.append(
            Verdict(
                model="truth-in-set",
                column=name,
                required=1.0,
                achieved=float(1 - max(0, short.sum() - missing) / max(1, records)),
                holds=holds,
                basis="the original",
                records=records,
                breaches=max(0, int(short.sum()) - missing),
                statement=text,
            )
        )
    return out


def _possible(release: Release, names: Sequence[str]) -> dict[str, np.ndarray]:
    """How many records leave each base value of a column possible."""
    entries = {name: release.manifest.column(name) for name in names}
    seen: dict[str, Any] = {
        name: np.zeros(len(e.catalogue) if e.form == "node" else e.groups or e.d, np.int64)
        for name, e in entries.items()
    }
    for batch in release.batches(names):
        for name in names:
            cells = batch[name]
            assert not isinstance(cells, OpenCells)
            once = cells.inclusions() if isinstance(cells, SetCells) else np.bincount(cells.data, minlength=cells.d)
            seen[name] = seen[name] + once
    for name, entry in entries.items():
        if entry.form == "node":
            members, bounds = entry.catalogue.flat_members()
            weights = np.repeat(seen[name], np.diff(bounds))
            seen[name] = np.bincount(members, weights, minlength=entry.d).astype(np.int64)
        elif entry.form == "group":
            seen[name] = release.tables[name].totals
    return seen
