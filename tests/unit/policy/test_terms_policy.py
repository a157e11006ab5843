"""Policies about quasi-sensitive columns: every mistake is named, knowledge is read, values of few people are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.errors import PolicyError
from noren.methods.suppress import Balance, Suppress
from noren.policy.resolve import open_table

PAIRS = "label,term\nFlu,cough\nFlu,fever\nCold,cough\nCold,sneeze\nPox,rash\nPox,fever\n"
WEIGHED = (
    "label,term,pair_weight\nFlu,cough,0.8\nFlu,fever,0.9\nCold,cough,0.4\nCold,sneeze,\nPox,rash,1\nPox,fever,0.7\n"
)
OTHER = "label,term\nEast,tea\nWest,coffee\nNorth,tea\n"
AGE = 'age = "quasi-identifier"\n'
SIGNS = 'signs = { role = "quasi-sensitive", separator = ";", knowledge = "k.csv" }\n'
MORE = 'more = { role = "quasi-sensitive", separator = ";", knowledge = "k.csv" }\n'
DIVERSE = '[[require]]\nmodel = "qs-diversity"\non = "signs"\nc = 1.0\nl = 2\n'
CLOSE = '[[require]]\nmodel = "qs-closeness"\non = "signs"\nt = 0.5\n'
BOTH = DIVERSE.replace('"signs"', '["signs", "more"]')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "k.csv").write_text(PAIRS)
    (tmp_path / "other.csv").write_text(OTHER)
    (tmp_path / "pairs.csv").write_text(WEIGHED)
    (tmp_path / "bad.csv").write_text("label,term,pair_weight\nFlu,cough,1\nCold,cough,-1\n")
    (tmp_path / "sharing.csv").write_text("label,term\nFlu,shivers\nMumps,swelling\n")
    return tmp_path


def load(
    folder: Path, attributes: str = AGE + SIGNS, require: str = DIVERSE, method: str = 'name = "suppress"'
) -> nr.Policy:
    path = folder / "policy.toml"
    path.write_text(f"[attributes]\n{attributes}\n{require}\n[method]\n{method}\n", encoding="utf-8")
    return nr.Policy.load(path)


def signs(options: str) -> str:
    return AGE + f'signs = {{ role = "quasi-sensitive", {options} }}\n'


def method(options: str) -> str:
    return f'name = "suppress"\n{options}'


def test_a_sound_policy(folder: Path) -> None:
    policy = load(folder)
    assert policy.knowledge["signs"].labels == ("Flu", "Cold", "Pox")
    assert policy.protected == ("signs",)
    (method,) = policy.methods
    assert isinstance(method, Suppress)
    assert (method.k, method.seconds, method.nodes) == (1, 2.0, None)


WRONG: list[tuple[dict[str, str], str, str]] = [
    ({"attributes": signs('separator = ";"')}, "attributes.signs", "needs knowledge"),
    ({"attributes": signs('knowledge = "none.csv"')}, "attributes.signs.knowledge", "no such file"),
    ({"attributes": signs("knowledge = 5")}, "attributes.signs.knowledge", "valid dictionary"),
    ({"attributes": signs('knowledge = { priors = "k.csv" }')}, "attributes.signs.knowledge.csv", "missing"),
    (
        {"attributes": signs('knowledge = { csv = "k.csv", prior = "p" }')},
        "attributes.signs.knowledge.prior",
        "unknown",
    ),
    ({"attributes": signs('knowledge = "k.csv", values = ["a"]')}, "attributes.signs", "values is not an option"),
    ({"attributes": signs('knowledge = "k.csv", bins = [1, 2]')}, "attributes.signs", "bins is not an option"),
    (
        {"attributes": signs('knowledge = "k.csv", hierarchy = "k.csv"')},
        "attributes.signs",
        "hierarchy is not an option",
    ),
    ({"attributes": signs('knowledge = "k.csv", min_count = 3')}, "attributes.signs", "min_count and distance"),
    ({"attributes": signs('knowledge = "k.csv", distance = "ordinal"')}, "attributes.signs", "min_count and distance"),
    ({"attributes": signs('knowledge = "k.csv", unknown = "hide"')}, "attributes.signs.unknown", "'drop'"),
    ({"attributes": signs('knowledge = "k.csv", separator = ""')}, "attributes.signs.separator", "at least 1"),
    ({"attributes": signs('knowledge = "k.csv", columns = []')}, "attributes.signs.columns", "at least 1"),
    ({"attributes": signs('knowledge = "k.csv", columns = ["a", "a"]')}, "attributes.signs", "a column twice"),
    ({"attributes": signs('knowledge = "k.csv", columns = ["a"], separator = ";"')}, "attributes.signs", "not both"),
    (
        {"attributes": signs('knowledge = "k.csv", columns = ["age"]')},
        "attributes.signs.columns",
        "a column of its own",
    ),
    ({"attributes": signs('knowledge = "k.csv", columns = ["signs"]')}, "attributes.signs.columns", "the set itself"),
    (
        {
            "attributes": signs('knowledge = "k.csv", columns = ["a", "b"]')
            + 'more = { role = "quasi-sensitive", knowledge = "k.csv", columns = ["c", "b"] }\n',
            "require": BOTH,
        },
        "attributes.more.columns",
        "names 'b', which belongs to the set 'signs' already",
    ),
    (
        {"attributes": 'age = { role = "quasi-identifier", separator = ";" }\n' + SIGNS},
        "attributes.age",
        "separator is for",
    ),
    (
        {"attributes": 'age = { role = "quasi-identifier", unknown = "keep" }\n' + SIGNS},
        "attributes.age",
        "unknown is for",
    ),
    ({"attributes": AGE + SIGNS + 'x = { role = "plain", knowledge = "k.csv" }'}, "attributes.x", "knowledge is for"),
    (
        {"attributes": AGE + SIGNS + MORE.replace("k.csv", "sharing.csv"), "require": BOTH},
        "attributes.more.knowledge",
        "its knowledge table shares 1 labels with that of 'signs'",
    ),
    ({"require": DIVERSE.replace("l = 2", "l = 4")}, "require[1].l", "l = 4 exceeds the 3 labels of 'signs'"),
    ({"require": DIVERSE.replace("c = 1.0", "c = 0")}, "require[1].c", "greater than 0"),
    ({"require": CLOSE.replace("0.5", "3")}, "require[1].t", "less than or equal to 2"),
    ({"require": CLOSE + 'distance = "l1"'}, "require[1].distance", "'l2' or 'emd'"),
    ({"require": DIVERSE + 'unlinked = "skip"'}, "require[1].unlinked", "'ignore' or 'prior'"),
    ({"require": ""}, "attributes.signs", "without a requirement"),
    ({"require": '[[require]]\nmodel = "k-anonymity"\nk = 2'}, "method.name", "no requirement is on such a column"),
    ({"attributes": AGE + SIGNS + MORE}, "attributes.more", "without a requirement"),
    ({"require": DIVERSE + DIVERSE.replace("signs", "age")}, "require[2].on", "'age' has the role quasi-identifier"),
    (
        {"require": DIVERSE + '[[require]]\nmodel = "entropy-l-diversity"\non = "signs"\nl = 2'},
        "require[2].on",
        "'signs' holds sets of terms, which entropy-l-diversity cannot judge",
    ),
    (
        {"attributes": 'age = "identifier"\n' + SIGNS, "require": DIVERSE + DIVERSE.replace("signs", "age")},
        "require[2].on",
        "has the role identifier",
    ),
    ({"require": DIVERSE + CLOSE}, "require[2].on", "meets one requirement per column of terms, but 'signs' has two"),
    ({"require": DIVERSE + DIVERSE}, "require[2].on", "is already in require[1]"),
    (
        {"attributes": AGE + SIGNS + MORE, "require": DIVERSE + CLOSE.replace("signs", "more")},
        "require[2].on",
        "'signs' and 'more' share a knowledge table",
    ),
    (
        {
            "attributes": AGE + SIGNS + 'ill = { role = "sensitive", distance = "ordinal" }',
            "require": DIVERSE + '[[require]]\nmodel = "semantic-diversity"\non = "ill"\nl = 2\nd = 2.0',
        },
        "require[2].model",
        "cannot meet semantic-diversity",
    ),
    (
        {
            "attributes": AGE + SIGNS + 'ill = "sensitive"',
            "require": DIVERSE + '[[require]]\nmodel = "beta-likeness"\non = "ill"\nbeta = 1.0',
            "method": method("suppression = 0.1"),
        },
        "method.suppression",
        "beta-likeness compares classes with the whole table",
    ),
    ({"attributes": SIGNS}, "attributes", "the policy has none"),
    ({"method": 'name = "incognito"'}, "require[1].model", "ignores terms"),
    ({"method": 'name = "hilbert"'}, "attributes.signs.role", "cannot protect a column of role 'quasi-sensitive'"),
    ({"method": 'name = "decoys"'}, "attributes.signs.role", "cannot protect a quasi-sensitive column"),
    ({"method": method('generalise = "anatomy"')}, "method.generalise", "no first phase 'anatomy'"),
    ({"method": method("generalise = { strict = false }")}, "method.generalise", "no first phase None"),
    (
        {"method": method('generalise = { name = "mondrian", x = 1 }')},
        "method.generalise",
        "these are not options of the method",
    ),
    (
        {"method": method('generalise = { name = "mondrian", suppression = 0.1 }')},
        "method.generalise",
        "an option of the whole method",
    ),
    ({"method": method('k = 2\ngeneralise = "sweep"')}, "require", "the method 'sweep' needs a diversity requirement"),
    ({"method": method("balance = {}")}, "method.balance", "give a budget for generalisation or for terms"),
    ({"method": method("balance = { terms = 0.1, generalisation = 0.1 }")}, "method.balance", "give a budget"),
    ({"method": method("balance = { terms = 1.5 }")}, "method.balance.terms", "less than or equal to 1"),
    ({"method": method("balance = { trems = 0.5 }")}, "method.balance.trems", "unknown key 'trems'"),
    ({"method": method("seconds = 0")}, "method.seconds", "greater than 0"),
    ({"method": method("seconds = inf")}, "method.seconds", "finite"),
    ({"method": method("nodes = 0")}, "method.nodes", "greater than or equal to 1"),
    ({"method": method("k = 0")}, "method.k", "greater than or equal to 1"),
    ({"method": method('cost = "weight"')}, "method.cost", "'inverse' or 'terms'"),
    ({"method": method("term_weights = { cough = 2 }")}, "method", 'term_weights require cost = "terms"'),
    (
        {"method": method('cost = "terms"\nterm_weights = { cough = 0 }')},
        "method.term_weights.cough",
        "greater than 0",
    ),
    (
        {"method": method('cost = "terms"\nterm_weights = { cough = 2, fevre = 3 }')},
        "method.term_weights.fevre",
        "the term is in no knowledge table",
    ),
    (
        {"attributes": signs('knowledge = "pairs.csv"'), "method": method('search = "adaptive"')},
        "method.search",
        "'adaptive' works on label sets, but 'signs' has weights of pairs",
    ),
    (
        {"attributes": signs('knowledge = "pairs.csv"'), "method": method('search = "depth-first"')},
        "method.search",
        "'depth-first' works on label sets",
    ),
    ({"attributes": signs('knowledge = "bad.csv"')}, "attributes.signs.knowledge", "line 3: the pair_weight is not"),
    ({"method": method('search = "worst"')}, "method.search", "'best', 'adaptive' or 'depth-first'"),
    ({"method": method('infeasible = "pray"')}, "method.infeasible", "'merge', 'drop' or 'refuse'"),
    ({"method": method('\n[randomness]\nrecord_key = "aeg"')}, "randomness.record_key", "no column 'aeg'"),
]


def test_weights_of_terms_are_not_blamed_for_a_table_that_cannot_be_read(folder: Path) -> None:
    worth = method('cost = "terms"\nterm_weights = { cough = 2 }')
    with pytest.raises(PolicyError) as caught:
        load(folder, attributes=signs('knowledge = "none.csv"'), method=worth)
    assert [problem.where for problem in caught.value.problems] == ["attributes.signs.knowledge"]


def test_a_mistyped_term_with_a_weight_is_told_its_neighbour(folder: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load(folder, method=method('cost = "terms"\nterm_weights = { couhg = 2, zzz = 1 }'))
    hints = {problem.where: problem.hint for problem in caught.value.problems}
    assert hints == {
        "method.term_weights.couhg": "Did you mean 'cough'?",
        "method.term_weights.zzz": "Spell terms as in the knowledge table.",
    }


def test_pair_weights_are_read_from_a_policy_file(folder: Path) -> None:
    known = load(folder, attributes=signs('knowledge = "pairs.csv"')).knowledge["signs"]
    assert known.pair_weights is not None
    assert known.pair_weights.tolist() == [0.8, 0.9, 0.4, 1.0, 0.7, 1.0]
    assert known.pairs is not None


@pytest.mark.parametrize(("parts", "where", "message"), WRONG, ids=lambda x: x if isinstance(x, str) else "")
def test_single_mistakes(parts: dict[str, str], where: str, message: str, folder: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load(folder, **parts)
    found = [(problem.where, problem.message) for problem in caught.value.problems]
    assert any(place == where and message in text for place, text in found), found
    if not parts.get("method", "").startswith('name = "decoys"'):
        assert not any("'decoys'" in text for _, text in found), "a method that nobody asked for"


def test_a_search_needs_a_bound() -> None:
    with pytest.raises(ValueError, match="a search needs a limit"):
        Suppress(seconds=None)
    assert Suppress(nodes=10).seconds is None
    assert Suppress(nodes=10, seconds=1.0).seconds == 1.0
    assert Suppress(seconds=None, total_seconds=5).total_seconds == 5
    assert Balance(terms=0.0).generalisation is None


# ---------------------------------------------------------------- knowledge

LAYOUTS = {
    "pairs": PAIRS,
    "other names": PAIRS.replace("label,term", "illness,sign"),
    "semicolons": PAIRS.replace(",", ";"),
    "matrix": "disease,cough,fever,sneeze,rash\nFlu,1,1,0,0\nCold,yes,no,yes,\nPox,false,true,0,True\n",
}


def held(knowledge: nr.Knowledge) -> dict[str, set[str]]:
    ends = zip(knowledge.labels, knowledge.bounds[:-1], knowledge.bounds[1:], strict=True)
    return {label: {knowledge.terms[c] for c in knowledge.codes[a:b]} for label, a, b in ends}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("priors", [False, True])
def test_knowledge_in_every_layout(layout: str, priors: bool, folder: Path) -> None:
    (folder / "k.csv").write_text(LAYOUTS[layout])
    (folder / "p.csv").write_text("label,prior\nCold,0.75\nFlu,0.25\n")
    given = '{ csv = "k.csv", priors = "p.csv" }' if priors else '"k.csv"'
    knowledge = load(folder, signs(f'separator = ";", knowledge = {given}')).knowledge["signs"]
    assert held(knowledge) == {"Flu": {"cough", "fever"}, "Cold": {"cough", "sneeze"}, "Pox": {"rash", "fever"}}
    assert knowledge.weights is None
    assert (knowledge.priors is None) is not priors
    if knowledge.priors is not None:
        assert dict(zip(knowledge.labels, knowledge.priors.tolist(), strict=True)) == {
            "Flu": 0.25,
            "Cold": 0.75,
            "Pox": 0,
        }


@pytest.mark.parametrize("columns", [("weight",), ("prior",), ("weight", "prior"), ("prior", "weight")])
def test_weights_and_priors_beside_the_pairs(columns: tuple[str, ...], folder: Path) -> None:
    numbers = {"weight": {"Flu": 2.0, "Cold": 0.5}, "prior": {"Flu": 0.0, "Cold": 1.0}}
    lines = [",".join(("label", "term", *columns))]
    for label, term in (("Flu", "cough"), ("Cold", "cough"), ("Flu", "fever")):
        lines.append(",".join((label, term, *(str(numbers[name][label]) for name in columns))))
    (folder / "k.csv").write_text("\n".join(lines))
    knowledge = load(folder).knowledge["signs"]
    assert knowledge.label_weights.tolist() == ([2.0, 0.5] if "weight" in columns else [1, 1])
    assert (knowledge.priors is None) == ("prior" not in columns)
    assert knowledge.priors is None or knowledge.priors.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,prior\nFlu,0.5\n", "they sum to 0.5"),
        ("label,prior\nMumps,1\n", "there is a prior of 'Mumps', but no such label"),
        ("label,prior\nFlu,0.5\nFlu,0.5\n", "a label has two lines"),
        ("label,prior\nFlu,-1\n", "is not a positive number"),
        ("label,prior,more\nFlu,1,1\n", "a table of priors has two columns"),
    ],
)
def test_priors_that_make_no_sense(text: str, message: str, folder: Path) -> None:
    (folder / "p.csv").write_text(text)
    with pytest.raises(PolicyError, match=message) as caught:
        load(folder, signs('separator = ";", knowledge = { csv = "k.csv", priors = "p.csv" }'))
    assert caught.value.problems[0].where == "attributes.signs.knowledge"


def test_columns_that_name_one_file_share_its_knowledge(folder: Path) -> None:
    policy = load(folder, AGE + SIGNS + MORE.replace("k.csv", "./k.csv"), BOTH)
    assert policy.knowledge["signs"] is policy.knowledge["more"]
    apart = load(folder, AGE + SIGNS + MORE.replace("k.csv", "other.csv"), BOTH)
    assert apart.knowledge["signs"] is not apart.knowledge["more"]
    one = nr.Knowledge.from_pairs([("Flu", "cough"), ("Cold", "cough")])
    sets = {"role": "quasi-sensitive", "knowledge": one}
    require = [nr.models.QSDiversity(on=("a", "b"), c=1, l=2)]
    objects = nr.Policy(
        attributes={"age": "quasi-identifier", "a": sets, "b": sets}, require=require, method=Suppress()
    )
    assert objects.knowledge["a"] is objects.knowledge["b"] is one
    same = nr.Knowledge.from_pairs([("Flu", "cough"), ("Cold", "cough")])
    with pytest.raises(PolicyError, match="shares 2 labels"):
        nr.Policy(
            attributes={"age": "quasi-identifier", "a": sets, "b": sets | {"knowledge": same}},
            require=require,
            method=Suppress(),
        )


# ---------------------------------------------------------------- TOML


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"method": method("nodes = 10")},
        {"method": method("nodes = 10\nseconds = 2.0")},
        {"method": method("total_seconds = 10")},
        {"method": method('cost = "terms"\nterm_weights = { cough = 2.0 }')},
        {"method": method('k = 3\ngeneralise = { name = "mondrian", strict = false }\nsearch = "adaptive"')},
        {"method": method("balance = { generalisation = 0.25 }")},
        {"method": method('infeasible = "drop"\nsuppression = 0.1'), "require": CLOSE + 'distance = "emd"\n'},
        {"require": DIVERSE + 'unlinked = "prior"'},
        {
            "attributes": signs(
                'separator = "\\"|\\u00b7", knowledge = { csv = "k.csv", priors = "p.csv" }, unknown = "keep"'
            )
        },
        {"attributes": signs('columns = ["a b", "c"], knowledge = "k.csv", missing = "drop"')},
        {"attributes": AGE + SIGNS + MORE, "require": BOTH},
    ],
)
def test_a_policy_survives_toml(parts: dict[str, str], folder: Path) -> None:
    (folder / "p.csv").write_text("label,prior\nCold,1\n")
    first = load(folder, **parts)
    (folder / "again.toml").write_text(first.to_toml(), encoding="utf-8")
    second = nr.Policy.load(folder / "again.toml")
    for name in ("attributes", "require", "method", "data"):
        assert getattr(first, name) == getattr(second, name)
    assert first.knowledge.keys() == second.knowledge.keys()
    assert second.to_toml() == first.to_toml()


def test_knowledge_given_as_an_object_has_no_place_in_a_file() -> None:
    knowledge = nr.Knowledge.from_pairs([("Flu", "cough"), ("Cold", "cough")])
    attributes = {"age": "quasi-identifier", "signs": {"role": "quasi-sensitive", "knowledge": knowledge}}
    policy = nr.Policy(attributes=attributes, require=[nr.models.QSDiversity(on="signs", c=1, l=2)], method=Suppress())
    with pytest.raises(PolicyError, match="cannot be written to a file"):
        policy.to_toml()


# ---------------------------------------------------------------- the table


def rows(*cells: str) -> pa.Table:
    return pa.table({"age": np.zeros(len(cells), int), "signs": list(cells)})


def test_terms_of_few_people_are_never_named(folder: Path) -> None:
    table = rows(*["cough;hives"] * 5, *["rash;tattoo"] * 4, "birthmark")
    with pytest.raises(PolicyError) as caught:
        nr.anonymize(table, load(folder))
    (problem,) = caught.value.problems
    assert problem.where == "attributes.signs.knowledge"
    assert "'hives' and 2 rare values (not shown: fewer than 5 records each)" in problem.message
    for secret in ("tattoo", "birthmark"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize("unknown", ["drop", "keep"])
def test_unknown_terms_are_left_out_or_published(unknown: str, folder: Path) -> None:
    policy = load(
        folder, signs(f'separator = ";", knowledge = "k.csv", unknown = "{unknown}"'), method=method("nodes = 9")
    )
    release = nr.anonymize(rows(*["cough;hives"] * 5, *["fever"] * 5), policy)
    shown = {term for own in release.frame()["signs"].to_list() for term in own}
    assert ("hives" in shown) == (unknown == "keep")
    assert release.column("signs").domain.source == ("data" if unknown == "keep" else "policy")


def test_a_column_that_the_table_lacks(folder: Path) -> None:
    with pytest.raises(PolicyError, match="has no column 'signs'"):
        nr.anonymize(pa.table({"age": [1]}), load(folder))
    with pytest.raises(nr.errors.DataError, match="it has no column 'fever', which is part of the set 'signs'"):
        open_table(
            pa.table({"age": [1], "cough": [1]}),
            load(folder, signs('columns = ["cough", "fever"], knowledge = "k.csv"')),
        )


def options(model: Any) -> set[str]:
    return set(model.model_fields) - {"name"}


def test_every_option_of_suppress_stands_above() -> None:
    """A new option without a mistake or a round trip in this file would go unnoticed."""
    tried = "".join(parts.get("method", "") for parts, _, _ in WRONG) + "total_seconds"
    assert {name for name in options(Suppress) if name not in tried} == set()
