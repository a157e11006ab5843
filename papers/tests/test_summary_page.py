"""The summary of a paper shows whatever its records hold as text."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

from tests.unit.report.world import Tree

from noren_papers.base import Figure, Paper, Result
from noren_papers.summary import OURS_WORDS, page, shortened
from noren_papers.write import Record


class Page(Tree):
    VOID = ("meta", "img")


def test_names_claims_and_notes_stay_text(tmp_path: Path) -> None:
    numbers = count()

    def evil() -> str:
        return f"<i{next(numbers)} a=\"'>&lt;"

    figure = Figure(key="1", title=evil(), claims={}, compute=lambda bench: Result({}, {}))  # type: ignore[call-arg]
    paper = Paper(key="p", number="1", title=evil(), source=evil(), figures=(figure,))
    (tmp_path / "one.png").write_bytes(b"png")
    record = Record(
        key="1", quick=False, seconds=1, version=evil(), ours=evil(), ours_series=[evil()], parameters={evil(): evil()},
        answers=[{"claim": evil(), "measured": evil(), "verdict": "holds", "count": "1 of 1"}], notes=[evil()],
        sheets=[evil()],
        data=[{"name": evil(), "origin": evil(), "rows": 1, "columns": 1, "sha256": "0" * 64, "remark": evil()}],
        pictures=["one.png"], gains=[],
    )  # fmt: skip
    text = page(paper, tmp_path, [record])
    root = Page(text).root
    assert not re.search(r"<i\d", text)
    assert [n for n in range(next(numbers)) if f"<i{n} a=\"'>&lt;" not in root.text] == []
    assert root.all("img")[0].attributes["alt"] == f"Figure 1: {figure.title}"
    assert root.all("a")[-2].attributes["href"] == record.sheets[0]


def test_a_summary_keeps_whole_sentences() -> None:
    long = "One sentence of six words here. " * 20
    assert shortened(long).count("One") == OURS_WORDS // 6
    assert shortened("Only this.") == "Only this."
    assert shortened("word " * 200 + "ends.").split()[-1] == "ends."
    assert shortened("A part of ten words that is here for this; " + "word " * 60 + "end.").endswith("this.")
