"""Gathers everything for a report: the release, the results of checks and attacks, and their basis.

Without the original it is what anybody can compute. With it, or from a run of `anonymize`, the material is the
holder's, and so is every page that is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit import ATTACKS, AttackResult, Case, make_attack, order_attacks
from noren.engines import Table, TermSearch
from noren.errors import NAMED_FROM, NorenError, QueryError
from noren.estimates.counts.estimate import Estimate
from noren.models.base import Model
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.progress import Stage, quiet
from noren.release.release import Release, keep_cells
from noren.workflow.anonymize import HolderFacts, Outcome
from noren.workflow.mechanism import Replayed, replay_methods
from noren.workflow.prepare import read_policy
from noren.workflow.truth import Truth
from noren.workflow.verify import read_claims, verify

ATTACKED = 200_000
"""Records up to which a run of `anonymize` attacks its own release for the report."""
SLOW = ("predictable",)
"""Attacks that such a run leaves to `noren report`: they may take longer than the release itself."""
LATER = "It may take long, so run noren report with --original."


@dataclass(frozen=True)
class Material:
    """The material of a report."""

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
    left_out: Sequence[TermSearch] = ()
    replays: Sequence[Replayed] = ()
    """What somebody learns who replays the method."""
    notes: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    estimate: Estimate | None = None

    @property
    def requirements(self) -> Sequence[Model]:
        """Return the requirements: of the policy if there is one, otherwise the release's own claims."""
        return read_claims(self.release) if self.policy is None else self.policy.require

    @property
    def has_classes(self) -> bool:
        """Return whether quasi-identifiers were generalised or grouped, or nothing was drawn at random."""
        general = any(statement.hides and statement.design is None for statement in self.release.statements)
        return general or not self.release.designs


def gather(
    release: Release,
    policy: Policy | str | Path | None,
    original: Any,
    attacks: Sequence[str] | None,
    date: datetime,
    stage: Stage = quiet,
) -> Material:
    """Verify and attack a release as anybody can, or with the original as its holder can."""
    if original is not None and policy is None:
        raise QueryError(
            "the original cannot be read without a policy.", hint="Give the policy that the release was made with."
        )
    rules = None if policy is None else read_policy(policy)
    held = keep_cells(release)
    known = None if original is None else Truth(held, rules, original)

    with stage("Verifying", release.rows) as meter:
        verdicts = verify(held, rules, original=known, meter=meter)
    found, refused = run_attacks(held, rules, original, attacks, stage, known=known)
    return Material(
        release=held,
        verdicts=verdicts,
        date=date,
        policy=rules,
        policy_file=_file(policy, rules),
        original=original,
        holder_only=original is not None,
        suppressed=held.manifest.suppressed,
        truth={} if known is None else _true_counts(held, known),
        term_totals={} if known is None else _term_totals(known),
        replays=[] if known is None or rules is None else _replays(held, known, rules),
        attacks=found,
        not_run=refused,
    )


def _true_counts(release: Release, known: Truth) -> dict[str, NDArray[np.float64]]:
    """Count the values of a column in the original if the column does not list them."""
    hidden = [statement.name for statement in release.statements if statement.hides]
    counts = known.counts(hidden, strangers=True) if hidden else {}
    return {name: found.astype(np.float64) for name, found in counts.items()}


def _replays(release: Release, known: Truth, policy: Policy) -> list[Replayed]:
    facts = {key: fact for used in release.manifest.methods for key, fact in used.facts.items()}
    return replay_methods(release, known.records, policy, facts)


def _term_totals(known: Truth) -> dict[str, int]:
    return {name: int(found.cells.counts().sum()) for name, found in known.terms().items()}


