"""The recipient's commands, estimate and count, and the auditor's, verify."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

import noren as nr
from tests.cli.conftest import strict
from tests.cli.test_holder import Links, assert_needs_no_network

SHOWN = {"by", "where", "estimator", "level", "population", "records", "assumes", "diagnostics", "cells"}
FACTS = {"records", "breaches", "statement", "short", "shortfalls", "by_holder"}
VERDICT = {"model", "column", "required", "achieved", "holds", "basis"} | FACTS


def test_verify_checks_what_the_release_claims(release, run):
    result = run("verify", release)
    assert "800 records, checksums match" in result.output
    assert "Every requirement holds." in result.output
    answer = strict(run("verify", release, "--json").output)
    assert answer.keys() == {"release", "holds", "records", "suppressed", "signer", "verdicts", "unconfirmed"}
    assert answer["holds"] is True
    assert all(verdict.keys() == VERDICT for verdict in answer["verdicts"])
    assert [verdict["column"] for verdict in answer["verdicts"]] == ["age", "job", "disease"]


def test_verify_with_the_original_checks_the_truth_too(release, hospital, run):
    answer = strict(run("verify", release, "--original", hospital / "patients.csv", "--json").output)
    assert [v["model"] for v in answer["verdicts"]] == ["frequency-l-diversity"] * 3 + ["truth-in-set"] * 3
    assert answer["holds"] is True


def stricter(text: str) -> str:
    return text.replace("l = 3", "l = 4")


def test_verify_against_a_stricter_policy_is_exit_code_1(release, hospital, tmp_path, run):
    (tmp_path / "disease.csv").write_bytes((hospital / "disease.csv").read_bytes())
    policy = tmp_path / "stricter.toml"
    policy.write_text(stricter((hospital / "policy.toml").read_text(encoding="utf-8")), encoding="utf-8")
    result = run("verify", release, "--policy", policy, code=1)
    assert "FAILS" in result.output
    assert "3 of 3 do not hold" in result.output
    answer = strict(run("verify", release, "--policy", policy, "--json", code=1).output)
    assert answer["holds"] is False
    assert [verdict["holds"] for verdict in answer["verdicts"]] == [False, False, False]
    assert answer["verdicts"][2]["breaches"] == 800


@pytest.mark.parametrize(("verdicts", "told"), [((None,), "1 of 1 cannot be decided"), ((True, None), "1 of 2 cannot")])
def test_verify_does_not_call_held_what_cannot_be_decided(verdicts, told, release, run, monkeypatch):
    """A recipient's estimate of the overall distribution may be too uncertain to judge closeness."""
    made = [
        nr.models.Verdict("t-closeness", "job", 0.3, 0.301, holds, "an estimate", 800, 1, "unsure")
        for holds in verdicts
    ]
    monkeypatch.setattr("noren.workflow.verify.verify", lambda *args, **options: nr.models.Verdicts(made))
    result = run("verify", release, code=3)
    assert told in result.output
    assert "Every requirement holds" not in result.output
    assert strict(run("verify", release, "--json", code=3).output)["holds"] is None


def test_recipients_are_told_what_only_the_holder_could_check(tmp_path, run):
    """Whose rows are whose is not published, and a recipient cannot count people: exit code 0, and one line."""
    rows = [(who, town, ill) for who in range(40) for town, ill in [("Ulm" if who % 2 else "Bonn", who % 5)] * 2]
    data, policy = tmp_path / "visits.csv", tmp_path / "visits.toml"
    data.write_text("who,town,ill\n" + "".join(f"{who},{town},{ill}\n" for who, town, ill in rows))
    text = (
        '[attributes]\nwho = "identifier"\ntown = "quasi-identifier"\nill = "sensitive"\n'
        '[[require]]\nmodel = "k-anonymity"\nk = 5\n[[require]]\nmodel = "frequency-l-diversity"\non = "ill"\nl = 2\n'
        '[people]\nkey = "who"\n[method]\nname = "mondrian"\n'
    )
    policy.write_text(text)
    run("anonymize", data, policy, "--to", tmp_path / "visits")
    said = " ".join(run("verify", tmp_path / "visits").output.split())
    assert "only the holder, who knows whose rows are whose, can check 2 of 2 requirements; the release states" in said
    assert "cannot be decided" not in said
    answer = strict(run("verify", tmp_path / "visits", "--json").output)
    assert answer["holds"] is None
    assert [verdict["by_holder"] for verdict in answer["verdicts"]] == [True, True]
    policy.write_text(text.replace("k = 5", "k = 6"))  # which nobody has stated
    assert "1 of 2 cannot be decided" in run("verify", tmp_path / "visits", "--policy", policy, code=3).output


