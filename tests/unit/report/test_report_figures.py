"""The report's figures: those of the checks, the attacks and the files, and the words around them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.audit import ATTACKS, Attack, AttackResult, Case, Scenario, attack
from noren.errors import QueryError
from noren.methods import METHODS
from noren.models import MODELS
from noren.report.attacks import is_rival, shown_scenarios
from noren.report.page import holder_page, make_report
from noren.workflow.anonymize import run
from noren.workflow.verify import verify
from tests.unit.report.world import DIVERSE, NAMES, TAG, TOWN, WHEN, N, Tree, people, policy

# ---------------------------------------------------------------------- the figures


@pytest.mark.parametrize("name", NAMES)
def test_the_json_is_strict_and_is_the_content(name: str, report_pages) -> None:
    def refuse(word: str) -> None:
        raise ValueError(word)

    assert json.loads(report_pages[name].json, parse_constant=refuse) == report_pages[name].content


@pytest.mark.parametrize("kind", ["public", "holder"])
@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy"])
def test_verdicts_are_those_of_verify(method: str, kind: str, report_pages, report_worlds) -> None:
    world = report_worlds[method]
    given = {"policy": nr.Policy.load(world.policy), "original": world.data} if kind == "holder" else {}
    expected = verify(nr.open_release(world.release), **given)
    found = report_pages[f"{method} {kind}"].content["verdicts"]
    keys = ("model", "column", "required", "achieved", "holds", "basis", "records", "breaches", "statement")
    assert [[v[k] for k in keys] for v in found] == [[getattr(v, k) for k in keys] for v in expected]
    root = Tree(report_pages[f"{method} {kind}"].html).root
    table = next(t for t in root.all("table") if t.all("caption")[0].text == "Verdicts")
    rows = [[cell.text for cell in row.children] for row in table.all("tbody")[0].all("tr")]
    assert [row[3] for row in rows] == [f"{v.achieved:.4g}" for v in expected]
    told = {True: "\u2713 holds", None: "? undecided"}
    assert [row[4] for row in rows] == [told[v.holds] for v in expected]


def test_attacks_are_those_of_the_audit(report_pages, report_worlds) -> None:
    world = report_worlds["mondrian"]
    page = report_pages["mondrian holder"]
    run_ = page.content["attacks"]["run"]
    assert run_
    assert {one["attack"] for one in run_} | {one["attack"] for one in page.content["attacks"]["not_run"]} == {*ATTACKS}
    name = "homogeneity"
    (expected,) = attack(nr.open_release(world.release), name, original=world.data, policy=nr.Policy.load(world.policy))
    (found,) = [one for one in run_ if one["attack"] == name]
    assert found["baseline"] == pytest.approx(dict(expected.baseline))
    for told, scenario in zip(found["scenarios"], expected.scenarios, strict=True):
        assert told["summary"] == pytest.approx(dict(scenario.summary), nan_ok=True)
    assert any("nothing to link" in one["why"] for one in page.content["attacks"]["not_run"])
    assert "nothing to link" in page.html


def test_losses_are_recomputed_from_frames(report_pages, report_worlds) -> None:
    """Against the definition: mean values left open, and the distance of the even spread from the truth."""
    world = report_worlds["mondrian"]
    release = nr.open_release(world.release)
    loss = {one["name"]: one for one in report_pages["mondrian holder"].content["losses"]["columns"]}
    entry = release.column("age")
    truth = dict(pl.read_csv(world.data)["age"].value_counts().rows())
    members = {entry.nodes.labels[n]: entry.nodes.members(n) for n in range(len(entry.nodes))}
    spread, open_ = np.zeros(entry.d), []
    for label in release.frame()["age"]:
        under = members[label]
        spread[under] += 1 / len(under)
        open_.append((len(under) - 1) / (entry.d - 1))
    true = np.array([truth[int(value)] for value in entry.domain.values])
    assert loss["age"]["left_open"] == pytest.approx(np.mean(open_))
    assert loss["age"]["actual_error"] == pytest.approx(np.abs(spread - true).sum() / 2 / N, abs=1e-6)
    classes = report_pages["mondrian public"].content["losses"]["classes"]
    sizes = release.frame().group_by("age", TOWN).len()["len"]
    assert (classes["classes"], classes["smallest"], classes["largest"]) == (len(sizes), sizes.min(), sizes.max())
    public = {one["name"]: one for one in report_pages["mondrian public"].content["losses"]["columns"]}
    assert "actual_error" not in public["age"]
    assert public["age"]["left_open"] == loss["age"]["left_open"]


def test_decoys_leave_their_set_open_and_tell_their_errors(report_pages, report_worlds) -> None:
    release = nr.open_release(report_worlds["decoys"].release)
    design = release.designs[TAG]
    (loss,) = report_pages["decoys public"].content["losses"]["columns"]
    assert design.p < 1
    assert "left_open" not in loss
    assert "rules nothing out" in report_pages["decoys public"].html
    errors = release.estimate(TAG).frame["std_error"].to_numpy()
    assert loss["largest_count_error"] == pytest.approx(errors.max())
    assert loss["expected_error"] == pytest.approx((errors * np.sqrt(2 / np.pi)).sum() / 2 / N)


def test_sets_that_hold_the_truth_leave_their_other_values_open() -> None:
    rules = nr.Policy(
        attributes={"age": "plain", "ill": "sensitive"}, require=[nr.models.FrequencyLDiversity(on="ill", l=3)]
    )
    table = pa.table({"age": [20 + i % 40 for i in range(N)], "ill": ["abcdefg"[i * i % 7] for i in range(N)]})
    page = holder_page(run(table, rules))
    (loss,) = page.content["losses"]["columns"]
    d = len({"abcdefg"[i * i % 7] for i in range(N)})
    assert loss["left_open"] == pytest.approx(2 / (d - 1))


def test_a_large_run_leaves_its_attacks_to_the_command(report_worlds, monkeypatch) -> None:
    given = {"policy": report_worlds["anatomy"].policy, "original": report_worlds["anatomy"].data, "attacks": None}
    monkeypatch.setattr("noren.report.material.ATTACKED", N)
    monkeypatch.setattr("noren.report.material.order_attacks", lambda attacks: [])
    few = holder_page(report_worlds["anatomy"].outcome, **given).content["attacks"]["not_run"]
    assert [one["attack"] for one in few] == ["predictable"]
    monkeypatch.setattr("noren.report.material.ATTACKED", N - 1)
    many = holder_page(report_worlds["anatomy"].outcome, **given)
    assert [one["attack"] for one in many.content["attacks"]["not_run"]] == [*ATTACKS]
    assert "more than 239 records" in many.html


def test_checksums_are_those_of_the_files(report_pages, report_worlds) -> None:
    for name, world in report_worlds.items():
        page = report_pages[f"{name} holder"]
        told = {file["name"]: file["sha256"] for file in page.content["reproduce"]["files"]}
        real = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in world.release.iterdir()}
        assert told == real
        assert next(iter(told)) == "datapackage.json"
        assert all(digest in page.html for digest in real.values())
        assert page.content["reproduce"]["policy"]["text"] == world.policy.read_text(encoding="utf-8")
        assert hashlib.sha256(world.policy.read_bytes()).hexdigest() in page.html
        versions = page.content["reproduce"]["versions"]
        assert {"noren", "Python", "numpy", "polars"} <= versions.keys()
        assert page.content["date"] == "2026-03-14T15:09:26+00:00"


def test_the_guarantees_name_the_columns_people_are_found_by(report_pages) -> None:
    alike, diverse = report_pages["mondrian public"].content["guarantees"]
    assert alike["promise"].startswith(
        f"Somebody who searches for a person by age and {TOWN} finds at least 3 matching records"
    )
    assert diverse["parameters"] == {"l": 2}
    assert "more than 1/2" in diverse["promise"]
    for one in (alike, diverse):
        text = Tree(report_pages["mondrian public"].html).root.text
        assert one["promise"] in text
        assert one["not_promised"] in text


def test_a_policy_that_does_not_hold_fails_on_the_page(report_worlds, tmp_path) -> None:
    world = report_worlds["mondrian"]
    strict = tmp_path / "strict.toml"
    strict.write_text(policy("mondrian", '[[require]]\nmodel = "k-anonymity"\nk = 200\n' + DIVERSE), encoding="utf-8")
    page = make_report(world.release, strict, date=WHEN)
    assert "\u2717 fails" in page.html
    assert "1 of 2 checks fail: do not rely on this release." in page.html
    assert "records fall short" in page.html


# ---------------------------------------------------------------------- attacks of any kind


def strange_result(holder: bool) -> AttackResult:
    frame = pl.DataFrame({"belief": [0.5]})
    summary = {"right": 0.25, "tries": 12_000.0, "odd": float("nan")}
    scenario = Scenario("release", f"this {TAG}", "row", summary, frame, holder, {"right": (0.2, 0.31)})
    return AttackResult(
        attack="strange",
        target=("ill", TAG),
        adversary="knows <all>",
        success="guesses",
        baseline={"right": 0.125},
        scenarios=(scenario,),
        titles={"right": "right guess", "tries": "tries", "odd": "odd"},
        measure="belief",
        shares=("right", "odd"),
        notes=("a note with a stop.", "one without"),
    )


@pytest.mark.parametrize("holder", [False, True])
def test_any_attack_of_the_registry_finds_its_place(holder: bool, report_worlds, monkeypatch) -> None:
    class Strange(Attack):
        knows: ClassVar[str] = "more"
        name: str = "strange"

        def run(self, case: Case) -> list[AttackResult]:
            return [strange_result(holder)] * 2

    for room in ("noren.audit", "noren.report.material"):
        monkeypatch.setattr(f"{room}.ATTACKS", {"strange": Strange})
    page = report_worlds["anatomy"].public(attacks=None)
    root = Tree(page.html).root
    assert "The strange attack on ill and <script>" in root.text
    table = next(t for t in root.all("table") if "strange attack, before" in t.all("caption")[0].text)
    assert ("Holder only" in table.all("caption")[0].text) is holder
    cells = [[cell.text for cell in row.children] for row in table.all("tr")]
    assert cells[0] == ["On", "Table", "Rows", "right guess", "tries", "odd"]
    assert cells[1][1:] == ["before any release", "-", "12.5%", "-", "-"]
    assert cells[2][1:] == [f"this {TAG}", "1", "25.0% (20.0% to 31.0%)", "12,000", "-"]
    assert "A note with a stop." in page.html
    assert "One without." in page.html
    assert "12.5% before any release, 25.0% after" in page.html


def test_bars_tell_other_tables_from_this_release(report_pages) -> None:
    """Stripes are for tables that might have been published instead; what an adversary may know is not one."""
    content = report_pages["mondrian holder"].content
    found = {one["attack"]: one for one in content["attacks"]["run"]}
    assert found["homogeneity"]["after"] == "release"
    rivals = {n: [is_rival(one, s) for s in shown_scenarios(one)] for n, one in found.items()}
    assert rivals["homogeneity"] == [True, False]
    assert not any(rivals["minimality"])
    assert found["minimality"]["after"] == found["minimality"]["shown"][-1]
    root = Tree(report_pages["mondrian holder"].html).root
    drawing = next(d for d in root.all("svg") if "homogeneity" in d.all("title")[0].text)
    fills = [rect.attributes["fill"] for rect in drawing.all("rect") if "x" in rect.attributes]
    assert [fill.split("#")[0] or "plain" for fill in fills[:3]] == ["plain", "url(", "plain"]
    assert fills[0] == "#ffffff"


def test_an_attack_that_is_named_must_apply(report_worlds) -> None:
    with pytest.raises(QueryError, match="nothing to link"):
        report_worlds["anatomy"].public(attacks=["linking"])
    with pytest.raises(QueryError, match="no attack 'lnking'"):
        report_worlds["anatomy"].public(attacks=["lnking"])
    page = report_worlds["anatomy"].public(attacks=[])
    assert page.content["attacks"] == {"run": [], "not_run": []}
    assert "No attack was simulated" in page.html


def test_the_original_needs_its_policy(report_worlds) -> None:
    with pytest.raises(QueryError, match="the original cannot be read"):
        make_report(report_worlds["anatomy"].release, original=report_worlds["anatomy"].data)


def test_a_release_in_memory_has_no_files(report_worlds) -> None:
    release = nr.anonymize(people(), report_worlds["mondrian"].policy)
    page = make_report(release, nr.Policy.load(report_worlds["mondrian"].policy), date=WHEN, attacks=[])
    assert page.content["reproduce"]["files"] == []
    assert "has no files to check" in page.html


# ---------------------------------------------------------------------- words and bars


SAMPLES: dict[str, dict[str, Any]] = {
    "k-anonymity": {"k": 7}, "frequency-l-diversity": {"l": 7}, "distinct-l-diversity": {"l": 7},
    "entropy-l-diversity": {"l": 7.5}, "recursive-cl-diversity": {"c": 3.5, "l": 7}, "expanded-k": {"k": 7},
    "alpha-k-anonymity": {"alpha": 0.35, "k": 7}, "p-sensitive-k-anonymity": {"p": 3, "k": 7},
    "tau-l-diversity": {"tau": 0.35, "l": 7}, "t-closeness": {"t": 0.35}, "beta-likeness": {"beta": 1.5},
    "delta-disclosure": {"delta": 1.5}, "semantic-diversity": {"l": 7, "d": 0.35}, "le-diversity": {"l": 7, "e": 2},
    "mechanism": {"most": 0.35},
    "qs-diversity": {"c": 3.0, "l": 7}, "qs-closeness": {"t": 0.35}, "local-privacy": {"epsilon": 1.5},
    "belief": {"most": 0.35}, "informed-belief": {"most": 0.35, "prior": {"a": 0.5, "b": 0.5}},
    "m-invariance": {"m": 7},
}  # fmt: skip


OTHER = {
    "most": 0.6,
    "k": 9,
    "l": 9,
    "alpha": 0.6,
    "tau": 0.6,
    "t": 0.6,
    "beta": 3.0,
    "delta": 3.0,
    "c": 9.0,
    "p": 5,
    "d": 0.6,
    "epsilon": 3.0,
    "m": 9,
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("sets", [True, False])
def test_every_model_is_put_in_plain_words(model: str, sets: bool) -> None:
    """The sentence names the columns and follows the parameters; the columns' form changes it where it must."""
    given = SAMPLES[model]
    on = () if model == "k-anonymity" else ("ill",)
    made, changed = (
        MODELS[model].model_validate({"model": model, **({"on": on} if on else {}), **parameters})
        for parameters in (given, {name: OTHER.get(name, value) for name, value in given.items()})
    )
    promise = made.promise_about(on, sets)
    assert all(name in promise.says for name in on)
    assert promise.says.endswith(".")
    assert promise.leaves_open.endswith(".")
    assert "None" not in promise.says + promise.leaves_open
    assert changed.promise_about(on, sets).says != promise.says


def test_every_method_is_put_in_plain_words() -> None:
    assert all(method.sentence.endswith(".") for method in METHODS.values())
    assert "decoy" not in " ".join(method.sentence for name, method in METHODS.items() if name != "decoys")


def test_several_columns_are_each_meant() -> None:
    assert "each of a, b and c" in nr.models.TCloseness(on="a", t=0.1).promise_about(("a", "b", "c"), True).says
    assert "by a and b finds" in nr.models.KAnonymity(k=2).promise_about(("a", "b"), False).says
