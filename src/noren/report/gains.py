"""What an adversary gains: from one published set, from records that look alike, and in every attack that applies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit import AttackResult
from noren.errors import NorenError
from noren.report.material import Material


def beliefs_of(material: Material) -> list[dict[str, Any]]:
    """For every column of sets: what someone who knows how common the values are makes of one person's set.

    The shares are the original's where it is known; otherwise they are estimated from the release, as anybody can.
    """
    out = []
    for name, design in material.release.designs.items():
        counts = material.truth.get(name)
        holder = counts is not None
        if counts is None:
            counts = _estimated(material, name)
        if counts is None or not counts.sum() > 0:
            continue
        basis = "the original" if holder else "an estimate from the release"
        figures = design.beliefs(counts[: design.d])._asdict()
        out.append({"column": name, "set_size": design.eta, "values": design.d, "p": float(design.p), **figures})
        out[-1] |= {"basis": basis, "holder_only": holder}
    return out


def _estimated(material: Material, name: str) -> NDArray[np.float64] | None:
    try:
        found = material.release.estimate(name).frame["count"].to_numpy()
    except NorenError:
        return None
    return np.maximum(np.asarray(found, np.float64), 0.0)


FURTHER = {"intersection": "from one release"}
"""Attacks that suppose more releases of the same people, and what theirs starts from."""
RELEASE = ("release", "release-rows")
"""What the release itself is called, where an attack compares it with other tables."""
LEADS = (*RELEASE, "all", "all-rows")
"""What stands for an attack as a whole: the release itself, or all published columns at once."""


def attacks_of(material: Material) -> dict[str, Any]:
    """Every attack that was run, with the figures a reader should see first, and those that were not."""
    return {
        "run": [attack_content(result) for result in material.attacks],
        "not_run": [{"attack": name, "why": why} for name, why in material.not_run.items()],
    }


def attack_content(result: AttackResult) -> dict[str, Any]:
    """One result: its own data, what the figures are called, and which tables are compared."""
    told = result.to_dict()
    told["titles"] = {name: result.titles[name] for name in result.titles}
    told["shares"] = list(result.shares)
    told["shown"] = [scenario.name for scenario in result.shown]
    told["before"] = FURTHER.get(result.attack, "before any release")
    told["after"] = [*[name for name in told["shown"] if name in LEADS], told["shown"][-1]][0]
    for scenario in told["scenarios"]:
        scenario["bounds"] = {name: list(pair) for name, pair in scenario.get("bounds", {}).items()}
    return told


def shown_scenarios(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tables that are compared, in the order of the result."""
    wanted = set(result["shown"])
    return [scenario for scenario in result["scenarios"] if scenario["name"] in wanted]


def final(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the adversary ends with: the attack on the release, by the most that the adversary may know."""
    return next(scenario for scenario in result["scenarios"] if scenario["name"] == result["after"])


def is_rival(result: Mapping[str, Any], scenario: Mapping[str, Any]) -> bool:
    """Whether a scenario is about a table that might have been published instead."""
    return result["after"] in RELEASE and scenario["name"] not in RELEASE


def is_share(result: Mapping[str, Any], figure: str) -> bool:
    """Whether a figure is a share or a probability: it is said to be, or lies between -1 and 1 and is not whole."""
    if figure in result["shares"]:
        return True
    found = [result["baseline"].get(figure), *(s["summary"].get(figure) for s in shown_scenarios(result))]
    values = [value for value in found if value is not None]
    return all(abs(v) <= 1 for v in values) and any(v != int(v) for v in values)


PREFERRED = ("right", "success", "mean_belief")
"""Figures that say most about an attack, where it has them."""


def headline(result: Mapping[str, Any]) -> str | None:
    """The share that stands for the attack as a whole: one that is known for the release, and before if possible."""
    after = final(result)["summary"]
    names = [name for name in result["shares"] if after.get(name) is not None]
    known = [name for name in names if result["baseline"].get(name) is not None] or names
    chosen = [name for name in PREFERRED if name in known] or known
    return chosen[0] if chosen else None
