"""Every model that pyCANON has too, figure by figure, on random and on real tables. docs/peers.md tells the story."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from noren.workflow.measure import Measures, measure
from tests.peers.differences import Row, agree, basic_beta, counted, expected, overall
from tests.peers.peer import ask, data, needs_data, needs_pycanon

pytestmark = needs_pycanon

TABLES = 150
ADULT = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
SECRETS = {"text": "áé漢字xyz", "number": (0, 1, 2, 5, 30, -4, 1000)}


def written(path: Path, columns: dict[str, list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    return path


def rows_of(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(file)]


def random_table(path: Path, seed: int, *, holes: float = 0.0) -> Path:
    """Two or three quasi-identifiers, a secret in words and one in numbers, of any size and unevenness."""
    rng = np.random.default_rng(seed)
    n, keys = int(rng.integers(2, 120)), int(rng.integers(1, 5))
    columns = {
        "age": [f"{low}-{low + 9}" for low in (10 * rng.integers(0, keys, n)).tolist()],
        "sex": rng.choice(["f", "m"][: int(rng.integers(1, 3))], n).tolist(),
        "zip": rng.choice(["01", "1", "é*"][: int(rng.integers(1, 4))], n).tolist(),
    }
    for name, values in SECRETS.items():
        some = int(rng.integers(2, len(values) + 1))
        weights = rng.dirichlet(np.full(some, rng.choice([0.3, 1.0, 20.0])))
        columns[name] = [str(values[i]) for i in rng.choice(some, n, p=weights).tolist()]
        columns[name][:2] = [str(values[0]), str(values[1])]  # a column of numbers that are all equal is another story
    for name in ("age", "sex"):
        columns[name] = ["" if rng.random() < holes else cell for cell in columns[name]]
    return written(path, columns)


def compare(found: dict, measures: Measures, path: Path, quasi: list[str], sensitive: list[str]) -> None:
    wanted = expected(measures, rows_of(path), quasi, sensitive, ["number"])
    assert found["figures"].keys() == wanted.keys()
    for name, figure in wanted.items():
        assert agree(found["figures"][name], figure), (path.name, name, found["figures"][name], figure)


def test_random_tables(tmp_path: Path) -> None:
    quasi = ["age", "sex", "zip"]
    choices = (["text"], ["number"], ["text", "number"])
    paths = [random_table(tmp_path / f"{seed}.csv", seed) for seed in range(TABLES)]
    jobs = [
        {"csv": path, "quasi": quasi, "sensitive": choices[i % 3], "numeric": ["number"]}
        for i, path in enumerate(paths)
    ]
    for path, job, found in zip(paths, jobs, ask(jobs), strict=True):
        measures = measure(path, quasi=quasi, sensitive=job["sensitive"], suppressed=None)
        compare(found, measures, path, quasi, job["sensitive"])


def test_several_secrets_that_may_be_known_of_each_other(tmp_path: Path) -> None:
    """gen=False: each secret in classes that the other secrets divide too. Ours: sensitive quasi-identifiers."""
    quasi, both = ["age", "sex"], ["text", "number"]
    paths = [random_table(tmp_path / f"{seed}.csv", 1000 + seed) for seed in range(20)]
    found = ask([{"csv": p, "quasi": quasi, "sensitive": both, "numeric": ["number"], "gen": False} for p in paths])
    for path, answer in zip(paths, found, strict=True):
        ours = measure(path, quasi=[*quasi, *both], sensitive=both, suppressed=None)
        theirs = answer["figures"]
        assert theirs["l_diversity"] == min(ours.value("distinct-l-diversity", name) for name in both)
        assert theirs["alpha_k_anonymity"][0] == pytest.approx(max(ours.value("alpha-k-anonymity", n) for n in both))
        betas = [ours.value("beta-likeness", name, form="basic") for name in both]
        assert theirs["basic_beta_likeness"] == pytest.approx(max(betas))
        ways = {"text": "equal", "number": "ordered"}
        closeness = [ours.value("t-closeness", name, distance=way) for name, way in ways.items()]
        assert theirs["t_closeness"] == pytest.approx(max(closeness))


def test_missing_cells_of_several_keys_equal_each_other(tmp_path: Path) -> None:
    quasi = ["age", "sex"]
    paths = [random_table(tmp_path / f"{seed}.csv", 2000 + seed, holes=0.1) for seed in range(20)]
    found = ask([{"csv": path, "quasi": quasi, "sensitive": ["text"]} for path in paths])
    for path, answer in zip(paths, found, strict=True):
        compare(answer, measure(path, quasi=quasi, sensitive=["text"], suppressed=None), path, quasi, ["text"])


def test_rows_that_miss_the_only_key_are_dropped_by_the_peer(tmp_path: Path) -> None:
    """From its classes alone: the shares of the whole table still count them. Ours keeps them as a class."""
    quasi, overlooked = ["age"], 0
    paths = [random_table(tmp_path / f"{seed}.csv", 3000 + seed, holes=0.1) for seed in range(20)]
    full = [path for path in paths if any(row["age"] is not None for row in rows_of(path))]
    found = ask([{"csv": path, "quasi": quasi, "sensitive": ["text"]} for path in full])
    for path, answer in zip(full, found, strict=True):
        rows, theirs = rows_of(path), answer["figures"]
        kept = [row for row in rows if row["age"] is not None]
        rest = written(tmp_path / "rest.csv", {name: [row[name] or "" for row in kept] for name in kept[0]})
        without = measure(rest, quasi=quasi, sensitive=["text"], suppressed=None)
        assert theirs["k_anonymity"] == without.value("k-anonymity")
        assert theirs["alpha_k_anonymity"][0] == pytest.approx(without.value("alpha-k-anonymity"))
        assert theirs["l_diversity"] == without.value("distinct-l-diversity")
        assert theirs["basic_beta_likeness"] == pytest.approx(
            basic_beta(counted(rows, quasi, "text"), overall(rows, "text"))
        )
        ours = measure(path, quasi=quasi, sensitive=["text"], suppressed=None)
        assert ours.value("k-anonymity") <= theirs["k_anonymity"]
        overlooked += ours.value("k-anonymity") < theirs["k_anonymity"]
    assert overlooked, "no table shows that the peer overlooks the class of missing keys"


def test_index_labels_are_taken_for_positions(tmp_path: Path) -> None:
    """A frame whose index does not count its rows gets other figures; ours has no index to get wrong."""
    path = written(tmp_path / "t.csv", {"age": list("1112"), "x": list("abbb")})
    jobs = [{"csv": path, "quasi": ["age"], "sensitive": ["x"], "index": way} for way in ("", "reversed")]
    straight, turned = (one["figures"] for one in ask(jobs))
    ours = measure(path, quasi=["age"], sensitive=["x"])
    turned_ours = measure(pl.read_csv(path).reverse(), quasi=["age"], sensitive=["x"])
    assert [one.achieved for one in turned_ours.found] == [one.achieved for one in ours.found]
    assert straight["alpha_k_anonymity"] == [ours.value("alpha-k-anonymity"), 1]
    assert straight["l_diversity"] == turned["l_diversity"] == 1
    assert straight["t_closeness"] == pytest.approx(ours.value("t-closeness", distance="equal"))
    assert straight["basic_beta_likeness"] == pytest.approx(ours.value("beta-likeness", form="basic")) == 1 / 3
    assert turned["basic_beta_likeness"] == 3.0


@pytest.mark.parametrize(
    ("columns", "name", "theirs", "model", "given", "ours"),
    [
        ({"x": list("aaabbbccc")}, "entropy_l_diversity", {2, 3}, "entropy-l-diversity", {}, 3.0),
        ({"x": ["a"] * 10 + ["b"]}, "recursive_c_l_diversity", [1, 2], "recursive-cl-diversity", {"l": 2}, 10.0),
        ({"x": ["a"] * 10}, "recursive_c_l_diversity", ["nan", 1], "distinct-l-diversity", {}, 1),
        ({"number": ["5"] * 4}, "t_closeness", "ZeroDivisionError", "t-closeness", {"distance": "ordered"}, 0.0),
        ({"x": ["a", "", "b"]}, "l_diversity", "TypeError", "distinct-l-diversity", {}, 3),
        ({"number": ["1", "", "2"]}, "alpha_k_anonymity", [1 / 3, 3], "alpha-k-anonymity", {}, 1 / 3),
        ({"number": ["1", "", "2"]}, "entropy_l_diversity", "ValueError", "entropy-l-diversity", {}, 3.0),
    ],
)
def test_tables_of_one_class(tmp_path: Path, columns, name, theirs, model, given, ours) -> None:
    (column,) = columns
    path = written(tmp_path / "t.csv", {"q": ["1"] * len(columns[column]), **columns})
    (found,) = ask([{"csv": path, "quasi": ["q"], "sensitive": [column], "numeric": ["number"]}])
    told = found["figures"][name]
    assert told in theirs if isinstance(theirs, set) else told == theirs or told == pytest.approx(theirs)
    assert measure(path, quasi=["q"], sensitive=[column]).value(model, **given) == pytest.approx(ours)


def test_absent_values_and_the_enhanced_form(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", {"q": list("1122"), "x": list("abaa")})
    (found,) = ask([{"csv": path, "quasi": ["q"], "sensitive": ["x"]}])
    ours = measure(path, quasi=["q"], sensitive=["x"])
    assert ours.value("delta-disclosure") == inf
    assert found["figures"]["delta_disclosure"] < 1
    assert ours.value("beta-likeness", form="enhanced") == inf
    assert found["figures"]["enhanced_beta_likeness"] == pytest.approx(ours.value("beta-likeness", form="basic"))


@needs_data
def test_adult() -> None:
    """The first 2,000 rows as they are: the peer needs some seconds for them."""
    rows = pl.read_csv(data("adult.csv.gz"), infer_schema_length=0).head(2000)
    _real(rows, list(ADULT), ["salary-class"], [])
    _real(rows, ["sex", "race"], ["occupation", "hours-per-week"], ["hours-per-week"])


@needs_data
@pytest.mark.parametrize("name", ["adult_k5_s5", "adult_distinct_l3_s5"])
def test_tables_that_arx_wrote(name: str) -> None:
    rows = pl.read_csv(data("arx_outputs", f"{name}.csv.gz"), separator=";", infer_schema_length=0)
    quasi = [column for column in rows.columns if column != "occupation"]
    _real(rows, quasi, ["occupation"], [])


def _real(rows: pl.DataFrame, quasi: list[str], sensitive: list[str], numeric: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        rows.select(*quasi, *sensitive).write_csv(path)
        (found,) = ask([{"csv": path, "quasi": quasi, "sensitive": sensitive, "numeric": numeric}])
        ours = measure(path, quasi=quasi, sensitive=sensitive, suppressed=None)
        wanted = expected(ours, rows_of(path), quasi, sensitive, numeric)
    for name, figure in wanted.items():
        assert agree(found["figures"][name], figure), (name, found["figures"][name], figure)
