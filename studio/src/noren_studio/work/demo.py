"""The built-in example as a file."""

from __future__ import annotations

from pathlib import Path

from noren.progress import Stage

RECORDS = 5_000


def make_demo(stage: Stage, folder: str) -> str:
    """A hospital table that describes nobody; returns its path."""
    import pyarrow.csv as pv

    from noren.cli import hospital_table

    target = Path(folder) / "demo-hospital.csv"
    with stage("Making the demo", None):
        pv.write_csv(hospital_table(RECORDS), target)
    return str(target)
