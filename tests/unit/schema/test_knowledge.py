"""The knowledge table: the ways to write one, what is refused, and what it says about terms."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.errors import NorenError
from noren.schema.knowledge import Knowledge, KnowledgeError, knowledge_of_rows, knowledge_rows

PAIRS = "label,term\nFlu,cough\nFlu,fever\nCold,cough\nFlu,cough\nIdiopathic,\n"


def write(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "knowledge.csv"
    path.write_text(text, encoding=encoding)
    return path


def held(knowledge: Knowledge) -> dict[str, set[str]]:
    spans = zip(knowledge.labels, knowledge.bounds[:-1], knowledge.bounds[1:], strict=True)
    return {label: {knowledge.terms[code] for code in knowledge.codes[a:b]} for label, a, b in spans}


def test_pairs_count_once_and_an_empty_term_names_a_label_without_terms(tmp_path: Path) -> None:
    knowledge = Knowledge.read_csv(write(tmp_path, PAIRS))
    assert held(knowledge) == {"Flu": {"cough", "fever"}, "Cold": {"cough"}, "Idiopathic": set()}
    assert knowledge.weights is None
    assert knowledge.label_weights.tolist() == [1, 1, 1]


def test_a_matrix_says_the_same(tmp_path: Path) -> None:
    text = "disease;cough;fever;ache\nFlu;1;yes;0\nCold;1;0;0\nIdiopathic;0;no;\n"
    assert held(Knowledge.read_csv(write(tmp_path, text))) == held(Knowledge.read_csv(write(tmp_path, PAIRS)))


def test_two_columns_of_yes_and_no_are_a_matrix_unless_their_header_says_term(tmp_path: Path) -> None:
    assert held(Knowledge.read_csv(write(tmp_path, "disease,cough\nFlu,1\nAcne,no\n"))) == {
        "Flu": {"cough"},
        "Acne": set(),
    }
    assert held(Knowledge.read_csv(write(tmp_path, "disease,Term\nFlu,1\nAcne,no\n"))) == {"Flu": {"1"}, "Acne": {"no"}}
    assert held(Knowledge.read_csv(write(tmp_path, "disease,cough\nFlu,1\nAcne,2\n"))) == {"Flu": {"1"}, "Acne": {"2"}}


def test_quoted_lines_and_odd_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.csv"
    path.write_bytes('label,term\r\n"Flu, ""A""","dry\ncough"\r\nCold\u2028x,\x85y\x1cz\r\n'.encode())
    assert held(Knowledge.read_csv(path)) == {'Flu, "A"': {"dry\ncough"}, "Cold\u2028x": {"y\x1cz"}}
    path.write_text('label,term\nFlu,"' + "x" * 200_000 + '"\n')
    with pytest.raises(KnowledgeError, match="line 2 cannot be read as CSV"):
        Knowledge.read_csv(path)


def test_a_third_column_weighs_the_label(tmp_path: Path) -> None:
    knowledge = Knowledge.read_csv(write(tmp_path, "Label,Term,Weight\nFlu,cough,1\nCold,cough,4\nFlu,fever,1.0\n"))
    assert knowledge.label_weights.tolist() == [1, 4]


def test_a_column_weighs_every_pair_on_its_own(tmp_path: Path) -> None:
    """In any order with the other columns; an empty cell counts as 1, and a label without terms has none."""
    text = "label,term,Prior,Pair_Weight,weight\nFlu,fever,0.5,2,1\nCold,cough,0.5,,4\nFlu,cough,0.5,0.25,1\nNo,,0,,1\n"
    knowledge = Knowledge.read_csv(write(tmp_path, text + "Flu,fever,0.5,2.0,1\n"))
    assert held(knowledge) == {"Flu": {"fever", "cough"}, "Cold": {"cough"}, "No": set()}
    assert knowledge.terms == ("fever", "cough")
    assert knowledge.pair_weights is not None
    assert knowledge.pair_weights.tolist() == [2, 0.25, 1]
    assert knowledge.label_weights.tolist() == [1, 4, 1]
    rows = knowledge_rows(knowledge)
    assert rows["term"] == ["cough", "fever", "cough", None]
    assert rows["pair_weight"] == [0.25, 2, 1, None]
    again = knowledge_of_rows(rows)
    assert held(again) == held(knowledge)
    assert again.pair_weights is not None
    assert again.pair_weights.tolist() == [0.25, 2, 1]


