"""Among records that are alike, which of them is treated how does not tell where they stood in the table.

Every record publishes its place for the purpose. A reader who knows the truth looks at records that are equal in all
that decides and are published differently: their places must be no higher on one side than on the other. Sweep and
suppress broke such ties by place, which told it perfectly (AUC 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import noren as nr
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from tests.contracts.paints import PAINTS
from tests.leaks.world import ALPHA

N = 600
OPTIONS: dict[str, dict[str, Any]] = {
    "sweep": {"suppression": 0.1},
    "hilbert": {"suppression": 0.1},
    "three-phase": {"suppression": 0.1},
    "mondrian": {"strict": False},
    "suppress": {"nodes": 60, "k": 5, "generalise": {"name": "mondrian", "strict": False}},
    "microaggregation": {"block": 500},
    "auto": {"among": ["sweep", "mondrian"]},
}
SPLIT = ("sweep", "hilbert", "three-phase", "anatomy", "rating", "microaggregation", "suppress", "decoys", "pram")
"""Methods that treat some equal records differently on this table, so that there is something to test."""


def table(seed: int) -> pl.DataFrame:
    """Few different records, each many times. A quarter of the people share a secret that is too common among them, so
    that some must move or be left out, and signs that tell too much, so that some must give them up."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, N)
    plain = rng.choice(["u", "v", "w", "z"], N, p=[0.28, 0.3, 0.22, 0.2])
    common = (a == 0) & (rng.random(N) < 0.5)
    signs = rng.choice(["gloss", "matt", "dust;matt", ""], N, p=[0.3, 0.3, 0.2, 0.2])
    return pl.DataFrame(
        {
            "row": np.arange(N),
            "a": a,
            "b": rng.choice(["x", "y"], N),
            "s": np.where(common, "u", plain),
            "signs": np.where((a == 0) & (rng.random(N) < 0.8), "gloss;smell;weight", signs),
        }
    )


def policy(method: str, require: list[dict[str, Any]] | None = None) -> nr.Policy:
    require = require or [{"model": "frequency-l-diversity", "on": "s", "l": 2}]
    if method == "pram":
        require = [{"model": "t-closeness", "on": "s", "t": 0.5}]
    if method in ("microaggregation", "mondrian", "local-suppression"):
        require.append({"model": "k-anonymity", "k": 7})
    signs: Any = "plain"
    if method == "suppress":
        signs = {"role": "quasi-sensitive", "separator": ";", "knowledge": PAINTS}
        require = [{"model": "qs-diversity", "on": "signs", "c": 0.7, "l": 2}, *require]
    return nr.Policy(
        mechanism="ignored",
        attributes={"row": "plain", "a": "quasi-identifier", "b": "quasi-identifier", "s": "sensitive", "signs": signs},
        require=require,
        method={"name": method} | OPTIONS.get(method, {}),
        dependence={"most": 1.0},
    )


def treatments(release: nr.Release, original: pl.DataFrame) -> pl.DataFrame:
    """What every record publishes, as one text, beside the truth; nothing for those who are left out."""
    frame = release.frame()
    frame = frame.drop("signs") if release.manifest.column("signs").is_exact else frame
    texts = []
    for name in frame.columns:
        text = pl.col(name).cast(pl.String)
        if isinstance(frame[name].dtype, pl.List):
            text = pl.col(name).cast(pl.List(pl.String)).list.join(";")
        texts += [] if name == "row" else [text.fill_null("-")]
    shown = frame.select(pl.col("row").cast(pl.Int64), shown=pl.concat_str(texts, separator="|"))
    return original.join(shown, on="row", how="left").with_columns(pl.col("shown").fill_null("(left out)"))


def sides(release: nr.Release, original: pl.DataFrame, deciding: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The places of equal records that got the commonest treatment among them, and of those that got another. Where
    nearly everybody got another (numbers of groups), of the lower and the upper half."""
    out = []
    for _, alike in treatments(release, original).group_by(deciding, maintain_order=True):
        usual = alike["shown"] == alike["shown"].mode().sort()[0]
        if usual.sum() < 3:
            usual = alike["shown"] <= alike["shown"].sort()[len(alike) // 2]
        if min(usual.sum(), (~usual).sum()) >= 3:
            out.append((alike["row"].filter(usual).to_numpy(), alike["row"].filter(~usual).to_numpy()))
    return out


def squares(found: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """The squared deviates of one rank test for each group of equal records, in all. Under chance it is nearly
    chi-squared with as many degrees of freedom, and its tail is lighter, because ranks are bounded."""
    total = 0.0
    for one, other in found:
        m, n = len(one), len(other)
        above = float((one[:, None] > other[None, :]).sum())
        total += (above - m * n / 2) ** 2 / (m * n * (m + n + 1) / 12)
    return total


@pytest.mark.parametrize("method", METHODS)
def test_a_tie_is_not_broken_by_the_place_in_the_table(method):
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for seed in range(3):
        original = table(seed)
        deciding = ["a", "b", "s", *(["signs"] if method == "suppress" else [])]
        found += sides(nr.anonymize(original, policy(method)), original, deciding)
    if method in SPLIT:
        assert sum(min(len(one), len(other)) for one, other in found) >= 30
    assert squares(found) <= stats.chi2.isf(ALPHA, max(1, len(found)))


def test_who_stays_behind_under_closeness_is_not_told_by_the_place():
    """Of equal records some go into a narrow class and some stay in a wide one."""
    asked, deciding = [{"model": "t-closeness", "on": "s", "t": 0.08}], ["a", "b", "s"]
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for seed in range(3):
        original = table(seed)
        found += sides(nr.anonymize(original, policy("mondrian", [dict(one) for one in asked])), original, deciding)
    assert sum(min(len(one), len(other)) for one, other in found) >= 30
    assert squares(found) <= stats.chi2.isf(ALPHA, max(1, len(found)))


def test_a_method_sees_the_records_in_another_order_every_time(monkeypatch):
    """The order is drawn before the method runs, whatever the method does with it."""
    seen = []
    for name, kind in METHODS.items():
        if not issubclass(kind, ClassMethod) or kind.chooses:
            continue
        honest = kind.recode

        def spied(self, records, requirements, order, meter=None, honest=honest):
            seen.append(records.codes["a"].tolist())
            return honest(self, records, requirements, order)

        monkeypatch.setattr(kind, "recode", spied)
        seen.clear()
        original = table(0)
        nr.anonymize(original, policy(name))
        nr.anonymize(original, policy(name))
        orders = {tuple(codes) for codes in seen if len(codes) == N}
        assert len(orders) >= 2
        assert tuple(original["a"].to_list()) not in orders
        monkeypatch.setattr(kind, "recode", honest)
