"""Corners of quasi-sensitive terms that a review found: huge groups, and side tables that contradict themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.errors import NorenError, ReleaseError
from noren.methods.suppress import search as term_search
from noren.methods.suppress.beliefs import TermRequirement
from noren.methods.suppress.search import search_group
from noren.release.manifest import read_column
from noren.release.store import with_sides

KNOWN = nr.Knowledge.from_pairs([("A", "a"), ("A", "b"), ("B", "b"), ("B", "c"), ("C", "c"), ("C", "a")])


@pytest.mark.parametrize("search", ["adaptive", "depth-first"])
def test_a_group_too_large_for_the_paper_s_searches_is_refused_in_words(
    search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_search, "MOST_ENTRIES", 3)
    bounds, codes = np.array([0, 2, 4]), np.array([0, 1, 0, 1])
    with pytest.raises(NorenError, match="4 terms") as caught:
        search_group(bounds, codes, KNOWN, TermRequirement("cl"), search=search, nodes=10, seconds=None)  # type: ignore[arg-type]
    assert 'search = "best"' in (caught.value.hint or "")


def test_memory_of_the_paper_s_searches_stays_bounded() -> None:
    """A path holds a tail (8 bytes) and two scores (16 bytes) for every entry below every entry."""
    assert 24 * term_search.MOST_ENTRIES**2 < 8 << 30


@pytest.mark.parametrize("figure", ["weight", "prior"])
def test_a_knowledge_table_of_a_release_with_two_numbers_for_a_label_is_damaged(tmp_path: Path, figure: str) -> None:
    meant = {"form": "terms", "name": "signs", "role": "quasi-sensitive", "kind": "string", "values": ["a", "b"]}
    column = read_column(meant | {"knowledge": 1})
    path = tmp_path / "knowledge-1.csv"
    path.write_text(f"label,term,{figure}\nA,a,0.5\nA,b,0.5\nB,b,0.5\n", encoding="utf-8")
    assert with_sides(tmp_path, [column], ".csv")[0].column.known.labels == ("A", "B")
    path.write_text(f"label,term,{figure}\nA,a,0.25\nA,b,0.5\nB,b,0.5\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="not the table that 'signs' needs"):
        with_sides(tmp_path, [column], ".csv")


def test_unknown_terms_of_dropped_records_are_named_nowhere(tmp_path: Path) -> None:
    """The only record with an unknown term is among those that are left out."""
    skewed = nr.Knowledge.from_pairs(
        [("A", "a"), ("B", "b"), ("C", "c")], priors={"A": 1 / 3, "B": 1 / 3, "C": 1 / 3}, weights={"A": 1.0}
    )
    signs = [["a"], ["b"], ["c"], [], ["a", "b"], ["a", "unheard-of"], ["b"], ["c"]]
    table = pa.table({"age": [20] * 5 + [70, 80, 90], "signs": signs})
    policy = nr.Policy(
        attributes={
            "age": "quasi-identifier",
            "signs": {"role": "quasi-sensitive", "knowledge": skewed, "unknown": "keep"},
        },
        require=[
            {"model": "k-anonymity", "k": 2},
            {"model": "qs-diversity", "on": "signs", "c": 1, "l": 2},
        ],
        method={"name": "suppress", "nodes": 50, "generalise": "incognito", "suppression": 0.4},
    )
    for file_format in ("csv", "parquet"):
        target = tmp_path / file_format
        release = nr.anonymize(table, policy, to=target, file_format=file_format)  # type: ignore[arg-type]
        assert release.manifest.suppressed == 3
        assert not any(b"unheard-of" in path.read_bytes() for path in target.iterdir())
