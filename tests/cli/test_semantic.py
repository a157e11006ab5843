"""Commands about semantic diversity, run as they are typed."""

from __future__ import annotations

import pytest

from tests.cli.conftest import strict

ASKED = ("violation-rate", "--values", 14, "--l", 3, "--d", 3, "--draws", 2000)


def test_the_rates_as_text(run):
    text = run(*ASKED, "--records", 2).output
    assert "(3,3)-semantic diversity by plain decoys, 14 values" in text
    assert "in 2 records" in text
    lines = text.splitlines()
    assert any("lower bound" in line and "0.5385" in line and "0.786982" in line for line in lines)
    assert any("exact mean" in line and "0.6703" in line for line in lines)
    assert any("simulated, 2,000 sets" in line and "±" in line for line in lines)


def test_the_rates_as_json(run):
    answer = strict(run(*ASKED, "--records", 2, "--json").output)
    assert answer.keys() == {
        "values", "l", "d", "bound", "exact", "simulated", "std_error", "draws", "records", "table_bound", "plot",
    }  # fmt: skip
    assert (answer["values"], answer["l"], answer["d"], answer["draws"], answer["records"]) == (14, 3, 3, 2000, 2)
    assert answer["bound"] == pytest.approx(7 / 13)
    assert answer["exact"] == pytest.approx(61 / 91)
    assert answer["table_bound"] == pytest.approx(1 - (6 / 13) ** 2)
    assert answer["plot"] is None


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_a_chart(ending, tmp_path, run):
    path = tmp_path / f"rates.{ending}"
    result = run("violation-rate", "--values", 6, "--l", 3, "--d", 2, "--draws", 100, "--plot", path)
    assert f"Written: {path}" in result.output
    assert "Plain decoys against semantic diversity, 6 values" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--values", 5, "--l", 6, "--d", 2), "l = 6 is not between 2 and the 5 values"),
        (("--values", 5, "--l", 2, "--d", 5), "d = 5 is not between 1 and 4"),
        (("--values", 1, "--l", 2, "--d", 1), "--values"),
        (("--values", 5, "--l", 2), "Missing option '--d'"),
    ],
)
def test_what_cannot_be_asked(words, said, run):
    assert said in run("violation-rate", *words, code=2).output


POLICY = """
[attributes]
who = {{ role = "identifier" }}
pay = {{ role = "sensitive", distance = "ordinal" }}

[[require]]
model = "semantic-diversity"
on = "pay"
l = {l}
d = {d}

[method]
name = "decoys"
design = "{design}"
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("who,pay\n" + "".join(f"p{i},{i % 14}\n" for i in range(280)))
    return path


def test_anonymize_names_the_design_and_the_warning(table, tmp_path, run):
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.format(l=3, d="2\nmost = 0.5", design="duplicate-processing"))
    text = run("anonymize", table, policy, "--to", tmp_path / "release").output
    assert "semantic-duplicate-processing" in text
    assert "Note: pay:" in text
    answer = strict(run("anonymize", table, policy, "--to", tmp_path / "again", "--json").output)
    assert answer["designs"]["pay"] == {
        "name": "semantic-duplicate-processing", "d": 14, "eta": 3, "p": 1.0, "epsilon": None,
    }  # fmt: skip
    assert len(answer["notes"]) == 1
    assert "holds" in run("verify", tmp_path / "release").output


def test_an_impossible_distance_says_what_would_work(table, tmp_path, run):
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.format(l=3, d=7, design="flat"))
    text = run("anonymize", table, policy, "--to", tmp_path / "release", code=2).output
    assert "l = 2 works at d = 7" in text
    assert "d = 4 works at l = 3" in text
    assert not (tmp_path / "release").exists()
