"""Independent verification: every requirement, on every published cell, by code that is independent of the methods."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isclose, prod, sqrt
from pathlib import Path
from typing import Any, get_args

import numpy as np

from noren.engines import Engine, Table, engine_for
from noren.engines.left_out import LEFT_OUT
from noren.errors import ReleaseError, RequirementNotMet
from noren.estimates.counts.axes import Weights
from noren.files import DESCRIPTOR
from noren.methods import METHODS
from noren.models import MODELS
from noren.models.base import Judgement, Model, Overall
from noren.models.verdict import Basis, Verdict, Verdicts
from noren.policy.policy import Policy
from noren.policy.resolve import declared_column
from noren.progress import Meter, silent
from noren.release.answers import weight_numbers
from noren.release.closed import list_names
from noren.release.manifest import PublishedMargin
from noren.release.package import demand_closed
from noren.release.published import Published
from noren.release.release import Release, open_release
from noren.release.signature import demand_signer
from noren.schema.hierarchy import Hierarchy
from noren.secret import PublicKey
from noren.statements import Statement
from noren.workflow.domain_check import (
    demand_legible,
    demand_shown,
    only_policy_confirms,
    other_domains,
    refute,
    tallied_columns,
)
from noren.workflow.mechanism import settings_of, with_mechanism
from noren.workflow.over_rows import class_methods, judge_people, keeps_together
from noren.workflow.prepare import read_policy
from noren.workflow.truth import Truth, overall_distributions, with_members


def check(
    published: Published,
    requirements: Sequence[Model],
    overall: Mapping[str, Overall] | None = None,
    *,
    show: int = 0,
    several: bool = False,
    people: bool = False,
    engine: str | Engine | None = None,
    meter: Meter = silent,
) -> list[Verdict]:
    """Check a published table in one pass over the cells of the requirements.

    `show` names up to so many classes that fall short, per requirement. With `people`, the store says whose row each
    is, and people are counted; `several` says that people may have several rows and nobody knows whose they are: then
    what rows show about classes settles little.
    """

    make = partial(Judgement.of, published.by_name, requirements, overall, show, people=people, several=several)
    return engine_for(published, engine).judge(published, make, meter=meter)


def demand(verdicts: Sequence[Verdict], hint: str | None = None) -> None:
    """Raise if a requirement does not hold."""
    failed = [verdict for verdict in verdicts if verdict.holds is not True]
    if failed:
        lines = [
            (
                f"{v.model} on {v.column!r}: required {v.required:g}, achieved {v.achieved:g} ({v.breaches} of "
                f"{v.records} records fall short)"
            )
            for v in failed
        ]
        raise RequirementNotMet("not met, so nothing is published: " + "; ".join(lines) + ".", hint=hint)


def verify(
    release: Release | str | Path,
    policy: Policy | str | Path | None = None,
    *,
    original: Any = None,
    show: int = 0,
    signer: PublicKey | str | Path | None = None,
    engine: str | Engine | None = None,
    meter: Meter = silent,
) -> Verdicts[Verdict]:
    """Check a release against a policy, or against the requirements that it claims.

    The world is closed: a file, column, field or generalised value that the manifest does not describe is refused by
    name. With `signer`, a public key or its file, the release must be signed by that key.

    Without the original, closeness is judged from the published design where that suffices, else from an estimate of
    the overall distribution; the verdict says which. With the original, its exact distribution is used, and every
    value must be possible often enough. `show` names up to so many classes that fall short, per requirement.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": ["cook", "clerk", "miner", "nurse"] * 10})
    >>> attributes = {"town": nr.quasi_identifier(), "job": nr.sensitive()}
    >>> policy = nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="job", l=2)])
    >>> release = nr.anonymize(people, policy)
    >>> nr.verify(release, original=people)
    <Verdicts: 2 of 2 hold>
    >>> stricter = nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="job", l=3)])
    >>> nr.verify(release, stricter).failed[0]
    <Verdict: frequency-l-diversity on job: asked 3, found 2, FAILS>
    """
    just_opened = not isinstance(release, Release)
    release = open_release(release)
    if signer is not None:
        demand_signed(release, signer)
    unsure = demand_described(release, just_opened=just_opened)
    demand_legible(release)
    policy = None if policy is None else read_policy(policy)
    stated = read_claims(release)
    requirements = stated if policy is None else list(policy.require)
    truth = original if isinstance(original, Truth) else None  # whoever asks for more than this has read it already
    if truth is None and original is not None:
        truth = Truth(release, policy, original, engine)
    overall = overall_distributions(release, requirements, None if release.manifest.sample is not None else truth)
    published = release if policy is None else release.over(_declared_columns(release, requirements, policy))
    seen = 0

    def count(done: int, *, note: str = "", total: int | None = None) -> None:
        nonlocal seen
        seen += done
        meter(done, note=note, total=total)

    several = not release.manifest.rows_are_people
    verdicts = check(published, requirements, overall, show=show, several=several, engine=engine, meter=count)
    read = Judgement.of(published.by_name, requirements, overall).needs
    tallies = demand_cells(release, read, tallied_columns(release, policy))
    demand_shown(release, tallies)
    if not any(verdict.holds is False for verdict in verdicts):
        _demand_claims(release, stated, verdicts if truth is None and stated == requirements else None, engine)
    if truth is not None and policy is not None and any(model.of_mechanism for model in requirements):
        used = [(one.name, settings_of(policy, one.name) | one.facts) for one in release.manifest.methods]
        verdicts = with_mechanism(verdicts, published, truth.records, requirements, used)
    keyed = policy is not None and bool(policy.people.key) and release.manifest.sample is None
    if truth is not None and keyed and class_methods(release):
        together = keeps_together(release)
        verdicts = judge_people(verdicts, published, truth.records, requirements, together=together)
    if policy is not None:
        verdicts += find_unwanted(release.columns, policy, release.records, "the release publishes")
        verdicts += _another_share(release, policy)
        verdicts += other_nodes(release, policy)
        verdicts += other_domains(release, policy, tallies, truth)
        verdicts += asked_rows(release, policy)
        verdicts += asked_margins(release, policy)
    if requirements and seen != release.rows and not any(v.holds is False for v in verdicts):
        raise ReleaseError.distrust(f"the data hold {seen} rows, the manifest says {release.rows}.")
    if truth is not None:
        verdicts += [*truth.verdicts(), *truth.left_out(requirements)]
        verdicts += [] if policy is None else kept_rows(release, policy, truth)
        if policy is not None and release.manifest.margins and release.manifest.sample is None:
            verdicts += declared_noise(release, truth.table)
    verdicts = left_to_holder(release, verdicts, truth is not None)
    said = only_policy_confirms(release) if policy is None else []
    unconfirmed = [f"only the policy can confirm {'; '.join(said)}"] if said else []
    if unsure:
        unconfirmed.append(f"only the software version that wrote them can confirm the bytes of {', '.join(unsure)}")
    if many := sum(verdict.by_holder for verdict in verdicts):
        whose = f"only the holder, who knows whose rows are whose, can check {many} of {len(verdicts)} requirements"
        unconfirmed.append(f"{whose}; the release states that the holder did")
    return Verdicts(verdicts, tuple(unconfirmed))


def left_to_holder(release: Release, verdicts: Sequence[Verdict], knows_people: bool) -> list[Verdict]:
    """Mark verdicts as checked by the holder, if the original is not given and the release states that they hold."""
    stated = {(one.model, one.column, one.required) for one in release.manifest.verdicts if one.holds}
    return [
        replace(one, by_holder=False)
        if one.by_holder and (knows_people or (one.model, one.column, one.required) not in stated)
        else one
        for one in verdicts
    ]


def _demand_claims(
    release: Release, stated: Sequence[Model], found: Sequence[Verdict] | None, engine: str | Engine | None
) -> None:
    """Refuse a manifest whose claims the release does not show; `found` are verdicts on the same claims."""
    if found is None:
        shares = overall_distributions(release, stated, None)
        found = check(release, stated, shares, several=not release.manifest.rows_are_people, engine=engine)
        demand_kept(found)
    if not any(claim.holds is False for claim in found):
        demand_claims(release, found)


def _declared_columns(release: Release, requirements: Sequence[Model], policy: Policy) -> dict[str, Statement]:
    """Return columns with the roles of the given policy, and its trees and distances if they matter."""
    needed = {name for m in requirements if m.needs & {"tree", "distance"} for name in m.on}
    out: dict[str, Statement] = {}
    for statement in release.statements:
        name, column = statement.name, statement.column
        if name not in policy.attributes:
            continue
        column = with_members(policy.attributes[name], column)
        if name in needed and not column.is_open:
            out[name] = statement.over(declared_column(policy, column))
            continue
        known = {"knowledge": policy.knowledge[name]} if name in policy.knowledge else {}
        domain = None if column.is_open else column.domain
        out[name] = statement.over(column.over(name, domain, role=policy.attributes[name].role, **known))
    return out


def _another_share(release: Release, policy: Policy) -> list[Verdict]:
    """Return a failing verdict if a release states another sampling probability than the policy."""
    asked, said = policy.sample.share or 1.0, release.manifest.sample or 1.0
    if asked == said:
        return []
    text = f"the sampling probability of a record is {said:g} in the release, but {asked:g} in the policy"
    return [refute("sample-share", ALL, release.records, text, asked, said)]


def find_unwanted(columns: Sequence[str], policy: Policy, records: int, what: str) -> list[Verdict]:
    """Return a failing verdict for every column that the policy drops or does not contain."""
    out = []
    for name in columns:
        known = policy.attributes.get(name)
        if known is None or known.role.is_dropped:
            why = f"which has the role {known.role} in the policy" if known else "which is not in the policy"
            out.append(refute("published-columns", name, records, f"{what} {name!r}, {why}"))
    return out


def read_claims(release: Release) -> list[Model]:
    """Return the requirements in the manifest."""
    unknown = sorted({str(item.get("model")) for item in release.manifest.requirements} - MODELS.keys())
    if unknown:
        raise ReleaseError(
            f"the release claims models that this version does not know: {', '.join(map(repr, unknown))}.",
            hint="Install the version of noren that wrote it, or a newer one.",
        )
    try:
        models = [MODELS[item["model"]].model_validate(item) for item in release.manifest.requirements]
        written = [model.model_dump(mode="json") for model in models]
        pairs = zip(release.manifest.requirements, written, strict=True)
        if any(json.dumps(item) != json.dumps({k: v for k, v in one.items() if k in item}) for item, one in pairs):
            raise ValueError("not in the written form")
    except ValueError:
        raise ReleaseError.distrust("the release claims a requirement with parameters that no model has.") from None
    named = {name for model in models for name in model.on}
    bare = [c.name for c in release.statements if c.name not in named and c.role.needs_requirement]
    if bare:
        raise ReleaseError(
            f"the release claims nothing about sensitive columns: {', '.join(map(repr, bare))}.",
            hint="Check it against a policy, or ask the holder for it again.",
        )
    return models


NEAR = 1e-6
"""How far a stated figure may be from the one that is found: they are computed alike."""
ALL = "all columns"


def demand_described(release: Release, *, just_opened: bool = False) -> list[str]:
    """Refuse a directory with undescribed content, and generalised values whose labels do not match what they cover.

    The directory is read again unless it was `just_opened`. Returned are the files whose bytes only the version that
    wrote them can compare.
    """
    unsure: list[str] = []
    if release.path is not None:
        unsure = demand_closed(release.path, release.manifest if just_opened else None)
    elif hasattr(release.store, "demand_closed"):
        release.store.demand_closed()
    _demand_methods(release)
    for statement in release.statements:
        if found := statement.find_misnamed():
            raise ReleaseError.distrust(
                f"column {statement.name!r}: the label {list_names(found)} does not match the values that it is "
                "declared to cover."
            )
    return unsure


def demand_cells(release: Release, read: Collection[str], tallied: Collection[Statement]) -> dict[str, Any]:
    """Refuse cells that differ from the manifest's description; those that were not `read` for a requirement are read
    here. Weights must be above 0. Returns the tallies of the `tallied` columns."""
    weight, names = release.manifest.weight, {statement.name for statement in tallied}
    left = [s for s in release.statements if s.name in names or s.name not in read or s.name == weight]
    tallies: dict[str, Any] = dict.fromkeys(names, 0)
    for batch in release.store.batches(left) if left else ():
        if weight is not None:
            Weights.scaled(weight, weight_numbers(release, release.column(weight), batch[weight]))
        for statement in tallied:
            tallies[statement.name] = tallies[statement.name] + statement.tally(batch[statement.name])
    return tallies


def demand_claims(release: Release, found: Sequence[Verdict]) -> None:
    """Refuse a manifest with verdicts on its requirements that are not `found`, or with other figures.

    Figures are those of people, so where people have several rows the rows do not show them; nor can a recipient see
    what rests on the original, which is stated without a figure.
    """
    stated = [one for one in release.manifest.verdicts if one.model != LEFT_OUT]
    absent = [one for one in release.manifest.verdicts if one.model == LEFT_OUT]
    wrong = [one for one in absent if (one.column, one.achieved, release.suppressed > 0) != (ALL, None, True)]
    if len(absent) > 1 or wrong or [(v.model, v.column) for v in stated] != [(v.model, v.column) for v in found]:
        raise _claim_error("verdicts on requirements that it does not list")
    for one, other in zip(stated, found, strict=True):
        grounds = one.basis in get_args(Basis) and (one.achieved is None) == (one.basis == "the original")
        unseen = one.achieved is None or other.basis == "the original" or not release.manifest.rows_are_people
        near = unseen or isclose(one.achieved or 0.0, other.achieved, rel_tol=NEAR, abs_tol=NEAR)
        if not (one.holds and grounds and near and one.required == other.required):
            raise _claim_error(f"a verdict on {one.model} of {one.column!r} that differs from its cells")


def demand_kept(claims: Sequence[Verdict]) -> None:
    """Refuse a manifest with claims that its cells refute; an estimate refutes nothing."""
    for claim in claims:
        if claim.holds is False and claim.basis == "the release alone":
            raise _claim_error(f"{claim.model} of {claim.column!r}, which its cells do not meet")


def _claim_error(what: str) -> ReleaseError:
    return ReleaseError.distrust(f"the manifest states {what}.")


def _demand_methods(release: Release) -> None:
    """Refuse unknown names of methods, and methods for columns that the release does not have."""
    for one in release.manifest.methods:
        names = [one.name, *([] if one.chosen is None else one.chosen.split(" + "))]
        if any(name not in METHODS for name in names):
            raise ReleaseError(
                "the manifest lists a method that this version does not know.",
                hint="Install the version of noren that wrote it, or a newer one.",
            )
        if not set(one.on) <= set(release.columns):
            raise _claim_error("a method for columns that it does not have")


def demand_signed(release: Release, signer: PublicKey | str | Path) -> None:
    """Refuse a release that the required signer did not sign."""
    if release.path is None:
        raise ReleaseError("a release in memory has no signature.", hint="Give its directory.")
    demand_signer(release.path / DESCRIPTOR, signer)


def other_nodes(release: Release, policy: Policy) -> list[Verdict]:
    """Return a failing verdict for every column whose generalised values differ from the policy's hierarchy."""
    out = []
    for statement in release.statements:
        known = policy.hierarchies.get(statement.name)
        if known is None or statement.nodes is None:
            continue
        found = _unlike(statement, known)
        if found:
            listed = list_names(found)
            text = f"{listed} of {statement.name!r} differ from the nodes of this name in the policy's hierarchy"
            out.append(refute("published-nodes", statement.name, release.records, text, found=len(found)))
    return out


