"""What workers tell a page about a release, whatever its cells are: all that is offered can be asked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from tests.postgres.test_publish import released

import noren as nr
from noren.errors import ReleaseError
from noren.progress import quiet
from noren_studio.work.answering import answer
from noren_studio.work.auditing import attack_release, measure_table, read_attacks, read_foreign_table
from noren_studio.work.releases import check_release, read_release
from noren_studio.work.releasing import make_release, save_release
from published import damaged, forged, publish

MADE = ("decoys", "pram", "mondrian", "anatomy", "microaggregation")


@pytest.fixture(scope="module", params=MADE)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of sets, of changed values, of general ones, of groups."""
    return released(request.param).save(tmp_path_factory.mktemp("made") / request.param)


def offered(column: dict[str, Any]) -> list[str]:
    """What a menu offers of a column, as the library is asked."""
    name = column["name"]
    levels = [f"{name}@{one['level']}" for one in column["levels"]]
    return [name, *levels, *(f"{name}/{width}" for width in column["widths"])]


def test_all_that_is_offered_can_be_counted(place: Path) -> None:
    found, release = read_release(quiet, str(place)), nr.open_release(place)
    assert {one["name"] for one in found["columns"]} >= set(release.columns)
    for column in found["columns"]:
        for name in offered(column) if column["countable"] else ():
            estimate = release.estimate([name])
            assert estimate.records == found["facts"]["records"]


def test_levels_of_a_hierarchy_are_told_with_their_labels(tmp_path: Path) -> None:
    hospital = publish(tmp_path)
    found, release = read_release(quiet, str(hospital.release)), nr.open_release(hospital.release)
    (levels,) = (one["levels"] for one in found["columns"] if one["name"] == "disease")
    assert [one["level"] for one in levels] == [1, 2]
    for level in levels:
        labels = release.estimate([f"disease@{level['level']}"]).frame.to_series(0).to_list()
        assert labels == level["labels"]
        assert len(labels) == level["count"]


def test_columns_with_numbers_have_a_mean_and_others_have_none(place: Path) -> None:
    found, release = read_release(quiet, str(place)), nr.open_release(place)
    numbers = {one["name"] for one in found["columns"] if one["numbers"]}
    assert numbers
    for name in numbers:
        assert release.mean(name).frame["mean"][0] is not None


def test_an_estimator_that_is_offered_is_known(place: Path) -> None:
    found, release = read_release(quiet, str(place)), nr.open_release(place)
    for name in found["estimators"]:
        assert release.estimate(["ill"], estimator=name).estimator == name


@pytest.mark.parametrize("kind", ["auto", "heatmap"])
def test_an_answer_has_a_table_a_file_and_a_picture(place: Path, tmp_path: Path, kind: str) -> None:
    call = {"verb": "estimate", "args": [["ill", "member"]], "options": {}}
    found = answer(quiet, str(place), call, kind, str(tmp_path), "mark")
    wanted = nr.open_release(place).estimate(["ill", "member"]).frame
    assert found["heads"] == wanted.columns
    assert found["rows"] == [list(row) for row in wanted.rows()]
    assert pl.read_csv(found["csv"])["count"].to_list() == pytest.approx(wanted["count"].to_list())
    assert found["picture"]["light"].startswith("data:image/svg+xml;base64,")
    assert found["picture"]["light"] != found["picture"]["dark"]


def test_what_is_no_chart_says_why(tmp_path: Path) -> None:
    made = released("decoys").save(tmp_path / "made")
    call = {"verb": "estimate", "args": [["ill"]], "options": {}}
    found = answer(quiet, str(made), call, "heatmap", str(tmp_path), "mark")
    assert found["picture"] is None
    assert "two or three columns" in found["no_picture"]


def test_a_forged_release_fails_and_a_damaged_one_does_not_open(tmp_path: Path) -> None:
    hospital = publish(tmp_path)
    assert check_release(quiet, str(hospital.release), signer=str(hospital.key))["holds"] is True
    with pytest.raises(ReleaseError):
        read_release(quiet, str(damaged(hospital.release, tmp_path / "damaged")))
    try:
        holds = check_release(quiet, str(forged(hospital.release, tmp_path / "forged")))["holds"]
    except ReleaseError:
        holds = False
    assert holds is False


def test_attacks_that_apply_run_and_the_others_say_why(place: Path, tmp_path: Path) -> None:
    reasons = read_attacks(quiet, str(place))["reasons"]
    assert list(reasons) == list(nr.audit.ATTACKS)
    able = [name for name, why in reasons.items() if why is None and name != "predictable"]
    chosen: dict[str, dict[str, Any]] = {name: {} for name in able}
    *_, found = attack_release(quiet, str(place), chosen, str(tmp_path), "mark")
    assert {one["attack"] for one in found["results"]} | set(found["skipped"]) == set(chosen)
    assert not found["holder_only"]
    for one in found["results"]:
        assert one["picture"]["light"].startswith("data:image/svg+xml")
        assert all(len(line) == 2 + len(one["heads"]) for line in one["lines"])
    gains = [one["gain"] for one in found["results"]]
    assert gains == sorted(gains, reverse=True)


def test_a_foreign_table_is_read_and_measured(tmp_path: Path) -> None:
    table = tmp_path / "foreign.csv"
    table.write_text("age,ill\n20-39,flu\n20-39,cold\n40-59,flu\n40-59,flu\n", encoding="utf-8")
    seen = read_foreign_table(quiet, str(table))
    assert seen["columns"] == ["age", "ill"]
    assert seen["rows"][0] == ["20-39", "flu"]
    found = measure_table(quiet, str(table), None, ["age"], ["ill"], "*", verify=False)
    figures = {one["model"]: one["achieved"] for one in found["measures"]}
    assert figures["k-anonymity"] == 2
    assert figures["distinct-l-diversity"] == 1
    assert found["verdicts"] == []


def test_columns_that_are_hidden_together_are_published_and_only_others_stay(tmp_path: Path) -> None:
    ills = (("Flu", "J10"), ("Cold", "J00"), ("Cancer", "C50"), ("HIV", "B20"))
    rows = [f"P{at},{20 + at % 7},{ill},{code}\n" for at in range(400) for ill, code in [ills[at * at % 13 % 4]]]
    (tmp_path / "ills.csv").write_text("name,age,ill,code\n" + "".join(rows), encoding="utf-8")
    policy = {
        "attributes": {"name": "identifier", "age": "quasi-identifier", "ill": "sensitive", "code": "sensitive"},
        "people": {"rows": "independent"},
        "together": [{"columns": ["ill", "code"]}],
        "require": [{"model": "frequency-l-diversity", "on": ["ill", "code"], "l": 2}],
        "method": {"name": "decoys"},
    }
    found = make_release(quiet, str(tmp_path / "ills.csv"), policy, str(tmp_path), str(tmp_path / "release"))
    assert found["kept"] == ["name"]


def test_what_is_handed_over_and_does_not_keep_its_claims_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = released("decoys").save(tmp_path / "made")
    given = {"release": str(made), "file_format": "parquet", "key": "", "passphrase": None, "new_key": False}
    assert save_release(quiet, to=str(tmp_path / "good"), **given) == {"to": str(tmp_path / "good"), "signer": None}
    monkeypatch.setattr(nr, "verify", lambda target: SimpleNamespace(failed=["k-anonymity"]))
    with pytest.raises(ReleaseError) as caught:
        save_release(quiet, to=str(tmp_path / "bad"), **given)
    assert str(tmp_path / "bad") in caught.value.message
