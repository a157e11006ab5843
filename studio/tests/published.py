"""Releases for the recipient's and the auditor's tests: an honest one, forged ones, one with hostile labels."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from tests.leaks.test_closed_world import mended

import noren as nr
from noren.cli import POLICY_TOML, disease_hierarchy_csv, hospital_table

ROWS = 800
MARKUP = (
    "<img src=x onerror=window.acted=1>",
    "<script>window.acted=1</script>",
    "</script><script>window.acted=1</script>",
    "{{constructor.constructor('window.acted=1')()}}",
    "javascript:window.acted=1",
    "\u202eevil",
    "http://evil.example/x.png",
)


@dataclass(frozen=True)
class Hospital:
    """A hospital's table, its policy, its signed release, and the public half of the key."""

    table: Path
    policy: Path
    release: Path
    key: Path


def publish(folder: Path) -> Hospital:
    """The demo's hospital, smaller, and signed."""
    table, policy = folder / "patients.csv", folder / "policy.toml"
    pv.write_csv(hospital_table(ROWS), table)
    policy.write_text(POLICY_TOML, encoding="utf-8")
    (folder / "disease.csv").write_text(disease_hierarchy_csv(), encoding="utf-8")
    nr.SigningKey.create(folder / "holder.key")
    nr.anonymize(table, policy, to=folder / "release", sign=folder / "holder.key")
    return Hospital(table, policy, folder / "release", folder / "holder.key.pub")


def again(hospital: Hospital, folder: Path) -> Path:
    """Another release of the same people, with decoys drawn anew."""
    nr.anonymize(hospital.table, hospital.policy, to=folder / "second")
    return folder / "second"


def stricter(hospital: Hospital) -> Path:
    """A policy that asks for more than the release keeps."""
    target = hospital.policy.with_name("stricter.toml")
    target.write_text(hospital.policy.read_text().replace("l = 3", "l = 4"), encoding="utf-8")
    return target


def survey(folder: Path) -> Path:
    """A release with survey weights, and one with counts that were published with noise."""
    rng, rows = np.random.default_rng(5), 400
    table = {
        "town": rng.choice(["Ulm", "Bonn", "Jena"], rows),
        "job": rng.choice(["cook", "clerk", "miner", "nurse"], rows),
    }
    diverse = nr.models.FrequencyLDiversity(on="job", l=2)
    weighed = nr.Policy(
        attributes={"town": "plain", "job": "sensitive", "stands_for": {"role": "plain", "weight": True}},
        require=[diverse],
    )
    counted = nr.Policy(
        attributes={"town": "plain", "job": "sensitive"},
        require=[diverse],
        margins=[{"of": ["town", "job"], "epsilon": 1.0}],
    )
    nr.anonymize(pa.table(table | {"stands_for": rng.integers(1, 5, rows)}), weighed).save(folder / "weighed")
    nr.anonymize(pa.table(table), counted).save(folder / "counted")
    return folder


def forged(release: Path, target: Path) -> Path:
    """A copy without its signature that claims more than its cells keep, with checksums that fit again."""

    def claim_more(package: dict[str, Any]) -> None:
        claimed = package["noren"]["requirements"][-1]
        assert claimed["l"] == 3
        claimed["l"] = 4

    shutil.copytree(release, target)
    (target / "datapackage.sig").unlink(missing_ok=True)
    mended(target, claim_more)
    return target


def damaged(release: Path, target: Path) -> Path:
    """A copy in which one byte of the cells is another."""
    shutil.copytree(release, target)
    data = target / "data.parquet"
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(bytes(content))
    return target


def hostile(folder: Path) -> Path:
    """Columns, values and the folder itself are named by somebody who means harm."""
    rows = 280
    secret = f"job {MARKUP[0]}"
    table = pa.table(
        {
            MARKUP[1]: [MARKUP[at % 7] for at in range(rows)],
            secret: [MARKUP[(at // 7) % 7] for at in range(rows)],
        }
    )
    diverse = nr.models.FrequencyLDiversity(on=secret, l=2)
    policy = nr.Policy(
        attributes={MARKUP[1]: "plain", secret: "sensitive"}, require=[diverse], dependence={"most": 1.0}
    )
    return nr.anonymize(table, policy).save(folder / "<img src=x onerror=window.acted=1>")
