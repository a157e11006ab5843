"""Results show themselves: a line, a table, plain data. They cannot be changed, and hostile labels stay text."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, dataclass
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.models import Shortfall, Verdict, Verdicts
from noren.results import SHOWN, Results, Shown, html_table, make_frame, one_line, plain

HOSTILE = '<script>alert("x")</script>\n\u202e\x1b[31m&amp;' + "y" * 200


@dataclass(frozen=True, repr=False, eq=False)
class Words(Results[str]):
    """The smallest results there are."""

    @property
    def frame(self) -> pl.DataFrame:
        return make_frame({"word": str, "length": int}, ({"word": word, "length": len(word)} for word in self))

    def to_dict(self) -> dict[str, Any]:
        return {"words": list(self)}

    def _headline(self) -> str:
        return f"{len(self)}, first {self[0] if self else '-'}"


class Tags(HTMLParser):
    """The tags of a piece of HTML and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def verdict(holds: bool | None = True, column: str = "ill", **more: Any) -> Verdict:
    return Verdict("k-anonymity", column, 5, 7.25, holds, "the release alone", 40, 0, "every class has 7", **more)


def shows_itself(result: Shown, rows: int | None = None) -> None:
    """What holds for every result."""
    assert len(repr(result)) < 120
    assert repr(result).isprintable()
    json.dumps(result.to_dict(), allow_nan=False)
    assert isinstance(result.frame, pl.DataFrame)
    assert {dtype.base_type() for dtype in result.frame.dtypes} <= {pl.String, pl.Int64, pl.Float64, pl.Boolean}
    if rows is not None:
        assert result.frame.height == rows
    found = Tags(result._repr_html_())
    assert set(found.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert found.tags.count("caption") == 1
    assert pickle.loads(pickle.dumps(result)) == result
    name = next(iter(vars(result)))
    with pytest.raises(FrozenInstanceError):
        setattr(result, name, ())
    with pytest.raises(FrozenInstanceError):
        result.anything = 1  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- the base


def test_results_are_a_sequence() -> None:
    words = Words(["a", "bb", "ccc"])
    assert (len(words), words[0], words[-1], list(words)) == (3, "a", "ccc", ["a", "bb", "ccc"])
    assert "bb" in words
    assert words.index("ccc") == 2
    assert list(reversed(words)) == ["ccc", "bb", "a"]
    shows_itself(words, 3)
    shows_itself(Words(), 0)


def test_a_slice_is_of_the_same_type() -> None:
    words = Words(["a", "bb", "ccc"])
    assert type(words[1:]) is Words
    assert words[1:] == Words(("bb", "ccc"))
    assert words[::-1][0] == "ccc"
    with pytest.raises(IndexError):
        words[3]


def test_results_equal_only_their_like_and_have_no_hash() -> None:
    assert Words(["a"]) == Words(("a",))
    assert Words(["a"]) != Words(["b"])
    assert Words(["a"]) != ["a"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(Words())


def test_the_list_it_was_made_from_does_not_matter_any_more() -> None:
    given = ["a"]
    words = Words(given)
    given.append("b")
    assert list(words) == ["a"]
    with pytest.raises(TypeError):
        words[0] = "c"  # type: ignore[index]


def test_hostile_labels_stay_text() -> None:
    words = Words([HOSTILE])
    shows_itself(words, 1)
    html = words._repr_html_()
    assert "<script" not in html
    assert "\u202e" not in html + repr(words)
    assert "\x1b" not in html + repr(words)
    assert '<script>alert("x")</script>' in Tags(html).text
    assert words.frame["word"].item() == words.to_dict()["words"][0] == HOSTILE, "data is not changed"
    head = html_table("<b>", pl.DataFrame({"<i>": [1]}), ["<u>"])
    assert not {"b", "i", "u"} & set(Tags(head).tags)


def test_a_long_table_shows_its_first_rows() -> None:
    found = Tags(Words(["w"] * (SHOWN + 1234))._repr_html_())
    assert found.tags.count("tr") == SHOWN + 1
    assert "... 1,234 more" in found.text
    assert "more" not in Tags(Words(["w"] * SHOWN)._repr_html_()).text


def test_one_line_keeps_what_can_be_read() -> None:
    assert one_line("a\tb\r\nc\u2028d\u00a0e", 40) == "a b  c d e"
    assert one_line("می\u200cخواهم", 40) == "می\u200cخواهم"
    assert one_line("\ud800\x00", 40) == "\N{REPLACEMENT CHARACTER}" * 2
    assert one_line("abcdefgh", 6) == "abc..."


def test_plain_values_are_what_json_has() -> None:
    import numpy as np

    given = {"a": np.float64("inf"), 2: {"y", "x"}, "c": (np.int8(3), float("nan")), "d": np.arange(2), "e": True}
    assert plain(given) == {"a": None, "2": ["x", "y"], "c": [3, None], "d": [0, 1], "e": True}


# ---------------------------------------------------------------------- verdicts


def test_verdicts_say_whether_all_hold() -> None:
    good, bad, open_ = verdict(), verdict(False, "job"), verdict(None, "town")
    assert repr(Verdicts([good] * 3)) == "<Verdicts: 3 of 3 hold>"
    mixed = Verdicts([good, bad, open_])
    assert repr(mixed) == "<Verdicts: 1 of 3 holds, 1 FAILS, 1 undecided>"
    assert repr(Verdicts([bad, bad])) == "<Verdicts: 0 of 2 hold, 2 FAIL>"
    assert repr(Verdicts()) == "<Verdicts: nothing is required>"
    assert (Verdicts([good]).hold, mixed.hold, Verdicts([good, open_]).hold) == (True, False, False)
    assert (mixed.failed, mixed.undecided) == (Verdicts([bad]), Verdicts([open_]))
    shows_itself(mixed, 3)
    assert mixed.frame["holds"].to_list() == [True, False, None]
    assert mixed.frame.columns == [
        "model", "column", "required", "achieved", "holds", "basis", "records", "breaches", "statement",
    ]  # fmt: skip


def test_a_verdict_is_one_line_and_plain_data() -> None:
    assert repr(verdict()) == "<Verdict: k-anonymity on ill: asked 5, found 7.25, holds>"
    assert len(repr(verdict(None, HOSTILE))) < 120
    assert "\n" not in repr(verdict(None, HOSTILE))
    told = verdict(False, short=1, shortfalls=[Shortfall({"zip": "13"}, 2, 2.0)]).to_dict()
    assert told["shortfalls"] == [{"keys": {"zip": "13"}, "records": 2, "achieved": 2.0}]
    json.dumps(told, allow_nan=False)


@pytest.fixture(scope="module")
def made() -> tuple[nr.Release, pl.DataFrame, nr.Policy]:
    table = pl.DataFrame({"job": ["a", "b", "c", "d"] * 15, "town": ["x", HOSTILE] * 30})
    policy = nr.Policy(
        attributes={"job": nr.sensitive(), "town": nr.quasi_identifier()},
        require=[nr.models.FrequencyLDiversity(on="job", l=2)],
        dependence={"most": 1.0},
    )
    return nr.anonymize(table, policy), table, policy


def test_a_release_and_its_check_return_verdicts(made: tuple[nr.Release, pl.DataFrame, nr.Policy]) -> None:
    release, table, policy = made
    assert repr(release.verdicts) == "<Verdicts: 1 of 1 holds>"
    assert repr(release.verdicts[0]) == "<Verdict: frequency-l-diversity on job: asked 2, found 2, holds>"
    shows_itself(release.verdicts, 1)
    assert release.verdicts.frame["statement"].to_list() == [None]
    found = nr.verify(release, policy, original=table)
    assert type(found) is nr.Verdicts
    assert found.hold
    shows_itself(found, len(found))


# ---------------------------------------------------------------------- the other results


def test_an_estimate_is_a_sequence_of_cells(made: tuple[nr.Release, pl.DataFrame, nr.Policy]) -> None:
    found = made[0].estimate(["town", "job"], where={"job": {"a", "b"}})
    shows_itself(found, 8)
    assert repr(found) == "<Estimate of town x job: 8 cells, 60 records, likelihood, 95% intervals>"
    assert [*found] == found.frame.to_dicts()
    assert (len(found), found[-1], found[0]["job"]) == (8, found.frame.to_dicts()[-1], "a")
    assert type(found[:2]) is nr.Estimate
    assert found[:2].frame.equals(found.frame.head(2))
    assert found == made[0].estimate(["town", "job"], where={"job": {"a", "b"}})
    assert found != found[:2]
    with pytest.raises(IndexError, match="no cell 8"):
        found[8]
    html = found._repr_html_()
    assert "<script" not in html
    assert f"Assumes {found.assumes}." in Tags(html).text


def test_a_count_is_a_number_with_its_interval(made: tuple[nr.Release, pl.DataFrame, nr.Policy]) -> None:
    found = made[0].count({"job": ["a"]})
    shows_itself(found, 1)
    assert repr(found) == str(found) == f"{found.count:,.1f} (95% interval {found.low:,.1f} to {found.high:,.1f})"
    assert float(found) == found.count
    assert found.frame["count"].item() == found.count
    assert found.design_effect is None  # there are no weights
    assert found.to_dict() == {
        name: value for name, value in vars(found).items() if name not in ("design_effect", "notes")
    }
    assert {found} == {made[0].count({"job": ["a"]})}
    assert found.assumes in Tags(found._repr_html_()).text


def test_measures_are_a_sequence_with_what_they_rest_on(made: tuple[nr.Release, pl.DataFrame, nr.Policy]) -> None:
    from noren.workflow.measure import Measure

    found = nr.measure(made[1], quasi=["town"], sensitive=["job"])
    shows_itself(found, len(found.found))
    assert [*found] == [*found.found]
    assert repr(found).endswith(f": {len(found)} figures, 60 records>")
    first = found[:1]
    assert (type(first), first.name, first.records, first.quasi) == (nr.Measures, found.name, 60, ("town",))
    assert found.frame["achieved"].to_list()[0] == found[0].achieved
    assert repr(found[0]) == "<Measure: k-anonymity on quasi-identifiers: k = 30>"
    shows_itself(nr.Measures([Measure(HOSTILE, "m", "c", {"l": 2}, float("inf"), True, "b", "s")], HOSTILE), 1)


def test_a_comparison_has_a_best_and_a_chart(made: tuple[nr.Release, pl.DataFrame, nr.Policy]) -> None:
    from noren.workflow.comparison import Candidate, map_chart

    found = nr.compare(made[1], made[2], among=["decoys", "mondrian"])
    shows_itself(found, len(found))
    assert type(found[:1]) is nr.Comparison
    assert found.best is next(candidate for candidate in found if candidate.holds)
    assert f"of {len(found)} candidates hold" in repr(found)
    assert found.chart().to_dict() == map_chart([one for one in found if one.holds]).to_dict()
    assert found.frame["method"].to_list() == [candidate.title for candidate in found]
    assert "ncp_loss" in found.frame.columns

    methods = found[0].methods
    bad, unknown = (
        Candidate(HOSTILE, methods, 1.0, failure=HOSTILE),
        Candidate("x", methods, 1.0, query_loss=float("nan")),
    )
    none = nr.Comparison([bad])
    shows_itself(none, 1)
    assert none.best is None
    assert nr.Comparison([bad, unknown, found.best]).best is found.best, "not a number comes last"
    assert all(len(repr(one)) < 120 and repr(one).isprintable() for one in (*found, bad, unknown))


def test_attacks_have_a_row_per_scenario_and_one_chart(made: tuple[nr.Release, pl.DataFrame, nr.Policy]) -> None:
    release, table, policy = made
    found = nr.attack(release, "bayes", original=table, policy=policy)
    shows_itself(found, sum(len(result.scenarios) for result in found))
    assert repr(found).startswith("<Attacks: bayes on ")
    assert repr(found).endswith("; holder only>")
    assert "for the holder only" in Tags(found._repr_html_()).text
    scenario = found[0].scenarios[0]
    assert found.frame.row(0, named=True).items() >= {**scenario.summary, "scenario": scenario.name}.items()
    assert found.chart().to_dict() == found[0].chart().to_dict()
    both = nr.Attacks([*found, *found])
    assert len(both.chart().to_dict()["vconcat"]) == 2
    assert both.chart().to_dict()["resolve"]["scale"]["strokeDash"] == "independent", "each target has its own tables"
    shows_itself(nr.Attacks(), 0)
    assert len(repr(found[0])) < 120
    assert found == nr.Attacks(list(found))


def test_every_returned_type_can_be_imported() -> None:
    for name in ("Attacks", "Comparison", "Count", "Estimate", "Measures", "Release", "Verdicts"):
        assert name in nr.__all__
        assert getattr(nr, name).__name__ == name
    inside = (nr.models.Verdict, nr.models.Shortfall, nr.workflow.Candidate, nr.workflow.Measure, nr.report.Page)
    assert all(isinstance(kind, type) for kind in (*inside, nr.audit.AttackResult, nr.audit.Scenario))
