"""The recipes of CONTRIBUTING: their paths exist, and what they list is all that it takes.

Models, methods and forms of cell are added in test_extending.py; here an attack, a source and an estimator are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import ATTACKS
from noren.audit.homogeneity import Homogeneity
from noren.estimates.counts.estimators import ESTIMATORS
from noren.estimates.counts.frame import Frame
from noren.estimates.counts.tuples import Fit
from noren.sources.arrow import FrameSource
from noren.sources.source import SOURCES, Writing

HOME = Path(__file__).parents[2]
RECIPES = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to add")[2]
PATHS = sorted(set(re.findall(r"`((?:src|tests)/[^`]+)`", RECIPES)))
KINDS = ("model", "method", "form of cell", "source", "engine", "estimator", "attack")


def test_there_is_a_recipe_for_everything_that_can_be_added() -> None:
    assert set(re.findall(r"### An? (.+)", RECIPES)) == set(KINDS)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_of_a_recipe_exists(path: str) -> None:
    """What is to be written stands in a folder that is there."""
    known = path.partition("<")[0]
    assert (HOME / known).exists(), path


@pytest.mark.parametrize(("path", "registry"), re.findall(r"`(src/[^`]+)`: one line in `([A-Z]+)`", RECIPES))
def test_a_registry_is_where_its_recipe_says(path: str, registry: str) -> None:
    assert re.search(rf"^{registry}\b", (HOME / path).read_text(encoding="utf-8"), re.MULTILINE)


# ---------------------------------------------------------------- what the recipes list is all that it takes


def people() -> pl.DataFrame:
    return pl.DataFrame({"town": ["Ulm", "Bonn"] * 60, "ill": ["cold", "flu", "gout", "burn", "cold"] * 24})


def release(method: str = "decoys") -> nr.Release:
    columns = {"town": "quasi-identifier", "ill": "sensitive"}
    diverse = nr.models.FrequencyLDiversity(on="ill", l=2)
    options: Any = {"mechanism": "ignored", "dependence": {"most": 1.0}}
    return nr.anonymize(people(), nr.Policy(attributes=columns, require=[diverse], method=method, **options))


class Neighbour(Homogeneity):
    """Somebody next door guesses the commonest value of the class."""

    name: Literal["neighbour"] = "neighbour"  # type: ignore[assignment]


def test_an_attack_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = release()
    with pytest.raises(nr.errors.QueryError, match="no attack 'neighbour'"):
        nr.attack(made, "neighbour")
    monkeypatch.setitem(ATTACKS, "neighbour", Neighbour)
    (found,), (known,) = nr.attack(made, "neighbour"), nr.attack(made, "homogeneity")
    assert found.attack == "neighbour"
    assert found.scenarios[0].summary == known.scenarios[0].summary


def open_lines(place: str, writing: Writing) -> FrameSource:
    """A file with a record a line, its cells parted by bars."""
    rows = [line.split("|") for line in Path(place).read_text(encoding="utf-8").splitlines()]
    return FrameSource(pl.DataFrame(rows[1:], schema=rows[0], orient="row"), writing.missing_values)


def test_a_source_is_a_function_and_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(SOURCES, ".bars", f"{__name__}:open_lines")
    path = tmp_path / "people.bars"
    path.write_text("\n".join("|".join(row) for row in [people().columns, *people().rows()]), encoding="utf-8")
    made = nr.anonymize(path, nr.Policy(attributes={"town": "plain", "ill": "plain"}))
    assert sorted(made.frame().rows()) == sorted(people().rows())


def even(frame: Frame, **_: Any) -> Fit:
    """Every value as often as any other."""
    counts = frame.inclusions
    return Fit(np.full_like(counts, frame.records.sum() / counts.size), 0)


def test_an_estimator_is_a_function_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = release()
    with pytest.raises(nr.errors.QueryError, match="even"):
        made.estimate("ill", estimator="even")
    monkeypatch.setitem(ESTIMATORS, "even", even)  # type: ignore[arg-type]
    found = made.estimate("ill", estimator="even")
    assert found.estimator == "even"
    assert found.frame["count"].to_list() == pytest.approx([30.0] * 4)
    assert made.count({"ill": ["cold", "flu"]}, "even").count == pytest.approx(60.0)
