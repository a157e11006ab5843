"""Releases of earlier formats are verified as they were written; those of the present one as they are written now."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import noren as nr
from noren.errors import ReleaseError
from tests.unit.release.test_general_release import edit

PEOPLE = pl.DataFrame({"town": ["Ulm", "Bonn"] * 12, "ill": ["a", "b", "c", "d"] * 6})


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """Groups in CSV files, whose column is titled as such."""
    asked = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    roles = {"town": "plain", "ill": "sensitive"}
    policy = nr.Policy(attributes=roles, require=asked, method="anatomy", dependence={"most": 1.0})
    return nr.anonymize(PEOPLE, policy).save(tmp_path / "release", "csv")


def as_early(release: Path) -> None:
    """The groups under the column's own name and no page for people, as early versions wrote it."""
    data, descriptor = release / "data.csv", release / "datapackage.json"
    header, rest = data.read_text().split("\n", 1)
    assert header == '"town","ill (group)"'
    data.write_text(f'"town","ill"\n{rest}')
    package = json.loads(descriptor.read_text().replace('"ill (group)"', '"ill"'))
    del package["readme"]
    descriptor.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n")
    (release / "README.md").unlink()


def test_early_versions_titled_groups_as_values(groups: Path) -> None:
    frame = nr.open_release(groups).frame()
    assert not nr.verify(groups).failed
    as_early(groups)
    edit(groups, lambda block: block.update(format=3))
    assert nr.open_release(groups).frame().equals(frame)
    assert not nr.verify(groups).failed


def test_the_present_version_does_not(groups: Path) -> None:
    as_early(groups)
    edit(groups)
    with pytest.raises(ReleaseError, match="not as published: it has the column 'ill'"):
        nr.verify(groups)


def test_an_earlier_format_may_have_the_title_of_the_present_one(groups: Path) -> None:
    edit(groups, lambda block: block.update(format=3))
    assert not nr.verify(groups).failed


def test_texts_of_the_present_version_are_compared_to_the_letter(groups: Path) -> None:
    """A quote less says the same to a reader."""
    data = groups / "data.csv"
    data.write_text(data.read_text().replace('"Ulm"', "Ulm", 1))
    edit(groups)
    with pytest.raises(ReleaseError, match="its text differs from how these cells are written"):
        nr.verify(groups)
    edit(groups, lambda block: block.update(format=3))  # which wrote fewer quotes, perhaps
    assert not nr.verify(groups).failed
