"""Releases of terms: what was left out is nowhere, neither as a text, nor as a number, nor by the order of records."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from scipy import stats

import noren as nr
from noren.statements import TermCells
from noren.workflow.anonymize import Outcome, run
from tests.leaks.world import ALPHA, everything, use_buckets

N = 300
SIGNS = {
    "Flu": ("cough", "fever", "ache"),
    "Cold": ("cough", "sneeze"),
    "Measles": ("fever", "rash", "cough"),
    "Migraine": ("ache", "nausea"),
    "Allergy": ("sneeze", "rash"),
}
STRANGE = ("Qzwartsalot", "Qzscarface", "Qzlonelysign")
"""Terms that the knowledge table does not name; two people have the last, and it is cheapest to leave out."""
LAST = [["nausea", "ache"], ["cough", STRANGE[2]], ["cough", STRANGE[2]]]
"""A group of its own. Without the strange sign a cough leaves three diseases, enough beside the migraine."""
WAYS = ("streamed", "csv", "saved", "buckets")
POLICY = """\
title = "Signs"
[attributes]
who = "identifier"
row = "plain"
age = "quasi-identifier"
signs = { role = "quasi-sensitive", separator = ";", knowledge = "hidden-knowledge.csv", unknown = "UNKNOWN" }
[[require]]
model = "qs-diversity"
on = "signs"
c = 1.0
l = 3
[method]
name = "suppress"
k = 3
nodes = 2000
"""


def people(seed: int = 4) -> pa.Table:
    rng = np.random.default_rng(seed)
    held = list(SIGNS.values())
    signs = [rng.permutation(held[rng.integers(5)])[: rng.integers(0, 4)].tolist() for _ in range(N - 3)]
    for i in range(0, N - 3, 10):
        signs[i].append(STRANGE[(i // 10) % 2])
    signs += LAST
    return pa.table(
        {
            "who": [f"Qp{rng.integers(10**9):09d}" for _ in range(N)],
            "row": list(range(N)),
            "age": [*rng.integers(0, 150, N - 3).tolist(), 500, 500, 500],
            "signs": [";".join(own) for own in signs],
        }
    )


def pairs() -> str:
    return "label,term\n" + "".join(f"{label},{sign}\n" for label, held in SIGNS.items() for sign in held)


def release_of(folder: Path, way: str, monkeypatch: Any, unknown: str = "drop") -> tuple[Path, Outcome]:
    holder = folder / "holder"
    holder.mkdir()
    pv.write_csv(people(), holder / "very-private-original.csv")
    (holder / "hidden-knowledge.csv").write_text(pairs())
    (holder / "unseen-policy.toml").write_text(POLICY.replace("UNKNOWN", unknown))
    if way == "buckets":
        use_buckets(monkeypatch)
    target = folder / "public" / "release"
    given = holder / "very-private-original.csv", holder / "unseen-policy.toml"
    if way == "saved":
        made = run(*given)
        made.release.save(target)
    else:
        made = run(*given, to=target, file_format="csv" if way == "csv" else "parquet")
    return target, made


@pytest.mark.parametrize("way", WAYS)
def test_no_identifier_no_file_name_and_no_dropped_term_is_anywhere(way: str, tmp_path: Path, monkeypatch: Any) -> None:
    release, _ = release_of(tmp_path, way, monkeypatch)
    raw, text = everything(release)
    words = (str(tmp_path), "very-private-original", "unseen-policy", "hidden-knowledge", "who", *STRANGE)
    for word in (*people()["who"].to_pylist(), *words):
        assert word.encode() not in raw
        assert word.encode("utf-16-le") not in raw
        assert word not in text
    assert b"nausea" in raw + text.encode(), "the same search finds what is published"
    kind = "csv" if way == "csv" else "parquet"
    assert sorted(path.name for path in release.iterdir()) == [
        "README.md", f"data.{kind}", "datapackage.json", f"knowledge-1.{kind}"
    ]  # fmt: skip
    for path in release.glob("*.parquet"):
        assert pq.read_metadata(path).metadata is None
        assert pq.read_schema(path).metadata is None


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_term_is_named_only_where_it_is_published(way: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Kept terms may still be left out of every record that had them."""
    release, made = release_of(tmp_path, way, monkeypatch, "keep")
    shown = {term for own in made.release.frame()["signs"].to_list() for term in own}
    raw, text = everything(release)
    for term in STRANGE:
        assert (term.encode() in raw + text.encode()) == (term in shown)
    assert shown & set(STRANGE), "the search would find them"
    assert not set(STRANGE) <= shown, "and one of them was left out of all records"


