"""The commands about the strength of requirements and violations of semantic diversity, run as they are typed."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from noren.cli.main import main


@pytest.fixture
def run():
    """Run a command in this process and demand its exit code."""

    def command(*words, code=0):
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code == code, result.output
        return result

    return command


def strict(text):
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def people(tmp_path):
    """Eight records: x four times, y twice, z and w once."""
    path = tmp_path / "people.csv"
    path.write_text("who,job\n" + "".join(f"p{i},{job}\n" for i, job in enumerate("xxxxyyzw")))
    return path


def test_bounds_as_text(run):
    text = run("strength", "--tau", 0.3, "--l", 5, "--values", 14).output
    assert "(0.3, 5)-diversity over 14 values. Frequency l-diversity implies it from l = 5 on." in text
    rows = [line.split() for line in text.splitlines()]
    assert ["14", "5.429", "3.25"] in rows
    assert ["2", "0.2598", "-"] in rows
    assert "eligible" not in text


def test_bounds_as_json(run):
    answer = strict(run("strength", "--tau", 0.9, "--l", 2, "--values", 5, "--json").output)
    assert answer.keys() == {"tau", "l", "values", "weakest_simple_l", "recursive", "notes", "plot"}
    assert (answer["values"], answer["weakest_simple_l"]) == (5, 2)
    assert answer["recursive"][0] == {"l": 2, "largest_c": pytest.approx(9), "paper_c": 1.0}


def test_a_table_as_text(people, run):
    text = run("strength", "--tau", 0.4, "--l", 3, "--data", people, "--column", "job").output
    assert "What 8 records with 4 values can meet" in text
    rows = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert "l to 2" in rows["frequency-l-diversity"]
    assert "NO" in rows["frequency-l-diversity"]
    assert "l to 4, any tau" in rows["tau-l-diversity"]
    assert "NO" not in rows["tau-l-diversity"]
    assert "needs generalised sensitive values" in text
    easy = run("strength", "--tau", 0.6, "--l", 3, "--data", people, "--column", "job").output
    assert "needs no generalised sensitive value." in easy


def test_a_table_as_json(people, run):
    answer = strict(run("strength", "--tau", 0.5, "--l", 2, "--data", people, "--column", "job", "--json").output)
    assert answer["ranges"] == {
        "records": 8,
        "simple_l": 2,
        "entropy_l": pytest.approx(2**1.75),
        "distinct_l": 4,
        "recursive_c_above": {"2": 1.0, "3": 2.0, "4": 4.0},
        "base_values_suffice": True,
    }
    assert {row["model"] for row in answer["eligible"]} >= {"tau-l-diversity", "k-anonymity", "t-closeness"}


def test_missing_cells_are_one_more_value(tmp_path, run):
    path = tmp_path / "gaps.csv"
    path.write_text("who,job\n1,x\n2,y\n3,?\n4,?\n")
    words = ("strength", "--tau", 0.5, "--l", 2, "--data", path, "--column", "job", "--missing", "?")
    answer = strict(run(*words, "--json").output)
    assert answer["ranges"]["distinct_l"] == 3
    assert answer["notes"] == ["2 missing cells count as one more value."]


def test_the_hardest_requirement_says_that_nothing_recursive_fits(run):
    assert "No class satisfies this" in run("strength", "--tau", 0.25, "--l", 4, "--values", 4).output


def test_a_chart(tmp_path, run):
    path = tmp_path / "bounds.svg"
    result = run("strength", "--tau", 0.5, "--l", 3, "--values", 6, "--plot", path)
    assert f"Written: {path}" in result.output
    assert "Requirements that imply (0.5, 3)-diversity, 6 values" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tau", 0.1, "--l", 5, "--values", 14), "tau = 0.1 is not in the range from 1/l = 0.2"),
        (("--tau", 1, "--l", 5, "--values", 14), "to below 1"),
        (("--tau", 0.5, "--l", 5, "--values", 4), "l = 5 is more than the 4 values"),
        (("--tau", 0.5, "--l", 5), "Give either --values, or --data with --column"),
        (("--tau", 0.5, "--l", 5, "--data", "x.csv"), "Give either --values, or --data with --column"),
        (("--tau", 0.5, "--l", 1, "--values", 4), "--l"),
        (("--tau", 0.5, "--l", 2, "--data", "gone.csv", "--column", "job"), "no such file"),
    ],
)
def test_what_cannot_be_asked(words, said, run):
    assert said in run("strength", *words, code=2).output


def test_a_column_that_is_not_there(people, run):
    text = run("strength", "--tau", 0.5, "--l", 2, "--data", people, "--column", "pay", code=2).output
    assert "no column 'pay'" in text
    assert "Check that its first line holds the names" in text


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
def test_a_chart_of_rates(ending, tmp_path, run):
    path = tmp_path / f"rates.{ending}"
    result = run("violation-rate", "--values", 6, "--l", 3, "--d", 2, "--draws", 100, "--plot", path)
    assert f"Written: {path}" in result.output
    assert "Violations of semantic diversity by plain decoys, 6 values" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--values", 5, "--l", 6, "--d", 2), "l = 6 is not between 2 and the 5 values"),
        (("--values", 5, "--l", 2, "--d", 5), "d = 5 is not between 1 and 4"),
        (("--values", 1, "--l", 2, "--d", 1), "--values"),
        (("--values", 5, "--l", 2), "Missing option '--d'"),
    ],
)
def test_rates_that_cannot_be_asked(words, said, run):
    assert said in run("violation-rate", *words, code=2).output
