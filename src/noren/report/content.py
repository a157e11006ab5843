"""The report as plain data: what the page shows is what the JSON holds, figure by figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from noren.models.base import FORM_WORDS, Verdict
from noren.release.manifest import ColumnEntry
from noren.report.gains import attacks_of, beliefs_of
from noren.report.limits import limits_of
from noren.report.losses import losses_of
from noren.report.material import Material
from noren.report.reproduce import reproduction
from noren.report.words import METHODS, guarantee

FORMAT = 1
"""Of the JSON: fields may be added under the same number, never change their meaning."""


def content_of(material: Material) -> dict[str, Any]:
    """All parts of a report. Whatever rests on the original carries `holder_only`."""
    manifest = material.release.manifest
    made: dict[str, Any] = {
        "format": FORMAT,
        "title": manifest.title or "Release report",
        "date": material.date.isoformat(timespec="seconds"),
        "holder_only": material.holder_only,
        "published": _published(material),
        "guarantees": _guarantees(material),
        "verdicts": [_verdict(verdict) for verdict in material.verdicts],
        "beliefs": beliefs_of(material),
        "attacks": attacks_of(material),
        "losses": losses_of(material),
        "left_out": [_left_out(part) for part in material.left_out],
        "limits": limits_of(material),
        "reproduce": reproduction(material),
    }
    if material.estimate is not None:
        made["estimate"] = material.estimate.to_dict()
    return dict(plain(made))


def plain(value: Any) -> Any:
    """Data that any JSON reader takes: texts, numbers, lists and tables; what is not a number becomes null."""

    def other(item: Any) -> Any:
        return item.tolist() if hasattr(item, "tolist") else str(item)

    return json.loads(
        json.dumps(value, default=other, ensure_ascii=False), parse_constant=lambda _: None, parse_float=_finite
    )


def _finite(text: str) -> float | None:
    found = float(text)
    return found if isfinite(found) else None


def _published(material: Material) -> dict[str, Any]:
    manifest = material.release.manifest
    out: dict[str, Any] = {
        "records": manifest.records,
        "rows": material.release.rows,
        "suppressed": material.suppressed,
        "layout": manifest.layout,
        "method": manifest.method.get("name", ""),
        "method_options": {name: value for name, value in manifest.method.items() if name != "name"},
        "in_words": METHODS.get(str(manifest.method.get("name")), ""),
        "randomness": manifest.randomness,
        "columns": [_column(material, entry) for entry in manifest.columns],
    }
    if material.dropped:
        out["dropped"] = material.dropped
    if material.policy is not None:
        out["not_published"] = [n for n in material.policy.attributes if n not in material.release.columns]
    return out


def _column(material: Material, entry: ColumnEntry) -> dict[str, Any]:
    named = [one["model"] for one in _requirements(material) if entry.name in (one.get("on") or ())]
    everybody = [one["model"] for one in _requirements(material) if not one.get("on")]
    if entry.role.value.endswith("quasi-identifier"):
        named += everybody
    out: dict[str, Any] = {
        "name": entry.name,
        "role": entry.role.value,
        "form": entry.form,
        "published": _form(material, entry),
        "values": entry.d or None,
        "requirements": list(dict.fromkeys(named)),
    }
    origin = material.origins.get(entry.name)
    if origin is None and entry.domain_source is not None:
        origin = {"policy": "declared"}.get(entry.domain_source, entry.domain_source)
    return out | {"domain_from": origin or "open"}


def _form(material: Material, entry: ColumnEntry) -> str:
    """How a column is published, in words."""
    design = entry.design
    if entry.form == "member" and design is not None:
        return f"{design.eta} shuffled rows, one per value of a set out of {design.d} values"
    if design is not None:
        return f"a set of {design.eta} of {design.d} values"
    if entry.form == "node":
        return "as general values"
    if entry.form == "group":
        return f"as the numbers of {entry.groups:,} groups; a second table lists each group's values"
    if entry.form == "terms":
        known = [part for part in material.left_out if entry.name in part.columns]
        told = bool(known or material.origins)  # whether the run itself tells what it left out
        if told and not any(part.removed for part in known):
            return "as a set of terms, in full"
        return "as a set of terms, some left out" if known else "as a set of terms; some may have been left out"
    return "as it is"


def _requirements(material: Material) -> Sequence[Mapping[str, Any]]:
    """What must hold: by the policy where there is one, else by the release's own claims."""
    if material.policy is not None:
        return [model.model_dump(mode="json") for model in material.policy.require]
    return material.release.manifest.requirements


def _guarantees(material: Material) -> list[dict[str, Any]]:
    entries = material.release.manifest.columns
    forms = {entry.name: entry.form for entry in entries}
    quasi = [entry.name for entry in entries if entry.role.value.endswith("quasi-identifier")]
    out = []
    for one in _requirements(material):
        columns = [str(name) for name in one.get("on") or ()]
        given = {name: value for name, value in one.items() if name not in ("model", "on") and value is not None}
        promise, not_promised = guarantee(
            str(one["model"]), columns or quasi, given, [forms[name] for name in columns if name in forms]
        )
        out.append(
            {
                "model": one["model"],
                "on": columns,
                "parameters": given,
                "promise": promise,
                "not_promised": not_promised,
                "published": {name: FORM_WORDS[forms[name]] for name in columns if name in forms},
            }
        )
    return out


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as data; its classes' keys are left to `noren verify --show`, which is asked for them."""
    out = asdict(verdict)
    out.pop("shortfalls", None)
    return out | {"holder_only": verdict.basis == "the original"}


def _left_out(part: Any) -> dict[str, Any]:
    """What the search for the cheapest removals of terms found, in all."""
    return {**part.totals, "holder_only": True}