def test_dropped_records_take_their_terms_along(tmp_path: Path) -> None:
    """A group that no removal can mend, whose only record with a strange sign is dropped."""
    knowledge = nr.Knowledge.from_pairs([("Flu", "a"), ("Cold", "b")], priors={"Flu": 0.99, "Cold": 0.01})
    signs = pa.array([["a"]] * 20 + [[STRANGE[2], "b"], ["b"]], pa.list_(pa.string()))
    table = pa.table({"age": [1] * 10 + [2] * 10 + [9, 9], "signs": signs})
    policy = nr.Policy(
        attributes={
            "age": "quasi-identifier",
            "signs": {"role": "quasi-sensitive", "knowledge": knowledge, "unknown": "keep"},
        },
        require=[nr.models.QSCloseness(on="signs", t=0.2)],
        method={"name": "suppress", "nodes": 100, "infeasible": "drop", "suppression": 0.6},
    )
    release = nr.anonymize(table, policy, to=tmp_path / "release")
    assert release.records == 10, "others are left out with them, so that absence tells little"
    raw, text = everything(tmp_path / "release")
    assert STRANGE[2] not in text
    assert STRANGE[2].encode() not in raw
    assert "9" not in (release.column("age").domain.values)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_releases_of_different_secrets_are_the_same_bytes(form: str, tmp_path: Path) -> None:
    """Everybody has the same age and loses every sign: which sign it was, and how many, cannot be told.

    The two labels have one sign each, so that any sign left would make one of them likelier than the other.
    """
    knowledge = nr.Knowledge.from_pairs([("Flu", "a"), ("Flu", "b"), ("Flu", "c"), ("Cold", "d"), ("Cold", "e")])
    found = []
    for number, own in enumerate((["a"], ["d"], ["a", "b", "c"], ["e", "d"], ["a", STRANGE[0]])):
        table = pa.table({"age": [30] * 40, "signs": [own] * 40})
        signs = {"role": "quasi-sensitive", "knowledge": knowledge, "unknown": "drop"}
        policy = nr.Policy(
            attributes={"age": "quasi-identifier", "signs": signs},
            require=[nr.models.QSDiversity(on="signs", c=1, l=2)],
            method={"name": "suppress", "nodes": 2_000},
        )
        made = run(table, policy, to=tmp_path / str(number), file_format=form)  # type: ignore[arg-type]
        known = sum(term in knowledge.terms for term in own)
        assert made.facts.terms[0].removed == 40 * known
        found.append({path.name: path.read_bytes() for path in (tmp_path / str(number)).iterdir()})
    assert all(other == found[0] for other in found[1:])


@pytest.mark.parametrize("way", WAYS)
def test_the_manifest_counts_nothing_that_was_left_out(way: str, tmp_path: Path, monkeypatch: Any) -> None:
    release, made = release_of(tmp_path, way, monkeypatch)
    package = json.loads((release / "datapackage.json").read_text())
    block = package["noren"]
    assert block.keys() == {
        "format", "noren", "title", "records", "suppressed", "rows_are_people", "sample", "columns", "requirements",
        "methods", "randomness", "verdicts", "sha256",
    }  # fmt: skip
    assert block["methods"] == [{"name": "suppress", "on": []}]
    (signs,) = (column for column in block["columns"] if column["name"] == "signs")
    given = {name: value for name, value in signs.items() if value is not None}
    assert given == {
        "name": "signs", "role": "quasi-sensitive", "form": "terms", "kind": "string", "knowledge": 1,
        "domain_source": "policy", "values": list(dict.fromkeys(sign for held in SIGNS.values() for sign in held)),
    }  # fmt: skip
    (figures,) = made.facts.terms
    assert figures.removed > 20
    numbers = {figures.removed, figures.entries, figures.entries - figures.removed} - {N}

    def walk(item: Any) -> list[Any]:
        if isinstance(item, dict):
            return [leaf for part in item.values() for leaf in walk(part)]
        return [leaf for part in item for leaf in walk(part)] if isinstance(item, list) else [item]

    apart_from_ages = block | {"columns": [column for column in block["columns"] if column["name"] == "signs"]}
    assert not numbers & {leaf for leaf in walk(apart_from_ages) if isinstance(leaf, int | float)}
    for column in package["resources"][0]["schema"]["fields"]:
        assert column.keys() <= {"name", "type", "description", "arrayItem"}


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_a_prior_estimated_from_the_original_is_nowhere(form: str, distance: str, tmp_path: Path) -> None:
    knowledge = nr.Knowledge.from_pairs([(label, sign) for label, held in SIGNS.items() for sign in held])
    sets = {"role": "quasi-sensitive", "knowledge": knowledge, "unknown": "drop", "separator": ";"}
    policy = nr.Policy(
        attributes={"who": "identifier", "row": "plain", "age": "quasi-identifier", "signs": sets},
        require=[nr.models.QSCloseness(on="signs", t=0.25, distance=distance)],
        method={"name": "suppress", "nodes": 200, "k": 5},
    )
    made = run(people(), policy, to=tmp_path / "release", file_format=form)  # type: ignore[arg-type]
    (verdict,) = json.loads((tmp_path / "release" / "datapackage.json").read_text())["noren"]["verdicts"]
    assert (verdict["achieved"], verdict["holds"], verdict["basis"]) == (None, True, "the original")
    alpha = _alpha(people(), knowledge)
    raw, text = everything(tmp_path / "release")
    known = raw.decode("latin-1") + text
    for share in (*alpha, made.facts.verdicts[0].achieved):
        assert struct.pack("<d", share) not in raw
        assert f"{share:.6f}"[:-1] not in known
    assert "prior" not in (tmp_path / "release" / f"knowledge-1.{form}").read_bytes().decode("latin-1")
    assert nr.open_release(tmp_path / "release").column("signs").column.known.priors is None