@given(st.lists(st.tuples(st.sampled_from("FCXP"), st.sampled_from(["", "a", "b", "c", "d", "e"])), min_size=1))
def test_lines_that_were_read_are_written_as_they_were(pairs: list[tuple[str, str]]) -> None:
    """A release is compared with what it would be written as: a holder's order of terms must not come between."""
    pairs.append(("F", "c"))  # a table without any term is none
    weighed = {pair: 1.0 + ord(pair[1]) % 3 for pair in pairs if pair[1]}
    knowledge = Knowledge.from_pairs(pairs, pair_weights=weighed)
    rows = knowledge_rows(knowledge)
    told = {(label, term): own for label, term, own in zip(*rows.values(), strict=True) if term is not None}
    assert told == weighed
    assert knowledge_rows(knowledge_of_rows(rows)) == rows


def test_only_ratios_within_a_term_tell(tmp_path: Path) -> None:
    """Logarithms beside the postings, 0 for the labels that a term speaks for most; none where all are equal."""
    text = "label,term,pair_weight\nFlu,cough,4\nFlu,fever,3\nCold,cough,1\nPox,fever,3\n"
    knowledge = Knowledge.read_csv(write(tmp_path, text))
    assert knowledge.pairs is not None
    assert knowledge.pairs.of.tolist() == [0, 1, 0, 2]
    assert knowledge.pairs.logs.tolist() == [0, -np.log(4), 0, 0]
    for same in (text.replace("4", "1"), "label,term,pair_weight\nFlu,cough,\nCold,cough,\n"):
        silent = Knowledge.read_csv(write(tmp_path, same))
        assert silent.pair_weights is not None
        assert silent.pairs is None
    assert Knowledge.read_csv(write(tmp_path, PAIRS)).pair_weights is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Flu,cough,much", "line 2: the pair_weight is not a positive number"),
        ("Flu,cough,1\nCold,cough,0", "line 3: the pair_weight is not a positive number"),
        ("Flu,cough,-2.5", "line 2: the pair_weight is not a positive number"),
        ("Flu,cough,inf", "line 2: the pair_weight is not a positive number"),
        ("Flu,cough,nan", "line 2: the pair_weight is not a positive number"),
        ("Flu,cough,2\nCold,,3", "line 3 has a pair_weight and names no term"),
        ("Flu,cough,2\nCold,cough,2\nFlu,cough,3", "line 4: its pair is in an earlier line, with another"),
        ("Flu,cough,2\nFlu,cough,", "line 3: its pair is in an earlier line, with another pair_weight"),
    ],
)
def test_a_pair_weight_that_makes_no_sense_is_refused_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, f"label,term,pair_weight\n{text}\n")
    with pytest.raises(KnowledgeError, match=said) as caught:
        Knowledge.read_csv(path)
    told = f"{caught.value.message.removeprefix(str(path))} {caught.value.hint}"
    assert not any(cell in told for cell in ("much", "Flu", "Cold", "cough", "-2.5", "inf", "nan"))


def test_a_column_stands_once(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="two columns are called 'pair_weight'"):
        Knowledge.read_csv(write(tmp_path, "label,term,pair_weight,pair_weight\nFlu,cough,1,2\n"))


