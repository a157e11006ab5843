"""The report as plain data: the page and the JSON have the same figures.

What is not protected: by the method, and by what the policy leaves open. The page must say it, asked or not.

How to repeat what the page says: commands, the policy, versions, and checksums of the files.

A checksum of the original would let anybody test a guess about it, so it stands on the holder's page alone.
"""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from math import inf
from pathlib import Path
from shlex import quote
from typing import Any

from noren import __version__
from noren.engines import TermSearch
from noren.errors import PolicyError
from noren.files import DESCRIPTOR
from noren.methods import METHODS
from noren.models.base import QUASI, columns_of
from noren.models.verdict import Verdict
from noren.release.store import checksum
from noren.report.attacks import attacks_of
from noren.report.losses import losses_of
from noren.report.material import Material, origin_of
from noren.report.truth import promise_of, truth_of
from noren.results import plain
from noren.sources.source import SCHEME
from noren.statements import Statement

FORMAT = 3
"""Of the JSON: fields may be added under the same number, never change their meaning."""


def content_of(material: Material) -> dict[str, Any]:
    """Return all parts of a report. Parts computed from the original have `holder_only`."""
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
    """Describe how a column is published; for terms, whether some were suppressed if the run knows."""
    known = [part for part in material.left_out if statement.name in part.columns]
    if statement.terms is None or not (known or material.origins):
        epsilon = inf if statement.design is None else statement.design.epsilon
        return statement.description + (f"; epsilon {epsilon:.4g}" if epsilon < inf else "")
    left_out = any(part.removed for part in known)
    return "as a set of terms, some suppressed" if left_out else "as a set of terms, in full"


