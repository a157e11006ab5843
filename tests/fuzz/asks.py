"""Random requirements and options of methods: nearly all such that the table can meet, some that it cannot."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.fuzz.judge import class_holds
from tests.fuzz.texts import is_missing

if TYPE_CHECKING:
    from tests.fuzz.worlds import World

Asked = list[dict[str, Any]]
FAIR = 0.97
"""How often something is asked that the whole table meets as one class, or that sets within the domain meet."""
RELATIVE = ("t-closeness", "beta-likeness", "delta-disclosure", "qs-closeness")
"""Models that compare with the whole table, and refuse suppression."""


def labelled(attribute: dict[str, Any], values: list[Any]) -> Counter[Any]:
    """How often each value occurs as the policy reads it: in bins, without what is dropped, rare ones merged."""
    edges = attribute.get("bins")
    kept = [value for value in values if not (is_missing(value) and attribute.get("missing") == "drop")]
    times = Counter("" if is_missing(v) else min(bisect_right(edges, v), len(edges) - 1) if edges else v for v in kept)
    if attribute.get("rare") != "merge":
        return times
    few = [value for value, count in times.items() if count < attribute["min_count"] and value != ""]
    merged = sum(times.pop(value) for value in few)
    return times + Counter({"(other)": merged})


def _fair(r: random.Random, kinds: list[str], name: str, attribute: dict[str, Any], values: list[Any]) -> Asked:
    """One or two of these kinds that the values allow, but for a few."""
    times = labelled(attribute, values)
    whole = sum(times.values()) or 1
    shares = {value: count / whole for value, count in times.items()}
    out: Asked = []
    wanted = 1 if r.random() < 0.82 else 2
    for _ in range(40):
        asked = _one(r, r.choice(kinds), name, attribute)
        known = asked["model"] not in ("le-diversity", "t-closeness")  # they hold of one class; trees are not built yet
        reached = not known or not times or class_holds(times, shares, asked, {})
        if (reached or r.random() > FAIR) and asked["model"] not in [one["model"] for one in out]:
            out.append(asked)
        if len(out) == wanted:
            break
    return out or [_one(r, kinds[0], name, attribute)]


def decoy_requirements(r: random.Random, name: str, attribute: dict[str, Any], method: str, values: list[Any]) -> Asked:
    """One or two requirements that sets can meet."""
    kinds = ["frequency-l-diversity", "entropy-l-diversity", "distinct-l-diversity", "t-closeness", "expanded-k"]
    kinds += ["local-privacy"]
    if attribute.get("distance", "equal") != "equal":
        kinds += ["semantic-diversity"] * 3
    if "hierarchy" in attribute:
        kinds += ["le-diversity"] * 2
    chosen = r.sample(list(dict.fromkeys(kinds)), 1 if r.random() < 0.85 else 2)
    asked = [_one(r, kind, name, attribute) for kind in chosen]
    size = len(attribute.get("values") or attribute.get("bins", [0])[1:] or labelled(attribute, values))
    for one in asked:  # a set of the whole domain says nothing
        for field in ("l", "k"):
            if field in one and one["model"] not in ("semantic-diversity", "le-diversity") and r.random() < FAIR:
                one[field] = min(one[field], max(2, size - 1))
    return asked


def classic_requirements(
    r: random.Random, name: str, attribute: dict[str, Any], method: str, values: list[Any]
) -> Asked:
    """One or two requirements about classes."""
    kinds = [
        "frequency-l-diversity", "entropy-l-diversity", "distinct-l-diversity", "recursive-cl-diversity",
        "alpha-k-anonymity", "p-sensitive-k-anonymity", "tau-l-diversity", "t-closeness", "beta-likeness",
        "delta-disclosure",
    ]  # fmt: skip
    if method in ("anatomy", "rating") and r.random() < 0.98:
        kinds = ["frequency-l-diversity", "distinct-l-diversity"]
    if method == "sweep" and r.random() < 0.98:
        kinds = ["frequency-l-diversity", "distinct-l-diversity", "tau-l-diversity"]
    if isinstance(attribute.get("hierarchy"), dict) and "tree" in attribute["hierarchy"] and len(kinds) > 3:
        kinds += ["le-diversity"]
    return _fair(r, kinds, name, attribute, values)


def term_requirements(r: random.Random, name: str, labels: int) -> Asked:
    """What must hold of terms."""
    unlinked = {"unlinked": "prior"} if r.random() < 0.2 else {}
    if r.random() < 0.5:
        asked = {"model": "qs-diversity", "c": r.choice((0.7, 1.0, 2.0, 4.0)), "l": r.choice((2, 2, 3))}
    else:
        asked = {"model": "qs-closeness", "t": r.choice((0.1, 0.25, 0.5)), "distance": r.choice(("l2", "emd"))}
    return [asked | {"on": name} | unlinked]


def _one(r: random.Random, kind: str, name: str, attribute: dict[str, Any]) -> dict[str, Any]:
    low = r.choice((2, 2, 2, 2, 3, 3, 4))
    fields: dict[str, dict[str, Any]] = {
        "frequency-l-diversity": {"l": low},
        "distinct-l-diversity": {"l": low},
        "entropy-l-diversity": {"l": r.choice((1.3, 1.8, 2, 2.5, 3))},
        "expanded-k": {"k": low},
        "t-closeness": {"t": r.choice((0.1, 0.2, 0.35, 0.6))},
        "local-privacy": {"epsilon": r.choice((0.3, 1.0, 4.0))},
        "semantic-diversity": {"l": 2 if r.random() < 0.8 else 3, "d": r.choice((1, 1, 2, 3, 10))},
        "le-diversity": {"l": 2 if r.random() < 0.8 else 3, "e": r.choice((1, 1, 1, 2))},
        "recursive-cl-diversity": {"c": r.choice((0.8, 1.5, 3.0)), "l": r.choice((2, 2, 3))},
        "alpha-k-anonymity": {"alpha": r.choice((0.34, 0.5, 0.75)), "k": r.choice((1, 2, 4))},
        "p-sensitive-k-anonymity": {"p": 2, "k": r.choice((2, 3, 6))},
        "tau-l-diversity": {"l": low, "tau": r.choice((0.5, 0.6, 0.75, 1 / low))},
        "beta-likeness": {"beta": r.choice((0.5, 1.0, 3.0)), "form": r.choice(("basic", "enhanced"))},
        "delta-disclosure": {"delta": r.choice((0.7, 1.5, 3.0))},
    }
    made = {"model": kind, "on": name, **fields[kind]}
    ordered = "bins" in attribute or attribute.get("distance") in ("ordinal", "numeric")
    if kind == "t-closeness" and r.random() < (0.6 if ordered else 0.03):
        made["distance"] = "ordered"
    elif kind == "t-closeness" and r.random() < (0.4 if "hierarchy" in attribute else 0.03):
        made["distance"] = "tree"
    return made


def _is_semantic(world: World) -> bool:
    models = {asked["model"] for asked in world.require}
    return len(world.require) == 1 and models <= {"semantic-diversity", "le-diversity"}


def method_options(r: random.Random, method: str, world: World) -> dict[str, Any]:
    """Options of the method, mostly their defaults."""
    secrets = [name for name, a in world.attributes.items() if a["role"].startswith("sensitive")]
    out: dict[str, Any] = {}
    if method == "decoys":
        if r.random() < 0.3:
            out["design"] = r.choice(("flat", "simple", "duplicate-processing", "uniform-sets"))
        if r.random() < 0.3:
            out["allow_unidentifiable"] = True
        if r.random() < 0.03 or (r.random() < 0.7 and _is_semantic(world)):
            out["form"] = "records"
        if secrets and r.random() < 0.06:
            out["parameters"] = {r.choice(secrets): {"eta": r.choice((2, 3, 4)), "p": r.choice((0.3, 0.8, 1.0))}}
        return out
    relative = any(asked["model"] in RELATIVE for asked in world.require)
    if r.random() < (0.02 if relative or method == "local-suppression" else 0.45):
        out["suppression"] = r.choice((0.05, 0.2, 0.5))
    if method == "mondrian":
        out |= {"strict": r.random() < 0.5, "refinement": r.choice((0, 1, 2))}
    if method == "sweep" and r.random() < 0.4:
        out["chunk"] = r.choice((4, 16))
    if method == "incognito" and r.random() < 0.3:
        out["loss"] = r.choice(("granularity", "discernibility", "entropy"))
    if method == "three-phase":
        out["refine"] = r.random() < 0.5
    if method == "suppress":
        out |= {"nodes": r.choice((1, 20, 200)), "k": r.choice((1, 1, 2, 4))}
        out["generalise"] = r.choice(("mondrian", "mondrian", "incognito", "hilbert", "three-phase", "sweep"))
        out["search"] = r.choice(("best", "best", "adaptive", "depth-first"))
        out["infeasible"] = r.choice(("merge", "merge", "drop", "refuse"))
        if r.random() < 0.25:
            out["balance"] = {r.choice(("generalisation", "terms")): r.choice((0.05, 0.3))}
    if method == "auto" and r.random() < 0.4:
        out["among"] = r.sample(["mondrian", "sweep", "hilbert", "incognito", "anatomy", "three-phase"], 2)
    return out
