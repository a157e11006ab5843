"""The demonstration's steps. They use nothing that a user could not type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noren.cli.hospital import POLICY_TOML, disease_hierarchy_csv, hospital_table
from noren.metrics.distances import l1_loss
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.progress import Stage
from noren.release.package import refuse_existing
from noren.release.release import open_release
from noren.report.page import holder_report, write_page
from noren.workflow.anonymize import run
from noren.workflow.verify import verify


@dataclass(frozen=True)
class DemoResult:
    """Figures and paths of a demonstration."""

    folder: Path
    records: int
    verdicts: Sequence[Verdict]
    largest: Sequence[dict[str, Any]]
    l1: float
    covered: float
    cells: int
    files: Sequence[tuple[Path, str]]

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "records": self.records,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "largest": list(self.largest),
            "l1": self.l1,
            "covered": self.covered,
            "cells": self.cells,
            "files": {str(path): what for path, what in self.files},
        }


def run_demo(folder: Path, records: int, *, say: Callable[[str], None], stage: Stage) -> DemoResult:
    """Generate, anonymise, verify, estimate, draw, report. The folder must not exist."""
    import polars as pl
    import pyarrow.csv as pv

    refuse_existing(folder)
    folder.mkdir(parents=True)
    patients = folder / "patients.csv"
    original = hospital_table(records)
    pv.write_csv(original, patients)
    (folder / "disease.csv").write_text(disease_hierarchy_csv(), encoding="utf-8")
    policy_file = folder / "policy.toml"
    policy_file.write_text(POLICY_TOML, encoding="utf-8")
    say(f"1. A hospital table of {original.num_rows:,} patients: {', '.join(original.column_names)}")
    say(f"   {patients}\n")
    say(f"2. The policy ({policy_file}):\n")
    say("\n".join("   | " + line for line in POLICY_TOML.strip().splitlines()) + "\n")
    outcome = run(patients, Policy.load(policy_file), to=folder / "release", stage=stage)
    say(f"3. Anonymised and verified: {folder / 'release'}")
    release = open_release(folder / "release")
    example = release.frame().row(0, named=True)
    say("   A published record: " + ", ".join(f"{name} {_shown(cell)}" for name, cell in example.items()) + "\n")
    verdicts = verify(release, original=patients)
    say("4. Estimated job x disease from the release alone, and compared with the truth that only the holder has.")
    estimate = release.estimate(["job", "disease"])
    for suffix in ("png", "html"):
        estimate.save_plot(folder / f"job-disease.{suffix}")
    chapters = release.estimate(["disease@2", "age"])
    write_page(folder / "report.html", holder_report(outcome, chapters))
    counted = pl.from_arrow(original.select(["job", "disease"]))
    assert isinstance(counted, pl.DataFrame)
    truth = counted.group_by("job", "disease").len("truth")
    both = estimate.frame.join(truth, on=["job", "disease"], how="left").with_columns(pl.col("truth").fill_null(0))
    inside = (both["truth"] >= both["low"] - 1e-9) & (both["truth"] <= both["high"] + 1e-9)
    return DemoResult(
        folder=folder,
        records=original.num_rows,
        verdicts=verdicts,
        largest=both.sort("truth", descending=True).head(10).to_dicts(),
        l1=l1_loss(both["count"].to_numpy(), both["truth"].to_numpy(), relative=True),
        covered=float(inside.cast(pl.Float64).mean()),  # type: ignore[arg-type]
        cells=len(both),
        files=[
            (patients, "the original: never leaves the holder"),
            (policy_file, "the policy: what the columns are, what must hold"),
            (folder / "disease.csv", "the disease hierarchy"),
            (folder / "release", "the release: this directory is what is published"),
            (folder / "job-disease.png", "the chart"),
            (folder / "job-disease.html", "the chart, opens without network"),
            (folder / "report.html", "the holder's report: do not publish"),
        ],
    )


def _shown(cell: Any) -> str:
    return "{" + ", ".join(map(str, cell)) + "}" if isinstance(cell, list) else str(cell)