def _guarantees(material: Material) -> list[dict[str, Any]]:
    """Return the promise of every requirement about its columns."""
    columns, out = material.release.by_name, []
    for model in material.requirements:
        promise = promise_of(material, model)
        out.append(
            {
                "model": model.model,
                "on": list(model.on),
                "parameters": {name: value for name, value in model.parameters().items() if value is not None},
                "promise": promise.says,
                "not_promised": promise.leaves_open,
                "published": {name: columns[name].words for name in model.on if name in columns},
            }
        )
    return out


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as data, without the keys of classes, which `noren verify --show` prints."""
    out = asdict(verdict)
    out.pop("shortfalls", None)
    return out | {"holder_only": verdict.basis == "the original"}


def _left_out(part: TermSearch) -> dict[str, Any]:
    """Return the overall results of the term suppression."""
    return {**part.totals, "holder_only": True}


def limits_of(material: Material) -> list[dict[str, str]]:
    """Return sentences about the limits of the guarantees, with the part of the release that each is about."""
    items = [*_by_policy(material), *_by_method(material), *_always(material)]
    return [{"about": about, "text": text} for about, text in items] + [
        {"about": "this run", "text": note} for note in material.notes
    ]


def _by_policy(material: Material) -> list[tuple[str, str]]:
    statements = material.release.statements
    plain = [statement.name for statement in statements if statement.is_exact]
    hidden = (
        "the true value within a set" if material.release.designs else ("which secret of the class is the person's")
    )
    out = [
        (
            "plain columns",
            (
                f"Columns published exactly: {', '.join(plain) or 'none'}. Somebody who knows them can find a person's "
                f"row; what stays hidden is {hidden}."
            ),
        )
    ]
    free = [statement.name for statement in statements if statement.column.is_open]
    if free:
        out.append(
            (
                "open columns",
                (
                    f"Columns with no fixed list of values: {', '.join(free)}. Their cells may name or describe a "
                    "person; they were not checked."
                ),
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
                (
                    f"No requirement covers {', '.join(outside)}. A column of these that is related to a secret "
                    "discloses something about it."
                ),
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
                (
                    "What the sets of several correlated columns disclose together. A bound for each column adds up "
                    "over columns."
                ),
            ),
            _repeated_sets(release.manifest.randomness == "memoised"),
        ]
        if any(design.p == 1.0 for design in release.designs.values()):
            out.append(
                (
                    "prior knowledge",
                    (
                        "The beliefs of an adversary who knows the frequencies of the values: within a set, the odds "
                        "stay as before."
                    ),
                )
            )
    tells = [f"{name}: {design.tells}" for name, design in release.designs.items() if design.tells]
    if tells:
        out.append(("published parameters", f"{'; '.join(tells)}."))
    if material.has_classes:
        out.append(("repeated releases", "People in two releases: their classes can be intersected."))
        if material.release.manifest.mechanism == "ignored":
            said = (
                'The policy ignores this (mechanism = "ignored"), so some secrets may be certain to such an adversary.'
            )
            out.append(("the method", f"What an adversary infers from knowing the method. {said}"))
    if any(statement.terms is not None for statement in release.statements):
        out.append(
            (
                "other knowledge",
                (
                    "Adversaries with another knowledge table than the policy's: links that the policy's table lacks "
                    "were not counted."
                ),
            )
        )
    return out


def _repeated_sets(memoised: bool) -> tuple[str, str]:
    if memoised:
        return (
            "repeated releases",
            (
                "People who are also in releases made with another secret or by another holder: their sets can be "
                "intersected."
            ),
        )
    return ("repeated releases", "People in two releases with fresh decoys: their sets can be intersected.")


def _always(material: Material) -> list[tuple[str, str]]:
    return [
        ("membership", "Whether a person is in the table at all."),
        (
            "facts about the population",
            (
                "What is true of many people, such as a relation between an illness and an occupation. Recipients are "
                "meant to learn it, and it discloses something about everybody, in the table or not."
            ),
        ),
        (
            "other sources",
            "Other knowledge of an adversary about one person, beyond what each requirement assumes.",
        ),
    ]


LIBRARIES = ("numpy", "numba", "polars", "pyarrow", "pydantic", "cryptography", "altair", "vl-convert-python")


def reproduction(material: Material) -> dict[str, Any]:
    """Return everything that is needed to check the report."""
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
    """Return the versions of Noren, Python and relevant libraries."""
    found = {"noren": __version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _commands(material: Material) -> list[dict[str, Any]]:
    """Return commands with file names only, without the holder's directories."""
    path = material.release.path
    if path is None:
        return []
    release = quote(path.resolve().name if isinstance(path, Path) else path.name)
    policy = "policy.toml" if material.policy_file is None else quote(material.policy_file.name)
    rules = "" if material.policy is None else f" --policy {policy}"
    told = [
        ("Anyone can recheck the claims", f"noren verify {release}", False),
        ("What the table achieves in every model", f"noren measure {release}", False),
        (
            "This report, without figures that only the holder may see",
            f"noren report {release}{rules} --to report.html",
            False,
        ),
    ]
    if material.holder_only:
        original = quote(source.name) if (source := _path(material.original)) is not None else "original.csv"
        told += [
            (
                "Make the release again; decoys and order are drawn anew"
                if material.release.designs
                else "Make the release again; the order of rows is drawn anew",
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
    """Return every file of the release directory, the descriptor first."""
    if path is None:
        return []
    names = sorted(file.name for file in path.iterdir() if file.is_file())
    names.sort(key=lambda name: name != DESCRIPTOR)
    return [{"name": n, "bytes": (path / n).stat().st_size, "sha256": checksum(path / n)} for n in names]


SIDE_FILE = re.compile(r'\b(hierarchy|csv|matrix|semilattice|knowledge|priors) = "(?:[^"]*[/\\])?([^"/\\]+)"')


def _without_places(text: str) -> str:
    """Return a policy for public pages: names of files without directories, and no secret."""
    lines = [line for line in SIDE_FILE.sub(r'\1 = "\2"', text).splitlines() if not line.startswith("secret = ")]
    return "\n".join(lines) + "\n"


def _policy(material: Material) -> dict[str, Any] | None:
    """Return the text of the policy, with the checksum of exactly this text.

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
    """Return the path of the original, if it is a file; addresses may hold passwords and are not shown."""
    if isinstance(data, str) and SCHEME.match(data):
        return None
    return Path(data) if isinstance(data, str | Path) else None
