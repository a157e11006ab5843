"""Rows that hold one possible value each: nothing but the exact columns may tie the rows of a person together."""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.release.store import MemoryStore
from noren.statements import take
from tests.leaks.world import ALPHA, binomial_bounds, everything, use_buckets, use_small_batches

N, SIZE, FAR = 500, 3, 2
PAYS = [f"{i} thousand" for i in range(14)]
REQUIRE = {"model": "semantic-diversity", "on": "pay", "l": SIZE, "d": FAR}
PAY = {"role": "sensitive", "values": PAYS, "distance": "ordinal"}


def people(n: int = N) -> pl.DataFrame:
    """Everybody has a row number of their own, so that a test can tell whose rows are whose."""
    rng = np.random.default_rng(31)
    return pl.DataFrame(
        {
            "full name": [f"Qz{i:05d}person" for i in range(n)],
            "row": np.arange(n),
            "town": rng.choice(["east", "west"], n),
            "pay": [PAYS[i] for i in np.concatenate([np.arange(14), rng.integers(0, 14, n - 14)])],
        }
    )


def policy(form: str = "records", memoised: bool = False, row: str = "plain", **method: Any) -> nr.Policy:
    """With the row number dropped, only the town is left, and hundreds of people share it."""
    pay = method.pop("pay", PAY)
    return nr.Policy(
        attributes={"full name": "identifier", "row": row, "town": "plain", "pay": pay},
        require=[method.pop("require", REQUIRE)],
        method={"name": "decoys", "form": form, **method},
        randomness={"record_key": "full name"} if memoised else {},
    )


WAYS = ("memory", "parquet", "csv", "buckets", "batches", "memoised")


