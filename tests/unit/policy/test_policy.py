"""Policies: every mistake at once, by file and key; TOML out and in again; what meets the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import noren as nr
from noren.errors import MOST_LISTED, PolicyError
from noren.methods.decoys import DecoyParameters, Decoys
from noren.models import EntropyLDiversity, ExpandedK, FrequencyLDiversity, TCloseness
from noren.policy.options import DataOptions, RandomnessOptions
from noren.policy.policy import Policy
from noren.schema.column import Column, HierarchySpec
from noren.schema.confusables import skeleton
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role

GOOD = """
title = "Patients, 2024"

[attributes]
name = "identifier"
age = { role = "sensitive-quasi-identifier", bins = [0, 18, 65, 120] }
zip = { role = "quasi-identifier", hierarchy = { prefix = [3, 1] } }
grade = { role = "sensitive", values = ["low", "middle", "high"], distance = "ordinal" }
job = { role = "sensitive", hierarchy = "job.csv", distance = "tree", min_count = 5, rare = "merge", missing = "drop" }
note = { role = "plain" }

[[require]]
model = "frequency-l-diversity"
on = ["age", "job"]
l = 2

[[require]]
model = "t-closeness"
on = "grade"
t = 0.3
distance = "ordered"

[method]
name = "decoys"
parameters.age = { eta = 2, p = 0.9 }