def _alpha(table: pa.Table, knowledge: nr.Knowledge) -> list[float]:
    held = {label: set(signs) for label, signs in SIGNS.items()}
    out = dict.fromkeys(knowledge.labels, 0.0)
    for cell in table["signs"].to_pylist():
        own = {term for term in cell.split(";") if term in knowledge.terms}
        linked = [label for label in out if own <= held[label]]
        for label in linked:
            out[label] += 1 / len(linked) / len(table)
    return list(out.values())


def test_a_release_in_memory_drags_nothing_of_the_original_along(tmp_path: Path, monkeypatch: Any) -> None:
    _, made = release_of(tmp_path, "saved", monkeypatch)
    release = made.release
    kept = pickle.dumps(release)
    for word in (*people()["who"].to_pylist(), *STRANGE, str(tmp_path), "hidden-knowledge"):
        assert word.encode() not in kept
    signs = release.cells(("signs",))["signs"]
    assert isinstance(signs, TermCells)
    assert len(signs.data) == signs.offsets[-1] == made.facts.terms[0].entries - made.facts.terms[0].removed


def test_an_error_names_no_cell(tmp_path: Path) -> None:
    """A sign that one person has, under every way to fail."""
    knowledge = nr.Knowledge.from_pairs([("Flu", "a"), ("Cold", "b")], priors={"Flu": 0.99, "Cold": 0.01})
    table = pa.table({"age": [1, 2, 2], "signs": [["b", STRANGE[2]], ["b"], ["b"]]})

    def policy(unknown: str, t: float = 0.1, **method: Any) -> nr.Policy:
        signs = {"role": "quasi-sensitive", "knowledge": knowledge, "unknown": unknown}
        return nr.Policy(
            attributes={"age": "quasi-identifier", "signs": signs},
            require=[nr.models.QSCloseness(on="signs", t=t)],
            method={"name": "suppress", "nodes": 50} | method,
        )

    for rules in (policy("reject"), policy("keep"), policy("keep", infeasible="refuse"), policy("drop", k=9)):
        with pytest.raises(nr.NorenError) as caught:
            nr.anonymize(table, rules, to=tmp_path / "release")
        assert STRANGE[2] not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- order


def unrelated(one: Any, other: Any) -> bool:
    """Whether ranks correlate no more than chance makes them: n - 1 times the square is chi-squared with one degree."""
    rho = stats.spearmanr(one, other).statistic
    return bool(stats.chi2.sf((len(one) - 1) * rho**2, 1) > ALPHA)


@pytest.mark.parametrize("way", WAYS)
def test_the_order_of_records_tells_nothing(way: str, tmp_path: Path, monkeypatch: Any) -> None:
    release, _ = release_of(tmp_path, way, monkeypatch)
    frame = nr.open_release(release).frame()
    truth = {row: len(set(cell.split(";")) - {"", *STRANGE}) for row, cell in
             zip(people()["row"].to_pylist(), people()["signs"].to_pylist(), strict=True)}  # fmt: skip
    rows = frame["row"].to_list()
    assert sorted(rows) == list(range(N))
    places = list(range(N))
    lost = [truth[row] - len(own) for row, own in zip(rows, frame["signs"].to_list(), strict=True)]
    assert max(lost) > 0
    assert unrelated(places, rows)
    assert unrelated(places, lost)
    assert not unrelated(places, sorted(rows)), "the test would see it"