def published(way: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> nr.Release:
    if way == "buckets":
        use_buckets(monkeypatch)
    if way == "batches":
        use_small_batches(monkeypatch, 60)
    secret = None
    if way == "memoised":
        secret = folder / "secret.key"
        nr.Secret.create(secret)
    to = None if way == "memory" else folder / "release"
    file_format: Any = "csv" if way == "csv" else "parquet"
    rules = policy(memoised=way == "memoised", **options)
    release = nr.anonymize(people(), rules, to=to, file_format=file_format, secret=secret)
    return release if to is None else nr.open_release(to)


def chance_of_neighbours(size: int, rows: int) -> int:
    """Neighbouring rows of one person that a uniform order shows, but for a chance below ALPHA.

    Row by row from the top: whatever came before, the next row is of the same person with probability at most
    (size - 1) / (rows left). A sum of such coins with mean m reaches k with probability at most e^-m (e m / k)^k.
    """
    mean = sum((size - 1) / left for left in range(1, rows))
    k = int(mean) + 1
    while -mean + k * (1 + log(mean / k)) > log(ALPHA):
        k += 1
    return k


@pytest.mark.parametrize("way", WAYS)
def test_no_order_ties_rows_together(way, tmp_path, monkeypatch):
    release = published(way, tmp_path, monkeypatch)
    rows = release.frame()["row"].to_numpy()
    assert len(rows) == release.rows == N * SIZE
    bound = chance_of_neighbours(SIZE, len(rows))
    assert bound < N * (SIZE - 1) / 8, "rows left together would be found"
    assert (rows[1:] == rows[:-1]).sum() < bound
    # the order inside each disjoint pair is a fair coin, whatever the pairs are
    pairs = rows[: len(rows) // 2 * 2].reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    low, high = binomial_bounds(len(pairs), 0.5)
    assert low <= (pairs[:, 0] < pairs[:, 1]).sum() <= high


@pytest.mark.parametrize("way", WAYS)
def test_the_place_of_the_truth_is_chance(way, tmp_path, monkeypatch):
    """Among a person's rows the true one comes first, second or third equally often."""
    release = published(way, tmp_path, monkeypatch)
    own = people().select("row", truth="pay")
    ranked = release.frame().join(own, on="row").with_columns(rank=pl.int_range(pl.len()).over("row"))
    true = ranked.filter(pl.col("pay") == pl.col("truth"))
    assert true["row"].n_unique() == len(true) == N, "everybody's truth is among their rows, once"
    low, high = binomial_bounds(N, 1 / SIZE, tests=SIZE)
    for place in range(SIZE):
        assert low <= (true["rank"] == place).sum() <= high


@pytest.mark.parametrize("way", ["parquet", "csv", "memoised"])
def test_nothing_is_published_besides(way, tmp_path, monkeypatch):
    published(way, tmp_path, monkeypatch)
    raw, texts = everything(tmp_path / "release")
    assert b"Qz0" not in raw
    assert "Qz0" not in texts
    assert sorted(path.name for path in (tmp_path / "release").iterdir()) == [
        "README.md",
        "data.csv" if way == "csv" else "data.parquet",
        "datapackage.json",
    ]
    package = json.loads((tmp_path / "release" / "datapackage.json").read_text(encoding="utf-8"))
    assert [field["name"] for field in package["resources"][0]["schema"]["fields"]] == ["row", "town", "pay"]
    assert package["noren"]["records"] == N
    opened = nr.open_release(tmp_path / "release")
    assert [column.rows_per_record for column in opened.statements] == [1, 1, SIZE]
    assert [column.is_exact for column in opened.statements] == [True, True, False]


@pytest.mark.parametrize("way", WAYS)
def test_every_person_has_as_many_rows_as_a_set_has_values(way, tmp_path, monkeypatch):
    release = published(way, tmp_path, monkeypatch, row="identifier")
    assert release.columns == ("town", "pay")
    counts = dict(release.frame()["town"].value_counts().iter_rows())
    assert counts == {town: SIZE * n for town, n in people()["town"].value_counts().iter_rows()}
    (verdict,) = nr.verify(release)
    assert (verdict.holds, verdict.records, verdict.breaches) == (True, N, 0)


def test_every_persons_values_are_far_apart(tmp_path, monkeypatch):
    release = published("parquet", tmp_path, monkeypatch)
    for (_,), mine in release.frame().group_by("row"):
        ranks = sorted(PAYS.index(pay) for pay in mine["pay"])
        assert len(ranks) == SIZE
        assert min(np.diff(ranks)) >= FAR
        assert mine["town"].n_unique() == 1


def test_a_release_survives_saving_in_either_form(tmp_path, monkeypatch):
    release = published("memory", tmp_path, monkeypatch)
    for file_format in ("csv", "parquet"):
        back = nr.open_release(release.save(tmp_path / file_format, file_format))
        assert back.frame().equals(release.frame())
        assert nr.verify(back) == nr.verify(release)


def test_verification_sees_what_is_missing_or_changed(tmp_path, monkeypatch):
    """A row left out, a row repeated, and a person whose three values became one."""
    release = published("memory", tmp_path, monkeypatch)
    cells = release.cells(release.columns)
    order = np.argsort(release.frame()["row"].to_numpy(), kind="stable")
    changes = {
        "left out": np.delete(order, 5),
        "repeated": np.append(order, order[0]),
        "one value": np.concatenate([np.repeat(order[:1], SIZE), order[SIZE:]]),
    }
    for name, rows in changes.items():
        forged = nr.Release(release.manifest, MemoryStore(take(cells, rows)))
        (verdict,) = nr.verify(forged)
        assert (verdict.holds, verdict.breaches) == (False, 1 if name != "repeated" else 2), name


def test_the_original_confirms_that_every_truth_is_possible(tmp_path, monkeypatch):
    release = published("memory", tmp_path, monkeypatch)
    rules = policy()
    verdicts = {v.model: v.holds for v in nr.verify(release, rules, original=people())}
    assert verdicts == {"semantic-diversity": True, "truth-in-set": True}
    others = people().with_columns(pay=pl.lit(PAYS[0]))
    assert {v.model: v.holds for v in nr.verify(release, rules, original=others)}["truth-in-set"] is False


def test_the_expanded_form_is_there_already(tmp_path, monkeypatch):
    with pytest.raises(nr.errors.QueryError, match="already has one row per possible value"):
        published("memory", tmp_path, monkeypatch).expand()


def test_answers_count_people_and_not_rows(tmp_path, monkeypatch):
    release = published("parquet", tmp_path, monkeypatch, row="identifier")
    towns = dict(people()["town"].value_counts().iter_rows())
    assert dict(release.estimate("town").frame.select("town", "count").iter_rows()) == towns
    assert release.count({"town": ["east"]}).count == towns["east"]
    assert release.estimate("pay").frame["count"].sum() == pytest.approx(N)
    for town, persons in towns.items():
        assert release.estimate("pay", where={"town": [town]}).frame["count"].sum() == pytest.approx(persons)
    with pytest.raises(nr.errors.QueryError, match="shuffled rows do not show which rows belong together"):
        release.estimate("pay", estimator="likelihood")


# ---------------------------------------------------------------- under a secret


@pytest.fixture
def key(tmp_path) -> Path:
    nr.Secret.create(tmp_path / "secret.key")
    return tmp_path / "secret.key"


def sets_of(release: nr.Release) -> dict[int, tuple[str, ...]]:
    frame = release.frame()
    if release.rows_per_record > 1:
        frame = frame.group_by("row").agg(pl.col("pay"))
    return {row: tuple(sorted(cell)) for row, cell in frame.select("row", "pay").iter_rows()}


@pytest.mark.parametrize("design", ["flat", "simple", "uniform-sets", "duplicate-processing"])
def test_a_person_with_the_same_value_keeps_the_same_set(design, key):
    rules = policy("sets", memoised=True, design=design, require={**REQUIRE, "most": None if design == "flat" else 0.5})
    first = sets_of(nr.anonymize(people(), rules, secret=key))
    again = people().sample(fraction=1, shuffle=True, seed=2).head(N // 2)
    assert sets_of(nr.anonymize(again, rules, secret=key)) == {row: first[row] for row in again["row"].to_list()}
    assert len(set(first.values())) > 20


def test_both_forms_show_the_same_sets(key):
    first = sets_of(nr.anonymize(people(), policy("sets", memoised=True), secret=key))
    assert sets_of(nr.anonymize(people(), policy("records", memoised=True), secret=key)) == first


def test_another_secret_draws_other_sets(key, tmp_path):
    nr.Secret.create(tmp_path / "other.key")
    one, two = (
        sets_of(nr.anonymize(people(), policy(memoised=True), secret=secret))
        for secret in (key, tmp_path / "other.key")
    )
    assert one != two


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"design": "simple", "require": {**REQUIRE, "most": 0.5}}, "design"),
        ({"require": {**REQUIRE, "d": 3}}, "distance 3"),
        ({"require": {**REQUIRE, "l": 2}}, "eta"),
        ({"pay": {**PAY, "values": PAYS[::-1]}}, "another order"),
        ({"require": {"model": "frequency-l-diversity", "on": "pay", "l": 3}}, "uniform-decoys"),
    ],
    ids=["design", "threshold", "size", "order", "plain"],
)
def test_a_later_release_may_not_draw_differently(change, said, key):
    nr.anonymize(people(), policy("sets", memoised=True), secret=key)
    with pytest.raises(nr.errors.SecretError, match="two different sets of one person") as caught:
        nr.anonymize(people(), policy("sets", memoised=True, **change), secret=key)
    assert said in str(caught.value)
    nr.anonymize(people(), policy("sets", memoised=True), secret=key)


