"""Figures that pyCANON 1.3.6 printed for two small tables (NumPy 2.0.2, pandas 2.3.3, Python 3.11), against ours.

They were recorded with tests/peers/pycanon_run.py, the columns read as text except `pay`. tests/peers compares many
more tables where the peer is installed; docs/peers.md tells why some figures are not ours.
"""

from __future__ import annotations

from io import StringIO
from math import inf, log

import polars as pl
import pytest

from noren.workflow.measure import Measures, measure
from tests.peers.differences import agree, counted, entropy_l, expected, recursive_c

WARD = """
age,sex,illness
20-29,f,flu
20-29,f,flu
20-29,f,cold
20-29,f,asthma
20-29,m,flu
20-29,m,cold
20-29,m,asthma
30-39,f,flu
30-39,f,cold
30-39,f,cold
30-39,f,asthma
30-39,f,asthma
"""
WAGES = """
zip,pay
130**,3
130**,4
130**,5
1485*,6
1485*,11
1485*,8
130**,7
130**,9
130**,10
148**,3
148**,11
148**,11
148**,8
"""
RECORDED = {
    "ward": {
        "k_anonymity": 3,
        "alpha_k_anonymity": [0.5, 3],
        "l_diversity": 3,
        "entropy_l_diversity": 2,
        "recursive_c_l_diversity": [2, 3],
        "basic_beta_likeness": 0.5,
        "enhanced_beta_likeness": 0.5,
        "delta_disclosure": 0.5108256237659905,
        "t_closeness": 0.16666666666666666,
    },
    "wages": {
        "k_anonymity": 3,
        "alpha_k_anonymity": [0.5, 3],
        "l_diversity": 3,
        "entropy_l_diversity": 2,
        "recursive_c_l_diversity": [2, 3],
        "basic_beta_likeness": 3.333333333333333,
        "enhanced_beta_likeness": 2.5649493574615367,
        "delta_disclosure": 1.466337068793427,
        "t_closeness": 0.13701923076923078,
    },
}
ENTROPY = {2: 1, 3: 2, 4: 3, 5: 5, 6: 5, 7: 6, 8: 7, 9: 9, 10: 9, 11: 11, 12: 12, 13: 13, 14: 13, 15: 14, 16: 15}
"""pyCANON's entropy l of one class of so many equally frequent values."""
TABLES = {
    "ward": (WARD, ["age", "sex"], ["illness"], []),
    "wages": (WAGES, ["zip"], ["pay"], ["pay"]),
}


def measured(name: str) -> Measures:
    text, quasi, sensitive, _ = TABLES[name]
    return measure(pl.read_csv(StringIO(text), infer_schema=False), quasi=quasi, sensitive=sensitive, suppressed=None)


@pytest.mark.parametrize("name", TABLES)
def test_every_recorded_figure_follows_from_ours(name: str) -> None:
    text, quasi, sensitive, numeric = TABLES[name]
    rows = pl.read_csv(StringIO(text), infer_schema=False).to_dicts()
    wanted = expected(measured(name), rows, quasi, sensitive, numeric)
    assert wanted.keys() == RECORDED[name].keys()
    for model, figure in RECORDED[name].items():
        assert agree(figure, wanted[model]), model


def test_where_the_definitions_give_other_figures() -> None:
    """By hand: classes of the ward are 2:1:1, 1:1:1 and 1:2:2; the wages 3 and 11 stand in classes that lack the 4."""
    ward, wages = measured("ward"), measured("wages")
    assert ward.value("entropy-l-diversity") == pytest.approx(2 * 2**0.5)  # half one value, a quarter each of two
    assert ward.value("recursive-cl-diversity", l=3) == 2.0  # 2 / 1, not from the class of equal counts
    assert ward.value("delta-disclosure") == pytest.approx(log((1 / 3) / (1 / 5)))
    assert wages.value("delta-disclosure") == inf
    assert wages.value("beta-likeness", form="enhanced") == inf  # the 6: from 1/13 to 1/3, a gain above ln 13
    assert wages.value("t-closeness", distance="equal") == pytest.approx(7 / 13)


@pytest.mark.parametrize(("values", "theirs"), sorted(ENTROPY.items()))
def test_equally_frequent_values_have_an_entropy_of_exactly_their_number(values: int, theirs: int) -> None:
    rows = {"q": ["1"] * (3 * values), "x": [f"v{i % values}" for i in range(3 * values)]}
    ours = measure(pl.DataFrame(rows), quasi=["q"], sensitive=["x"]).value("entropy-l-diversity")
    assert ours == pytest.approx(values, abs=1e-9)
    assert agree(theirs, entropy_l(ours))


def test_ten_to_one() -> None:
    """pyCANON says c = 1 for l = 2; the definition needs c > 10."""
    table = pl.DataFrame({"q": ["1"] * 11, "x": ["a"] * 10 + ["b"]})
    ours = measure(table, quasi=["q"], sensitive=["x"])
    assert ours.value("recursive-cl-diversity", l=2) == 10.0
    assert recursive_c(counted(table.to_dicts(), ["q"], "x"), 2) == 1.0
