"""Columns that are hidden together: one composite column from the policy to the recipient's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import DataError, PolicyError, ReleaseError
from noren.schema.domain import MISSING, OTHER
from noren.schema.tuples import TupleDomain, tuple_parts
from noren.workflow.collect import Collector

N, L = 3000, 3
GROUP = ["code02", "code10", "major"]
NAME = "code02 + code10 + major"


def occupations(n: int = N, seed: int = 5) -> pl.DataFrame:
    """One occupation in three codings, the second and third coarser, the last in Chinese."""
    rng = np.random.default_rng(seed)
    job = rng.choice(24, n, p=rng.dirichlet(np.full(24, 3.0)))
    return pl.DataFrame(
        {
            "town": rng.choice(["Ulm", "Bonn"], n),
            "code02": [f"{10 * x:04}" for x in job],
            "code10": [f"{(x - x % 3 // 2) * 10 + 7:04}" for x in job],
            "major": [f"組 {x // 3}|{'ab'[x % 2]}" if x < 3 else f"組 {x // 3}" for x in job],
        }
    )


def policy(on: Any = GROUP, *, together: Any = GROUP, l: int = L, **more: Any) -> nr.Policy:  # noqa: E741
    return nr.Policy(
        attributes={"town": "plain"} | dict.fromkeys(GROUP, "sensitive"),
        require=[nr.models.FrequencyLDiversity(on=on, l=l)],
        together=together,
        **more,
    )


TABLE = occupations()
RULES = policy()
RELEASE = nr.anonymize(TABLE, RULES)


def parts_of(release: nr.Release, name: str = NAME) -> dict[str, list[list[str]]]:
    """What every published set says about each member."""
    domain = release.column(name).domain
    assert isinstance(domain, TupleDomain)
    sets = release.frame()[name].to_list()
    return {
        member: [[tuple_parts(text, len(domain.made_of))[place] for text in one] for one in sets]
        for place, member in enumerate(domain.made_of)
    }


# ---------------------------------------------------------------- the policy


@pytest.mark.parametrize(
    "line",
    [
        'together = ["code02", "code10", "major"]\n[attributes]',
        'together = [["code02", "code10", "major"]]\n[attributes]',
        '[attributes]\ntogether = ["code02", "code10", "major"]',
        '[[together]]\ncolumns = ["code02", "code10", "major"]\n[attributes]',
    ],
)
def test_the_line_may_be_written_in_several_ways(line: str) -> None:
    columns = "\n".join(f'{name} = "sensitive"' for name in GROUP)
    text = f'{line}\ntown = "plain"\n{columns}\n[[require]]\nmodel = "frequency-l-diversity"\non = {GROUP}\nl = 3\n'
    read = nr.Policy.parse(text)
    assert read == RULES
    assert nr.Policy.parse(read.to_toml()) == read
    assert list(read.attributes) == ["town", NAME]
    assert list(read.declared) == ["town", *GROUP]


def test_a_composite_has_the_name_it_is_given() -> None:
    named = policy("job", together={"columns": GROUP, "name": "job"})
    assert named.protected == ("job",)
    assert nr.Policy.parse(named.to_toml()) == named
    assert named.with_method(nr.methods.Decoys()) == named


@pytest.mark.parametrize(
    ("together", "message"),
    [
        (["code02"], "at least 2"),
        (["code02", "code02"], "twice"),
        (["code02", "nothing"], "no column 'nothing'"),
        ([["code02", "code10"], ["code10", "major"]], "'code10' belongs to"),
        ({"columns": GROUP, "name": "town"}, "'town' is a column already"),
        ({"columns": ["code02", "code10"], "values": [["1"]]}, "has 2 parts"),
        ({"columns": GROUP, "differ": ["town"]}, "none of the columns"),
        ({"columns": GROUP, "nam": "x"}, "unknown key 'nam'"),
        ("code02", "a list of columns"),
    ],
)
def test_what_cannot_be_put_together_is_refused(together: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(together=together)


def test_a_column_without_a_single_value_cannot_be_a_member() -> None:
    attributes = {"who": "identifier", "a": "sensitive"}
    with pytest.raises(PolicyError, match="role identifier"):
        nr.Policy(attributes=attributes, require=[nr.models.FrequencyLDiversity(on="a", l=2)], together=["who", "a"])
    with pytest.raises(PolicyError, match="is a secret"):
        nr.Policy(attributes={"a": "plain", "b": "plain"}, require=[], together=["a", "b"])


def test_a_model_that_says_nothing_about_parts_is_refused_by_name() -> None:
    with pytest.raises(PolicyError, match="semantic-diversity cannot judge 'code02'"):
        nr.Policy(
            attributes={"code02": nr.sensitive(distance="ordinal"), "code10": nr.sensitive()},
            require=[nr.models.SemanticDiversity(on="code02", l=2, d=1)],
            together=["code02", "code10"],
        )
    with pytest.raises(PolicyError, match="'mondrian' judges only whole tuples"):
        policy(method=nr.methods.Mondrian())
    with pytest.raises(PolicyError, match="needs a distance"):
        nr.Policy(
            attributes=dict.fromkeys(GROUP, "sensitive"),
            require=[nr.models.SemanticDiversity(on=NAME, l=2, d=1)],
            together=GROUP,
        )


# ---------------------------------------------------------------- what is published


def test_every_set_holds_l_values_of_every_member_that_is_asked_for() -> None:
    for member, sets in parts_of(RELEASE).items():
        assert min(len(set(one)) for one in sets) == L, member
    (verdict,) = RELEASE.verdicts
    assert (verdict.column, verdict.achieved) == (NAME, L)


def test_on_the_composite_different_tuples_are_enough() -> None:
    release = nr.anonymize(TABLE, policy(NAME))
    least = {member: min(len(set(one)) for one in sets) for member, sets in parts_of(release).items()}
    assert least["major"] < L
    assert nr.verify(release, policy(NAME))[0].achieved == L
    assert nr.verify(release, RULES)[0].holds is False
    assert any("may agree in" in note for note in nr.methods.Decoys().decide(*_met(NAME))[1])


def _met(on: str) -> tuple[Any, Any, Any]:
    from noren.workflow.prepare import prepare

    table = prepare(TABLE, policy(on))
    return table.columns, table.counts, table.requirements


def test_one_member_alone_may_be_asked_for() -> None:
    with pytest.raises(PolicyError, match=r"tuples of 'code02 \+ code10 \+ major' may agree in it"):
        policy("major")
    rules = nr.Policy(
        attributes={"town": "plain", "code02": "plain", "code10": "plain", "major": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on="major", l=L)],
        together=GROUP,
    )
    release = nr.anonymize(TABLE, rules)
    assert release.column(NAME).domain.differ == ("major",)
    assert min(len(set(one)) for one in parts_of(release)["major"]) == L


def test_tuples_may_be_far_apart_by_a_distance_of_their_own(tmp_path: Path) -> None:
    values = sorted(RELEASE.column(NAME).domain.values)
    far = np.abs(np.subtract.outer(np.arange(len(values)), np.arange(len(values))))
    table = pl.DataFrame({"": values} | {value: far[:, place] for place, value in enumerate(values)})
    table.write_csv(tmp_path / "far.csv")
    rules = nr.Policy(
        attributes={"town": "plain"} | dict.fromkeys(GROUP, "sensitive"),
        require=[nr.models.SemanticDiversity(on=NAME, l=3, d=4)],
        together={"columns": GROUP, "distance": {"matrix": "far.csv"}},
        base=tmp_path,
    )
    release = nr.anonymize(TABLE, rules)
    assert all(verdict.holds for verdict in nr.verify(release, rules, original=TABLE))
    assert nr.Policy.parse(rules.to_toml(), base=tmp_path).together == rules.together


def test_more_values_than_tuples_keep_apart_are_refused_with_the_remedy() -> None:
    with pytest.raises(PolicyError, match='on = "code02 \\+ code10 \\+ major"'):
        nr.anonymize(TABLE, policy(l=12))


def test_closeness_of_tuples_is_closeness_of_members() -> None:
    rules = nr.Policy(
        attributes={"town": "plain"} | dict.fromkeys(GROUP, "sensitive"),
        require=[nr.models.TCloseness(on=GROUP, t=0.2)],
        together=GROUP,
    )
    release = nr.anonymize(TABLE, rules)
    assert release.column(NAME).domain.differ == ()
    assert release.designs[NAME].p < 1
    assert nr.verify(release, rules, original=TABLE)[0].holds


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_release_is_written_read_and_verified(kind: Any, tmp_path: Path) -> None:
    release = nr.anonymize(TABLE, RULES, to=tmp_path / "out", file_format=kind)
    opened = nr.open_release(tmp_path / "out")
    assert opened.manifest == release.manifest
    assert opened.frame().sort(pl.all()).equals(release.frame().sort(pl.all()))
    for verdicts in (nr.verify(opened, RULES, original=TABLE), nr.verify(opened, original=TABLE), nr.verify(opened)):
        assert all(verdict.holds for verdict in verdicts)
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "a set of 3 of 24 tuples" in page
    assert f"The values of `{NAME}` are tuples of `code02`, `code10`, `major`" in page


def test_nothing_but_tuples_says_what_a_member_is(tmp_path: Path) -> None:
    saved = nr.anonymize(TABLE, RULES, to=tmp_path / "out")
    assert saved.columns == ("town", NAME)
    manifest = json.loads((tmp_path / "out" / "datapackage.json").read_text(encoding="utf-8"))["noren"]
    (column,) = [one for one in manifest["columns"] if one["name"] == NAME]
    assert [member["name"] for member in column["members"]] == GROUP
    assert column["members"][0]["values"] == sorted(TABLE["code02"].unique())
    assert column["differ"] == GROUP


@pytest.mark.parametrize("change", ["members", "differ", "part"])
def test_a_manifest_that_says_otherwise_is_refused(change: str, tmp_path: Path) -> None:
    from noren.release.manifest import read_column, write_column

    given = write_column(RELEASE.column(NAME))
    if change == "members":
        given["members"] = given["members"][:2]
    elif change == "differ":
        given["differ"] = ["town"]
    else:
        given["members"][0]["values"] = given["members"][0]["values"][1:]
    with pytest.raises(ValueError, match=r"tuple|member"):
        read_column(given)


def test_a_release_of_other_members_is_not_the_policy_s() -> None:
    other = nr.Policy(
        attributes={"town": "plain", "code02": "sensitive", "code10": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on=NAME, l=L)],
        together={"columns": ["code02", "code10"], "name": NAME},
    )
    with pytest.raises(
        ReleaseError, match="consists of 'code02', 'code10', 'major' in the release, but of 'code02', 'code10'"
    ):
        nr.verify(RELEASE, other)


# ---------------------------------------------------------------- what a recipient asks


def test_members_are_asked_for_singly() -> None:
    frame = RELEASE.estimate(["code10"]).frame
    truth = dict(TABLE["code10"].value_counts().iter_rows())
    assert frame["code10"].to_list() == sorted(truth)
    assert frame["count"].sum() == pytest.approx(N)
    error = [(row["count"] - truth[row["code10"]]) / row["std_error"] for row in frame.iter_rows(named=True)]
    assert max(map(abs, error)) < 6
    assert RELEASE.estimate([NAME]).frame["count"].sum() == pytest.approx(N)


def test_a_count_of_a_member_is_the_count_of_its_tuples() -> None:
    found = RELEASE.count({"code02": ["0000", "0010"], "town": "Ulm"})
    truth = TABLE.filter(pl.col("code02").is_in(["0000", "0010"]) & (pl.col("town") == "Ulm")).height
    assert abs(found.count - truth) < 6 * found.std_error
    both = RELEASE.count({"code02": ["0000", "0010"], "code10": ["0007"]})
    assert both.count == pytest.approx(RELEASE.count({"code10": ["0007"], "code02": ["0000"]}).count)
    assert RELEASE.count({"code02": ["0000"], "major": ["組 7"]}).count == 0


def test_members_and_others_in_one_table_in_the_order_asked_for() -> None:
    frame = RELEASE.estimate(["major", "town", "code02"], estimator="linear").frame
    assert frame.columns[:3] == ["major", "town", "code02"]
    assert frame.height == TABLE["major"].n_unique() * 2 * TABLE["code02"].n_unique()
    pairs = set(TABLE.select("major", "code02").iter_rows())
    for row in frame.filter(pl.col("count") != 0).iter_rows(named=True):
        assert (row["major"], row["code02"]) in pairs
    one = RELEASE.estimate(["code02", "town"], estimator="linear").frame
    summed = frame.group_by("code02", "town").agg(pl.col("count").sum()).sort("code02", "town")
    assert summed["count"].to_list() == pytest.approx(one.sort("code02", "town")["count"].to_list())


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(nr.errors.QueryError, match="'code02' has no value 'x'"):
        RELEASE.count({"code02": "x"})
    with pytest.raises(nr.errors.QueryError, match="listed twice"):
        RELEASE.estimate(["code02", "code02"])


# ---------------------------------------------------------------- tables as they are


def test_rare_tuples_are_merged_or_refused_as_the_members_say() -> None:
    odd = pl.DataFrame({"town": ["Ulm"] * 3, "code02": ["0000"] * 3, "code10": ["0157"] * 3, "major": ["組 7"] * 3})
    table = pl.concat([TABLE, odd])
    attributes = {"town": nr.plain()} | {name: nr.sensitive(min_count=5, rare="merge") for name in GROUP}
    require = [nr.models.FrequencyLDiversity(on=GROUP, l=L)]
    release = nr.anonymize(table, nr.Policy(attributes=attributes, require=require, together=GROUP))
    values = release.column(NAME).domain.values
    assert OTHER in values
    assert not any("0000 | 0157" in value for value in values)
    assert OTHER in release.estimate(["code10"]).frame["code10"].to_list()
    strict = {"columns": GROUP, "min_count": 5, "rare": "refuse"}
    with pytest.raises(PolicyError, match="1 values occur in fewer than 5 records"):
        nr.anonymize(table, nr.Policy(attributes=attributes, require=require, together=strict))


def test_missing_cells_of_a_member_are_a_part_or_cost_the_record() -> None:
    gone = TABLE.with_columns(
        code10=pl.when(pl.int_range(pl.len()) % 20 == 0).then(None).otherwise("code10"),
        code02=pl.when(pl.int_range(pl.len()) % 40 == 0).then(None).otherwise("code02"),
        major=pl.when(pl.int_range(pl.len()) % 40 == 0).then(None).otherwise("major"),
    )
    rules = policy(NAME)
    release = nr.anonymize(gone, rules)
    values = release.column(NAME).domain.values
    assert MISSING in values
    assert any(tuple_parts(value, 3)[1] == MISSING and value != MISSING for value in values)
    assert all(verdict.holds for verdict in nr.verify(release, rules, original=gone))
    found = release.count({"code10": None})
    middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
    assert abs(middle - N / 20) < 3 * half, "three half-widths are about six standard errors"
    attributes = {"town": nr.plain()} | {name: nr.sensitive(missing="drop") for name in GROUP}
    dropping = nr.Policy(attributes=attributes, require=rules.require, together=rules.together)
    assert nr.anonymize(gone, dropping).records == N - N // 20


def test_members_keep_their_own_kinds_bins_and_levels() -> None:
    rng = np.random.default_rng(8)
    pay = rng.integers(0, 100, N)
    table = pl.DataFrame({"pay": [f"{x},5" for x in pay], "band": [f"b{x // 20}" for x in pay]})
    tree = {"tree": {"low": ["b0", "b1"], "high": ["b2", "b3", "b4"]}}
    rules = nr.Policy(
        attributes={
            "pay": nr.sensitive(bins=[0, 20, 40, 60, 80, 101], decimal=","),
            "band": nr.sensitive(hierarchy=tree),
        },
        require=[nr.models.FrequencyLDiversity(on=["pay", "band"], l=2)],
        together=["pay", "band"],
    )
    release = nr.anonymize(table, rules)
    assert release.column("pay + band").domain.values[0] == "[0, 20) | b0"
    assert release.estimate(["band@1"]).frame["band@1"].to_list() == ["low", "high"]
    found = release.count({"pay": {">=": 60}})
    assert abs(found.count - int((pay >= 60).sum())) < 6 * found.std_error
    assert all(verdict.holds for verdict in nr.verify(release, rules, original=table))


def test_bins_that_a_member_s_number_lies_outside_of_are_refused() -> None:
    table = pl.DataFrame({"pay": ["5", "15", "99"] * 9, "band": ["a", "b", "c"] * 9})
    rules = nr.Policy(
        attributes={"pay": nr.sensitive(bins=[0, 10, 20, 30]), "band": nr.sensitive()},
        require=[nr.models.FrequencyLDiversity(on=["pay", "band"], l=2)],
        together=["pay", "band"],
    )
    with pytest.raises(PolicyError, match="9 cells lie outside"):
        nr.anonymize(table, rules)


def test_a_table_without_a_member_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'major'"):
        nr.anonymize(TABLE.drop("major"), RULES)


def test_tuples_beside_general_quasi_identifiers() -> None:
    table = TABLE.with_columns(age=pl.Series(np.random.default_rng(3).integers(18, 80, N)))
    rules = nr.Policy(
        attributes={"town": "quasi-identifier", "age": "quasi-identifier"} | dict.fromkeys(GROUP, "sensitive"),
        require=[nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on=GROUP, l=L)],
        method=[nr.methods.Mondrian(on=("town", "age")), nr.methods.Decoys(on=tuple(GROUP))],
        together=GROUP,
    )
    release = nr.anonymize(table, rules)
    assert all(verdict.holds for verdict in nr.verify(release, rules, original=table))


def test_a_quasi_identifier_that_is_hidden_with_a_secret_is_drawn() -> None:
    attributes = {"town": "quasi-identifier", "code10": "quasi-identifier", "code02": "sensitive"}
    rules: dict[str, Any] = {
        "attributes": attributes,
        "require": [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="code02", l=L)],
        "method": [nr.methods.Mondrian(on=("town", "code10")), nr.methods.Decoys(on=("code02",))],
    }
    with pytest.raises(PolicyError, match="identifies people but is published as decoy sets"):
        nr.Policy(together=["code10", "code02"], **rules)
    secret = nr.Policy(together={"columns": ["code10", "code02"], "role": "sensitive"}, **rules)
    assert [method.on for method in secret.methods] == [("town",), ("code10 + code02",)]
    release = nr.anonymize(TABLE.drop("major"), secret)
    assert all(verdict.holds for verdict in nr.verify(release, secret))


def test_whole_tuples_are_judged_in_classes_and_groups() -> None:
    rules = nr.Policy(
        attributes={"town": "quasi-identifier"} | dict.fromkeys(GROUP, "sensitive"),
        require=[nr.models.FrequencyLDiversity(on=NAME, l=L)],
        method=nr.methods.Anatomy(),
        together=GROUP,
    )
    release = nr.anonymize(TABLE, rules)
    assert all(verdict.holds for verdict in nr.verify(release, rules, original=TABLE))
    assert release.estimate(["major"]).frame["count"].sum() == pytest.approx(N)


def test_rows_of_one_person_with_one_tuple_have_one_set() -> None:
    table = pl.concat([TABLE.with_row_index("who")] * 3)
    rules = nr.Policy(
        attributes={"who": "identifier", "town": "plain"} | dict.fromkeys(GROUP, "sensitive"),
        require=[nr.models.FrequencyLDiversity(on=GROUP, l=L)],
        people={"key": "who"},
        together=GROUP,
    )
    release = nr.anonymize(table, rules)
    assert release.records == 3 * N
    counts = release.frame().group_by(pl.all()).len()["len"]
    assert (counts % 3 == 0).all()


def test_a_memoised_tuple_is_drawn_once(tmp_path: Path) -> None:
    from noren.secret import Secret

    table = TABLE.with_row_index("who")
    Secret.create(tmp_path / "s.key")
    rules = nr.Policy(
        attributes={"who": "identifier", "town": "plain"} | dict.fromkeys(GROUP, "sensitive"),
        require=[nr.models.FrequencyLDiversity(on=GROUP, l=L)],
        randomness={"record_key": "who"},
        together=GROUP,
    )
    first, second = (nr.anonymize(one, rules, secret=tmp_path / "s.key") for one in (table, table.reverse()))
    assert first.frame().sort(pl.all()).equals(second.frame().sort(pl.all()))


def test_a_client_reports_tuples_that_were_declared() -> None:
    with pytest.raises(PolicyError, match=r"values = \[\[\.\.\.\], \[\.\.\.\]\]"):
        Collector(RULES)
    tuples = [list(row) for row in TABLE.select(GROUP).unique().sort("code02").iter_rows()]
    collector = Collector(policy(together={"columns": GROUP, "values": tuples}))
    records = list(TABLE.head(200).iter_rows(named=True))
    reports = [collector.report(record) for record in records]
    assert all("code02" not in report for report in reports)
    release = collector.release(reports)
    assert release.count({"town": "Ulm"}).count == sum(record["town"] == "Ulm" for record in records)
    with pytest.raises(DataError, match="outside its declared domain"):
        collector.report(records[0] | {"code02": "9999"})
