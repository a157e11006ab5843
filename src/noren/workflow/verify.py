"""Independent verification: every requirement, on every published cell, by code that made none of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from noren.engines import Engine, engine_for
from noren.errors import ReleaseError, RequirementNotMet
from noren.models import MODELS
from noren.models.base import Model, Overall
from noren.models.judgement import Judgement
from noren.models.verdict import Verdict, Verdicts
from noren.policy.policy import Policy
from noren.policy.resolve import declared_column
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.release.release import Release, open_release
from noren.secret import PublicKey
from noren.statements import Statement
from noren.workflow.described import (
    asked_margins,
    asked_rows,
    declared_noise,
    demand_cells,
    demand_claims,
    demand_described,
    demand_kept,
    demand_signed,
    kept_rows,
    other_nodes,
)
from noren.workflow.domain_check import (
    demand_legible,
    demand_shown,
    only_policy_confirms,
    other_domains,
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
    """Judge a published table in one pass over the cells that the requirements name.

    `show` names up to so many classes that fall short, per requirement. With `people`, the store says whose row each
    is, and people are counted; `several` says that people may have several rows and nobody knows whose they are: then
    what rows show about classes settles little.
    """

    make = partial(Judgement.of, published.by_name, requirements, overall, show, people=people, several=several)
    return engine_for(published, engine).judge(published, make, meter=meter)


def demand(verdicts: Sequence[Verdict], hint: str | None = None) -> None:
    """Raise where a requirement does not hold."""
    failed = [verdict for verdict in verdicts if verdict.holds is not True]
    if failed:
        lines = [
            f"{v.model} on {v.column!r}: asked {v.required:g}, found {v.achieved:g} "
            f"({v.breaches} of {v.records} records fall short)"
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
    """Check a release against a policy, or against the requirements it claims itself.

    The world is closed: a file, column, field or general value that the manifest does not describe is refused by name.
    With `signer`, a public key or its file, the release must be signed by that key.

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
    release = open_release(release)
    if signer is not None:
        demand_signed(release, signer)
    unsure = demand_described(release)
    demand_legible(release)
    policy = None if policy is None else read_policy(policy)
    stated = claimed(release)
    requirements = stated if policy is None else list(policy.require)
    truth = original if isinstance(original, Truth) else None  # whoever asks for more than this has read it already
    if truth is None and original is not None:
        truth = Truth(release, policy, original, engine)
    overall = overall_distributions(release, requirements, None if release.manifest.sample is not None else truth)
    published = release if policy is None else release.over(_declared(release, requirements, policy))
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
        verdicts += unwanted(release.columns, policy, release.records, "the release publishes")
        verdicts += _another_share(release, policy)
        verdicts += other_nodes(release, policy)
        verdicts += other_domains(release, policy, tallies, truth)
        verdicts += asked_rows(release, policy)
        verdicts += asked_margins(release, policy)
    if requirements and seen != release.rows and not any(v.holds is False for v in verdicts):
        raise ReleaseError(
            f"the data hold {seen} rows, the manifest says {release.rows}.",
            hint="Do not use it; ask the holder for it again.",
        )
    if truth is not None:
        verdicts += [*truth.verdicts(), *truth.left_out(requirements)]
        verdicts += [] if policy is None else kept_rows(release, policy, truth)
        if policy is not None and release.manifest.margins and release.manifest.sample is None:
            verdicts += declared_noise(release, truth.table)
    said = only_policy_confirms(release) if policy is None else []
    unconfirmed = [f"only the policy can confirm {'; '.join(said)}"] if said else []
    if unsure:
        unconfirmed.append(f"only the versions that wrote them can confirm the bytes of {', '.join(unsure)}")
    return Verdicts(verdicts, tuple(unconfirmed))


def _demand_claims(
    release: Release, stated: Sequence[Model], found: Sequence[Verdict] | None, engine: str | Engine | None
) -> None:
    """Refuse a manifest that claims what the release alone does not show; `found` are verdicts on the same claims."""
    if found is None:
        shares = overall_distributions(release, stated, None)
        found = check(release, stated, shares, several=not release.manifest.rows_are_people, engine=engine)
        demand_kept(found)
    if not any(claim.holds is False for claim in found):
        demand_claims(release, found)


def _declared(release: Release, requirements: Sequence[Model], policy: Policy) -> dict[str, Statement]:
    """Columns with the roles of the policy that is checked; with its trees and distances where those matter."""
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
        out[name] = statement.over(column.met(name, domain, role=policy.attributes[name].role, **known))
    return out


def _another_share(release: Release, policy: Policy) -> list[Verdict]:
    """A failing verdict where a release says it is another sample than the policy asks for."""
    asked, said = policy.sample.share or 1.0, release.manifest.sample or 1.0
    if asked == said:
        return []
    text = f"the release says that every record is in it with probability {said:g}, the policy {asked:g}"
    ground, records = "the release alone", release.records
    return [Verdict("sample-share", "all columns", asked, said, False, ground, records, records, text)]


def unwanted(columns: Sequence[str], policy: Policy, records: int, what: str) -> list[Verdict]:
    """A failing verdict for every column that the policy drops or does not know."""
    out = []
    for name in columns:
        known = policy.attributes.get(name)
        if known is None or known.role.is_dropped:
            why = f"which has the role {known.role} in the policy" if known else "which the policy does not name"
            text, ground = f"{what} {name!r}, {why}", "the release alone"
            out.append(Verdict("published-columns", name, 0.0, 1.0, False, ground, records, records, text))
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
        written = [model.model_dump(mode="json") for model in models]
        pairs = zip(release.manifest.requirements, written, strict=True)
        if any(json.dumps(item) != json.dumps({k: v for k, v in one.items() if k in item}) for item, one in pairs):
            raise ValueError("not as it is written")
    except ValueError:
        raise ReleaseError(
            "the release claims a requirement with parameters that no model has.",
            hint="Do not use it; ask the holder for it again.",
        ) from None
    named = {name for model in models for name in model.on}
    bare = [c.name for c in release.statements if c.role.needs_requirement and c.name not in named]
    if bare:
        raise ReleaseError(
            f"the release claims nothing about sensitive columns: {', '.join(map(repr, bare))}.",
            hint="Check it against a policy, or ask the holder for it again.",
        )
    return models
