"""What verification looks at besides the cells: that a release holds nothing undescribed, that general values say what
they cover, and who signed it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isclose, prod, sqrt
from pathlib import Path
from typing import Any, get_args

import numpy as np

from noren.engines import Table
from noren.engines.left_out import LEFT_OUT
from noren.errors import ReleaseError
from noren.estimates.counts.axes import Weights
from noren.methods import METHODS
from noren.models.verdict import Basis, Verdict
from noren.policy.policy import Policy
from noren.release.answers import weight_numbers
from noren.release.manifest import PublishedMargin
from noren.release.package import DESCRIPTOR, demand_closed
from noren.release.release import Release
from noren.release.signature import demand_signer
from noren.schema.hierarchy import Hierarchy
from noren.secret import PublicKey
from noren.statements import Statement
from noren.workflow.truth import Truth

SHOWN = 3
NEAR = 1e-6
"""How far a stated figure may be from the one that is found: they are computed alike."""
ALL = "all columns"


def demand_described(release: Release) -> list[str]:
    """Refuse a directory with anything undescribed in it, and general values that do not say what they cover.

    Returned are the files whose bytes only the version that wrote them can compare.
    """
    unsure: list[str] = []
    if release.path is not None:
        unsure = demand_closed(release.path)
    elif hasattr(release.store, "demand_closed"):
        release.store.demand_closed()
    _demand_methods(release)
    for statement in release.statements:
        if found := statement.misnamed():
            raise ReleaseError(
                f"column {statement.name!r}: {_listed(found)} does not say what it is declared to cover.",
                hint="Do not use it; ask the holder for it again.",
            )
    return unsure


def demand_cells(release: Release, read: Collection[str], tallied: Collection[Statement]) -> dict[str, Any]:
    """Refuse cells that are not what the manifest says of their column: those that were not `read` for a requirement
    are read here. A weight is a number above 0. What the cells of `tallied` columns add up to is returned."""
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
    """Refuse a manifest that states verdicts on its requirements that are not `found`, or other figures than these.

    Figures are those of people, so where people have several rows the rows do not show them; nor can a recipient see
    what rests on the original, which is stated without a figure.
    """
    stated = [one for one in release.manifest.verdicts if one.model != LEFT_OUT]
    absent = [one for one in release.manifest.verdicts if one.model == LEFT_OUT]
    wrong = [one for one in absent if (one.column, one.achieved, release.suppressed > 0) != (ALL, None, True)]
    if len(absent) > 1 or wrong or [(v.model, v.column) for v in stated] != [(v.model, v.column) for v in found]:
        raise _claimed("verdicts on other requirements than its own")
    for one, other in zip(stated, found, strict=True):
        grounds = one.basis in get_args(Basis) and (one.achieved is None) == (one.basis == "the original")
        unseen = one.achieved is None or other.basis == "the original" or not release.manifest.rows_are_people
        near = unseen or isclose(one.achieved or 0.0, other.achieved, rel_tol=NEAR, abs_tol=NEAR)
        if not (one.holds and grounds and near and one.required == other.required):
            raise _claimed(f"another verdict on {one.model} of {one.column!r} than its cells show")


def demand_kept(claims: Sequence[Verdict]) -> None:
    """Refuse a manifest that claims what its cells refute; an estimate refutes nothing."""
    for claim in claims:
        if claim.holds is False and claim.basis == "the release alone":
            raise _claimed(f"{claim.model} of {claim.column!r}, which its cells do not keep")


def _claimed(what: str) -> ReleaseError:
    return ReleaseError(f"the manifest states {what}.", hint="Do not use it; ask the holder for it again.")


def _demand_methods(release: Release) -> None:
    """Refuse methods that are none: their names are words of this package, their columns those of the release."""
    for one in release.manifest.methods:
        names = [one.name, *([] if one.chosen is None else one.chosen.split(" + "))]
        if any(name not in METHODS for name in names):
            raise ReleaseError(
                "the manifest names a method that this version does not know.",
                hint="Install the version of noren that wrote it, or a newer one.",
            )
        if not set(one.on) <= set(release.columns):
            raise _claimed("columns of a method that it does not have")


def demand_signed(release: Release, signer: PublicKey | str | Path) -> None:
    """Refuse a release that somebody else signed, or nobody."""
    if release.path is None:
        raise ReleaseError("a release in memory has no signature.", hint="Give its directory.")
    demand_signer(release.path / DESCRIPTOR, signer)


def other_nodes(release: Release, policy: Policy) -> list[Verdict]:
    """A failing verdict for every column whose general values are none of the policy's hierarchy, or cover something
    else there."""
    out = []
    for statement in release.statements:
        known = policy.hierarchies.get(statement.name)
        if known is None or statement.nodes is None:
            continue
        found = _unlike(statement, known)
        if found:
            text = f"{_listed(found)} of {statement.name!r}: not what the policy's hierarchy has under that name"
            records = release.records
            out.append(
                Verdict(
                    "published-nodes", statement.name, 0.0, float(len(found)), False, "the release alone", records,
                    records, text,
                )
            )  # fmt: skip
    return out


def _unlike(statement: Statement, known: Hierarchy) -> list[str]:
    """General values that the hierarchy does not have; all values that it lacks, if it lacks some."""
    absent = known.missing(statement.domain.values)
    return absent or statement.misnamed(known.restricted(statement.domain.values))


def _listed(labels: list[str]) -> str:
    shown = ", ".join(repr(label[:60]) for label in labels[:SHOWN])
    return shown + (f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else "")


# ---------------------------------------------------------------------- rows of a person, noise of margins


MOST_ROWS = "most-rows"
CHANCE = 1e-9


def asked_rows(release: Release, policy: Policy) -> list[Verdict]:
    """A failing verdict where a release declares another bound than its policy does."""
    asked, said = policy.people.most_rows, release.manifest.most_rows
    if asked == said or release.manifest.rows_are_people:
        return []
    text = f"the release says {_said(said)} of how many rows a person has at most, the policy {_said(asked)}"
    ground, records = "the release alone", release.records
    return [Verdict(MOST_ROWS, ALL, float(asked or 0), float(said or 0), False, ground, records, records, text)]


def kept_rows(release: Release, policy: Policy, truth: Truth) -> list[Verdict]:
    """A verdict on whether nobody has more rows in the original than the release declares; none where it does not, or
    where the policy does not say whose rows are whose.

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


