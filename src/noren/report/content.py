"""The report as plain data: what the page shows is what the JSON holds, figure by figure.

What is not protected: by the method, and by what the policy leaves open. The page must say it, asked or not.

What an analyst loses: how much of a column a cell leaves open, and how wrong a count may be.

Most of it follows from the release alone. With the original it is also known how wrong the estimates really are.

How to repeat what the page says: commands, the policy, versions, and checksums of the files.

A checksum of the original would let anybody test a guess about it, so it stands on the holder's page alone.
"""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from math import pi, sqrt
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren import __version__
from noren.audit.targets import class_keys
from noren.engines import TermSearch
from noren.errors import NorenError, PolicyError
from noren.files import DESCRIPTOR
from noren.methods import METHODS
from noren.models.base import QUASI, columns_of
from noren.models.verdict import Verdict
from noren.ragged import rows_in_order
from noren.release.package import checksum
from noren.report.gains import attacks_of, beliefs_of
from noren.report.material import Material, origin_of
from noren.report.truth import truth_of
from noren.results import plain
from noren.sources.source import SCHEME
from noren.statements import Statement
from noren.workflow.truth import tallied

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


def limits_of(material: Material) -> list[dict[str, str]]:
    """Sentences with the part of the release that each is about."""
    items = [*_by_policy(material), *_by_method(material), *_always(material)]
    return [{"about": about, "text": text} for about, text in items] + [
        {"about": "this run", "text": note} for note in material.notes
    ]


def _by_policy(material: Material) -> list[tuple[str, str]]:
    statements = material.release.statements
    plain = [statement.name for statement in statements if statement.is_exact]
    hidden = "the truth inside the sets" if material.release.designs else "which of the class's secrets is the person's"
    out = [
        (
            "plain columns",
            f"Columns published as they are: {', '.join(plain) or 'none'}. Whoever knows them can find a person's row; "
            f"what is hidden is {hidden}.",
        )
    ]
    free = [statement.name for statement in statements if statement.column.is_open]
    if free:
        out.append(
            (
                "open columns",
                f"Columns with no fixed list of values: {', '.join(free)}. A cell of theirs may itself name or "
                "describe a person; nobody has read them.",
            )
        )
    together = any(not model.on for model in material.requirements)
    named = columns_of(material.requirements)
    outside = [
        statement.name
        for statement in statements
        if statement.name not in named
        and not (together and statement.role in QUASI)
        and not (statement.hides and statement.design is None)
    ]
    if outside:
        out.append(
            (
                "columns outside the requirements",
                f"No requirement speaks about {', '.join(outside)}: nothing is promised for these columns, and if one "
                "of them goes with a secret, it tells something about the secret.",
            )
        )
    return out


def _by_method(material: Material) -> list[tuple[str, str]]:
    release = material.release
    out = []
    if release.designs:
        out += [
            (
                "several columns",
                "What several columns' sets tell together, where the columns are correlated. A bound that holds for "
                "each column alone adds up over columns.",
            ),
            _repeated_sets(release.manifest.randomness == "memoised"),
        ]
        if any(design.p == 1.0 for design in release.designs.values()):
            out.append(
                (
                    "prior knowledge",
                    "What somebody believes who knows how common the values are: inside a set the odds stay as they "
                    "were before.",
                )
            )
    tells = [f"{name}: {design.tells}" for name, design in release.designs.items() if design.tells]
    if tells:
        out.append(("published parameters", f"{'; '.join(tells)}."))
    if material.has_classes:
        out.append(("repeated releases", "People who are in two releases: their classes can be intersected."))
        if material.release.manifest.mechanism == "ignored":
            said = 'The policy ignores it (mechanism = "ignored"): up to somebody\'s secret.'
            out.append(("the method", f"What an adversary infers from knowing the method itself. {said}"))
    if any(statement.terms is not None for statement in release.statements):
        out.append(
            (
                "other knowledge",
                "Terms as an adversary would link them with another knowledge table than the one the policy gives: "
                "what that table does not know, nobody here has counted.",
            )
        )
    return out


def _repeated_sets(memoised: bool) -> tuple[str, str]:
    if memoised:
        return (
            "repeated releases",
            "People who are also in releases made with another secret, or by somebody else: those sets can be "
            "intersected with these.",
        )
    return ("repeated releases", "People who are in two releases with fresh decoys: the sets can be intersected.")


