"""Records anonymised one by one at their source, and the release that is made of what was sent."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr

TREE = {"virus": ["flu", "cold"], "bone": ["leg", "arm"], "skin": ["burn", "rash"]}
GROUP = {ill: name for name, ills in TREE.items() for ill in ills}
ATTRIBUTES: dict[str, Any] = {
    "device": "identifier",
    "town": {"role": "quasi-identifier"},
    "age": {"role": "quasi-identifier", "bins": [0, 30, 60, 120]},
    "income": {"role": "sensitive", "values": list(range(14)), "distance": "ordinal"},
    "ill": {"role": "sensitive", "values": list(GROUP), "hierarchy": {"tree": TREE}, "distance": "tree"},
    "weight": {"role": "sensitive", "bins": [0, 50, 60, 70, 80, 200]},
}
REQUIRE = [
    {"model": "semantic-diversity", "on": "income", "l": 3, "d": 2},
    {"model": "le-diversity", "on": "ill", "l": 2, "e": 1},
    {"model": "frequency-l-diversity", "on": "weight", "l": 2},
]
RECORD = {"device": "Qz-17", "town": "Ede", "age": 44, "income": 5, "ill": "leg", "weight": 71.5}


def policy(attributes: dict[str, Any] | None = None, **more: Any) -> nr.Policy:
    return nr.Policy(attributes={**ATTRIBUTES, **(attributes or {})}, require=more.pop("require", REQUIRE), **more)


def people(n: int = 400) -> list[dict[str, Any]]:
    rng = np.random.default_rng(17)
    return [
        {
            "device": f"Qz-{i}",
            "town": ["Ede", "Oss", "Epe"][i // 6 % 3],
            "age": int(rng.integers(0, 99)),
            "income": int(rng.choice(14, p=np.arange(14, 0, -1) / 105)),
            "ill": list(GROUP)[i % 6],
            "weight": float(rng.integers(40, 120)),
        }
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def collector() -> nr.Collector:
    return nr.Collector(policy())


@pytest.fixture(scope="module")
def reports(collector: nr.Collector) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(collector.report(person))) for person in people()]


# ---------------------------------------------------------------- on the client


def test_a_report_holds_sets_around_the_truth(collector: nr.Collector) -> None:
    for _ in range(50):
        sent = collector.report(RECORD)
        assert list(sent) == ["town", "age", "income", "ill", "weight"], "identifiers stay at home"
        assert (sent["town"], sent["age"]) == ("Ede", "[30, 60)")
        assert 5 in sent["income"]
        assert len(sent["income"]) == 3
        assert all(b - a >= 2 for a, b in combinations(sent["income"], 2)), "far apart, and in order"
        assert "leg" in sent["ill"]
        assert len({GROUP[ill] for ill in sent["ill"]}) == 2
        assert "[70, 80)" in sent["weight"]
        assert len(sent["weight"]) == 2


def test_a_report_can_be_sent_as_json(collector: nr.Collector) -> None:
    sent = collector.report(RECORD)
    assert json.loads(json.dumps(sent, allow_nan=False)) == sent
    assert "Qz-17" not in json.dumps(sent)


def test_decoys_are_drawn_afresh(collector: nr.Collector) -> None:
    """Forty-five equally likely sets of income: twenty times the same one has a chance below 1e-30."""
    assert len({tuple(collector.report(RECORD)["income"]) for _ in range(20)}) > 1


@pytest.mark.parametrize("value", [5, 5.0, "5"])
def test_a_value_may_be_written_as_tables_write_it(value: Any, collector: nr.Collector) -> None:
    assert 5 in collector.report({**RECORD, "income": value})["income"]


def test_a_record_with_other_columns(collector: nr.Collector) -> None:
    lacking = {name: cell for name, cell in RECORD.items() if name != "ill"}
    with pytest.raises(nr.errors.DataError, match="lacks 'ill' and has no column in addition"):
        collector.report(lacking)
    with pytest.raises(nr.errors.DataError, match="lacks no column and has 'shoe' in addition"):
        collector.report({**RECORD, "shoe": 43})


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("income", 14),
        ("income", 987654321),
        ("income", None),
        ("income", float("nan")),
        ("ill", "Qz-syndrome"),
        ("ill", ""),
        ("weight", 987654321),
        ("weight", None),
        ("weight", "Qz heavy"),
        ("age", 987654321),
        ("age", "Qz old"),
    ],
)
def test_a_value_outside_the_domain_is_refused_and_not_repeated(
    column: str, cell: Any, collector: nr.Collector
) -> None:
    with pytest.raises(nr.errors.DataError, match=repr(column)) as caught:
        collector.report({**RECORD, column: cell})
    assert "Qz" not in str(caught.value)
    assert "987654321" not in str(caught.value)


@pytest.mark.parametrize("missing", [None, "", "?"])
def test_missing_cells_of_exact_columns_follow_the_policy(missing: Any) -> None:
    marks = {"missing_values": ["?"]}
    for column in ("town", "age"):
        assert nr.Collector(policy(data=marks)).report({**RECORD, column: missing})[column] is None
        for choice in ("drop", "reject"):
            strict = policy({column: {**ATTRIBUTES[column], "missing": choice}}, data=marks)
            with pytest.raises(nr.errors.DataError, match=f"'{column}' is missing"):
                nr.Collector(strict).report({**RECORD, column: missing})


def test_declared_values_bind_exact_columns_too() -> None:
    towns = policy({"town": {"role": "quasi-identifier", "values": ["Ede", "Oss"]}})
    collector = nr.Collector(towns)
    assert collector.report(RECORD)["town"] == "Ede"
    with pytest.raises(nr.errors.DataError, match="'town'") as caught:
        collector.report({**RECORD, "town": "Qz-town"})
    assert "Qz" not in str(caught.value)


# ---------------------------------------------------------------- policies that a client cannot follow


def problems(**change: Any) -> list[Any]:
    with pytest.raises(nr.errors.PolicyError) as caught:
        nr.Collector(policy(**change))
    return list(caught.value.problems)


def test_closeness_by_the_data_is_refused_by_name() -> None:
    asked = [*REQUIRE[:2], {"model": "t-closeness", "on": "weight", "t": 0.2}]
    (problem,) = problems(require=asked, method={"name": "decoys", "prior": "data"})
    assert problem.where == "method.prior"
    assert problem.message.startswith("a client does not know the overall distribution")


def test_fixed_parameters_that_only_a_distribution_could_prove_are_refused() -> None:
    asked = [*REQUIRE[:2], {"model": "t-closeness", "on": "weight", "t": 0.2}]
    loose = {"name": "decoys", "parameters": {"weight": {"eta": 1, "p": 0.9}}}
    with pytest.raises(nr.NorenError, match="needs the overall distribution"):
        nr.Collector(policy(require=asked, method=loose))


def test_every_protected_domain_must_be_declared() -> None:
    loose = {"income": {"role": "sensitive", "distance": "ordinal"}, "weight": {"role": "sensitive"}}
    found = problems(attributes=loose)
    assert [problem.where for problem in found] == ["attributes.income", "attributes.weight"]
    assert all("values = [...]" in problem.hint for problem in found)


def test_reports_are_sets() -> None:
    alone = dict.fromkeys(("ill", "weight"), "identifier")
    (problem,) = problems(attributes=alone, require=REQUIRE[:1], method={"name": "decoys", "form": "records"})
    assert (problem.where, problem.message) == ("method.form", "collected reports are sets.")


def test_what_is_infeasible_is_known_before_the_first_report() -> None:
    (problem,) = problems(require=[{**REQUIRE[0], "d": 5}, *REQUIRE[1:]], source="rules.toml")
    assert problem.hint == "l = 2 works at d = 5; d = 4 works at l = 3."
    with pytest.raises(nr.errors.PolicyError, match=r"^rules\.toml: 1 problem"):
        nr.Collector(policy(require=[{**REQUIRE[0], "d": 5}, *REQUIRE[1:]], source="rules.toml"))


def test_a_policy_file(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(policy().to_toml())
    assert 5 in nr.Collector(tmp_path / "policy.toml").report(RECORD)["income"]


# ---------------------------------------------------------------- where reports arrive


def test_a_collected_release_verifies_and_analyses(
    collector: nr.Collector, reports: list[dict[str, Any]], tmp_path: Path
) -> None:
    release = collector.release(iter(reports))
    assert release.records == len(reports)
    assert [v.holds for v in release.verdicts] == [True] * 3
    opened = nr.open_release(release.save(tmp_path / "release"))
    original = pl.DataFrame(people())
    assert all(v.holds for v in nr.verify(opened))
    assert all(v.holds for v in nr.verify(opened, policy(), original=original))
    columns = ["town", "age", "income", "ill", "weight"]
    sent = sorted(json.dumps([report[name] for name in columns]) for report in reports)
    assert sorted(json.dumps(list(row)) for row in opened.frame().select(columns).iter_rows()) == sent
    exact = dict(original["town"].value_counts().iter_rows())
    assert dict(opened.estimate("town").frame.select("town", "count").iter_rows()) == exact
    assert opened.estimate("income").frame["count"].sum() == pytest.approx(len(reports))


def test_a_collected_release_is_described_like_an_anonymised_one(
    collector: nr.Collector, reports: list[dict[str, Any]]
) -> None:
    collected = collector.release(reports)
    made = nr.anonymize(pl.DataFrame(people()), policy())
    assert collected.manifest.model_dump() == made.manifest.model_dump()


def test_the_order_of_arrival_is_lost(collector: nr.Collector) -> None:
    """A fixed order survives a uniform shuffle with probability 1/400!."""
    sent = [collector.report({**person, "town": f"t{i:03d}"}) for i, person in enumerate(people())]
    towns = collector.release(sent).frame()["town"].to_list()
    assert sorted(towns) == [f"t{i:03d}" for i in range(400)]
    assert towns != sorted(towns)


def test_reports_in_several_portions(
    collector: nr.Collector, reports: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noren.workflow.collect.CHUNK", 7)
    release = collector.release(reports[:50])
    order = ["town", "age", "income", "ill", "weight"]
    sent = sorted(json.dumps([report[name] for name in order]) for report in reports[:50])
    assert sorted(json.dumps(list(row)) for row in release.frame().select(order).iter_rows()) == sent


@pytest.mark.parametrize(("limit", "form"), [(2, "open"), (3, "exact")])
def test_exact_columns_with_many_values_stay_open(
    limit: int, form: str, collector: nr.Collector, reports: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are three towns."""
    monkeypatch.setattr("noren.workflow.collect.OPEN_LIMIT", limit)
    release = collector.release(reports[:50])
    assert release.manifest.column("town").form == form
    assert release.manifest.randomness == "fresh"
    assert sorted(release.frame()["town"].to_list()) == sorted(report["town"] for report in reports[:50])


