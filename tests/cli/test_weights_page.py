"""The page about survey weights: its lines run, and its commands say what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import noren
from tests.cli.conftest import strict

PAGE = (Path(noren.__file__).parents[2] / "docs" / "weights.md").read_text(encoding="utf-8")


def test_the_lines_of_the_page_run() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    told: dict[str, object] = {}
    exec(block, told)
    release = told["release"]
    assert isinstance(release, noren.Release)
    assert release.manifest.weight == "weight"
    effect = release.mean("age").design_effect
    assert effect is not None
    assert 1.2 < effect < 1.5


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"town": rng.choice(["Ulm", "Bonn"], 400), "ill": rng.choice(list("abcdef"), 400)})
    frame.with_columns(wt=pl.Series(rng.choice([1.0, 2.5], 400))).write_csv(folder / "survey.csv")
    (folder / "policy.toml").write_text(
        '[attributes]\ntown = { role = "quasi-identifier" }\nill = { role = "sensitive" }\n'
        'wt = { role = "plain", weight = true }\n[[require]]\nmodel = "frequency-l-diversity"\non = "ill"\nl = 2\n'
    )
    return folder


def test_commands_weigh_records_unless_told_otherwise(survey, run) -> None:
    run("anonymize", survey / "survey.csv", survey / "policy.toml", "--to", survey / "release")
    total = pl.read_csv(survey / "survey.csv")["wt"].sum()
    answer = strict(run("estimate", survey / "release", "--by", "ill", "--json").output)
    assert sum(cell["count"] for cell in answer["cells"]) == pytest.approx(total)
    assert answer["diagnostics"]["weights"] == "wt"
    answer = strict(run("estimate", survey / "release", "--by", "ill", "--unweighted", "--json").output)
    assert sum(cell["count"] for cell in answer["cells"]) == pytest.approx(400)
    assert "design effect" in run("estimate", survey / "release", "--by", "ill").output
    assert strict(run("count", survey / "release", "--where", "town=Ulm", "--json").output)["design_effect"] > 1
    assert "design_effect" not in strict(
        run("count", survey / "release", "--where", "town=Ulm", "--unweighted", "--json").output
    )
    assert strict(run("mean", survey / "release", "ill=a", "--json").output)["design_effect"] > 1
    assert "random signs" in run("test", survey / "release", "town", "ill").output
    assert "permutations" in run("test", survey / "release", "town", "ill", "--unweighted").output
    assert "design effect" in run("regress", survey / "release", "`ill=a` ~ town", "--family", "binomial").output


def test_risk_says_what_the_weight_gives_away(survey, run) -> None:
    shown = run("risk", survey / "survey.csv", survey / "policy.toml").output
    assert "Weights wt: 2 different" in shown
    assert strict(run("risk", survey / "survey.csv", "--quasi", "town", "--weight", "wt", "--json").output)["weights"]


def test_a_draft_names_the_weight(survey, run, tmp_path) -> None:
    weights = pl.Series([0.5, 1.0, 1.5, 1.0] * 100)
    pl.read_csv(survey / "survey.csv").with_columns(wt=weights).write_csv(tmp_path / "survey.csv")
    assert "weight = true" in run("init", tmp_path / "survey.csv").output
