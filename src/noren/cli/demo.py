"""The command demo: a hospital table from generator to chart. Its steps use nothing that a user could not type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noren.cli.hospital import POLICY_TOML, disease_hierarchy_csv, hospital_table
from noren.cli.render import VERDICT_COLUMNS, echo_json, say, stages, table, verdict_rows

if TYPE_CHECKING:
    from noren.models.verdict import Verdict
    from noren.progress import Stage


@click.command(epilog="Example: noren demo --to noren-demo")
@click.option("--to", type=click.Path(path_type=Path), default=Path("noren-demo"), show_default=True)
@click.option("--records", type=click.IntRange(1000, 10_000_000), default=20_000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print paths and figures as JSON.")
def demo(to: Path, records: int, as_json: bool) -> None:
    """Make a hospital table, release it under a shown policy, verify it, estimate job x disease."""
    result = run_demo(to, records, say=(lambda text: None) if as_json else say, stage=stages(as_json))
    if as_json:
        echo_json(result.to_dict())
        return
    table("Verified on the written release", VERDICT_COLUMNS, verdict_rows(result.verdicts), ("asked", "found"))
    body = [
        [r["job"], r["disease"], f"{r['count']:,.0f}", f"{r['low']:,.0f} to {r['high']:,.0f}", f"{r['truth']:,}"]
        for r in result.largest
    ]
    numbers = ("estimate", "95% interval", "truth")
    table("The ten largest cells of job x disease", ("job", "disease", *numbers), body, numbers)
    say(
        f"Error of the whole table: L1 {result.l1:.3f} in relative frequencies; "
        f"{result.covered:.1%} of {result.cells} intervals hold the truth."
    )
    say("\nWhere things are:")
    for path, what in result.files:
        say(f"  {path!s:<34} {what}")
    say(f"\nNext: noren estimate {to / 'release'} --by disease@2,age    or open {to / 'report.html'}")


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

    from noren.metrics.distances import l1_loss
    from noren.policy.policy import Policy
    from noren.release.package import refuse_existing
    from noren.release.release import open_release
    from noren.report.page import holder_report, write_page
    from noren.workflow.anonymize import run
    from noren.workflow.verify import verify

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