# ---------------------------------------------------------------- several secrets

TOWNS = ["north", "east", "south", "west"]
ILLS = {"lung": ["cough", "asthma"], "skin": ["rash", "burn"], "mind": ["panic", "grief"], "bone": ["arm", "leg"]}
ALL_ILLS = [ill for group in ILLS.values() for ill in group]
EVERY = SIZE * 2


def patients(n: int = N) -> pl.DataFrame:
    rng = np.random.default_rng(32)
    ill = rng.choice(ALL_ILLS, n, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05])
    return people(n).with_columns(ill=pl.Series(ill), town=pl.Series(rng.choice(TOWNS, n)))


def two_secrets(form: str = "records", row: str = "plain", memoised: bool = False, **more: Any) -> nr.Policy:
    ill = {"role": "sensitive", "hierarchy": {"tree": ILLS}, "distance": "tree"}
    return nr.Policy(
        attributes={"full name": "identifier", "row": row, "town": "plain", "pay": PAY, "ill": ill},
        require=[REQUIRE, {"model": "semantic-diversity", "on": "ill", "l": 2, "d": 2}],
        method={"name": "decoys", "form": form},
        randomness={"record_key": "full name"} if memoised else {},
        **more,
    )


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_every_combination_of_two_secrets_has_a_row(file_format, tmp_path):
    nr.anonymize(patients(), two_secrets(), to=tmp_path / "release", file_format=file_format)
    release = nr.open_release(tmp_path / "release")
    assert (release.rows_per_record, release.rows, release.records) == (EVERY, EVERY * N, N)
    truth = {row: (pay, ill) for row, pay, ill in patients().select("row", "pay", "ill").iter_rows()}
    for (row,), mine in release.frame().group_by("row"):
        pays, ills = mine["pay"].unique().to_list(), mine["ill"].unique().to_list()
        assert (len(pays), len(ills)) == (SIZE, 2)
        assert sorted(mine.select("pay", "ill").iter_rows()) == sorted((pay, ill) for pay in pays for ill in ills)
        assert min(np.diff(sorted(PAYS.index(pay) for pay in pays))) >= FAR
        assert truth[row][0] in pays
        assert truth[row][1] in ills
        assert mine["town"].n_unique() == 1
    rows = release.frame()["row"].to_numpy()
    assert (rows[1:] == rows[:-1]).sum() < chance_of_neighbours(EVERY, len(rows))


