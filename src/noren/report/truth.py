"""The truth on one page: against whom the release is meant to stand, what is believed then, and who it is not for.

An officer reads this first. Every figure names its adversary, and a figure of somebody who knows more than the policy
speaks of stands apart from those that the policy claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noren.audit.sample import MOST, sample_of
from noren.estimates import Belief, believed
from noren.models.base import QUASI, Model
from noren.report.gains import final, headline
from noren.report.material import Material
from noren.report.render import Line, Table, percent
from noren.statements import Statement

SURE = 0.9
MOST_SECRETS = 10
"""Secrets whose beliefs are worked out here, where no attack has done it."""
WORST = 10
"""Lines of a table on the page."""
MOST_ADVERSARIES = 6
LITTLE = 0.005
"""A gain that is worth a line."""


def truth_of(material: Material) -> dict[str, Any]:
    """Who the policy claims to stand, what is believed before and after, and who it does not stand."""
    strongest = _strongest(material.requirements)
    told, rest = _beliefs(material)
    return {
        "stands": [_claim(material, model) for model in strongest],
        "beliefs": told,
        "not_measured": rest,
        "does_not_stand": _beyond(material, strongest),
    }


def _strongest(requirements: Sequence[Model]) -> list[Model]:
    """The requirements against the adversary who knows most."""
    top = max((model.stands for model in requirements), default=0)
    return [model for model in requirements if model.stands == top]


def _claim(material: Material, model: Model) -> dict[str, Any]:
    columns = material.release.by_name
    about = [columns[name] for name in model.on if name in columns]
    quasi = [statement.name for statement in columns.values() if statement.role in QUASI]
    promise = model.promised(model.on or quasi, bool(about) and all(one.design is not None for one in about))
    return {"model": model.model, "on": list(model.on), "says": promise.says, "leaves_open": promise.leaves_open}


# ---------------------------------------------------------------------- beliefs


def _beliefs(material: Material) -> tuple[list[dict[str, Any]], list[str]]:
    """What is believed about every secret from all published columns, the firmest first; and those left out."""
    out, rest, worked = [], [], 0
    attacked = {result.target[0]: result for result in material.attacks if result.attack == "bayes"}
    cells: dict[str, Any] = {}
    readable = [s for s in material.release.statements if s.terms is None and s.rows_per_record == 1]
    for statement in readable:
        if not statement.role.needs_requirement or statement.d == 0:
            continue
        if (result := attacked.get(statement.name)) is not None:
            lead = result.scenarios[0]
            figures: dict[str, Any] = {name: lead.summary[name] for name in ("mean_belief", "max_belief", "sure")}
            figures |= {"right": lead.summary.get("right"), "before": result.baseline["mean_belief"]}
            figures |= {} if lead.of is None else {"measured": lead.frame.height}
            out.append({"column": statement.name, "finds": "the row", **figures, "holder_only": lead.holder_only})
        elif worked < MOST_SECRETS:
            cells = cells or material.release.cells([s.name for s in readable])
            some = sample_of(material.release.rows, 0 if _by_class(statement, readable) else MOST)
            read = cells if some.whole else {name: part.take(some.lines) for name, part in cells.items()}
            found = believed(statement.name, readable, read)
            worked += 1
            if found is not None:
                out.append(_measured(statement, found) | ({} if some.whole else {"measured": len(some)}))
        else:
            rest.append(statement.name)
    return sorted(out, key=lambda one: (-one["sure"], -one["mean_belief"])), rest


def _by_class(statement: Statement, readable: Sequence[Statement]) -> bool:
    """Whether what a row tells depends on its class, all of whose rows must then be read."""
    return not statement.hides or any(s.hides for s in readable if s.role in QUASI and s.is_key)


def _measured(statement: Statement, found: Belief) -> dict[str, Any]:
    return {
        "column": statement.name,
        "finds": "the class" if found.by_class else "the row",
        "mean_belief": float(found.belief.mean()),
        "max_belief": float(found.belief.max()),
        "sure": float(np.mean(found.above(SURE))),
        "right": None,
        "before": found.before,
        "holder_only": False,
    }


# ---------------------------------------------------------------------- adversaries beyond the policy


def _beyond(material: Material, strongest: Sequence[Model]) -> list[dict[str, Any]]:
    """Adversaries who gain something that no requirement bounds: those that were simulated first, then the others."""
    from noren.report.gains import attack_content

    found = []
    for result in material.attacks:
        told = attack_content(result)
        name, last = headline(told), final(told)
        before = None if name is None else told["baseline"].get(name)
        bounded = _bounded(result.attack, result.target[0], material.requirements)
        if name is None or before is None or bounded or last["summary"][name] - before <= LITTLE:
            continue
        found.append(
            {
                "adversary": told["adversary"],
                "attack": result.attack,
                "on": list(result.target),
                "figure": str(told["titles"].get(name, name.replace("_", " "))),
                "before": before,
                "after": last["summary"][name],
                "from": told["before"],
                "holder_only": last["holder_only"],
            }
        )
    worst: dict[str, dict[str, Any]] = {}
    for one in sorted(found, key=lambda one: one["before"] - one["after"]):
        worst.setdefault(one["attack"], one)
    left = dict.fromkeys(_claim(material, model)["leaves_open"] for model in strongest)
    return [*worst.values(), *({"adversary": text, "attack": None} for text in left)]


def _bounded(attack: str, target: str, requirements: Sequence[Model]) -> bool:
    """Whether a requirement limits what this adversary gains: by all columns, by the class, or in finding the row."""
    if attack == "reidentification":
        return any(model.least_class_size > 1 for model in requirements)
    about = [model for model in requirements if target in model.on]
    if attack == "homogeneity":
        return any(model.limits_share or model.relative for model in about)
    return attack == "bayes" and any(model.stands >= 3 for model in about)


# ---------------------------------------------------------------------- on the page


def in_words(truth: Mapping[str, Any]) -> list[Line]:
    """The page's first lines: who is meant, before and after, and who is not."""
    out = []
    if truth["stands"]:
        out.append(Line(f"Against whom it is meant to stand: {truth['stands'][0]['says']}"))
    else:
        out.append(Line("The release claims to stand against nobody."))
    if truth["beliefs"]:
        one = truth["beliefs"][0]
        text = (
            f"Who reads all published columns of a record and has learned from the other people how they go together "
            f"(finding {one['finds']}): about {one['column']} the best guess is right for {percent(one['before'])} of "
            f"the people before, {percent(_right(one))} after; {percent(one['sure'])} of the secrets are believed "
            f"above {SURE:g}."
        )
        out.append(Line(text, one["holder_only"]))
    beyond = [one for one in truth["does_not_stand"] if one["attack"] is not None]
    if beyond:
        out.append(Line(f"Against whom it does not stand: {_gain(beyond[0])}", beyond[0]["holder_only"]))
    return out