def test_pair_weights_by_name() -> None:
    pairs = [("b", "y"), ("b", "x"), ("a", "x")]
    knowledge = Knowledge.from_pairs(pairs, pair_weights={("b", "x"): 0.5, ("a", "x"): 3})
    assert knowledge.pair_weights is not None
    assert knowledge.pair_weights.tolist() == [1, 0.5, 3]
    with pytest.raises(KnowledgeError, match="there is a pair weight of 'a' and 'y', but no such pair"):
        Knowledge.from_pairs(pairs, pair_weights={("a", "y"): 1.0})
    with pytest.raises(KnowledgeError, match="2 pair weights for 1 pairs"):
        Knowledge.from_sets([[0]], terms=["x"], pair_weights=np.ones(2))
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(KnowledgeError, match="a pair weight is not a positive number"):
            Knowledge.from_sets([[0]], terms=["x"], pair_weights=np.array([bad]))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ([0.5, None, None, 0.5], "every pair has a weight"),
        ([0.5, 1.0, 2.0, 0.5], "nothing else has one"),
        ([0.5, 1.0, None, 0.25], "a pair has two weights"),
    ],
)
def test_published_lines_that_contradict_each_other_are_no_table(own: list[float | None], said: str) -> None:
    rows = {"label": ["a", "b", "c", "a"], "term": ["x", "x", None, "x"], "pair_weight": [0.5, 1.0, None, 0.5]}
    assert held(knowledge_of_rows(rows)) == {"a": {"x"}, "b": {"x"}, "c": set()}
    with pytest.raises(ValueError, match=said):
        knowledge_of_rows(rows | {"pair_weight": own})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,term\n", "no lines below the header"),
        ("label,term\nFlu,cough,1\n", "line 2 has 3 cells, the header 2"),
        ("label,term\nFlu,cough\n,fever\n", "line 3 names no label"),
        ("label,term,weight\nFlu,cough,much\n", "line 2: the weight is not a positive number"),
        ("label,term,weight\nFlu,cough,0\n", "line 2: the weight is not"),
        ("label,term,weight\nFlu,cough,1\nFlu,fever,2\n", "line 3: the label has another weight than above"),
        ("disease,cough,fever\nFlu,maybe,1\n", "line 2, column 'cough': 'maybe' is neither 1 nor 0"),
        ("disease,cough\nFlu,1\nFlu,0\n", "label 'Flu' has two lines"),
        ("disease,cough\nFlu,no\nCold,0\n", "no label of the knowledge table has a term"),
        ("disease,cough,cough\nFlu,1,0\n", "term 'cough' has two columns"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_where_it_stands(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(KnowledgeError, match=message) as caught:
        Knowledge.read_csv(write(tmp_path, text))
    assert caught.value.hint
    assert isinstance(caught.value, NorenError)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="no such file"):
        Knowledge.read_csv(tmp_path / "none.csv")
    with pytest.raises(KnowledgeError, match="cannot be read"):
        Knowledge.read_csv(tmp_path)
    with pytest.raises(KnowledgeError, match="not UTF-8 at byte 13"):
        Knowledge.read_csv(write(tmp_path, "label,term\nGr\xfcn,x\n", "latin-1"))


def test_labels_priors_and_weights_by_name() -> None:
    knowledge = Knowledge.from_pairs([("b", "x")], labels=["a", "b"], weights={"b": 3.0}, priors={"a": 0.25, "b": 0.75})
    assert knowledge.label_weights.tolist() == [1, 3]
    assert knowledge.priors is not None
    assert knowledge.priors.tolist() == [0.25, 0.75]
    with pytest.raises(KnowledgeError, match="label 'c' has terms but is not listed"):
        Knowledge.from_pairs([("c", "x")], labels=["a"])
    with pytest.raises(KnowledgeError, match="there is a weight of 'z', but no such label"):
        Knowledge.from_pairs([("a", "x")], weights={"z": 1})
    with pytest.raises(KnowledgeError, match=r"sum to 0\.25"):
        Knowledge.from_pairs([("a", "x")], priors={"a": 0.25})


def test_numbers_must_fit() -> None:
    with pytest.raises(KnowledgeError, match="no labels"):
        Knowledge.from_sets([], terms=[])
    with pytest.raises(KnowledgeError, match=r"outside 0\.\.0"):
        Knowledge.from_sets([[1]], terms=["x"])
    with pytest.raises(KnowledgeError, match="2 weights for 1 labels"):
        Knowledge.from_sets([[0]], terms=["x"], weights=np.ones(2))
    with pytest.raises(KnowledgeError, match="not a positive number"):
        Knowledge.from_sets([[0]], terms=["x"], weights=np.array([np.inf]))
    with pytest.raises(KnowledgeError, match="label 'a' is listed twice"):
        Knowledge.from_sets([[0], [0]], terms=["x"], labels=("a", "a"))


def test_the_table_turned_round_and_unknown_terms() -> None:
    knowledge = Knowledge.from_sets([[0, 2], [2], []], terms=["x", "y", "z"])
    start, of = knowledge.postings
    assert [of[a:b].tolist() for a, b in pairwise(start)] == [[0], [], [0, 1]]
    assert knowledge.bits[:, 0].tolist() == [0b001, 0, 0b011]
    assert knowledge.encode(["z", "nobody knows", "x"]).tolist() == [2, -1, 0]