[data]
separator = ";"
missing_values = ["?", "n/a"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.csv").write_text("nurse;care;*\ndoctor;care;*\nclerk;office;*\n")
    return tmp_path


def load(folder: Path, text: str) -> Policy:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return Policy.load(path)


def problems_of(text: str, folder: Path) -> list[tuple[str, str, str]]:
    with pytest.raises(PolicyError) as caught:
        load(folder, text)
    return [(problem.where, problem.message, problem.hint) for problem in caught.value.problems]


def test_a_policy_file_becomes_typed_parts(folder: Path) -> None:
    policy = load(folder, GOOD)
    assert policy.title == "Patients, 2024"
    assert policy.attributes["name"].role is Role.IDENTIFIER
    assert policy.attributes["age"].bins == (0, 18, 65, 120)
    assert policy.hierarchies["job"].leaves == ("nurse", "doctor", "clerk")
    assert policy.require == (
        FrequencyLDiversity(on=("age", "job"), l=2),
        TCloseness(on="grade", t=0.3, distance="ordered"),
    )
    assert policy.methods == (Decoys(parameters={"age": DecoyParameters(eta=2, p=0.9)}),)
    assert policy.data == DataOptions(separator=";", missing_values=("?", "n/a"))
    assert policy.protected == ("age", "grade", "job")
    assert policy.published == ("age", "zip", "grade", "job", "note")


def test_the_same_policy_in_code(folder: Path) -> None:
    in_code = Policy(
        title="Patients, 2024",
        attributes={
            "name": nr.identifier(),
            "age": nr.sensitive_quasi_identifier(bins=[0, 18, 65, 120]),
            "zip": nr.quasi_identifier(hierarchy={"prefix": [3, 1]}),
            "grade": nr.sensitive(values=["low", "middle", "high"], distance="ordinal"),
            "job": nr.sensitive(hierarchy="job.csv", distance="tree", min_count=5, rare="merge", missing="drop"),
            "note": nr.plain(),
        },
        require=[
            nr.models.FrequencyLDiversity(on=["age", "job"], l=2),
            nr.models.TCloseness(on="grade", t=0.3, distance="ordered"),
        ],
        method=nr.methods.Decoys(parameters={"age": nr.methods.DecoyParameters(eta=2, p=0.9)}),
        data=DataOptions(separator=";", missing_values=("?", "n/a")),
        source=str(folder / "policy.toml"),
        base=folder,
    )
    assert in_code == load(folder, GOOD)


BAD = """
colour = "red"

[attributes]
name = "identifier"
age = { role = "sensitve" }
zip = { role = "quasi-identifier", bins = [10, 5] }
grade = { role = "sensitive", values = ["low", "high"] }
job = { role = "sensitive", hierarchy = "job.csv", values = ["nurse", "pilot"] }
town = { role = "quasi-identifier", hierarchy = "towns.csv" }
illness = { role = "sensitive" }
income = { role = "sensitive", wage = 3 }
height = { role = "sensitive" }
note = { role = "plain" }

[[require]]
model = "frequency-l-diversty"
on = "job"
l = 2

[[require]]
model = "frequency-l-diversity"
on = ["grade", "name", "note", "wieght"]
l = 4

[[require]]
model = "frequency-l-diversity"
on = "grade"
l = 1

[[require]]
model = "frequency-l-diversity"
on = "height"
l = 2

[[require]]
model = "frequency-l-diversity"
on = "height"
l = 3

[[require]]
model = "t-closeness"
on = "height"
t = 0.2
distance = "ordered"

[method]
name = "decoys"
parameters.town = { eta = 3 }
parameters.moon = { eta = 3 }

[data]
encodng = "utf-8"
"""

EXPECTED = [
    ("colour", "unknown section 'colour'", "Known: "),
    ("attributes.age.role", "unknown role 'sensitve'", "Did you mean 'sensitive'?"),
    ("attributes.zip", "bins need at least two edges", ""),
    ("attributes.income.wage", "unknown key 'wage'", "Known: role, kind"),
    ("require[1].model", "unknown model 'frequency-l-diversty'", "Did you mean 'frequency-l-diversity'?"),
    ("require[3].l", "greater than or equal to 2; got 1", "No value may have a share above 1/l"),
    ("data.encodng", "unknown key 'encodng'", "Did you mean 'encoding'?"),
    ("attributes.town.hierarchy", "towns.csv: no such file", "relative to the policy file"),
    ("require[2].on", "frequency-l-diversity 4 exceeds the 2 values declared for 'grade'", "Declare more values"),
    ("require[2].on", "'name' has the role identifier and is never published", "Remove the requirement"),
    ("require[2].on", "'note' has the role plain, which is published exactly", "'sensitive'"),
    ("require[2].on", "no column 'wieght' in [attributes]", "Did you mean 'height'?"),
    ("require[5].on", "frequency-l-diversity on 'height' is already in require[4]", "Keep the stricter one"),
    ("require[6].on", "ordered closeness needs an order, but none is declared for 'height'", "ordinal"),
    ("attributes.illness", "sensitive without a requirement", "[[require]]"),
    ("method.parameters.town", "parameters for a column that no requirement protects", "[[require]]"),
    ("method.parameters.moon", "no such column in [attributes]", ""),
    ("attributes.job.hierarchy", "misses the values 'pilot'", "Add a line"),
]


def test_all_mistakes_are_reported_at_once_each_with_key_value_and_remedy(folder: Path) -> None:
    found = problems_of(BAD, folder)
    for where, message, hint in EXPECTED:
        assert any(w == where and message in m and hint in h for w, m, h in found), (where, message)
    assert len(found) == len(EXPECTED)


def test_the_message_names_the_file_and_counts(folder: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load(folder, BAD)
    text = str(caught.value)
    assert text.startswith(f"{folder / 'policy.toml'}: {len(EXPECTED)} problems")
    listed = [f"{problem.where}: " in text for problem in caught.value.problems]
    assert all(listed[:MOST_LISTED])
    assert f"  and {len(EXPECTED) - MOST_LISTED} more." in text
    assert caught.value.source == str(folder / "policy.toml")


HEAD = '[attributes]\na = { role = "sensitive" }\n'
REQUIRE = '[[require]]\nmodel = "frequency-l-diversity"\non = "a"\nl = 2\n'


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("[attributes]\na = sensitive\n", "", "not valid TOML: Invalid value (at line 2, column 5)"),
        (REQUIRE, "attributes", "missing"),
        (f"attributes = 3\n{REQUIRE}", "attributes", "must be a table of columns"),
        (f"[attributes]\na = 3\n{REQUIRE}", "attributes.a", "got 3"),
        (f"[attributes]\na = {{}}\n{REQUIRE}", "attributes.a.role", "missing"),
        ('[attributes]\na = "identifier"\n', "attributes", "nothing is left to publish"),
        (f'{HEAD}[require]\nmodel = "t-closeness"\n', "require", "must be a list"),
        (f"require = [3]\n{HEAD}", "require[1]", "must be a table, got 3"),
        (f'{HEAD}[[require]]\non = "a"\n', "require[1].model", "missing"),
        (f'{HEAD}[[require]]\nmodel = ["expanded-k"]\non = "a"\n', "require[1].model", "unknown model"),
        (f'{HEAD}[[require]]\nmodel = "expanded-k"\non = 5\nk = 2\n', "require[1].on", "got 5"),
        (f'{HEAD}[[require]]\nmodel = "expanded-k"\non = ["a", "a"]\nk = 2\n', "require[1].on", "column twice"),
        (f'{HEAD}[[require]]\nmodel = "t-closeness"\non = "a"\nt = 1.5\n', "require[1].t", "got 1.5"),
        (f'{HEAD}{REQUIRE}[method]\nname = "decoy"\n', "method.name", "unknown method 'decoy'"),
        (f'{HEAD}{REQUIRE}[method]\nname = ["decoys"]\n', "method.name", "unknown method"),
        (f'{HEAD}{REQUIRE}[method]\nname = "decoys"\nlevel = 3\n', "method.level", "unknown key 'level'"),
        (f"{HEAD}{REQUIRE}[method]\nparameters.a = {{ eta = 2 }}\n", "method.name", "missing"),
        (f"{HEAD}{REQUIRE}[data]\nseparator = ',,'\n", "data.separator", "at most 1 character"),
        (f'{HEAD}{REQUIRE}[randomness]\nrecord_key = "b"\n', "randomness.record_key", "no column 'b'"),
        (f'{HEAD}{REQUIRE}[randomness]\nsecret = "key"\n', "randomness.record_key", "missing"),
        (
            f'{HEAD}{REQUIRE}[method]\nname = "decoys"\nparameters.Name = {{ eta = 0 }}\n',
            "method.parameters.Name.eta",
            "got 0",
        ),
        (
            f'[attributes]\na = {{ role = "sensitive", hierarchy = {{ prefx = [3] }} }}\n{REQUIRE}',
            "attributes.a.hierarchy.prefx",
            "unknown key 'prefx'",
        ),
        (
            f'[attributes]\na = {{ role = "sensitive", bins = [0, 5, 9] }}\n{REQUIRE.replace("2", "4")}',
            "require[1].on",
            "frequency-l-diversity 4 exceeds the 2 values declared for 'a'",
        ),
        (
            f'[attributes]\na = {{ role = "sensitive", values = ["", "x", "y"] }}\n{REQUIRE}',
            "attributes.a",
            "an empty text, which means a missing cell",
        ),
        (
            f'[attributes]\na = {{ role = "sensitive", values = ["?", "x", "y"] }}\n{REQUIRE}'
            '[data]\nmissing_values = ["?"]\n',
            "attributes.a.values",
            "lists '?', which [data] missing_values declares missing",
        ),
        (
            f'[attributes]\na = {{ role = "quasi-sensitive" }}\n{REQUIRE}',
            "attributes.a",
            "a quasi-sensitive column needs knowledge",
        ),
    ],
)
def test_single_mistakes(text: str, where: str, message: str, tmp_path: Path) -> None:
    found = problems_of(text, tmp_path)
    assert any(w == where and message in m for w, m, _ in found), found