def test_verification_sees_two_secrets_that_are_not_whole(tmp_path):
    """A row left out, one repeated, one whose member was exchanged for another person's, values that lie too near."""
    rules = two_secrets()
    release = nr.anonymize(patients(), rules)
    verdicts = nr.verify(release, rules, original=patients())
    assert [(v.model, v.column, v.records, v.breaches, v.holds) for v in verdicts] == [
        (model, column, N, 0, True) for model in ("semantic-diversity", "truth-in-set") for column in ("pay", "ill")
    ]
    cells = release.cells(release.columns)
    order = np.argsort(release.frame()["row"].to_numpy(), kind="stable")
    mine = order[:EVERY]
    ills, pays = cells["ill"].data[mine], cells["pay"].data[mine]
    one, other = mine[0], mine[(ills != ills[0]) & (pays != pays[0])][0]
    near = dict(cells)
    near["pay"] = type(cells["pay"])(14, np.where(np.isin(np.arange(release.rows), mine), 0, cells["pay"].data))
    swapped = dict(cells)
    data = cells["ill"].data.copy()
    data[one], data[other] = data[other], data[one]
    swapped["ill"] = type(cells["ill"])(8, data)
    forged = {
        "left out": take(cells, np.delete(order, 5)),
        "repeated": take(cells, np.append(order, order[0])),
        "one pay": near,
        "exchanged": swapped,
    }
    for name, table in forged.items():
        found = nr.verify(nr.Release(release.manifest, MemoryStore(table)))
        assert not all(v.holds for v in found), name
        assert 1 <= max(v.breaches for v in found) <= 2, name


def test_shared_rows_are_judged_beside_every_other_secret(tmp_path):
    """Without row numbers hundreds share a town: whoever guesses one secret still finds l values of the other."""
    rules = two_secrets(row="identifier")
    release = nr.anonymize(patients(), rules, to=tmp_path / "release")
    assert [(v.records, v.breaches, v.holds) for v in nr.verify(release)] == [(N, 0, True)] * 2
    held = release.frame().group_by("town", "ill").agg(pl.len(), pl.col("pay").n_unique())
    assert (held["len"] % SIZE == 0).all()
    assert held["pay"].min() >= SIZE


def test_two_secrets_are_counted_as_their_sets_are(tmp_path):
    """One secret drawn once: rows and sets show the same, so inversion answers the same with the same errors."""
    nr.Secret.create(tmp_path / "secret.key")
    sets, rows = (
        nr.anonymize(patients(), two_secrets(form, memoised=True), secret=tmp_path / "secret.key")
        for form in ("sets", "records")
    )
    for asked in (["pay", "ill"], ["pay"], ["ill"], ["town", "ill"], ["ill@1"]):
        one, other = (release.estimate(asked, estimator="bayes").frame for release in (sets, rows))
        assert other["count"].sum() == pytest.approx(N)
        assert np.allclose(one["count"], other["count"], atol=1e-6)
        assert np.allclose(one["std_error"], other["std_error"], atol=1e-6)
    where = {"town": ["north"], "ill": ["cough"]}
    assert rows.count({"town": ["north"]}).count == (patients()["town"] == "north").sum()
    by_sets, by_rows = sets.count(where, estimator="linear"), rows.count(where, estimator="linear")
    assert by_rows.std_error == pytest.approx(by_sets.std_error)
    assert by_rows.count == pytest.approx(max(by_sets.count, 0), abs=3)


def test_one_secret_that_tells_another_is_refused_in_rows_as_in_sets():
    """A person's rows can be tied together by the exact columns, and then they are the sets."""
    told = patients().with_columns(ill=pl.Series([ALL_ILLS[PAYS.index(pay) // 2] for pay in patients()["pay"]]))
    for form in ("sets", "records"):
        with pytest.raises(nr.errors.NorenError, match="disclose each other") as caught:
            nr.anonymize(told, two_secrets(form))
        assert "ill" in str(caught.value)
