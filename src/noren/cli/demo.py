"""The command demo: generate a hospital table, release and analyse it, with the steps of an ordinary user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from noren.cli.render import VERDICT_COLUMNS, echo_json, say, stages, table, verdict_rows

if TYPE_CHECKING:
    import pyarrow as pa

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
        f"Error of the whole table: L1 distance {result.l1:.3f} in relative frequencies; {result.covered:.1%} of "
        f"{result.cells} intervals contain the truth."
    )
    say("\nWhere things are:")
    for path, what in result.files:
        say(f"  {path!s:<34} {what}")
    say(f"\nNext: noren estimate {to / 'release'} --by disease@2,age    or open {to / 'report.html'}")


@dataclass(frozen=True)
class DemoResult:
    """The figures and paths of a demonstration."""

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
    say("   A published record: " + ", ".join(f"{name} {_show_cell(cell)}" for name, cell in example.items()) + "\n")
    verdicts = verify(release, original=patients)
    say("4. job x disease estimated from the release, compared with the original, which only the holder has.")
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
            (patients, "the original: do not publish it"),
            (policy_file, "the policy: roles of the columns, and requirements"),
            (folder / "disease.csv", "the disease hierarchy"),
            (folder / "release", "the release: publish this directory"),
            (folder / "job-disease.png", "the chart"),
            (folder / "job-disease.html", "the chart; it opens without a network"),
            (folder / "report.html", "the holder's report: do not publish"),
        ],
    )


def _show_cell(cell: Any) -> str:
    return "{" + ", ".join(map(str, cell)) + "}" if isinstance(cell, list) else str(cell)


# ---------------------------------------------------------------------- the hospital


# disease: (block, chapter, weight, ages it favours, how strongly)
_DISEASES: dict[str, tuple[str, str, float, tuple[int, int], float]] = {
    "A02 Salmonella infection": ("Intestinal infections", "Infectious diseases", 1.2, (0, 40), 0.6),
    "A09 Gastroenteritis": ("Intestinal infections", "Infectious diseases", 3.5, (0, 12), 1.5),
    "B18 Chronic hepatitis": ("Viral infections", "Infectious diseases", 0.8, (30, 60), 1.0),
    "B20 HIV disease": ("Viral infections", "Infectious diseases", 0.5, (20, 50), 1.3),
    "C18 Colon cancer": ("Digestive cancers", "Cancers", 1.1, (55, 99), 2.0),
    "C34 Lung cancer": ("Cancers of chest and breast", "Cancers", 1.1, (50, 85), 2.0),
    "C50 Breast cancer": ("Cancers of chest and breast", "Cancers", 1.3, (40, 80), 1.6),
    "F32 Depression": ("Mood disorders", "Mental disorders", 2.6, (16, 65), 1.0),
    "F41 Anxiety disorder": ("Stress and anxiety", "Mental disorders", 1.9, (14, 50), 1.2),
    "F43 Burnout": ("Stress and anxiety", "Mental disorders", 1.3, (28, 60), 1.6),
    "I10 High blood pressure": ("Vessels", "Circulation", 3.4, (50, 99), 1.7),
    "I63 Stroke": ("Vessels", "Circulation", 1.4, (60, 99), 2.1),
    "I21 Heart attack": ("Heart", "Circulation", 1.7, (50, 90), 2.0),
    "I50 Heart failure": ("Heart", "Circulation", 1.5, (68, 99), 2.4),
    "J10 Influenza": ("Influenza and pneumonia", "Breathing", 1.3, (0, 99), 0.0),
    "J18 Pneumonia": ("Influenza and pneumonia", "Breathing", 2.0, (65, 99), 1.2),
    "J44 Chronic bronchitis": ("Chronic airways", "Breathing", 1.5, (50, 90), 1.5),
    "J45 Asthma": ("Chronic airways", "Breathing", 1.9, (3, 25), 1.3),
    "J60 Dust lung": ("Dust diseases of the lung", "Breathing", 0.25, (40, 80), 1.2),
    "M16 Worn hip joint": ("Joints", "Bones and muscles", 1.5, (58, 99), 2.1),
    "M51 Slipped disc": ("Back", "Bones and muscles", 1.6, (28, 65), 1.2),
    "M54 Back pain": ("Back", "Bones and muscles", 3.0, (25, 70), 1.1),
    "S52 Broken forearm": ("Fractures", "Injuries", 1.9, (4, 30), 1.4),
    "S72 Broken hip": ("Fractures", "Injuries", 1.0, (72, 99), 2.6),
}

# job: (share among those of working age, diseases it brings and how many times as often)
_JOBS: dict[str, tuple[float, dict[str, float]]] = {
    "No job": (0.09, {"F32": 2.2, "B18": 1.8}),
    "Student": (0.0, {"F41": 1.6, "S52": 1.4}),
    "Retired": (0.0, {"I50": 1.4, "S72": 1.3}),
    "Office clerk": (0.20, {"M54": 2.6, "I10": 1.4}),
    "Nurse": (0.10, {"F43": 2.6, "J10": 2.0, "M51": 1.8}),
    "Teacher": (0.09, {"F43": 3.2, "J10": 1.7}),
    "Miner": (0.06, {"J60": 30.0, "J44": 4.0, "C34": 3.0}),
    "Farmer": (0.09, {"A02": 3.0, "M16": 2.0, "S52": 1.8}),
    "Builder": (0.12, {"M51": 3.2, "S52": 2.8, "J60": 3.0}),
    "Driver": (0.10, {"M51": 1.8, "I21": 2.2, "I10": 1.5}),
    "Software developer": (0.09, {"M54": 2.2, "F41": 1.7}),
    "Lawyer": (0.06, {"F43": 2.4, "I21": 1.8}),
}

# region: (zip prefix, how many zips, share of patients, jobs that are more common there)
_REGIONS: tuple[tuple[str, int, float, dict[str, float]], ...] = (
    ("010", 12, 0.34, {"Office clerk": 1.8, "Lawyer": 2.2, "Farmer": 0.1, "Miner": 0.1}),
    ("023", 7, 0.18, {"Software developer": 4.0, "Teacher": 1.8, "Farmer": 0.2, "Miner": 0.1}),
    ("335", 7, 0.16, {"Miner": 9.0, "Driver": 1.6, "Lawyer": 0.3, "Software developer": 0.3}),
    ("527", 8, 0.17, {"Farmer": 6.0, "Builder": 1.3, "Lawyer": 0.3, "Miner": 0.2}),
    ("948", 6, 0.15, {"Builder": 1.8, "Nurse": 1.6, "Miner": 0.3}),
)

YEARS = tuple(range(2015, 2026))
_INFLUENZA = {2018: 5.0, 2019: 1.6, 2021: 0.4, 2024: 6.5, 2025: 2.0}  # times as often as in other years

_FIRST = (
    "Ada Amara Björn Camila Çelik Dmitri Elif Ewa Fatima Georg Hiroshi Ines Ivo Jürgen José Kofi Laila Lívia Łukasz "
    "Mária Mei Milan Nadia Noah Olu Ottilie Priya Rafael Ruth Sanna Søren Tariq Teresa Ulla Vera Wanda Xenia Yuki "
    "Zoë Émile"
)
_SYLLABLES = (
    "Al Bar Cor Dal Fen Gru Hal Kel Lind Mor Nar Ost Pel Ros Sal Tor Ul Var Wes Zim",
    "a ber den e in ka lo mar o ven",
    "berg dóttir feld ić kova man mura nen oğlu quist ri sen ska son ström tti",
)


def hospital_table(n: int = 20_000, seed: int = 1) -> pa.Table:
    """Make n random admissions: patient_id, name, age, zip, job, admission_year, disease. The seed determines them."""
    import pyarrow as pa

    if n < 1:
        raise ValueError(f"n must be at least 1. Got {n} instead.")
    rng = np.random.default_rng(seed)
    age = _ages(n, rng)
    zips, region_of_zip, share = _zips()
    place = rng.choice(len(zips), n, p=share)
    job = _draw_outcomes(_job_odds(), region_of_zip[place] * 100 + age, rng)
    year = rng.choice(len(YEARS), n, p=_normalise(np.linspace(1.0, 1.35, len(YEARS))))
    disease = _draw_outcomes(_disease_odds(), (age * len(_JOBS) + job) * len(YEARS) + year, rng)
    return pa.table(
        {
            "patient_id": pa.array([f"P{number:06d}" for number in range(1, n + 1)], pa.string()),
            "name": pa.array(_names(n, rng), pa.string()),
            "age": pa.array(age, pa.int64()),
            "zip": pa.array(np.array(zips)[place].tolist(), pa.string()),
            "job": pa.array(np.array(list(_JOBS))[job].tolist(), pa.string()),
            "admission_year": pa.array(np.array(YEARS)[year], pa.int64()),
            "disease": pa.array(np.array(list(_DISEASES))[disease].tolist(), pa.string()),
        }
    )


def disease_hierarchy_csv() -> str:
    """Return the hierarchy of diseases in ARX's layout: leaf;block;chapter;* without a header."""
    return "".join(f"{leaf};{block};{chapter};*\n" for leaf, (block, chapter, *_) in _DISEASES.items())