def test_verify_refuses_a_policy_about_another_table(release, tmp_path, run):
    policy = tmp_path / "policy.toml"
    policy.write_text('[attributes]\nhue = "sensitive"\n[[require]]\nmodel = "expanded-k"\non = "hue"\nk = 2\n')
    assert "does not have: 'hue'" in run("verify", release, "--policy", policy, code=2).output


def test_verify_refuses_an_original_without_the_columns(release, tmp_path, run):
    other = tmp_path / "other.csv"
    other.write_text("x,y\n1,2\n")
    assert "no column 'age', 'job', 'disease'" in run("verify", release, "--original", other, code=2).output


def damaged(kind: str, release, target) -> None:
    shutil.copytree(release, target)
    descriptor = target / "datapackage.json"
    package = json.loads(descriptor.read_text(encoding="utf-8"))
    if kind == "a changed byte":
        content = bytearray((target / "data.parquet").read_bytes())
        content[len(content) // 2] ^= 1
        (target / "data.parquet").write_bytes(content)
    elif kind == "no data":
        (target / "data.parquet").unlink()
    elif kind == "no descriptor":
        descriptor.unlink()
    elif kind == "another claim":
        package["noren"]["requirements"][0]["l"] = 4
    elif kind == "another file":
        package["resources"][0]["path"] = "../release/data.parquet"
    if descriptor.exists():
        descriptor.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


@pytest.mark.parametrize("kind", ["a changed byte", "no data", "no descriptor", "another claim", "another file"])
@pytest.mark.parametrize("command", [("verify",), ("estimate", "--by", "job"), ("count", "--where", "job=Nurse")])
def test_a_damaged_release_is_exit_code_2(kind, command, release, tmp_path, run):
    damaged(kind, release, tmp_path / "release")
    word, *options = command
    result = run(word, tmp_path / "release", *options, code=2)
    assert result.output.startswith("Error: ")
    assert strict(run(word, tmp_path / "release", *options, "--json", code=2).output)["error"] == "ReleaseError"


def test_estimate_prints_counts_with_error_bars(release, run):
    result = run("estimate", release, "--by", "job,age", "--rows", "5")
    for word in ("std_error", "low", "high", "95% intervals", "800 records", "more cells"):
        assert word in result.output
    everything = run("estimate", release, "--by", "job", "--by", "age", "--rows", "0")
    assert "more cells" not in everything.output
    assert len(everything.output.splitlines()) > 12 * 6


@pytest.mark.parametrize("estimator", ["likelihood", "bayes", "linear", "value-adding"])
def test_estimate_as_json(estimator, release, run):
    answer = strict(run("estimate", release, "--by", "disease@2", "--estimator", estimator, "--json").output)
    assert answer.keys() == SHOWN
    assert (answer["by"], answer["estimator"], answer["level"]) == (["disease@2"], estimator, 0.95)
    assert (answer["records"], answer["population"], answer["where"]) == (800, False, {})
    assert all(cell.keys() == {"disease@2", "count", "std_error", "low", "high"} for cell in answer["cells"])
    assert len(answer["cells"]) == 7
    assert sum(cell["count"] for cell in answer["cells"]) == pytest.approx(800, rel=1e-6)


def test_estimate_under_conditions(release, run):
    command = ("estimate", release, "--by", "job", "--where", "zip=01001,01008", "--level", "0.5", "--json")
    answer = strict(run(*command).output)
    assert answer["where"] == {"zip": ["01001", "01008"]}
    assert answer["level"] == 0.5
    zips = nr.open_release(release).frame()["zip"]
    assert answer["records"] == zips.is_in(["01001", "01008"]).sum()


def test_estimate_writes_charts_and_a_table(release, tmp_path, run):
    for suffix, start in (("png", b"\x89PNG"), ("svg", b"<svg"), ("html", b"<!DOCTYPE html>")):
        path = tmp_path / f"jobs.{suffix}"
        assert str(path) in run("estimate", release, "--by", "job", "--plot", path).output
        assert path.read_bytes().startswith(start)
    assert_needs_no_network((tmp_path / "jobs.html").read_text(encoding="utf-8"))
    assert_needs_no_network((tmp_path / "jobs.svg").read_text(encoding="utf-8"))
    run("estimate", release, "--by", "job", "--csv", tmp_path / "jobs.csv")
    frame = pl.read_csv(tmp_path / "jobs.csv")
    assert frame.columns == ["job", "count", "std_error", "low", "high"]
    assert len(frame) == 12


def test_the_search_for_network_references_finds_one():
    for text in ('<script src="https://x.org/a.js"></script>', '<a href="//x.org">x</a>', "<img src='http://x.org/i'>"):
        links = Links()
        links.feed(text)
        assert links.found
        with pytest.raises(AssertionError):
            assert_needs_no_network(text)


@pytest.mark.parametrize(
    "options", [("--plot", "jobs.gif"), ("--plot", "nowhere/jobs.png"), ("--csv", "nowhere/jobs.csv")]
)
def test_a_file_that_cannot_be_written_is_refused_in_words(options, release, tmp_path, run):
    name, path = options
    result = run("estimate", release, "--by", "job", name, tmp_path / path, code=2)
    assert result.output.splitlines()[-2].startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--by", "jobb"), "no column 'jobb'"),
        (("--by", "job@1"), "without a hierarchy"),
        (("--by", "disease@9"), "not one of 0..3"),
        (("--by", "job/10"), "does not hold numbers"),
        (("--by", "job", "--where", "zip"), "is not column=value"),
        (("--by", "job", "--where", "job=Astronaut"), "has no value 'Astronaut'"),
        (("--by", "job,job"), "listed twice"),
        (("--by", "job", "--estimator", "guess"), "likelihood"),
        (("--by", "job", "--level", "1"), "level"),
        ((), "--by"),
    ],
)
def test_a_question_that_cannot_be_answered_is_exit_code_2(options, says, release, run):
    assert says in run("estimate", release, *options, code=2).output


