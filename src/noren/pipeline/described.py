"""What verification looks at besides the cells: that a release holds nothing undescribed, that general values say what
they cover, and who signed it."""

from __future__ import annotations

from pathlib import Path

from noren.cells import Statement
from noren.errors import ReleaseError
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.release.package import DESCRIPTOR, demand_closed
from noren.release.release import Release
from noren.release.signature import demand_signer
from noren.schema.hierarchy import Hierarchy
from noren.secret import PublicKey

SHOWN = 3


def demand_described(release: Release) -> None:
    """Refuse a directory with anything undescribed in it, and general values that do not say what they cover."""
    if release.path is not None:
        demand_closed(release.path)
    elif hasattr(release.store, "demand_closed"):
        release.store.demand_closed()
    for statement in release.statements:
        if found := statement.misnamed():
            raise ReleaseError(
                f"column {statement.name!r}: {_listed(found)} does not say what it is declared to cover.",
                hint="Do not use it; ask the holder for it again.",
            )


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