def _unlike(statement: Statement, known: Hierarchy) -> list[str]:
    """Return generalised values that the hierarchy does not have; all values if it lacks some."""
    absent = known.missing(statement.domain.values)
    return absent or statement.find_misnamed(known.restrict_to(statement.domain.values))


# ---------------------------------------------------------------------- rows of a person, noise of margins


MOST_ROWS = "most-rows"
CHANCE = 1e-9


def asked_rows(release: Release, policy: Policy) -> list[Verdict]:
    """Return a failing verdict if a release declares another bound on rows than its policy."""
    asked, said = policy.people.most_rows, release.manifest.most_rows
    if asked == said or release.manifest.rows_are_people:
        return []
    text = f"the largest number of rows of one person differs: release {_rows_text(said)}, policy {_rows_text(asked)}"
    return [refute(MOST_ROWS, ALL, release.records, text, asked or 0, said or 0)]


def kept_rows(release: Release, policy: Policy, truth: Truth) -> list[Verdict]:
    """Return a verdict on whether nobody has more rows in the original than the release declares; none without a bound
    or without the key of people.

    Of a sample, and where people were left out, those with more may be the ones who are not in the release.
    """
    most = release.manifest.most_rows
    if most is None or not policy.people.key:
        return []
    people = truth.table.people
    rows = np.ones(1, np.int64) if people is None else np.bincount(people)
    many, found = int((rows > most).sum()) if people is not None else 0, int(rows.max(initial=0))
    left = release.manifest.sample is not None or release.suppressed > 0
    holds = True if not many else None if left else False
    text = f"people of the original with more rows than the release declares: {many:,}" if many else ""
    breaches = many if holds is False else 0
    return [Verdict(MOST_ROWS, ALL, float(most), float(found), holds, "the original", release.records, breaches, text)]