def _always(material: Material) -> list[tuple[str, str]]:
    return [
        ("membership", "Whether a person is in the table at all."),
        (
            "facts about the population",
            "What is true of many people, such as an illness that goes with an occupation: that is what recipients are "
            "meant to learn, and it tells something about everybody, in the table or not.",
        ),
        (
            "other sources",
            "What an adversary knows from elsewhere about one person, beyond what each requirement assumes.",
        ),
    ]


MOST_COUNTED = 5_000
"""Values up to which a column's distribution is estimated for the report."""


def losses_of(material: Material) -> dict[str, Any]:
    """Column by column, and for the table as a whole."""
    statements = material.release.statements
    out: dict[str, Any] = {
        "columns": [_column_losses(material, statement) for statement in statements if not statement.is_exact],
        "exact": [statement.name for statement in statements if statement.is_exact],
    }
    if material.has_classes:
        out["classes"] = _class_losses(material)
    if material.losses:
        out["table"] = {"holder_only": True, "figures": dict(material.losses)}
    return out


def _column_losses(material: Material, statement: Statement) -> dict[str, Any]:
    name, design = statement.name, statement.design
    out: dict[str, Any] = {"name": name, "form": statement.form, "holder_only": False}
    if statement.terms is not None:
        return out | _term_losses(material, name)
    if design is not None and design.floor > 0:
        out["note"] = "a set may lack the true value, so that it rules nothing out; what it costs is the expected error"
    else:
        out["left_open"] = _left_open(material, statement)
    if statement.d > MOST_COUNTED:
        return out | {"note": f"its {statement.d:,} values are too many to estimate here"}
    # General values are spread evenly over what they cover: the most likely counts heap up on few single values.
    estimator = "spread" if design is None else None
    try:
        estimate = material.release.estimate(name, estimator=estimator)
    except NorenError as error:
        return out | {"note": error.message}
    out["estimator"] = estimate.estimator
    counts = estimate.frame["count"].to_numpy()
    records = max(1, material.release.records)
    errors = estimate.frame["std_error"].drop_nulls().to_numpy()
    if estimate.diagnostics.get("bounds") != "hard" and len(errors):
        out |= _expected(counts, errors, records)
    truth = material.truth.get(name)
    if truth is not None and truth.sum() > 0:
        out |= {"actual_error": _distance(counts, truth), "holder_only": True}
    return out


def _expected(counts: NDArray, errors: NDArray, records: int) -> dict[str, float]:
    """Errors to expect of one estimated count, and of the distribution as a whole (mean of a normal's distance)."""
    even = records / max(1, len(counts))
    return {
        "typical_count_error": float(np.sqrt((errors**2).mean())),
        "largest_count_error": float(errors.max()),
        "mean_count": float(even),
        "expected_error": float(min(1.0, errors.sum() * sqrt(2 / pi) / 2 / records)),
    }


def _distance(counts: NDArray, truth: NDArray) -> float:
    """Total variation between the estimated and the true distribution: the share of records put in a wrong place."""
    found = np.zeros(len(truth))
    found[: len(counts)] = counts[: len(truth)]
    total = found.sum()
    return float(np.abs(found / (total if total else 1) - truth / truth.sum()).sum() / 2)


def _left_open(material: Material, statement: Statement) -> float:
    """Mean over rows of (values that the cell leaves possible - 1) / (values - 1): 0 says all, 1 says nothing."""
    total, rows = 0.0, 0
    for batch in material.release.batches([statement.name]):
        spread = statement.spread(batch[statement.name])
        total, rows = total + float(spread.sum()), rows + len(spread)
    return (total / rows - 1) / max(1, statement.d - 1) if rows else 0.0


def _term_losses(material: Material, name: str) -> dict[str, Any]:
    """Published terms, and with the original which share of them was left out."""
    found = tallied(material.release, [name]).get(name)
    shown = 0 if found is None else int(found.sum())
    out: dict[str, Any] = {"terms_published": shown, "terms_per_record": shown / max(1, material.release.records)}
    before = material.term_totals.get(name)
    if before:
        out |= {"terms_before": before, "terms_left_out": max(0.0, 1 - shown / before), "holder_only": True}
    return out


