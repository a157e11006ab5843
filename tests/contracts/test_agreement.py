"""What a recipient asks in two ways has one answer: `estimate`, `count` and `mean`, over the forms of a release.

Of sets, `mean` is an unbiased score and not taken from the estimated table, which leans towards what is usual: there
only counts are compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import noren as nr

SAME = 1e-6


def people(n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    age = rng.integers(20, 60, n)
    place = np.clip((age - 20) // 10 + rng.integers(0, 2, n), 0, 4)
    return pl.DataFrame(
        {
            "age": age // 4 * 4,
            "town": np.array(["Bonn", "Kiel", "Ulm"])[rng.integers(0, 3, n)],
            "job": np.array(["clerk", "cook", "miner", "nurse", "smith"])[place],
            "pay": np.clip(age // 10 + rng.integers(0, 4, n), 0, 9),
        }
    )


def drawn(**more: object) -> nr.Release:
    columns = {"age": "plain", "town": "plain", "job": "sensitive", "pay": nr.sensitive(values=list(range(10)))}
    diverse = nr.models.FrequencyLDiversity(on=["job", "pay"], l=2)
    return nr.anonymize(people(), nr.Policy(attributes=columns, require=[diverse], dependence={"most": 1.0}, **more))


def classes() -> nr.Release:
    columns = {"age": nr.quasi_identifier(), "town": nr.quasi_identifier(), "job": "plain", "pay": "plain"}
    return nr.anonymize(
        people(), nr.Policy(attributes=columns, require=[nr.models.KAnonymity(k=8)], method={"name": "mondrian"})
    )


def groups() -> nr.Release:
    columns = {"age": "plain", "town": "plain", "job": "sensitive", "pay": "plain"}
    policy = nr.Policy(
        attributes=columns,
        require=[nr.models.FrequencyLDiversity(on="job", l=2)],
        method={"name": "anatomy"},
        dependence={"most": 1.0},
    )
    return nr.anonymize(people(), policy)


FORMS: dict[str, Callable[[], nr.Release]] = {
    "sets": drawn,
    "noised margins": lambda: drawn(margins=[{"of": ["job", "pay"], "epsilon": 1.0}]),
    "classes": classes,
    "groups": groups,
}


@pytest.fixture(scope="module", params=list(FORMS))
def release(request: pytest.FixtureRequest) -> nr.Release:
    return FORMS[request.param]()


@pytest.mark.parametrize("columns", [("job", "pay"), ("town", "job"), ("age", "town")])
def test_count_gives_the_cell_of_the_estimate(release, columns):
    cells = release.estimate(list(columns)).frame.sort("count", descending=True)
    for row in cells.head(3).iter_rows(named=True):
        found = release.count({name: row[name] for name in columns})
        assert found.count == pytest.approx(row["count"], abs=SAME)
        assert found.low - SAME <= found.count <= found.high + SAME


def test_conditions_give_the_sum_of_the_cells(release):
    table = release.estimate(["town", "job"]).frame
    part = release.estimate(["job"], where={"town": ["Ulm", "Bonn"]}).frame
    wanted = table.filter(pl.col("town") != "Kiel").group_by("job").agg(pl.col("count").sum())
    both = part.join(wanted, on="job", suffix="_wanted")
    assert len(both) == len(part)
    # bounds of a sum may be narrower than those of its parts together
    inside = np.clip(both["count_wanted"], both["low"], both["high"])
    assert both["count"].to_numpy() == pytest.approx(np.asarray(inside), abs=SAME)


@pytest.mark.parametrize(("of", "by"), [("pay", "job"), ("pay", "town"), ("age", "job"), ("age", "town")])
def test_a_mean_follows_from_the_estimated_table(release, of, by):
    found = release.mean(of, by=by)
    if found.level < 1:  # of sets a mean is an unbiased score: it has errors instead of hard bounds
        assert found.frame["std_error"].is_null().equals(found.frame["mean"].is_null())
        return
    cells = release.estimate([by, of]).frame.with_columns(number=pl.col(of).cast(pl.Float64))
    wanted = cells.group_by(by).agg(records=pl.col("count").sum(), total=(pl.col("count") * pl.col("number")).sum())
    both = found.frame.join(wanted, on=by, suffix="_wanted")
    told = both.filter(pl.col("records_wanted") >= 1)
    assert told["mean"].null_count() == 0, "a group that has estimated records has a mean"
    sizes = found.frame.join(release.estimate([by]).frame, on=by)
    assert len(sizes) == len(found.frame)
    assert sizes["records"].to_numpy() == pytest.approx(sizes["count"].to_numpy(), abs=SAME)
    assert told["mean"].to_numpy() == pytest.approx((told["total"] / told["records_wanted"]).to_numpy(), abs=SAME)


@pytest.mark.parametrize("release", ["classes", "groups"], indirect=True)
def test_the_order_of_columns_changes_nothing_where_values_are_general(release):
    one, two = release.estimate(["age", "job"]).frame, release.estimate(["job", "age"]).frame
    both = one.join(two, on=["age", "job"], suffix="_two")
    assert both["count"].to_numpy() == pytest.approx(both["count_two"].to_numpy(), abs=SAME)


def test_bounds_of_a_mean_of_bins_are_the_ends_of_bins():
    table = people().drop("job").with_columns(pay=pl.col("pay") + 0.5)
    columns = {
        "age": nr.quasi_identifier(),
        "town": nr.quasi_identifier(),
        "pay": nr.quasi_identifier(bins=[0, 4, 7, 10]),
    }
    policy = nr.Policy(attributes=columns, require=[nr.models.KAnonymity(k=20)], method={"name": "mondrian"})
    found = nr.anonymize(table, policy).mean("pay", by="town").frame
    truth = table.group_by("town").agg(pl.col("pay").mean().alias("truth"))
    both = found.join(truth, on="town")
    assert (both["low"] <= both["truth"]).all()
    assert (both["truth"] <= both["high"]).all()
    assert found["low"].min() < 5.5 - 1.5, "an interval's middle is no bound"
