"""One studio for each file of tests, and the system's browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import browser  # noqa: F401

from house import House


@pytest.fixture(scope="module")
def house(hospital: Path) -> Iterator[House]:
    """A studio that was started in the folder of the table."""
    found = House(folder=hospital.parent)
    yield found
    found.end()


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of a hospital that does not exist."""
    import pyarrow.csv as pv

    from noren.cli import hospital_table

    target = tmp_path_factory.mktemp("tables") / "hospital.csv"
    pv.write_csv(hospital_table(800), target)
    return target
