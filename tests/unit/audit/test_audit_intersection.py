"""Several releases of the same people: new decoys are stripped, memoised ones are not, classes are composed."""

from __future__ import annotations

from math import comb

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import attack, reasons
from noren.errors import QueryError

D, L, N = 14, 5, 5_000


def alone(releases: int) -> float:
    """P(only the truth is in all sets), by inclusion and exclusion over the other values."""
    others, decoys = D - 1, L - 1
    terms = [
        (-1) ** j * comb(others, j) * (comb(others - j, decoys - j) / comb(others, decoys)) ** releases
        for j in range(decoys + 1)
    ]
    return sum(terms)


def policy(*require: nr.models.TCloseness, **randomness: str) -> nr.Policy:
    return nr.Policy(
        attributes={"row": "plain", "ill": "sensitive"},
        require=list(require) or [{"model": "frequency-l-diversity", "on": "ill", "l": L}],
        randomness=randomness,
    )


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(2)
    return pl.DataFrame({"row": np.arange(N), "ill": [f"ill {code:02d}" for code in rng.integers(0, D, N)]})


@pytest.fixture(scope="module")
def releases(table, tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("releases")
    for number in range(3):
        nr.anonymize(table, policy(), to=folder / str(number))
    return [str(folder / str(number)) for number in range(3)]


def test_the_figures_of_the_documentation_are_reproduced(table) -> None:
    """docs/protection.md: 14 values, l = 5."""
    (found,) = attack(nr.anonymize(table, policy()), "intersection")
    written = {2: 0.18, 3: 0.66, 4: 0.89, 5: 0.96}
    for many, share in written.items():
        scenario = found.scenario(f"again-{many}")
        low, high = scenario.bounds["alone"]
        assert abs(alone(many) - share) < 0.005
        width = 3 * (high - low)
        assert low - width < alone(many) < high + width, "well outside a 95% interval would be another design"
        assert scenario.summary["mean_left"] >= 1
    assert found.scenarios[0].summary["alone"] == 0
    assert found.scenarios[0].summary["mean_left"] == L


def test_real_releases_are_intersected(table, releases) -> None:
    first = nr.open_release(releases[0])
    (found,) = attack(first, "intersection", other=releases[1:])
    assert found.facts["matched"] == N
    assert not found.holder_only
    assert found.scenarios[0].summary == {
        "alone": 0.0,
        "mean_left": 5.0,
        "mean_belief": pytest.approx(0.22, abs=0.03),
        "certain": 0.0,
        "impossible": 0.0,
    }
    for many in (2, 3):
        share = found.scenario(f"releases-{many}").summary["alone"]
        assert abs(share - alone(many)) < 6 * (alone(many) * (1 - alone(many)) / N) ** 0.5
    (told,) = attack(first, "intersection", other=",".join(releases[1:]), original=table, policy=policy())
    last = told.scenario("releases-3")
    assert told.holder_only
    single = last.frame.filter(pl.col("left") == 1)
    assert (single["right"] == 1).all(), "what is left alone is the truth"
    assert last.summary["right"] > told.scenarios[0].summary["right"] + 0.4


def test_memoised_decoys_gain_nothing(table, tmp_path) -> None:
    nr.Secret.create(tmp_path / "key")
    keyed = policy(record_key="row", secret=str(tmp_path / "key"))
    first = nr.anonymize(table, keyed)
    nr.anonymize(table.sample(fraction=1, shuffle=True, seed=1), keyed, to=tmp_path / "later")
    (found,) = attack(first, "intersection", other=str(tmp_path / "later"))
    assert found.scenario("releases-2").summary == found.scenarios[0].summary
    assert found.facts["repeated_sets"] == [1.0]
    assert any("nothing is gained" in note for note in found.notes)


def test_memoised_sets_with_a_coin_are_not_counted_twice(table, tmp_path) -> None:
    nr.Secret.create(tmp_path / "key")
    close = policy(nr.models.TCloseness(on="ill", t=0.3), record_key="row", secret=str(tmp_path / "key"))
    first = nr.anonymize(table, close)
    nr.anonymize(table, close, to=tmp_path / "later")
    (found,) = attack(first, "intersection", other=str(tmp_path / "later"))
    assert found.scenario("releases-2").summary == found.scenarios[0].summary


def test_new_sets_with_a_coin_add_up(table, tmp_path) -> None:
    close = policy(nr.models.TCloseness(on="ill", t=0.3))
    first = nr.anonymize(table, close)
    nr.anonymize(table, close, to=tmp_path / "later")
    (found,) = attack(first, "intersection", other=str(tmp_path / "later"), original=table, policy=close)
    two = found.scenario("releases-2").summary
    assert two["mean_left"] == D, "nothing is excluded"
    frame = found.scenario("releases-2").frame
    after, before = frame["belief"].max(), frame["belief_before"].max()
    assert after / (1 - after) > 2.5 * before / (1 - before), "who shows the same value twice is believed"
    assert two["mean_belief"] > found.scenarios[0].summary["mean_belief"]
    assert two["right"] == pytest.approx(two["mean_belief"], abs=0.05)


def test_people_who_cannot_be_recognised_are_left_alone(table, tmp_path) -> None:
    other = table.with_columns(row=pl.col("row") + 1_000_000)
    nr.anonymize(other, policy(), to=tmp_path / "strangers")
    with pytest.raises(QueryError, match="no row can be recognised"):
        attack(nr.anonymize(table, policy()), "intersection", other=str(tmp_path / "strangers"))


def test_domains_may_differ(table, tmp_path) -> None:
    """A value that only one release knows cannot be the truth of somebody who is in both."""
    few = table.filter(pl.col("ill") != "ill 00")
    nr.anonymize(few, policy(), to=tmp_path / "few")
    first = nr.anonymize(table, policy())
    (found,) = attack(first, "intersection", other=str(tmp_path / "few"), original=table, policy=policy())
    frame = found.scenario("releases-2").frame
    assert frame.height == few.height
    assert "ill 00" not in frame["value"].to_list()
    assert (frame["truth_belief"] > 0).all()


def classes(k: int) -> nr.Policy:
    return nr.Policy(
        attributes={"age": nr.quasi_identifier(), "zip": nr.quasi_identifier(), "ill": nr.sensitive()},
        require=[nr.models.KAnonymity(k=k), nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(refinement=0),
    )


def test_classes_are_composed_person_by_person(tmp_path) -> None:
    rng = np.random.default_rng(4)
    table = pl.DataFrame(
        {"age": rng.integers(20, 60, 400), "zip": rng.integers(0, 30, 400), "ill": rng.integers(0, 9, 400).astype(str)}
    )
    first = nr.anonymize(table, classes(4))
    nr.anonymize(table, classes(7), to=tmp_path / "other")
    assert "second release" in str(reasons(first)["intersection"])
    with pytest.raises(QueryError, match="cannot be matched to single people"):
        attack(first, "intersection", other=str(tmp_path / "other"))
    (found,) = attack(first, "intersection", other=str(tmp_path / "other"), original=table, policy=classes(4))
    two = found.scenario("releases-2")
    assert two.summary["truth_lost"] == 0
    assert two.summary["mean_left"] <= found.scenarios[0].summary["mean_left"]
    assert found.scenarios[0].summary["alone"] == 0
    # the slow way, for one person after the other
    for row in (0, 17, 250):
        left = None
        for release in (first, nr.open_release(tmp_path / "other")):
            frame = release.frame()
            mine = table.row(row, named=True)
            fits = [line for line in frame.to_dicts() if all(_covers(line[c], mine[c]) for c in ("age", "zip"))]
            values = {line["ill"] for line in fits}
            left = values if left is None else left & values
        assert two.frame["left"][row] == len(left)


def _covers(published: object, value: int) -> bool:
    text = str(published)
    if text.startswith("{"):
        return str(value) in [part.strip() for part in text.strip("{}").split(",")]
    if text.startswith("["):
        low, high = text.strip("[]").split(",")
        return float(low) <= value <= float(high)
    return "*" in text or float(text) == value


def test_the_baseline_is_what_was_known_before_any_release(table) -> None:
    release = nr.anonymize(table, policy())
    (found,) = attack(release, "intersection", original=table, policy=policy(), again=2)
    counts = table["ill"].value_counts()["count"]
    assert found.baseline["mean_left"] == D
    assert found.baseline["mean_belief"] == pytest.approx(counts.max() / N)
    assert found.baseline["right"] == pytest.approx(counts.max() / N)
    assert [one.name for one in found.scenarios] == ["again-1", "again-2"]
    assert "hconcat" in found.chart().to_dict()