def test_rare_values_are_merged_where_the_policy_says_so(reports: list[dict[str, Any]]) -> None:
    sent = [*reports[:60], {**reports[60], "town": "Qz-hamlet"}]
    merging = nr.Collector(policy({"town": {"role": "quasi-identifier", "min_count": 5, "rare": "merge"}}))
    assert merging.release(sent).frame()["town"].n_unique() == 4
    assert "(other)" in merging.release(sent).frame()["town"].to_list()
    refusing = nr.Collector(policy({"town": {"role": "quasi-identifier", "min_count": 5}}))
    with pytest.raises(nr.errors.PolicyError, match="fewer than 5 records") as caught:
        refusing.release(sent)
    assert "Qz" not in str(caught.value)


def test_no_reports(collector: nr.Collector) -> None:
    assert nr.Collector(policy()).left_out == 0
    with pytest.raises(nr.errors.DataError, match="no reports"):
        collector.release([])


def forged(report: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return {name: cell for name, cell in {**report, **change}.items() if cell is not ...}


@pytest.mark.parametrize(
    "change",
    [
        {"income": [4, 5, 9]},
        {"income": [2, 5]},
        {"income": [2, 5, 8, 11]},
        {"income": [5, 2, 8]},
        {"income": [5, 5, 5]},
        {"income": [2, 5, 987654321]},
        {"income": ["Qz", "Qz", "Qz"]},
        {"income": 5},
        {"income": None},
        {"income": [2, 5, None]},
        {"ill": ["flu", "cold"]},
        {"ill": "flu"},
        {"weight": ["[70, 80)"]},
        {"age": "Qz"},
        {"device": "Qz-17"},
        {"town": ...},
    ],
    ids=str,
)
def test_a_forged_report_is_left_out_and_counted(
    change: dict[str, Any], collector: nr.Collector, reports: list[dict[str, Any]]
) -> None:
    """One broken sender must not stop the others; the others' reports are all there."""
    release = collector.release([*reports[:9], forged(reports[9], change), *reports[10:20]])
    assert (release.records, collector.left_out) == (19, 1)
    assert all(verdict.holds for verdict in release.verdicts)
    assert collector.release(reports[:20]).records == 20
    assert collector.left_out == 0


def test_broken_senders_among_many(collector: nr.Collector, reports: list[dict[str, Any]]) -> None:
    broken = [{**reports[i], "town": bad} for i, bad in enumerate(["\ud800", b"Ede", ["Ede"], {}, float])]
    release = collector.release([*broken, "report", None, *reports[:50], {}, forged(reports[0], {"income": [4, 5, 9]})])
    assert (release.records, collector.left_out) == (50, 9)


def test_only_broken_reports(collector: nr.Collector) -> None:
    with pytest.raises(nr.errors.DataError, match="only malformed ones"):
        collector.release([{"town": "Ede"}])


def test_a_set_that_the_design_never_draws_is_refused() -> None:
    """Far enough apart, but out of reach of duplicate-processing, which at (14,3,3) reaches some sets from no value."""
    rules = nr.Policy(
        attributes={"income": ATTRIBUTES["income"]},
        require=[{**REQUIRE[0], "d": 3, "most": 0.5}],
        method={"name": "decoys", "design": "duplicate-processing"},
    )
    collector = nr.Collector(rules)
    feasible = [s for s in combinations(range(14), 3) if min(np.diff(s)) >= 3]
    drawn = collector.designs["income"].member_weights(np.array(feasible)).sum(axis=1) > 0
    never = [list(s) for s, reached in zip(feasible, drawn, strict=True) if not reached]
    assert never
    honest = [collector.report({"income": i % 14}) for i in range(20)]
    assert collector.release(honest).records == 20
    assert collector.release([*honest, {"income": never[0]}]).records == 20
    assert collector.left_out == 1


# ---------------------------------------------------------------- memoised


@pytest.fixture
def key(tmp_path: Path) -> Path:
    nr.Secret.create(tmp_path / "secret.key")
    return tmp_path / "secret.key"


MEMOISED = {"randomness": {"record_key": "device"}}


def test_the_same_person_and_value_repeat_the_set(key: Path) -> None:
    first, later = (nr.Collector(policy(**MEMOISED), secret=key) for _ in range(2))
    assert first.report(RECORD) == later.report(RECORD) == first.report({**RECORD})
    others = {tuple(first.report({**RECORD, "device": f"Qz-{i}"})["income"]) for i in range(20)}
    assert len(others) > 1


def test_collected_and_anonymised_sets_agree_under_one_secret(key: Path) -> None:
    rules = policy(**MEMOISED, dependence={"most": 1.0})
    collector = nr.Collector(rules, secret=key)
    unique = [{**person, "town": f"t{i}"} for i, person in enumerate(people(40))]
    sent = {report["town"]: report["income"] for report in map(collector.report, unique)}
    release = nr.anonymize(pl.DataFrame(unique), rules, secret=key)
    assert dict(release.frame().select("town", "income").iter_rows()) == sent


def test_the_same_sets_give_the_same_answers_whichever_way_they_came(key: Path) -> None:
    client = nr.Collector(policy(**MEMOISED), secret=key)
    collected = client.release([client.report(person) for person in people()])
    made = nr.anonymize(pl.DataFrame(people()), policy(**MEMOISED), secret=key)
    for asked in ("income", ["town", "ill"]):
        one, two = collected.estimate(asked).frame, made.estimate(asked).frame
        for column in ("count", "low", "high"):
            assert one[column].to_numpy() == pytest.approx(two[column].to_numpy(), rel=1e-9, abs=1e-9)
        assert one["count"].sum() == pytest.approx(len(people()))


def test_whoever_receives_reports_needs_no_secret(key: Path) -> None:
    client = nr.Collector(policy(**MEMOISED), secret=key)
    release = nr.Collector(policy(**MEMOISED)).release([client.report(person) for person in people(30)])
    assert release.manifest.randomness == "memoised"


def test_a_policy_that_asks_for_a_secret_does_not_draw_without(key: Path) -> None:
    with pytest.raises(nr.errors.SecretError, match="no secret is given"):
        nr.Collector(policy(**MEMOISED)).report(RECORD)
    written = {"randomness": {"record_key": "device", "secret": key.name}, "base": key.parent}
    assert nr.Collector(policy(**written)).report(RECORD) == nr.Collector(policy(**MEMOISED), secret=key).report(RECORD)
    wrong = {"randomness": {"record_key": "device", "fingerprint": "0000"}}
    with pytest.raises(nr.errors.SecretError, match="but the policy requires 0000"):
        nr.Collector(policy(**wrong), secret=key)


def test_a_secret_needs_to_know_the_person(key: Path) -> None:
    with pytest.raises(nr.errors.PolicyError, match="a secret needs a record key"):
        nr.Collector(policy(), secret=key)
    for missing in (None, ""):
        with pytest.raises(nr.errors.DataError, match="record key 'device' is missing"):
            nr.Collector(policy(**MEMOISED), secret=key).report({**RECORD, "device": missing})


def test_a_number_that_is_none_is_missing_as_in_a_table() -> None:
    rules = nr.Policy(
        attributes={"s": nr.sensitive(values=["a", "b", "c"]), "pay": nr.plain()},
        require=[nr.models.FrequencyLDiversity(on="s", l=2)],
    )
    collector = nr.Collector(rules)
    reports = [collector.report({"s": "a", "pay": pay}) for pay in (float("nan"), 2.5)]
    assert [report["pay"] for report in reports] == [None, 2.5]
    assert collector.release(reports).column("pay").domain.values == ("2.5", "(missing)")


def test_a_client_remembers_how_it_drew_under_a_secret(tmp_path: Path) -> None:
    """Sets of two sizes for one person can be intersected."""
    nr.Secret.create(tmp_path / "key")

    def client(l: int) -> nr.Collector:  # noqa: E741
        attributes = {"who": nr.identifier(), "s": nr.sensitive(values=list("abcdef"))}
        rules = nr.Policy(
            attributes=attributes,
            require=[nr.models.FrequencyLDiversity(on="s", l=l)],
            randomness={"record_key": "who"},
        )
        return nr.Collector(rules, secret=tmp_path / "key")

    report = {"who": "p", "s": "a"}
    changed = client(3)
    assert client(2).report(report) == client(2).report(report)
    with pytest.raises(nr.errors.SecretError, match="drew these attributes differently"):
        changed.report(report)
    with pytest.raises(nr.errors.SecretError, match="drew these attributes differently"):
        client(3)
