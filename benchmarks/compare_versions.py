"""Compare two versions of Noren on 50 policies: what they publish, refuse, verify and find in their own releases.

    python benchmarks/compare_versions.py OLD_TREE NEW_TREE

Each tree is a checkout; both run in the interpreter that starts this script, on the same generated tables. A row is a
policy on which the two differ: in the verdicts, in an audit figure by more than the tolerance, or in a refusal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

TOLERANCE = 0.06
"""Between figures of two releases: methods of classes break ties by a fresh random order."""
ROLES = {"sex": "quasi-identifier", "age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"}
DIVERSE: tuple[dict[str, Any], ...] = (
    {"model": "frequency-l-diversity", "l": 2},
    {"model": "frequency-l-diversity", "l": 3},
    {"model": "entropy-l-diversity", "l": 2},
    {"model": "distinct-l-diversity", "l": 3},
    {"model": "recursive-cl-diversity", "c": 3.0, "l": 2},
    {"model": "t-closeness", "t": 0.4},
)
CLASSED = ("mondrian", "hilbert", "three-phase", "sweep", "incognito", "anatomy")


def table(n: int, seed: int) -> pl.DataFrame:
    """People whose illness depends on age and town."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    town = rng.integers(0, 12, n)
    ill = (rng.integers(0, 8, n) + (age > 60) * rng.integers(0, 4, n) + town % 3) % 12
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "age": age,
            "town": [f"t{one}" for one in town],
            "ill": [f"d{one}" for one in ill],
        }
    )


def policies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Fifty policies: every method with the requirements it can meet, decoys on several columns, mixed ones."""
    for method in CLASSED:
        for rule in DIVERSE:
            yield f"{method}: {rule}", _policy([{**rule, "on": "ill"}], method)
    for k in (3, 10):
        for method in ("mondrian", "incognito"):
            yield f"{method}: k={k}", _policy([{"model": "k-anonymity", "k": k}, {**DIVERSE[0], "on": "ill"}], method)
    for l in (2, 3, 5):  # noqa: E741
        decoy = {"model": "frequency-l-diversity", "l": l}
        yield f"decoys: l={l}", _policy([{**decoy, "on": "ill"}], "decoys")
        yield f"decoys on two: l={l}", _policy([{**decoy, "on": ["ill", "town"]}], "decoys", town=True)
    for t in (0.2, 0.5):
        yield f"decoys: t={t}", _policy([{"model": "t-closeness", "t": t, "on": "ill"}], "decoys")
    yield "auto", _policy([{"model": "frequency-l-diversity", "l": 2, "on": "ill"}], "auto")
    yield "refused: l beyond the values", _policy([{"model": "frequency-l-diversity", "l": 13, "on": "ill"}], "decoys")


def _policy(require: list[dict[str, Any]], method: str, town: bool = False) -> dict[str, Any]:
    roles = ROLES | ({"town": "sensitive-quasi-identifier"} if town else {})
    attributes = {"id": {"role": "identifier"}} | {name: {"role": role} for name, role in roles.items()}
    return {"attributes": attributes, "require": require, "method": {"name": method}}


def answer(section: dict[str, Any], people: pl.DataFrame) -> dict[str, Any]:
    """What the installed version does with one policy."""
    import noren as nr

    try:
        policy = nr.Policy.model_validate(section)
        release = nr.anonymize(people, policy)
    except nr.NorenError as refusal:
        return {"refused": type(refusal).__name__}
    found: dict[str, Any] = {}
    for one in release.verdicts:
        found[f"{one.model} of {one.column}"] = [one.required, one.achieved, one.holds]
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "release")
        again = nr.verify(Path(folder) / "release")
        found["verify"] = [one.holds for one in again]
    for row in nr.attack(release, original=people, policy=policy).frame.iter_rows(named=True):
        names = (name for name, value in row.items() if isinstance(value, float))
        key = f"audit {row['attack']} {row['target']} {row['scenario']}"
        found[key] = {name: row[name] for name in names}
    return {"published": found}


def ask(tree: str) -> dict[str, Any]:
    """The answers of a checkout to all policies, from an interpreter of its own."""
    env = os.environ | {"PYTHONPATH": f"{tree}/src"}
    done = subprocess.run([sys.executable, __file__, "--answers"], env=env, capture_output=True, text=True, check=True)
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def differences(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Where two answers differ, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if key not in old or key not in new:
                yield f"{at}{key}: only in the {'new' if key in new else 'old'}"
            else:
                yield from differences(old[key], new[key], f"{at}{key}: ")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from differences(one, other, at)
    elif isinstance(old, float) and isinstance(new, int | float) and not isinstance(new, bool):
        if abs(old - new) > TOLERANCE * max(1.0, abs(old)):
            yield f"{at}{old:.4g} -> {new:.4g}"
    elif old != new:
        yield f"{at}{old} -> {new}"


def main() -> None:
    if sys.argv[1:] == ["--answers"]:
        people = table(2_000, 7)
        print(json.dumps({name: answer(section, people) for name, section in policies()}, default=str))
        return
    old, new = (ask(str(Path(tree).resolve())) for tree in sys.argv[1:3])
    same = 0
    for name in old:
        rows = list(differences(old[name], new[name]))
        same += not rows
        for row in rows:
            print(f"{name} | {row}")
    print(f"{same} of {len(old)} policies are answered alike")


if __name__ == "__main__":
    main()