def _right(one: Mapping[str, Any]) -> float:
    """How often the best guess is right: counted with the original, else as firmly as it is believed on average."""
    return float(one["mean_belief"] if one["right"] is None else one["right"])


def _gain(one: Mapping[str, Any]) -> str:
    """An adversary with what it gains, in a sentence."""
    about = ", ".join(one["on"][:3]) + (f" and {len(one['on']) - 3} more" if len(one["on"]) > 3 else "")
    figures = f"{one['figure']} {percent(one['before'])} {one['from']}, {percent(one['after'])} after"
    return f"an adversary who {one['adversary']} ({one['attack']} on {about}: {figures})."


def adversaries(truth: Mapping[str, Any]) -> list[Line]:
    """Whom the policy does not stand, one line each."""
    out = []
    for one in truth["does_not_stand"][:MOST_ADVERSARIES]:
        if one["attack"] is None:
            out.append(Line(one["adversary"]))
        else:
            text = _gain(one)
            out.append(Line(text[:1].upper() + text[1:], one["holder_only"]))
    more = len(truth["does_not_stand"]) - len(out)
    return [*out, Line(f"{more} more stand among the attacks below.")] if more > 0 else out


def table(truth: Mapping[str, Any]) -> Table | None:
    """Beliefs before and after, the worst ten secrets."""
    found = truth["beliefs"]
    if not found:
        return None
    header = ("Secret", "Adversary finds", "Right before", "Right after", f"Believed above {SURE:g}", "Firmest belief")
    rows = [
        [
            one["column"],
            one["finds"],
            percent(one["before"]),
            percent(_right(one)),
            percent(one["sure"]),
            f"{one['max_belief']:.3f}",
        ]
        for one in found[:WORST]
    ]
    holder = any(one["holder_only"] for one in found[:WORST])
    return Table("Best guess at a secret, from all published columns", header, rows, range(2, 6), holder)


def remainder(truth: Mapping[str, Any]) -> list[str]:
    """What the table does not list."""
    out = []
    if len(truth["beliefs"]) > WORST:
        most = max(one["sure"] for one in truth["beliefs"][WORST:])
        count = len(truth["beliefs"]) - WORST
        out.append(f"{count} more secrets are told less: at most {percent(most)} of the people above {SURE:g}.")
    if few := [one["measured"] for one in truth["beliefs"] if "measured" in one]:
        out.append(f"Measured on {few[0]:,} people, drawn at random: the firmest belief is the firmest among them.")
    if truth["not_measured"]:
        out.append(
            f"{len(truth['not_measured'])} more secrets were not measured here: the bayes attack of noren audit does."
        )
    return out