def _rows_text(most: int | None) -> str:
    return "nothing" if most is None else str(most)


def asked_margins(release: Release, policy: Policy) -> list[Verdict]:
    """Return a verdict on the epsilons of a release's margins, compared with the policy's; none if neither has
    margins."""
    asked = {(margin.of, margin.epsilon, margin.sensitivity) for margin in policy.margins}
    found = [(margin.of, margin.epsilon, margin.sensitivity) for margin in release.manifest.margins]
    if not asked and not found:
        return []
    strange = [margin for margin in found if margin not in asked]
    text = "" if not strange else f"the margin {' x '.join(strange[0][0])} of the release differs from the policy"
    spent, holds = release.manifest.spent, not strange and len(set(found)) == len(found)
    ground, records = "the release alone", release.records
    return [
        Verdict("margins", "all columns", policy.spent, spent, holds, ground, records, 0 if holds else records, text)
    ]


def declared_noise(release: Release, table: Table) -> list[Verdict]:
    """Return a verdict on every margin: whether its distance from the original fits the declared noise.

    This shares no code with the drawing. The distances of the published counts from the true ones must look like
    discrete Laplace noise of the declared scale, so exact counts, or noise that is too small, fail.
    """
    return [_noise(release, margin, table) for margin in release.manifest.margins]