def test_count_gives_one_number_with_its_interval(release, run):
    assert "95% interval" in run("count", release, "--where", "job=Nurse", "--where", "disease=Circulation").output
    answer = strict(run("count", release, "--where", "job=Nurse,Teacher", "--level", "0.9", "--json").output)
    assert answer.keys() == {"count", "std_error", "low", "high", "level", "estimator", "records", "assumes"}
    assert answer["low"] <= answer["count"] <= answer["high"]
    assert answer["level"] == 0.9


def test_a_count_over_exact_columns_is_exact(release, hospital, run):
    answer = strict(run("count", release, "--where", "admission_year=2024", "--json").output)
    truth = (pl.read_csv(hospital / "patients.csv")["admission_year"] == 2024).sum()
    assert (answer["count"], answer["std_error"], answer["estimator"]) == (truth, 0, "exact")


def test_a_comma_inside_a_value_is_doubled(tmp_path, run):
    lines = ['s;"a, b"', *(f"{'xyz'[i % 3]};{'one, two' if i % 2 else 'three'}" for i in range(30))]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    (tmp_path / "policy.toml").write_text(
        '[attributes]\ns = "sensitive"\n"a, b" = "plain"\n'
        '[[require]]\nmodel = "frequency-l-diversity"\non = "s"\nl = 2\n'
    )
    run("anonymize", tmp_path / "data.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    answer = strict(run("count", tmp_path / "release", "--where", "a, b=one,, two", "--json").output)
    assert answer["count"] == 15
