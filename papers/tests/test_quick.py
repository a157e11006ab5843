"""Every paper in its quick form, computed on stand-ins: all figures, all claims, charts that a person can open."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from noren_papers.base import Paper
from noren_papers.claims import CANNOT, VERDICTS
from noren_papers.registry import HOMES, papers
from noren_papers.run import reproduce

WANTED = {
    "sensitive-qids": {"1", "2", "3", "4", "5", "6", "7"},
    "quasi-sensitive": {"6", "7", "8", "9", "10", "11", "12"},
    "untouched-qids": {"1", "2", "3", "4", "5"},
    "semantic": {"6", *(str(number) for number in range(8, 16)), *(f"table-{number}" for number in range(7, 12))},
    "tau-l": {"table-1", *(str(number) for number in range(9, 23))},
}
"""The figures and tables that a reproduction of each paper owes."""
ALWAYS = "untouched-qids"
"""The paper that is reproduced at every change."""


def test_no_figure_is_skipped() -> None:
    for paper in papers():
        assert WANTED[paper.key] <= {figure.key for figure in paper.figures}, paper.key


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.key)
def test_every_figure_makes_claims(paper: Paper) -> None:
    for figure in paper.figures:
        assert figure.claims, figure.key
        assert all(len(text) > 15 for text in figure.claims.values())
    assert len({figure.key for figure in paper.figures}) == len(paper.figures)


@pytest.mark.parametrize("key", [pytest.param(key, marks=pytest.mark.slow if key != ALWAYS else ()) for key in HOMES])
def test_the_quick_run_answers_every_claim(key: str, tmp_path: Path) -> None:
    done = reproduce(key, out=tmp_path, quick=True)
    assert [record.key for record in done.records] == [figure.key for figure in done.paper.figures]
    text = (done.folder / "summary.md").read_text(encoding="utf-8")
    for record, figure in zip(done.records, done.paper.figures, strict=True):
        assert len(record.answers) == len(figure.claims)
        for answer in record.answers:
            assert answer["verdict"] in VERDICTS
            assert bool(answer["count"]) == (answer["verdict"] != CANNOT), f"{figure.key}: {answer['claim']}"
            assert any(letter.isdigit() for letter in answer["measured"]), f"{figure.key}: no number in an answer"
            assert "nan" not in answer["measured"].lower().split(), f"{figure.key}: {answer['measured']}"
        for name in record.sheets:
            assert pl.read_csv(done.folder / name, infer_schema_length=None).height
        for name in record.pictures:
            picture = done.folder / name
            assert picture.stat().st_size > 5_000
            assert picture.with_suffix(".html").is_file()
            assert f"]({name})" in text
        assert all(name.endswith("(ours)") for name in record.ours_series), f"{figure.key}: {record.ours_series}"
        assert any(letter.isdigit() for letter in record.ours), f"{figure.key}: no number in what we gain"
        for one in record.data:
            assert len(one["sha256"]) == 64
            assert one["origin"] == "generated", "without a folder every table is generated"