def test_a_broken_part_causes_no_follow_up_complaints(tmp_path: Path) -> None:
    parameters = '[method]\nname = "decoys"\nparameters.a = { eta = 3 }\n'
    assert len(problems_of(f'[attributes]\na = "sensitve"\n{REQUIRE}{parameters}', tmp_path)) == 1
    assert len(problems_of(f"{HEAD}{REQUIRE.replace('l = 2', 'l = 0')}{parameters}", tmp_path)) == 1


def test_files_that_are_no_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no such file"):
        Policy.load(tmp_path / "absent.toml")
    with pytest.raises(PolicyError, match="cannot be read as UTF-8"):
        Policy.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'title = "M\xfcll"')
    with pytest.raises(PolicyError, match="cannot be read as UTF-8"):
        Policy.load(tmp_path / "latin.toml")


def test_mistakes_in_code_are_policy_errors_too() -> None:
    with pytest.raises(PolicyError, match="sensitive without a requirement"):
        Policy(attributes={"a": nr.sensitive()}, require=[])
    with pytest.raises(PolicyError, match="no column is named"):
        Policy(attributes={}, require=[])


def test_what_is_written_reads_back_equal(folder: Path) -> None:
    policy = load(folder, GOOD)
    assert Policy.parse(policy.to_toml(), source=policy.source, base=policy.base) == policy