def from_outcome(
    outcome: Outcome,
    date: datetime,
    *,
    estimate: Estimate | None = None,
    policy: Policy | str | Path | None = None,
    original: Any = None,
    attacks: Sequence[str] | None = (),
    stage: Stage = quiet,
) -> Material:
    """Take over what a run of `anonymize` knows; with policy and original, attack its release too."""
    release, facts = outcome.release, outcome.facts
    rules = None if policy is None else read_policy(policy)
    found: Sequence[AttackResult] = ()
    refused: Mapping[str, str] = {}
    if attacks is None and release.records > ATTACKED:
        why = f"The release has more than {ATTACKED:,} records; noren report with --original runs it."
        refused = dict.fromkeys(ATTACKS, why)
    else:
        found, refused = run_attacks(release, rules, original, attacks, stage, SLOW)
    return Material(
        release=release,
        verdicts=facts.verdicts,
        date=date,
        policy=rules,
        policy_file=_file(policy, rules),
        original=original,
        holder_only=True,
        truth=_counted(release, facts),
        term_totals={name: part.entries for part in facts.terms for name in part.columns if len(part.columns) == 1},
        attacks=found,
        not_run=refused,
        losses=facts.losses,
        origins={name: _origin(facts, name) for name in release.columns},
        dropped=facts.dropped,
        suppressed=facts.suppressed,
        left_out=facts.terms,
        replays=facts.replays,
        notes=facts.notes,
        seconds=facts.seconds,
        estimate=estimate,
    )


def _counted(release: Release, facts: HolderFacts) -> dict[str, NDArray[np.float64]]:
    """Return counts of values of columns that do not list them; unpublished values come last."""
    out = {}
    for statement in release.statements:
        if statement.hides:
            name, shown = statement.name, statement.domain.values
            values, counts = facts.table.columns[name].domain.values, facts.table.counts[name].tolist()
            known = dict(zip(values, counts, strict=True))
            rest = [count for value, count in known.items() if value not in statement.domain.index]
            out[name] = np.array([*(known.get(value, 0) for value in shown), *rest], np.float64)
    return out


def origin_of(source: str) -> str:
    """Return the origin of a domain, in a word."""
    return "declared" if source == "policy" else source


def _origin(facts: HolderFacts, name: str) -> str:
    """Return the origin of a column's domain, with a remark about rare values."""
    column = facts.table.columns[name]
    if column.is_open:
        return "open"
    counts = facts.table.counts[name]
    rare = int(((counts > 0) & (counts < NAMED_FROM)).sum())
    remark = f"; {rare} shared by fewer than five records" if column.domain.source == "data" and rare else ""
    return origin_of(column.domain.source) + remark


def run_attacks(
    release: Release,
    policy: Policy | None,
    original: Any,
    names: Sequence[str] | None,
    stage: Stage,
    later: Sequence[str] = (),
    known: Truth | None = None,
) -> tuple[list[AttackResult], dict[str, str]]:
    """Return the results of every attack that applies, and why the others do not. A named attack must apply.

    `later` are left out unless they are named. `known` has met the original already, so that it is not read again.
    """
    wanted = list(ATTACKS if names is None else dict.fromkeys(names))
    if not wanted:
        return [], {}
    met = None if known is None or policy is None or policy.sample.share is not None else partial(_table, known)
    try:
        case = Case(release, policy, original, stage, met=met)
    except QueryError as error:
        if names is not None:
            raise
        return [], dict.fromkeys(wanted, error.message)
    found: list[AttackResult] = []
    refused = dict.fromkeys(later, LATER) if names is None else {}
    for attack in order_attacks([make_attack(name, {}) for name in wanted if name not in refused]):
        try:
            found += attack.results(case)
        except NorenError as error:
            if names is not None:
                raise
            refused[attack.name] = " ".join(filter(None, (error.message, error.hint)))
    return found, refused


def _table(known: Truth) -> Table:
    return known.table


def _file(given: Policy | str | Path | None, policy: Policy | None) -> Path | None:
    """Return the file from which a policy was read; None for a policy written in Python."""
    if given is None or policy is None or isinstance(given, Policy):
        return None
    path = Path(given)
    return path if path.is_file() else None
