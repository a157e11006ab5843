"""On random tables in random forms, `count` and `mean` agree with the table that `estimate` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.errors import NorenError

SAME = 1e-6
PLAIN, QUASI, SECRET = "plain", "quasi-identifier", "sensitive"
FORMS: dict[str, tuple[dict[str, str], list[nr.models.Model], list[str]]] = {
    "sets": ({"a": PLAIN, "b": SECRET, "c": SECRET}, [nr.models.FrequencyLDiversity(on=["b", "c"], l=2)], ["decoys"]),
    "classes": ({"a": QUASI, "b": QUASI, "c": PLAIN}, [nr.models.KAnonymity(k=6)], ["mondrian"]),
    "both": (
        {"a": QUASI, "b": QUASI, "c": SECRET},
        [nr.models.KAnonymity(k=6, on=["a", "b"]), nr.models.FrequencyLDiversity(on="c", l=2)],
        ["mondrian", "decoys"],
    ),
    "groups": ({"a": PLAIN, "b": PLAIN, "c": SECRET}, [nr.models.FrequencyLDiversity(on="c", l=2)], ["anatomy"]),
}


@st.composite
def releases(draw: st.DrawFn) -> nr.Release:
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, sizes = draw(st.integers(80, 300)), [draw(st.integers(3, 7)) for _ in range(3)]
    place, tie = rng.random(n), draw(st.floats(0, 1))
    frame = pl.DataFrame(
        {
            name: np.minimum((tie * place + (1 - tie) * rng.random(n)) * d, d - 1).astype(int)
            for name, d in zip("abc", sizes, strict=True)
        }
    )
    roles, require, methods = FORMS[draw(st.sampled_from(sorted(FORMS)))]
    columns: dict[str, Any] = {
        name: nr.sensitive(values=list(range(d))) if roles[name] == SECRET else roles[name]
        for name, d in zip("abc", sizes, strict=True)
    }
    method: Any = [{"name": name} for name in methods]
    policy = nr.Policy(
        attributes=columns, require=require, method=method if len(method) > 1 else method[0], dependence={"most": 1.0}
    )
    return nr.anonymize(frame, policy)


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_count_and_mean_agree_with_the_estimate(data: st.DataObject) -> None:
    try:
        release = data.draw(releases())
    except NorenError:  # a table that the method cannot protect
        return
    by = data.draw(st.sampled_from([("a", "b"), ("b", "c"), ("c", "a")]))
    table = release.estimate(list(by)).frame
    row = table.row(data.draw(st.integers(0, table.height - 1)), named=True)
    found = release.count({name: row[name] for name in by})
    assert found.count == pytest.approx(row["count"], abs=SAME)
    assert found.low - SAME <= found.count <= found.high + SAME
    mean = release.mean(by[1], by=by[0])
    if mean.level < 1:  # of sets alone a mean is an unbiased score, and not taken from the table
        return
    cells = table.with_columns(number=pl.col(by[1]).cast(pl.Float64) * pl.col("count"))
    wanted = cells.group_by(by[0]).agg(records=pl.col("count").sum(), total=pl.col("number").sum())
    both = mean.frame.join(wanted, on=by[0], suffix="_wanted").filter(pl.col("records_wanted") >= 1)
    sizes = mean.frame.join(release.estimate([by[0]]).frame, on=by[0], suffix="_alone")
    assert sizes["records"].to_numpy() == pytest.approx(sizes["count"].to_numpy(), abs=SAME)
    assert both["mean"].to_numpy() == pytest.approx((both["total"] / both["records_wanted"]).to_numpy(), abs=SAME)