def _noise(release: Release, margin: PublishedMargin, table: Table) -> Verdict:
    shape = tuple(release.column(name).d for name in margin.of)
    rows, times = table.histogram(margin.of)
    places = []
    for j, name in enumerate(margin.of):
        known = release.column(name).domain.index
        places.append(np.array([known.get(value, -1) for value in table.columns[name].domain.values])[rows[:, j]])
    title, records = ", ".join(margin.of), release.records
    if any((place < 0).any() for place in places):
        text = "the margin does not count some values of the original"
        return Verdict("margin-noise", title, margin.scale, float("nan"), None, "the original", records, 0, text)
    truth = np.bincount(np.ravel_multi_index(tuple(places), shape), times, prod(shape))
    distance = float(np.abs(np.array(margin.counts) - truth).sum())
    low, high = reach_of_noise(len(margin.counts), margin.scale)
    holds = low <= distance <= high
    text = (
        ""
        if holds
        else (
            f"counts differ from the original by {distance:,.0f} in total; the declared noise gives {low:,.0f} to "
            f"{high:,.0f}"
        )
    )
    found = distance / len(margin.counts)
    return Verdict(
        "margin-noise", title, margin.scale, found, holds, "the original", records, 0 if holds else records, text
    )


def reach_of_noise(cells: int, scale: float) -> tuple[float, float]:
    """Return the range of the sum of absolute noise, exceeded once in 10^9 tables on either side.

    The absolute value of discrete Laplace noise is 0 with chance (1 - q) / (1 + q), else geometric with q = exp(-1 /
    scale): by Chernoff's bound on its moment generating function.
    """
    from scipy.optimize import minimize_scalar

    q = np.exp(-1 / scale)
    goal = -np.log(CHANCE)

    def log_moment(s: float) -> float:
        return float(np.log((1 - q) / (1 + q)) + np.log1p(2 * q * np.exp(s) / (1 - q * np.exp(s))))

    def upper(s: float) -> float:
        return float((goal + cells * log_moment(s)) / s)

    most = 1 / scale
    high = minimize_scalar(upper, bounds=(1e-6 * most, most * (1 - 1e-9)), method="bounded").fun
    low = -minimize_scalar(
        lambda s: (goal + cells * log_moment(-s)) / s, bounds=(1e-6, 60 + sqrt(cells)), method="bounded"
    ).fun
    return max(float(low), 0.0), float(high)