def _ages(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the distribution of ages in a hospital: infants, then increasing with age."""
    years = np.arange(100)
    odds = 0.6 + 2.2 * np.exp(-years / 3) + 1.2 * np.exp(-(((years - 71) / 17) ** 2)) + 0.5 * (years > 18)
    odds[years > 85] *= np.exp(-(years[years > 85] - 85) / 5)
    return rng.choice(years, n, p=_normalise(odds))


def _zips() -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
    """Return the zips, the region of each, and the share of patients who live there."""
    zips, region_of, share = [], [], []
    for region, (prefix, count, weight, _) in enumerate(_REGIONS):
        inside = _normalise(1 / np.arange(1, count + 1) ** 0.6)
        zips += [f"{prefix}{1 + 7 * i:02d}" for i in range(count)]
        region_of += [region] * count
        share += (weight * inside).tolist()
    return zips, np.array(region_of), _normalise(np.array(share))


def _job_odds() -> NDArray[np.float64]:
    """Probabilities of the jobs, one row per (region, age)."""
    jobs = list(_JOBS)
    odds = np.zeros((len(_REGIONS), 100, len(jobs)))
    for region, (*_, more) in enumerate(_REGIONS):
        work = _normalise(np.array([share * more.get(job, 1.0) for job, (share, _) in _JOBS.items()]))
        for age in range(100):
            working = float(np.interp(age, [16, 25, 60, 67, 75], [0.0, 0.93, 0.93, 0.12, 0.01]))
            student = float(np.interp(age, [5, 6, 17, 27], [0.0, 0.97, 0.97, 0.03])) * (age < 32)
            retired = float(np.interp(age, [55, 60, 67, 75], [0.0, 0.1, 0.88, 0.99]))
            row = work * working
            row[jobs.index("Student")] += student
            row[jobs.index("Retired")] += retired
            row[jobs.index("No job")] += 1.0 if age < 6 else 0.02
            odds[region, age] = _normalise(row)
    return odds.reshape(-1, len(jobs))


def _disease_odds() -> NDArray[np.float64]:
    """Return probabilities of the diseases, one row per (age, job, year)."""
    ages = np.arange(100)
    odds = np.empty((100, len(_JOBS), len(YEARS), len(_DISEASES)))
    for at, (name, (_, _, weight, (low, high), strength)) in enumerate(_DISEASES.items()):
        code = name.split()[0]
        outside = np.maximum(0, np.maximum(low - ages, ages - high))
        by_age = weight * np.exp(-strength * np.minimum(outside / 8, 2.5))
        by_job = np.array([more.get(code, 1.0) for _, more in _JOBS.values()])
        by_year = np.array([_INFLUENZA.get(year, 1.0) if code == "J10" else 1.0 for year in YEARS])
        odds[..., at] = by_age[:, None, None] * by_job[:, None] * by_year
    rows = odds.reshape(-1, len(_DISEASES))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _draw_outcomes(odds: NDArray[np.float64], row: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one outcome per record from its row of probabilities."""
    bounds = np.cumsum(odds, axis=1)[:, :-1]
    out = np.empty(row.size, np.int64)
    for start in range(0, row.size, 100_000):
        part = slice(start, start + 100_000)
        luck = rng.random(row[part].size)
        out[part] = (luck[:, None] >= bounds[row[part]]).sum(axis=1)
    return out


def _names(n: int, rng: np.random.Generator) -> list[str]:
    first, heads, middles, tails = (text.split() for text in (_FIRST, *_SYLLABLES))
    picks = [rng.integers(0, len(parts), n).tolist() for parts in (first, heads, middles, tails)]
    return [f"{first[a]} {heads[b]}{middles[c]}{tails[d]}" for a, b, c, d in zip(*picks, strict=True)]


def _normalise(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(odds / odds.sum())


POLICY_TOML = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
"""The policy of the demo: a commented file to begin with."""
