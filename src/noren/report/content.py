"""The report as plain data: what the page shows is what the JSON holds, figure by figure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from noren.engines import TermSearch
from noren.methods import METHODS
from noren.models.base import QUASI
from noren.models.verdict import Verdict
from noren.report.gains import attacks_of, beliefs_of
from noren.report.limits import limits_of
from noren.report.losses import losses_of
from noren.report.material import Material, origin_of
from noren.report.reproduce import reproduction
from noren.report.truth import truth_of
from noren.results import plain
from noren.statements import Statement

FORMAT = 2
"""Of the JSON: fields may be added under the same number, never change their meaning."""


def content_of(material: Material) -> dict[str, Any]:
    """All parts of a report. Whatever rests on the original carries `holder_only`."""
    manifest = material.release.manifest
    made: dict[str, Any] = {
        "format": FORMAT,
        "title": manifest.title or "Release report",
        "date": material.date.isoformat(timespec="seconds"),
        "holder_only": material.holder_only,
        "truth": truth_of(material),
        "published": _published(material),
        "guarantees": _guarantees(material),
        "verdicts": [_verdict(verdict) for verdict in material.verdicts],
        "replayed": [one.to_dict() | {"holder_only": True} for one in material.replays],
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


def _published(material: Material) -> dict[str, Any]:
    manifest = material.release.manifest
    out: dict[str, Any] = {
        "records": manifest.records,
        "rows": material.release.rows,
        "suppressed": material.suppressed,
        "methods": [
            {
                "name": used.name,
                "on": [name for name in used.on if name in material.release.columns],
                "in_words": METHODS[used.name].sentence if used.name in METHODS else "",
            }
            for used in manifest.methods
        ],
        "classes": material.has_classes,
        "decoys": bool(material.release.designs),
        "randomness": manifest.randomness,
        "columns": [_column(material, statement) for statement in material.release.statements],
    }
    if manifest.margins:
        out["margins"] = [
            {"of": list(one.of), "epsilon": one.epsilon, "scale": one.scale, "cells": len(one.counts)}
            for one in manifest.margins
        ]
        out["epsilon_of_margins"] = manifest.spent
    if manifest.weight is not None:
        out["weight"] = manifest.weight
    if material.dropped:
        out["dropped"] = material.dropped
    if material.policy is not None:
        out["not_published"] = [n for n in material.policy.attributes if n not in material.release.columns]
    return out


def _column(material: Material, statement: Statement) -> dict[str, Any]:
    asked = [
        model.model
        for model in material.requirements
        if statement.name in model.on or (not model.on and statement.role in QUASI)
    ]
    found = "open" if statement.column.is_open else origin_of(statement.domain.source)
    return {
        "name": statement.name,
        "role": statement.role.value,
        "form": statement.form,
        "published": _description(material, statement),
        "values": statement.d or None,
        "requirements": list(dict.fromkeys(asked)),
        "domain_from": material.origins.get(statement.name, found),
    }


def _description(material: Material, statement: Statement) -> str:
    """How a column is published; of terms, whether some were left out, where the run itself tells."""
    known = [part for part in material.left_out if statement.name in part.columns]
    if statement.terms is None or not (known or material.origins):
        return statement.description
    left_out = any(part.removed for part in known)
    return "as a set of terms, some left out" if left_out else "as a set of terms, in full"


def _guarantees(material: Material) -> list[dict[str, Any]]:
    """What every requirement promises about its columns as they are published."""
    columns = material.release.by_name
    quasi = [statement.name for statement in columns.values() if statement.role in QUASI]
    out = []
    for model in material.requirements:
        about = [columns[name] for name in model.on if name in columns]
        drawn = bool(about) and all(statement.design is not None for statement in about)
        promise = model.promised(model.on or quasi, drawn)
        out.append(
            {
                "model": model.model,
                "on": list(model.on),
                "parameters": {name: value for name, value in model.parameters().items() if value is not None},
                "promise": promise.says,
                "not_promised": promise.leaves_open,
                "published": {statement.name: statement.words for statement in about},
            }
        )
    return out


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as data; its classes' keys are left to `noren verify --show`, which is asked for them."""
    out = asdict(verdict)
    out.pop("shortfalls", None)
    return out | {"holder_only": verdict.basis == "the original"}


def _left_out(part: TermSearch) -> dict[str, Any]:
    """What the search for the cheapest removals of terms found, in all."""
    return {**part.totals, "holder_only": True}
