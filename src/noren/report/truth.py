"""The summary page: the adversaries that the policy covers, their beliefs, and the adversaries that it does not cover.

An officer reads this first. Every figure names its adversary, and a figure of somebody who knows more than the policy
speaks of stands apart from those that the policy claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren.models.base import QUASI, Model, Promise
from noren.report.attacks import attack_content, final, headline
from noren.report.material import Material
from noren.report.render import Line, Table, percent

SURE = 0.9
WORST = 10
"""Lines of a table on the page."""
MOST_ADVERSARIES = 6
LITTLE = 0.005
"""A gain that is worth a line."""


def truth_of(material: Material) -> dict[str, Any]:
    """Return the adversary that the policy covers, the beliefs before and after, and the adversaries that are not
    covered."""
    strongest = _strongest(material.requirements)
    told, rest = _beliefs(material)
    return {
        "stands": [_claim(material, model) for model in strongest],
        "beliefs": told,
        "not_measured": rest,
        "does_not_stand": _beyond(material, strongest),
    }


def _strongest(requirements: Sequence[Model]) -> list[Model]:
    """Return the requirements against the adversary with the most knowledge."""
    top = max((model.stands for model in requirements), default=0)
    return [model for model in requirements if model.stands == top]


def promise_of(material: Material, model: Model) -> Promise:
    """Return the promise of a requirement about its published columns."""
    columns = material.release.by_name
    about = [columns[name] for name in model.on if name in columns]
    quasi = [statement.name for statement in columns.values() if statement.role in QUASI]
    return model.promise_about(model.on or quasi, bool(about) and all(one.design is not None for one in about))


def _claim(material: Material, model: Model) -> dict[str, Any]:
    promise = promise_of(material, model)
    return {"model": model.model, "on": list(model.on), "says": promise.says, "leaves_open": promise.leaves_open}


# ---------------------------------------------------------------------- beliefs


def _beliefs(material: Material) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the beliefs about every secret, the largest first, and the secrets that are not measured.

    What the attack `bayes` found where it was run, else what `anonymize` says of the release.
    """
    out: list[dict[str, Any]] = []
    for result in material.attacks:
        if result.attack == "bayes":
            lead = result.scenarios[0]
            figures = {name: lead.summary[name] for name in ("mean_belief", "max_belief", "sure")}
            told: dict[str, Any] = {"column": result.target[0], "finds": "the row", **figures}
            told |= {"right": lead.summary.get("right"), "before": result.baseline["mean_belief"]}
            told |= {"holder_only": lead.holder_only} | ({} if lead.of is None else {"measured": lead.frame.height})
            out.append(told)
    attacked = {one["column"] for one in out}
    for guess in material.release.guesses:
        if guess.column not in attacked:
            finds = "the class" if guess.by_class else "the row"
            told = {"column": guess.column, "finds": finds, "mean_belief": guess.right, "max_belief": None}
            told |= {"sure": guess.sure, "right": None, "before": guess.before, "holder_only": False}
            out.append(told | ({} if guess.whole else {"measured": guess.rows}))
    known = {one["column"] for one in out}
    secrets = [one.name for one in material.release.statements if one.role.needs_requirement and one.terms is None]
    rest = [name for name in secrets if name not in known]
    return sorted(out, key=lambda one: (-one["sure"], -one["mean_belief"])), rest


# ---------------------------------------------------------------------- adversaries beyond the policy


def _beyond(material: Material, strongest: Sequence[Model]) -> list[dict[str, Any]]:
    """Return adversaries whose gain no requirement bounds: simulated ones first."""
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
    """Return whether a requirement limits what this adversary learns: from all columns, from the class, or in finding
    the row."""
    if attack == "reidentification":
        return any(model.least_class_size > 1 for model in requirements)
    about = [model for model in requirements if target in model.on]
    if attack == "homogeneity":
        return any(model.limits_share or model.relative for model in about)
    return attack == "bayes" and any(model.stands >= 3 for model in about)


# ---------------------------------------------------------------------- on the page


def in_words(truth: Mapping[str, Any]) -> list[Line]:
    """Return the first lines of the page: the covered adversary, before and after, and who is not covered."""
    out = []
    if truth["stands"]:
        out.append(Line(f"Its strongest guarantee: {truth['stands'][0]['says']}"))
    else:
        out.append(Line("The release claims no protection."))
    if truth["beliefs"]:
        one = truth["beliefs"][0]
        text = (
            "For an adversary who reads all published columns of a record and has learned from the other people "
            f"how they are related (finding {one['finds']}), the best guess at {one['column']} is right for "
            f"{percent(one['before'])} of the people before and {percent(_right(one))} after; "
            f"{percent(one['sure'])} of the secrets are believed above {SURE:g}."
        )
        out.append(Line(text, one["holder_only"]))
    beyond = [one for one in truth["does_not_stand"] if one["attack"] is not None]
    if beyond:
        out.append(Line(f"It does not protect against: {_gain(beyond[0])}", beyond[0]["holder_only"]))
    return out


def _right(one: Mapping[str, Any]) -> float:
    """Return the share of right best guesses: counted with the original, otherwise the mean belief."""
    return float(one["mean_belief"] if one["right"] is None else one["right"])


def _gain(one: Mapping[str, Any]) -> str:
    """Describe an adversary and its gain in a sentence."""
    about = ", ".join(one["on"][:3]) + (f" and {len(one['on']) - 3} more" if len(one["on"]) > 3 else "")
    figures = f"{one['figure']} {percent(one['before'])} {one['from']}, {percent(one['after'])} after"
    return f"an adversary who {one['adversary']} ({one['attack']} on {about}: {figures})."


def adversaries(truth: Mapping[str, Any]) -> list[Line]:
    """Render the adversaries that the policy does not cover, one per line."""
    out = []
    for one in truth["does_not_stand"][:MOST_ADVERSARIES]:
        if one["attack"] is None:
            out.append(Line(one["adversary"]))
        else:
            text = _gain(one)
            out.append(Line(text[:1].upper() + text[1:], one["holder_only"]))
    more = len(truth["does_not_stand"]) - len(out)
    return [*out, Line(f"{more} more are among the attacks below.")] if more > 0 else out


def table(truth: Mapping[str, Any]) -> Table | None:
    """Render the beliefs before and after for the worst ten secrets."""
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
            "-" if one["max_belief"] is None else f"{one['max_belief']:.3f}",
        ]
        for one in found[:WORST]
    ]
    holder = any(one["holder_only"] for one in found[:WORST])
    return Table("Best guess at a secret, from all published columns", header, rows, range(2, 6), holder)


def remainder(truth: Mapping[str, Any]) -> list[str]:
    """Describe the secrets that the table does not list."""
    out = []
    if len(truth["beliefs"]) > WORST:
        most = max(one["sure"] for one in truth["beliefs"][WORST:])
        count = len(truth["beliefs"]) - WORST
        out.append(f"{count} more secrets are disclosed less: at most {percent(most)} of the people above {SURE:g}.")
    if few := [one["measured"] for one in truth["beliefs"] if "measured" in one]:
        out.append(
            f"Measured on a random sample of {few[0]:,} people; the largest belief is the largest in the sample."
        )
    if truth["not_measured"]:
        out.append(f"{len(truth['not_measured'])} more secrets are not measured, because no single cell is about them.")
    return out