def _class_losses(material: Material) -> dict[str, Any]:
    """How many groups of records look alike in all quasi-identifiers, and how large they are."""
    names = [s.name for s in material.release.statements if s.role in QUASI and (s.is_key or s.is_class)]
    if not names or not material.release.records:
        return {}
    sizes = np.diff(rows_in_order(class_keys(material.release, names), material.release.rows)[1])
    return {
        "by": names,
        "classes": len(sizes),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "mean": float(sizes.mean()),
    }


LIBRARIES = ("numpy", "numba", "polars", "pyarrow", "pydantic", "cryptography", "altair", "vl-convert-python")


def reproduction(material: Material) -> dict[str, Any]:
    """Everything somebody needs to check the page."""
    out: dict[str, Any] = {
        "versions": versions(),
        "release_made_with": material.release.manifest.noren,
        "commands": _commands(material),
        "files": _files(material.release.directory),
        "seconds": dict(material.seconds),
    }
    policy = _policy(material)
    if policy is not None:
        out["policy"] = policy
    if material.holder_only and (path := _path(material.original)) is not None and path.is_file():
        out["original"] = {"name": path.name, "sha256": checksum(path), "holder_only": True}
    return out


def versions() -> dict[str, str]:
    """Noren, Python and the libraries that figures may depend on."""
    found = {"noren": __version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _commands(material: Material) -> list[dict[str, Any]]:
    """Commands by file names alone: a page says nothing about the holder's directories."""
    path = material.release.path
    if path is None:
        return []
    release = quote(path.resolve().name if isinstance(path, Path) else path.name)
    policy = "policy.toml" if material.policy_file is None else quote(material.policy_file.name)
    rules = "" if material.policy is None else f" --policy {policy}"
    told = [
        ("Anyone can recheck the claims", f"noren verify {release}", False),
        ("What the table reaches in every model", f"noren measure {release}", False),
        ("This report, as anybody can make it", f"noren report {release}{rules} --to report.html", False),
    ]
    if material.holder_only:
        original = quote(source.name) if (source := _path(material.original)) is not None else "original.csv"
        told += [
            (
                "The release again; decoys and order are drawn anew"
                if material.release.designs
                else "The release again; the order of rows is drawn anew",
                f"noren anonymize {original} {policy} --to again",
                True,
            ),
            (
                "With the original",
                f"noren report {release} --policy {policy} --original {original} --to report.html",
                True,
            ),
        ]
    return [{"what": what, "command": command, "holder_only": holder} for what, command, holder in told]


def _files(path: Path | None) -> list[dict[str, Any]]:
    """Every file of the release directory, the descriptor first."""
    if path is None:
        return []
    names = sorted(file.name for file in path.iterdir() if file.is_file())
    names.sort(key=lambda name: name != DESCRIPTOR)
    return [{"name": n, "bytes": (path / n).stat().st_size, "sha256": checksum(path / n)} for n in names]


SIDE_FILE = re.compile(r'\b(hierarchy|csv|matrix|semilattice|knowledge|priors) = "(?:[^"]*[/\\])?([^"/\\]+)"')


def _without_places(text: str) -> str:
    """A policy for a page that anybody may read: side files by their names alone, the secret not at all."""
    lines = [line for line in SIDE_FILE.sub(r'\1 = "\2"', text).splitlines() if not line.startswith("secret = ")]
    return "\n".join(lines) + "\n"


def _policy(material: Material) -> dict[str, Any] | None:
    """The policy as it was written, or as it would be written; its checksum is of exactly this text.

    A page for anybody shows it without comments and without the holder's directories.
    """
    if material.policy is None:
        return None
    if material.policy_file is not None and material.holder_only:
        raw = material.policy_file.read_bytes()
        text = raw.decode("utf-8-sig")
        return {"name": material.policy_file.name, "text": text, "sha256": hashlib.sha256(raw).hexdigest()}
    try:
        text = material.policy.to_toml()
        text = text if material.holder_only else _without_places(text)
    except PolicyError as error:
        return {"name": "policy", "text": "", "sha256": "", "note": error.problems[0].message}
    return {"name": "policy.toml", "text": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _path(data: Any) -> Path | None:
    """The file of the original, if it is one; an address may hold a password and is not shown."""
    if isinstance(data, str) and SCHEME.match(data):
        return None
    return Path(data) if isinstance(data, str | Path) else None
