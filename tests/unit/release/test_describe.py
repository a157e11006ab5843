"""`describe` says how each column was published, foretells widths of intervals, and names what is refused."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.designs.decoys import DecoyDesign
from noren.designs.inversion import Groups
from noren.designs.pram import PramDesign
from noren.errors import QueryError
from noren.release.describe import noise, records_needed, standard


def table(n: int, d: int = 8) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame({"job": rng.integers(0, d, n), "ill": rng.integers(0, 5, n), "y": rng.integers(0, 9, n)})


def policy(d: int = 8, l: int = 3) -> nr.Policy:  # noqa: E741
    columns = {"job": nr.sensitive(values=list(range(d))), "ill": nr.sensitive(values=list(range(5))), "y": "plain"}
    diverse = nr.models.FrequencyLDiversity(on=["job", "ill"], l=l)
    return nr.Policy(attributes=columns, require=[diverse], dependence={"most": 1.0})


@pytest.mark.parametrize(
    "design", [DecoyDesign(d=9, eta=3), DecoyDesign(d=12, eta=3, p=0.6), PramDesign.within(6, 4.0)]
)
def test_noise_of_a_score_is_its_second_moment(design):
    one = np.eye(1, design.d)[0]
    scoring = design.inversion.scoring(Groups(np.arange(design.d), design.d, is_identity=True))
    assert noise(design, one) == pytest.approx(scoring.second_moments(np.full(design.d, 1 / design.d), 0)[0])
    assert noise(design, np.ones(design.d)) == pytest.approx(1.0)
    assert noise(design, standard(design.d)) > 1


def test_the_width_foretold_of_a_share_is_the_one_found():
    release = nr.anonymize(table(3000), policy())
    told = float(re.search(r"share of one value: .*job \+-([.\d]+)", release.describe()).group(1))
    found = 1.96 * release.estimate("job", estimator="linear").frame["std_error"].mean() / 3000
    assert told == pytest.approx(found, rel=0.05)


def test_groups_that_are_too_small_are_foretold():
    release = nr.anonymize(table(600), policy())
    least = float(re.search(r"below about .*job ([.,\d]+)", release.describe()).group(1).replace(",", ""))
    error = release.estimate("job", estimator="linear").frame["std_error"].mean()
    assert least == pytest.approx(3 * error, rel=0.1)


def test_widths_without_information_are_no_figures():
    told = nr.anonymize(table(100, 16), policy(16, l=4)).describe()
    assert all(float(width) <= 1 for width in re.findall(r"\+-([.\d]+)", told))
    assert "job with ill none" in told or "ill with job none" in told


def test_every_verb_that_is_offered_exists():
    offered = re.search(r"Ask: (.*)\.", nr.anonymize(table(300), policy()).describe()).group(1).split(", ")
    assert "standardize" in offered
    assert all(callable(getattr(nr.Release, name)) for name in offered)


def test_regressions_that_lack_records_are_foretold():
    few = nr.anonymize(table(150, 16), policy(16, l=4))
    assert records_needed(few.designs["job"]) > 150
    assert "regress on these levels will mostly be refused, because it needs more records: job" in few.describe()
    with pytest.raises(QueryError):
        few.regress("y ~ C(job)")
    many = nr.anonymize(table(3000), policy())
    assert "will mostly be refused" not in many.describe()
    assert many.regress("y ~ C(job)").records == 3000


def test_hard_bounds_and_refusals_are_named():
    classes = nr.Policy(
        attributes={"job": nr.quasi_identifier(), "ill": nr.quasi_identifier(), "y": "plain"},
        require=[nr.models.KAnonymity(k=5)],
        method={"name": "mondrian"},
    )
    told = nr.anonymize(table(200), classes).describe()
    assert "hard bounds" in told
    assert "population=True" in told


def test_the_holder_sees_the_same_before_and_nothing_is_written(tmp_path):
    source, rules = tmp_path / "people.csv", tmp_path / "policy.toml"
    table(400).write_csv(source)
    rules.write_text(
        '[attributes.job]\nrole = "sensitive"\n[attributes.ill]\nrole = "sensitive"\n[attributes.y]\nrole = "plain"\n'
        '[[require]]\nmodel = "frequency-l-diversity"\non = ["job", "ill"]\nl = 2\n'
        "[dependence]\nmost = 1.0\n"
    )
    shown = CliRunner().invoke(main, ["anonymize", str(source), str(rules), "--preview"])
    assert shown.exit_code == 0, shown.output
    assert "slope per standard deviation" in shown.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "policy.toml"]
    made = CliRunner().invoke(main, ["anonymize", str(source), str(rules), "--to", str(tmp_path / "r")])
    assert made.exit_code == 0, made.output
    later = CliRunner().invoke(main, ["describe", str(tmp_path / "r")])
    assert later.output.strip() in shown.output
    assert CliRunner().invoke(main, ["anonymize", str(source), str(rules)]).exit_code == 2
