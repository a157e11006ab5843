"""What real files led to, one test a mishap: numbers, dates, missing cells, visits, three codings of one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import PolicyError
from noren.workflow.anonymize import run

N = 1500
K = nr.models.KAnonymity(k=5)
L = nr.models.FrequencyLDiversity(on="ill", l=2)


def people(n: int = N, seed: int = 4) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    born = np.datetime64("1935-01-01") + rng.integers(0, 25_000, n)
    return {
        "height": [f"{x:.1f}" for x in rng.normal(170, 10, n)],
        "age": [f"{x:02}" for x in rng.integers(0, 95, n)],
        "born": [f"{day[8:10]}.{day[5:7]}.{day[:4]}" for day in map(str, born)],
        "pay": [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in rng.lognormal(9, 1, n)],
        "ill": rng.choice(list("abcdef"), n).tolist(),
    }


def csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [";".join(columns), *(";".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def made(path: Path, columns: dict[str, list[Any]], method: str = "mondrian", **attributes: Any) -> Any:
    """The outcome for some columns of the table, all of them quasi-identifiers beside the illness."""
    policy = nr.Policy(
        mechanism="ignored",
        attributes={name: attributes.get(name, "quasi-identifier") for name in columns} | {"ill": "sensitive"},
        require=[K, L],
        method=method,
    )
    return run(csv(path / "data.csv", columns), policy)


def some(*names: str, **more: list[Any]) -> dict[str, list[Any]]:
    table = people()
    return {name: table[name] for name in names} | more | {"ill": table["ill"]}


def ends(label: str) -> list[str]:
    return label.strip("[]").split(", ")


@pytest.mark.parametrize("kind", ["integer", None])
@pytest.mark.parametrize("file", ["data.csv", "data.parquet"])
def test_whole_numbers_too_large_to_be_exact_are_numbers_or_refused(
    kind: str | None, file: str, tmp_path: Path
) -> None:
    """A float column with 9007199254740992.0 was a crash where the policy says `integer`."""
    table = pl.DataFrame({"size": [2.0**53, 3.0] * 20, "ill": list("abcd") * 10})
    table.write_csv(tmp_path / file) if file.endswith("csv") else table.write_parquet(tmp_path / file)
    size = {"role": "quasi-identifier"} | ({} if kind is None else {"kind": kind})
    policy = nr.Policy(
        mechanism="ignored", attributes={"size": size, "ill": "sensitive"}, require=[K, L], method="hilbert"
    )
    if kind is None:
        nodes = run(tmp_path / file, policy).release.column("size").nodes
        assert nodes is not None
        assert "9007199254740992.0" in " ".join(nodes.labels)
        return
    with pytest.raises(PolicyError, match=r"attributes\.size\.kind: integer cannot be '9007199254740992\.0'"):
        run(tmp_path / file, policy)


@pytest.mark.parametrize("more", [{}, {"min_count": 5, "rare": "merge"}])
def test_numbers_with_a_missing_one_among_them_are_read_back(more: dict[str, Any], tmp_path: Path) -> None:
    """Numbers beside a category are published as texts; the table still writes 160.0 where the domain says 160."""
    rng = np.random.default_rng(2)
    height = [*rng.choice(["160.0", "170.0", "1e2", "151.5", ""], 300).tolist(), *(["998.0", "999.0"] if more else [])]
    data = csv(tmp_path / "data.csv", {"height": height, "ill": rng.choice(list("abc"), len(height)).tolist()})
    policy = nr.Policy(
        mechanism="ignored",
        attributes={"height": {"role": "sensitive", **more}, "ill": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on=["height", "ill"], l=2)],
    )
    nr.anonymize(data, policy, to=tmp_path / "release")
    shown = nr.open_release(tmp_path / "release").column("height").domain.values
    assert set(shown) - {"(other)"} == {"100", "151.5", "160", "170", "(missing)"}
    assert all(verdict.holds for verdict in nr.verify(tmp_path / "release", policy, original=data))


@pytest.mark.parametrize("method", ["mondrian", "hilbert"])
def test_heights_of_a_csv_file_become_intervals(method: str, tmp_path: Path) -> None:
    outcome = made(tmp_path, some("height"), method)
    assert outcome.facts.columns["height"].domain.kind == "number"
    labels = set(outcome.release.frame()["height"].to_list())
    assert all(0 < float(ends(label)[0]) <= float(ends(label)[-1]) < 300 for label in labels)
    assert not any("{" in label for label in labels)


def test_a_csv_file_gives_what_a_frame_gives(tmp_path: Path) -> None:
    columns = some("height")
    frame = pl.DataFrame(columns | {"height": [float(x) for x in columns["height"]]})
    policy = nr.Policy(
        mechanism="ignored",
        attributes={"height": "quasi-identifier", "ill": "sensitive"},
        require=[K, L],
        method="mondrian",
    )
    losses = [run(data, policy).facts.losses["ncp_loss"] for data in (frame, csv(tmp_path / "data.csv", columns))]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


def test_decimal_commas_and_thousands_are_numbers(tmp_path: Path) -> None:
    outcome = made(tmp_path, some("pay"))
    domain = outcome.facts.columns["pay"].domain
    assert domain.kind == "number"
    assert (domain.format.decimal, domain.format.thousands) == (",", ".")
    assert all(float(ends(label)[0]) >= 0 for label in set(outcome.release.frame()["pay"].to_list()))


def test_a_declared_decimal_comma_decides(tmp_path: Path) -> None:
    table = some(dose=[f"{1 + i % 90},{i % 7:03}" for i in range(N)])
    rules = {"role": "quasi-identifier"}
    plain = made(tmp_path, table, dose=rules).facts.columns["dose"].domain
    said = made(tmp_path, table, dose=rules | {"decimal": ","}).facts.columns["dose"].domain
    assert (plain.format.thousands, plain.values[0]) == (",", "1000")
    assert (said.format.decimal, said.values[0]) == (",", "1")
    assert float(said.values[-1]) < 91


def test_ages_with_leading_zeros_are_an_ordered_code(tmp_path: Path) -> None:
    outcome = made(tmp_path, some("age"))
    domain = outcome.facts.columns["age"].domain
    assert domain.values[:3] == ("00", "01", "02")
    assert domain.is_ranked
    labels = set(outcome.release.frame()["age"].to_list())
    assert all(len(end) == 2 for label in labels for end in ends(label))
    assert not any("{" in label for label in labels)


@pytest.mark.parametrize("method", ["mondrian", "incognito", "hilbert"])
def test_a_few_missing_ages_leave_the_others_numbers(method: str, tmp_path: Path) -> None:
    ages = [int(age) for age in people()["age"]]
    holes = [None if i % 250 == 7 else age for i, age in enumerate(ages)]
    whole = made(tmp_path, some("height", age=ages), method)
    some_missing = made(tmp_path, some("height", age=holes), method)
    labels = set(some_missing.release.frame()["age"].to_list())
    assert labels != {"*"}
    assert any(label.endswith("(missing)") for label in labels if label)
    assert some_missing.facts.losses["ncp_loss"] <= 1.1 * whole.facts.losses["ncp_loss"] + 0.01


def test_markers_of_one_column_are_missing_in_it_alone(tmp_path: Path) -> None:
    ages = [-9 if i % 100 == 0 else int(age) for i, age in enumerate(people()["age"])]
    table = some(age=ages, debt=[-9 if i % 3 else i % 40 for i in range(N)])
    outcome = made(tmp_path, table, age={"role": "quasi-identifier", "missing_values": ["-9"]}, debt="plain")
    assert outcome.facts.columns["age"].domain.plain[0] == "0"
    assert outcome.facts.columns["age"].domain.has_missing
    assert outcome.release.frame()["debt"].min() == -9


@pytest.mark.parametrize("distance", ["numeric", "ordinal"])
def test_far_apart_values_beside_missing_cells_drop_nobody(distance: str, tmp_path: Path) -> None:
    steps = [None if i % 50 == 3 else 1000 * (i * 7 % 12) for i in range(N)]
    policy = nr.Policy(
        mechanism="ignored",
        attributes={"income": {"role": "sensitive", "distance": distance}, "ill": "identifier"},
        require=[nr.models.SemanticDiversity(on="income", l=3, d=2000 if distance == "numeric" else 2)],
        people={"rows": "independent"},
    )
    outcome = run(csv(tmp_path / "data.csv", some(income=steps)), policy)
    assert (outcome.facts.dropped, outcome.facts.suppressed, outcome.release.records) == (0, 0, N)
    assert outcome.facts.columns["income"].domain.values[-1] == "(missing)"
    assert all(verdict.holds for verdict in nr.verify(outcome.release))


@pytest.mark.parametrize("given", ["csv", "frame"])
@pytest.mark.parametrize("method", ["mondrian", "incognito"])
def test_dates_are_dates(given: str, method: str, tmp_path: Path) -> None:
    columns = some("born")
    data: Any = csv(tmp_path / "data.csv", columns)
    if given == "frame":
        data = pl.DataFrame(columns).with_columns(pl.col("born").str.to_date("%d.%m.%Y"))
    policy = nr.Policy(
        mechanism="ignored", attributes={"born": "quasi-identifier", "ill": "sensitive"}, require=[K, L], method=method
    )
    outcome = run(data, policy)
    assert outcome.facts.columns["born"].domain.kind == "date"
    labels = set(map(str, outcome.release.frame()["born"].to_list()))
    assert not any("*" in label and label != "*" for label in labels)
    if method == "mondrian":
        assert all(len(end) == 10 for label in labels for end in ends(label))


def test_a_calendar_can_be_named_in_the_policy(tmp_path: Path) -> None:
    born = {"role": "quasi-identifier", "hierarchy": {"calendar": ["year", "decade"]}}
    labels = set(made(tmp_path, some("born"), "incognito", born=born).release.frame()["born"].to_list())
    assert labels <= {*map(str, range(1930, 2010)), *(f"{year}s" for year in range(1930, 2010, 10)), "*"}


def visits(seed: int = 8) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(400), rng.integers(1, 6, 400))
    rng.shuffle(who)
    usual = rng.integers(0, 10, 400)
    ill = np.where(rng.random(len(who)) < 0.7, usual[who], rng.integers(0, 10, len(who)))
    return pl.DataFrame(
        {
            "patient": [f"p{i:04}" for i in who],
            "age": rng.integers(20, 90, 400)[who],
            "ill": [f"i{x}" for x in ill],
            "visit": np.arange(len(who)),
        }
    )


VISIT_ROLES = {"patient": "identifier", "age": "quasi-identifier", "ill": "sensitive", "visit": "plain"}


def test_visits_without_a_key_are_refused_and_with_it_classes_hold_five_patients() -> None:
    data = visits()
    rules: dict[str, Any] = {"attributes": VISIT_ROLES, "require": [K, L], "method": "mondrian"}
    with pytest.raises(PolicyError, match=r"people\.key: .* different values of the identifier 'patient'"):
        nr.anonymize(data, nr.Policy(mechanism="ignored", **rules))
    release = nr.anonymize(data, nr.Policy(mechanism="ignored", **rules, people={"key": "patient"}))
    classes = release.frame().join(data.select("visit", "patient"), on="visit").group_by("age")
    assert classes.agg(pl.col("patient").n_unique())["patient"].min() >= 5
    assert not release.manifest.rows_are_people
    assert "patient" not in release.columns


def test_sets_of_a_patients_visits_do_not_intersect_to_the_diagnosis() -> None:
    data = visits()
    policy = nr.Policy(
        mechanism="ignored",
        attributes=VISIT_ROLES,
        require=[nr.models.FrequencyLDiversity(on="ill", l=5)],
        people={"key": "patient"},
    )
    found = nr.anonymize(data, policy).frame().rename({"ill": "set"}).join(data, on="visit")
    for (_, _), rows in found.group_by("patient", "ill"):
        left = set.intersection(*map(set, rows["set"].to_list()))
        assert len(left) == 5


@pytest.mark.parametrize("method", ["anatomy", "rating"])
def test_groups_hold_whole_patients(method: str) -> None:
    """All visits of a patient are in one group, of whose people at most every third has any one illness."""
    data = visits()
    asked = [nr.models.FrequencyLDiversity(on="ill", l=3)]
    policy = nr.Policy(
        mechanism="ignored", attributes=VISIT_ROLES, require=asked, method=method, people={"key": "patient"}
    )
    found = nr.anonymize(data, policy).frame().rename({"ill": "group"}).join(data, on="visit")
    assert found.group_by("patient").agg(pl.col("group").n_unique())["group"].max() == 1
    of_group = found.group_by("group").agg(people=pl.col("patient").n_unique())
    having = found.group_by("group", "ill").agg(having=pl.col("patient").n_unique()).join(of_group, on="group")
    assert (having["having"] * 3 <= having["people"]).all()


def test_three_codings_of_one_occupation_are_refused() -> None:
    code = np.random.default_rng(1).integers(0, 50, 4000)
    data = pl.DataFrame(
        {"occ02": [f"a{x}" for x in code], "occ10": [f"b{49 - x}" for x in code], "soc": [f"c{x // 3}" for x in code]}
    )
    rules: dict[str, Any] = {
        "attributes": dict.fromkeys(data.columns, "sensitive"),
        "require": [nr.models.FrequencyLDiversity(on=data.columns, l=3)],
    }
    with pytest.raises(PolicyError) as caught:
        nr.anonymize(data, nr.Policy(mechanism="ignored", **rules))
    said = str(caught.value)
    assert "'occ02', 'occ10' and 'soc' disclose each other" in said
    assert 'together = ["occ02", "occ10", "soc"]' in said


def test_merging_all_numbers_into_the_rest_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    table = some(wage=[f"{x:.3f}" for x in np.random.default_rng(2).lognormal(8, 1, N)])
    wage = {"role": "quasi-identifier", "min_count": 5, "rare": "merge"}
    with pytest.raises(PolicyError) as caught:
        made(tmp_path, table, wage=wage)
    (problem,) = caught.value.problems
    assert problem.where == "attributes.wage.min_count"
    assert "merging would leave only '(other)'" in problem.message
    assert "quantiles:8" in problem.hint


@pytest.mark.parametrize("bins", ["quantiles:8", "width:500"])
def test_bins_by_a_rule_make_a_number_a_secret(bins: str, tmp_path: Path) -> None:
    table = some(wage=[f"{x:.3f}" for x in np.random.default_rng(2).uniform(0, 4000, N)])
    policy = nr.Policy(
        mechanism="ignored",
        attributes={"wage": {"role": "sensitive", "bins": bins}, "ill": "plain"},
        require=[nr.models.FrequencyLDiversity(on="wage", l=3)],
    )
    release = nr.anonymize(csv(tmp_path / "data.csv", table), policy)
    assert 7 <= release.column("wage").d <= 10
    published = {text for own in release.frame()["wage"].to_list() for text in own}
    assert published.isdisjoint(table["wage"])