@pytest.mark.parametrize(
    "name", ["a b", "a.b", "a\n", "\x7f", "\t", "", 'say "a"', "back\\slash", "ключ", "漢字", "1", "-"]
)
def test_any_name_can_be_a_key_and_a_value(name: str) -> None:
    policy = Policy(
        attributes={name: nr.sensitive(values=[f"{name}.", f"{name}!", f"{name}?"])},
        require=[nr.models.FrequencyLDiversity(on=name, l=2)],
        title=name,
    )
    assert Policy.parse(policy.to_toml()) == policy


@pytest.mark.parametrize(
    "tree",
    [
        Hierarchy.from_tree({"lung": {"virus": ["flu"], "bacteria": ["tb"]}, "bone": ["fracture"]}),
        Hierarchy.from_tree({"lung": ["flu"], "bone": ["fracture", "sprain"]}),
        Hierarchy.from_tree({"*": ["flu", "tb"]}),
        Hierarchy.from_prefixes(("130", "145", "21"), [2, 1]),
    ],
)
def test_a_hierarchy_given_as_an_object_is_written_as_a_tree(tree: Hierarchy) -> None:
    policy = Policy(attributes={"a": nr.plain(hierarchy=tree)}, require=[])
    assert Policy.parse(policy.to_toml()).hierarchies["a"].levels == tree.levels


names = st.text(min_size=1, max_size=8)
texts = st.lists(st.text(min_size=1, max_size=6).filter(skeleton), min_size=3, max_size=5, unique_by=skeleton)
numbers = st.floats(-1e6, 1e6)
hierarchies = st.one_of(
    st.builds(HierarchySpec, prefix=st.just((3, 1))),
    st.builds(HierarchySpec, widths=st.just((0.5, 5.0))),
    st.builds(HierarchySpec, intervals=st.just(((0.0, 1.0, 3.0), (0.0, 3.0)))),
    texts.map(lambda leaves: HierarchySpec(tree={"- ": leaves[:1], "x.y": {"no leaf": leaves[1:]}})),
)
attributes = st.builds(
    Column,
    role=st.sampled_from([Role.PLAIN, Role.SENSITIVE, Role.SENSITIVE_QUASI_IDENTIFIER, Role.QUASI_IDENTIFIER]),
    values=st.none() | texts,
    hierarchy=st.none() | hierarchies,
    distance=st.sampled_from(["equal", "ordinal", "numeric", {"matrix": "far away.csv"}]),
    min_count=st.integers(1, 9),
    rare=st.sampled_from(["merge", "refuse"]),
    missing=st.sampled_from(["category", "drop", "reject"]),
)
binned = st.lists(numbers, min_size=4, max_size=6, unique=True).map(
    lambda edges: Column(role=Role.SENSITIVE, bins=sorted(edges))
)


def markers(columns: dict[str, Column]) -> st.SearchStrategy[list[str]]:
    """Texts that mean 'missing' and are no declared value."""
    declared = {value for attribute in columns.values() for value in attribute.values or ()}
    return texts.map(lambda found: [text for text in found if text not in declared])


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    columns = draw(st.dictionaries(names, st.one_of(attributes, binned), min_size=1, max_size=4))
    for name, attribute in columns.items():
        if isinstance(attribute.hierarchy, HierarchySpec) and attribute.hierarchy.tree is not None:
            columns[name] = attribute.model_copy(update={"values": None})
    require: list = []
    parameters = {}
    for name, attribute in columns.items():
        if attribute.role.needs_requirement:
            options = [
                st.builds(FrequencyLDiversity, on=st.just(name), l=st.integers(2, 3)),
                st.builds(EntropyLDiversity, on=st.just(name), l=st.floats(1.5, 3)),
                st.builds(ExpandedK, on=st.just((name,)), k=st.just(2)),
                st.builds(TCloseness, on=st.just(name), t=st.floats(1e-9, 0.999)),
            ]
            require.append(draw(st.one_of(options)))
            if draw(st.booleans()):
                parameters[name] = DecoyParameters(eta=draw(st.integers(1, 9)), p=draw(st.floats(0, 1)))
    return Policy(
        attributes=columns,
        require=require,
        method=Decoys(parameters=parameters),
        data=DataOptions(separator=draw(st.none() | st.sampled_from(",;\t|")), missing_values=draw(markers(columns))),
        randomness=RandomnessOptions(record_key=draw(st.none() | st.sampled_from(sorted(columns)))),
        title=draw(st.text(max_size=12)),
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(policies())
def test_any_policy_survives_its_own_toml(policy: Policy) -> None:
    assert Policy.parse(policy.to_toml()) == policy
