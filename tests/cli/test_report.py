"""The command report: a page for people, from the release alone or with the original."""

from __future__ import annotations

import stat

import pytest

from tests.cli.conftest import strict
from tests.cli.test_holder import assert_needs_no_network

BRIEF = ("--attack", "homogeneity")


@pytest.fixture(scope="module")
def holder_options(hospital) -> tuple[str, ...]:
    return ("--policy", str(hospital / "policy.toml"), "--original", str(hospital / "patients.csv"))


def test_a_page_for_anybody(release, tmp_path, run):
    target = tmp_path / "new" / "report.html"
    result = run("report", release, *BRIEF, "--to", target)
    assert f"Report (for anybody): {target}" in result.output
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "Holder only" not in text
    for heading in ("What was published", "What holds", "What an adversary still learns", "What an analyst loses"):
        assert heading in text
    assert_needs_no_network(text)
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_a_page_for_the_holder(release, hospital, tmp_path, run, holder_options):
    target = tmp_path / "report.html"
    assert "Report (holder only)" in run("report", release, *holder_options, *BRIEF, "--to", target).output
    text = target.read_text(encoding="utf-8")
    assert "Do not publish this page" in text
    assert "patients.csv" in text
    assert str(hospital) not in text
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert_needs_no_network(text)


def test_the_figures_as_json(release, tmp_path, run):
    answer = strict(run("report", release, *BRIEF, "--json").output)
    assert answer["written"] is None
    assert answer["holder_only"] is False
    assert answer["published"]["records"] == 800
    assert [one["model"] for one in answer["guarantees"]] == ["frequency-l-diversity"]
    assert all(verdict["holds"] for verdict in answer["verdicts"])
    target = tmp_path / "figures.json"
    both = strict(run("report", release, *BRIEF, "--json", "--to", target).output)
    assert both.pop("written") == str(target)
    assert strict(target.read_text(encoding="utf-8")) == both


def test_one_attack_alone(release, tmp_path, run):
    answer = strict(run("report", release, "--attack", "reidentification", "--json").output)
    assert {one["attack"] for one in answer["attacks"]["run"]} == {"reidentification"}
    assert answer["attacks"]["not_run"] == []
    result = run("report", release, "--attack", "linking", "--to", tmp_path / "r.html", code=2)
    assert "nothing to link" in result.output
    assert not (tmp_path / "r.html").exists()


def test_what_cannot_be_done_is_said_before_any_work(release, hospital, tmp_path, run):
    assert "Give --to FILE, or --json" in run("report", release, code=2).output
    original = ("--original", hospital / "patients.csv")
    assert "needs --policy" in run("report", release, *original, "--json", code=2).output
    assert "lies inside the release" in run("report", release, "--to", release / "report.html", code=2).output
    (tmp_path / "kept.html").write_text("kept")
    assert "exists already" in run("report", release, "--to", tmp_path / "kept.html", code=2).output
    assert (tmp_path / "kept.html").read_text() == "kept"
    assert "this is not a release" in run("report", tmp_path, "--json", code=2).output


def test_a_requirement_that_fails_is_exit_code_1_and_stands_on_the_page(release, hospital, tmp_path, run):
    text = (hospital / "policy.toml").read_text(encoding="utf-8").replace("l = 3", "l = 4")
    assert "l = 4" in text
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    (tmp_path / "disease.csv").write_bytes((hospital / "disease.csv").read_bytes())
    command = ("report", release, *BRIEF, "--policy", tmp_path / "policy.toml", "--to", tmp_path / "report.html")
    assert "3 of 3 checks fail" in run(*command, code=1).output
    assert "do not rely on this release" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_anonymize_writes_the_same_page_with_attacks(hospital, tmp_path, run):
    report = tmp_path / "report.html"
    command = ("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", tmp_path / "release")
    run(*command, "--report", report)
    text = report.read_text(encoding="utf-8")
    for part in ("In short", "The reidentification attack on", "What an analyst loses", "noren verify release"):
        assert part in text
    assert_needs_no_network(text)


def test_anonymize_refuses_a_report_in_any_release_before_it_publishes(hospital, release, tmp_path, run):
    command = ("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", tmp_path / "release")
    assert "lies inside the release" in run(*command, "--report", release / "report.html", code=2).output
    assert not (tmp_path / "release").exists()
