"""Cuts that leave records behind: what they reach under closeness, and that nothing gets lost on the way."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines import Records
from noren.methods.mondrian import Mondrian
from noren.methods.mondrian.classes import Exchange, Workbench, classes_of
from noren.metrics.general import view_of
from noren.metrics.losses import granularity_score
from noren.models import MODELS
from noren.models.base import Model
from noren.ragged import offsets_of
from tests.oracles.mondrian import published_loss, small_table, table_of

ON = ("s0",)


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def leaning(n: int = 3_000, seed: int = 4) -> Records:
    """Secrets lean on two of the columns, so that every cut of those unbalances them."""
    rng = np.random.default_rng(seed)
    sex, town, age = rng.integers(0, 2, n), rng.integers(0, 7, n), rng.integers(0, 30, n)
    lean = rng.random(n) < 0.4
    secret = np.where(lean, (sex * 4 + town % 2 * 2 + rng.integers(0, 2, n)) % 8, rng.integers(0, 8, n))
    quasi = {"sex": ("set", 2, sex), "town": ("tree", 7, town), "age": ("ranked", 30, age)}
    return table_of(quasi, {"s0": (8, secret)})


def granularity(table: Records, required: list[Model], **options: bool) -> float:
    return granularity_score(view_of(table, Mondrian(**options).recode(table, required, order)))


@pytest.mark.parametrize(
    ("model", "given", "gain"),
    [
        ("t-closeness", {"t": 0.1}, 0.1),
        ("t-closeness", {"t": 0.2}, 0.1),
        ("t-closeness", {"t": 0.1, "distance": "ordered"}, 0.1),
        ("beta-likeness", {"beta": 0.5}, 0.1),
        ("delta-disclosure", {"delta": 0.6}, 0.1),
    ],
)
def test_records_left_behind_leave_the_others_precise(model: str, given: dict, gain: float) -> None:
    """Cuts alone stop at the first one that unbalances the secret: on this table they lose far more."""
    table, required = leaning(), [MODELS[model](on=ON, **given)]
    assert granularity(table, required) > granularity(table, required, exchange=False) + gain


def test_a_requirement_that_does_not_look_at_the_whole_table_is_met_as_before() -> None:
    table = leaning(600)
    required = [MODELS["k-anonymity"](k=4), MODELS["frequency-l-diversity"](l=3, on=ON)]
    found = [classes_of(table, required, order, Mondrian(exchange=on))[0] for on in (True, False)]
    assert (found[0] == found[1]).all()


def test_what_loses_less_is_kept() -> None:
    """Also where that is the cuts alone: both ways on many small tables."""
    won = set()
    for seed in range(60):
        table = small_table(seed, 30)
        required = [MODELS["t-closeness"](t=0.45, on=ON)]
        losses = []
        for on in (True, False):
            classes, count = classes_of(table, required, order, Mondrian(exchange=on))
            members = [np.flatnonzero(classes == c).tolist() for c in range(count)]
            losses.append(sum(len(m) * published_loss(table, name, m) for m in members for name in table.quasi))
        assert losses[0] <= losses[1] + 1e-9
        won.add(losses[0] < losses[1] - 1e-9)
    assert won == {True, False}


def test_the_loss_of_classes_is_what_they_publish() -> None:
    table = small_table(3, 50)
    bench = Workbench(table, [MODELS["k-anonymity"](k=2)], order, {})
    begins = offsets_of([7, 20, 1, 22])
    members = np.split(bench.records.who, begins[1:-1])
    wanted = sum(len(m) * published_loss(table, name, m.tolist()) for m in members for name in table.quasi)
    assert bench.loss(begins) == pytest.approx(wanted)


def test_records_stay_whole_and_nobody_is_lost() -> None:
    table = leaning(800)
    bench = Exchange(table, [MODELS["t-closeness"](t=0.2, on=ON)], order, {})
    rows, codes = bench.space.rows, table.codes["s0"]
    begins = np.concatenate([[0], np.flatnonzero(bench.divide(np.array([0, 300, 800]), False))])
    who = bench.records.who
    assert {0, 300, 800} <= set(begins.tolist())
    assert len(begins) > 10
    assert (np.sort(who) == np.arange(800)).all()
    assert set(who[:300].tolist()) == set(order(800)[:300].tolist()), "parts stay apart"
    assert (bench.records.rows == rows[who]).all()
    assert (bench.records.secrets[:, 0] == codes[who]).all()
    assert (bench.secrets.codes[bench.secrets.of, 0] == codes[who]).all()


# ---------------------------------------------------------------- through the pipeline


def visits(n: int = 900) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    sex, age = rng.choice(["f", "m"], n), rng.integers(20, 80, n)
    lean = np.where(sex == "f", 0, 2) + rng.integers(0, 2, n)
    ill = np.where(rng.random(n) < 0.3, lean, rng.integers(0, 5, n))
    age = [None if hidden else int(a) for a, hidden in zip(age, rng.random(n) < 0.05, strict=True)]
    job = rng.choice(["cook", "nurse", None], n, p=[0.5, 0.45, 0.05])
    return pl.DataFrame(
        {"who": rng.integers(0, n // 2, n), "sex": sex, "age": age, "job": job, "ill": np.array([*"abcde"])[ill]}
    )


@pytest.mark.parametrize("people", [{"rows": "independent"}, {"key": "who"}])
@pytest.mark.parametrize("k", [None, 12])
def test_a_release_with_missing_cells_and_people_of_several_rows_holds(people: dict, k: int | None) -> None:
    require: list[dict] = [{"model": "t-closeness", "on": "ill", "t": 0.2}]
    require += [{"model": "k-anonymity", "k": k}] if k else []
    roles = dict.fromkeys(("sex", "age", "job"), "quasi-identifier")
    policy = nr.Policy(
        attributes={"who": "identifier", **roles, "ill": "sensitive"},
        require=require,
        method="mondrian",
        people=people,
    )
    table = visits()
    release = nr.anonymize(table, policy)
    assert all(verdict.holds for verdict in release.verdicts)
    found = nr.verify(release, policy, original=table)
    assert found.hold or "key" in people, "whose row is whose is not in a release"
    assert all(verdict.holds is not False for verdict in found)


def test_people_of_several_rows_are_spread_closer_than_their_rows() -> None:
    """A secret that changes from row to row stays as close by people; ages that change cost much."""
    policy = nr.Policy(
        attributes={"who": "identifier", "sex": "quasi-identifier", "age": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.TCloseness(on="ill", t=0.1)],
        method="mondrian",
        people={"key": "who"},
    )
    release = nr.anonymize(visits(3_000).drop("job"), policy)
    assert all(verdict.holds for verdict in release.verdicts)


def test_two_secrets_are_balanced_together() -> None:
    table, rng = leaning(1_500), np.random.default_rng(1)
    other = np.where(rng.random(1_500) < 0.3, table.codes["sex"], rng.integers(0, 3, 1_500))
    both = table_of(
        {"sex": ("set", 2, table.codes["sex"]), "age": ("ranked", 30, table.codes["age"])},
        {"s0": (8, table.codes["s0"]), "s1": (3, other)},
    )
    required = [MODELS["t-closeness"](t=0.15, on=("s0", "s1")), MODELS["k-anonymity"](k=9)]
    classes, count = classes_of(both, required, order, Mondrian())
    assert count > classes_of(both, required, order, Mondrian(exchange=False))[1]
    for name, d in (("s0", 8), ("s1", 3)):
        whole = np.bincount(both.codes[name], minlength=d) / both.n
        inside = np.bincount(classes * d + both.codes[name], minlength=count * d).reshape(count, d)
        assert inside.sum(axis=1).min() >= 9
        assert (np.abs(inside / inside.sum(axis=1, keepdims=True) - whole).sum(axis=1) / 2 <= 0.15 + 1e-9).all()
