"""Everything a report is about, gathered once: a release, what was found out about it, and on which grounds.

Without the original it is what anybody can compute. With it, or from a run of `anonymize`, the material is the
holder's, and so is every page that is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.analysis.estimate import Estimate
from noren.audit import ATTACKS, AttackResult, attack
from noren.errors import NorenError, QueryError
from noren.methods.base import Suppressed
from noren.models.base import Verdict
from noren.pipeline.anonymize import Outcome, Stage, quiet
from noren.pipeline.terms import true_terms
from noren.pipeline.verify import original_counts, verify
from noren.policy.policy import Policy
from noren.release.release import Release

HIDDEN = ("set", "member", "node", "group")
"""Forms of a column that do not say the value itself."""
ATTACKED = 200_000
"""Records up to which a run of `anonymize` attacks its own release for the report."""
SLOW = ("predictable",)
"""Attacks that such a run leaves to `noren report`: they may take longer than the release itself."""


@dataclass(frozen=True)
class Material:
    """What a page is written from."""

    release: Release
    verdicts: Sequence[Verdict]
    date: datetime
    policy: Policy | None = None
    policy_file: Path | None = None
    original: Any = None
    holder_only: bool = False
    truth: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """How often each base value occurs in the original, for every column that does not say its values."""
    term_totals: Mapping[str, int] = field(default_factory=dict)
    """Terms of every set-valued column in the original."""
    attacks: Sequence[AttackResult] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    """Attacks that were not run, and why."""
    losses: Mapping[str, float] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where the domain of every column is from, with a remark about rare values."""
    dropped: int = 0
    suppressed: int = 0
    """Records left out to protect the others."""
    left_out: Sequence[Suppressed] = ()
    notes: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    estimate: Estimate | None = None


def gather(
    release: Release,
    policy: Policy | str | Path | None,
    original: Any,
    attacks: Sequence[str] | None,
    date: datetime,
    stage: Stage | None = None,
) -> Material:
    """Verify and attack a release as anybody could, or with the original as its holder can."""
    if original is not None and policy is None:
        raise QueryError(
            "how the original is written is not known.", hint="Give the policy that the release was made with."
        )
    rules = policy if policy is None or isinstance(policy, Policy) else Policy.load(policy)
    stage = stage or quiet
    with stage("Verifying", release.rows) as progress:
        verdicts = verify(release, rules, original=original, progress=progress)
    truth: dict[str, NDArray[np.float64]] = {}
    totals: dict[str, int] = {}
    if original is not None:
        hidden = [entry.name for entry in release.manifest.columns if entry.form in HIDDEN]
        counts = original_counts(release, hidden, rules, original, strangers=True) if hidden else {}
        truth = {name: found.astype(np.float64) for name, found in counts.items()}
        totals = {n: int(c.cells.counts().sum()) for n, c in true_terms(release, rules, original).items()}
    found, refused = run_attacks(release, rules, original, attacks, stage)
    return Material(
        release=release,
        verdicts=verdicts,
        date=date,
        policy=rules,
        policy_file=_file(policy, rules),
        original=original,
        holder_only=original is not None,
        suppressed=release.manifest.suppressed,
        truth=truth,
        term_totals=totals,
        attacks=found,
        not_run=refused,
    )


def from_outcome(
    outcome: Outcome,
    date: datetime,
    *,
    estimate: Estimate | None = None,
    policy: Policy | str | Path | None = None,
    original: Any = None,
    attacks: Sequence[str] | None = (),
    stage: Stage | None = None,
) -> Material:
    """What a run of `anonymize` knows already; with policy and original, its release is attacked too."""
    release, facts = outcome.release, outcome.facts
    rules = policy if policy is None or isinstance(policy, Policy) else Policy.load(policy)
    truth, origins = {}, {}
    for entry in release.manifest.columns:
        column = facts.columns[entry.name]
        origins[entry.name] = "open" if column.domain is None else ORIGINS[column.domain.source]
        if column.domain is not None and column.domain.source == "data" and column.rare:
            origins[entry.name] += f"; {column.rare} shared by fewer than five records"
        if entry.form in HIDDEN and column.domain is not None:
            known = dict(zip(column.domain.values, column.counts.tolist(), strict=True))
            rest = [count for value, count in known.items() if value not in (entry.values or ())]
            truth[entry.name] = np.array([*(known.get(v, 0) for v in entry.values or ()), *rest], np.float64)
    found: Sequence[AttackResult] = ()
    refused: Mapping[str, str] = {}
    if attacks is None and release.records > ATTACKED:
        why = f"The release has more than {ATTACKED:,} records; noren report with --original runs it."
        refused = dict.fromkeys(ATTACKS, why)
    else:
        found, refused = run_attacks(release, rules, original, attacks, stage or quiet, SLOW)
    return Material(
        release=release,
        verdicts=facts.verdicts,
        date=date,
        policy=rules,
        policy_file=_file(policy, rules),
        original=original,
        holder_only=True,
        truth=truth,
        term_totals={name: part.entries for part in facts.terms for name in part.columns if len(part.columns) == 1},
        attacks=found,
        not_run=refused,
        losses=facts.losses,
        origins=origins,
        dropped=facts.dropped,
        suppressed=facts.suppressed,
        left_out=facts.terms,
        notes=facts.notes,
        seconds=facts.seconds,
        estimate=estimate,
    )


ORIGINS = {"policy": "declared", "bins": "bins", "data": "data", "hierarchy": "hierarchy"}


def run_attacks(
    release: Release,
    policy: Policy | None,
    original: Any,
    names: Sequence[str] | None,
    stage: Stage,
    later: Sequence[str] = (),
) -> tuple[list[AttackResult], dict[str, str]]:
    """The results of every attack that applies, and why the others do not. An attack that is named must apply.

    `later` are left out unless they are named.
    """
    found: list[AttackResult] = []
    refused: dict[str, str] = {}
    for name in ATTACKS if names is None else dict.fromkeys(names):
        if names is None and name in later:
            refused[name] = "It may take a while, so that it is left to noren report with --original."
            continue
        try:
            found += attack(release, name, original=original, policy=policy, stage=stage)
        except NorenError as error:
            if names is not None:
                raise
            refused[name] = " ".join(filter(None, (error.message, error.hint)))
    return found, refused


def _file(given: Policy | str | Path | None, policy: Policy | None) -> Path | None:
    """The file that a policy was read from; a policy that was written in Python has none, whatever lies about."""
    if given is None or policy is None or isinstance(given, Policy):
        return None
    path = Path(given)
    return path if path.is_file() else None