def _said(most: int | None) -> str:
    return "nothing" if most is None else str(most)


def asked_margins(release: Release, policy: Policy) -> list[Verdict]:
    """A verdict on what a release's margins spend, against what the policy permits; none where neither has any."""
    asked = {(margin.of, margin.epsilon, margin.sensitivity) for margin in policy.margins}
    found = [(margin.of, margin.epsilon, margin.sensitivity) for margin in release.manifest.margins]
    if not asked and not found:
        return []
    strange = [margin for margin in found if margin not in asked]
    text = "" if not strange else f"the release counts {' x '.join(strange[0][0])} otherwise than the policy asks"
    spent, holds = release.manifest.spent, not strange and len(set(found)) == len(found)
    ground, records = "the release alone", release.records
    return [
        Verdict("margins", "all columns", policy.spent, spent, holds, ground, records, 0 if holds else records, text)
    ]


def declared_noise(release: Release, table: Table) -> list[Verdict]:
    """A verdict on every margin: whether its distance from the original is the noise it declares.

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
        text = "some values of the original are not among those that the margin counts"
        return Verdict("margin-noise", title, margin.scale, float("nan"), None, "the original", records, 0, text)
    truth = np.bincount(np.ravel_multi_index(tuple(places), shape), times, prod(shape))
    distance = float(np.abs(np.array(margin.counts) - truth).sum())
    low, high = reach_of_noise(len(margin.counts), margin.scale)
    holds = low <= distance <= high
    text = (
        ""
        if holds
        else f"counts lie {distance:,.0f} from the original in all; such noise reaches {low:,.0f} to {high:,.0f}"
    )
    found = distance / len(margin.counts)
    return Verdict(
        "margin-noise", title, margin.scale, found, holds, "the original", records, 0 if holds else records, text
    )


def reach_of_noise(cells: int, scale: float) -> tuple[float, float]:
    """Between which sums of absolute noise lies, but for once in 10^9 tables on either side.

    The absolute value of discrete Laplace noise is 0 with chance (1 - q) / (1 + q), else geometric with q = exp(-1 /
    scale): by Chernoff's bound on its moment generating function.
    """
    from scipy.optimize import minimize_scalar

    q = np.exp(-1 / scale)
    goal = -np.log(CHANCE)

    def log_moment(s: float) -> float:
        return float(np.log((1 - q) / (1 + q)) + np.log1p(2 * q * np.exp(s) / (1 - q * np.exp(s))))

    def upper(s: float) -> float:
        return (goal + cells * log_moment(s)) / s

    most = 1 / scale
    high = minimize_scalar(upper, bounds=(1e-6 * most, most * (1 - 1e-9)), method="bounded").fun
    low = -minimize_scalar(
        lambda s: (goal + cells * log_moment(-s)) / s, bounds=(1e-6, 60 + sqrt(cells)), method="bounded"
    ).fun
    return max(float(low), 0.0), float(high)
