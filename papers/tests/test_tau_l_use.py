"""Trees, rules and count queries of paper 004 against slow, plain twins."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from math import log

import numpy as np
import polars as pl
import pytest
from tests.oracles.general_metrics import general_table

from noren.engines import Records
from noren.metrics.general import GeneralTable
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from noren_papers.tau_l import counts, rules, trees
from noren_papers.tau_l.learning import drawn_by
from noren_papers.tau_l.secrets import by_leaves, generalised
from noren_papers.tau_l.sources import Prepared

KINDS = (4, 3, 2)


def records(seed: int, n: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    features = [rng.integers(0, kinds, n) for kinds in KINDS]
    noise = rng.integers(0, 3, n)
    return features, np.where(rng.random(n) < 0.6, (features[0] + features[1]) % 3, noise)


# ------------------------------------------------------------------ trees


def plain_tree(rows: list[tuple[int, ...]], labels: list[int], left: tuple[int, ...]) -> tuple:
    """(answer, attribute or None, children)."""
    tally = Counter(labels)
    answer = min(value for value, count in tally.items() if count == max(tally.values()))
    usable = [a for a in left if len({row[a] for row in rows}) > 1]
    if len(tally) == 1 or not usable:
        return answer, None, {}

    def entropy(attribute: int) -> float:
        total = 0.0
        for value in {row[attribute] for row in rows}:
            part = Counter(label for row, label in zip(rows, labels, strict=True) if row[attribute] == value)
            size = sum(part.values())
            total -= sum(count * log(count / size) for count in part.values())
        return round(total, 9)

    best = min(usable, key=lambda attribute: (entropy(attribute), attribute))
    children = {}
    for value in {row[best] for row in rows}:
        inside = [i for i, row in enumerate(rows) if row[best] == value]
        rest = tuple(a for a in left if a != best)
        children[value] = plain_tree([rows[i] for i in inside], [labels[i] for i in inside], rest)
    return answer, best, children


def plain_answer(node: tuple, row: tuple[int, ...]) -> int:
    answer, attribute, children = node
    if attribute is None or row[attribute] not in children:
        return int(answer)
    return plain_answer(children[row[attribute]], row)


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_answers_as_plain_id3_does(seed: int) -> None:
    features, target = records(seed, 25 + 30 * seed)
    tree = trees.learn(features, target)
    plain = plain_tree(list(zip(*(f.tolist() for f in features), strict=True)), target.tolist(), (0, 1, 2))
    everything = list(product(*(range(kinds + 1) for kinds in KINDS)))  # also values that no record had
    found = tree.predict([np.array(column) for column in zip(*everything, strict=True)])
    assert found.tolist() == [plain_answer(plain, row) for row in everything]


def test_an_unpruned_tree_names_the_most_frequent_class_of_equal_records() -> None:
    features, target = records(9, 400)
    groups: dict[tuple[int, ...], Counter[int]] = {}
    for *row, label in zip(*(f.tolist() for f in features), target.tolist(), strict=True):
        groups.setdefault(tuple(row), Counter())[label] += 1
    best = sum(max(tally.values()) for tally in groups.values()) / 400
    assert trees.accuracy(trees.learn(features, target), features, target) == pytest.approx(best)


# ------------------------------------------------------------------ rules


def plain_rules(features: list[np.ndarray], target: np.ndarray, accuracy: float, support: int) -> set:
    found = set()
    for size in (1, 2, 3):
        for columns in combinations(range(len(features)), size):
            for values in product(*(range(KINDS[c]) for c in columns)):
                met = np.ones(len(target), bool)
                for column, value in zip(columns, values, strict=True):
                    met &= features[column] == value
                for label in range(3):
                    if met.sum() >= support and (target[met] == label).mean() >= accuracy:
                        found.add((frozenset(zip(columns, values, strict=True)), label))
    return found


def as_sets(book: rules.Rules) -> list:
    return [
        (frozenset((c, v) for c, v in enumerate(row) if v >= 0), label)
        for row, label in zip(book.values.tolist(), book.answer.tolist(), strict=True)
    ]


@pytest.mark.parametrize(("accuracy", "support"), [(0.6, 8), (0.75, 4), (0.5, 30)])
def test_rules_are_all_conjunctions_that_tell_the_class(accuracy: float, support: int) -> None:
    features, target = records(3, 300)
    book = rules.learn(features, target, accuracy, support)
    wanted = plain_rules(features, target, accuracy, support)
    assert wanted
    assert set(as_sets(book)) == wanted
    assert len(book) == len(wanted)
    minimal = {r for r in wanted if not any(o[1] == r[1] and o[0] < r[0] for o in wanted)}
    assert {r for r, least in zip(as_sets(book), book.minimal, strict=True) if least} == minimal


def test_rules_are_looked_for_in_another_table() -> None:
    features, target = records(3, 300)
    book = rules.learn(features, target, 0.6, 8)
    assert rules.shown(book, features, target, 0.6, 8).strict.all()
    others, labels = records(4, 120)
    found = rules.shown(book, others, labels, 0.6, 8)
    strict = plain_rules(others, labels, 0.6, 8)
    assert 0 < found.strict.sum() < len(book)
    assert found.strict.tolist() == [rule in strict for rule in as_sets(book)]
    for (conditions, label), learned in zip(as_sets(book), found.learned, strict=True):
        met = np.all([others[c] == v for c, v in conditions], axis=0)
        tally = np.bincount(labels[met], minlength=3)
        assert learned == (tally[label] > 0 and tally[label] == tally.max())


def test_no_rules_are_no_trouble() -> None:
    features, target = records(3, 40)
    book = rules.learn(features, target, 1.0, 39)
    assert len(book) == 0
    assert len(rules.shown(book, features, target, 1.0, 39).learned) == 0


# ------------------------------------------------------------------ general tables

TREES = {
    "job": Hierarchy.from_rows([["a", "ab", "*"], ["b", "ab", "*"], ["c", "cd", "*"], ["d", "cd", "*"]]),
    "town": Hierarchy.from_rows([["n", "*"], ["s", "*"], ["w", "*"]]),
    "ill": Hierarchy.from_rows([["x", "xy", "*"], ["y", "xy", "*"], ["z", "z", "*"]]),
}


def prepared(n: int = 60) -> tuple[Prepared, GeneralTable]:
    """A table, and a release in which every cell was moved up by a random number of levels."""
    rng = np.random.default_rng(5)
    columns, codes, recoded = {}, {}, {}
    for name, tree in TREES.items():
        numbered = tree_of(tree)
        codes[name] = rng.integers(0, len(tree.leaves), n)
        role = Role.SENSITIVE if name == "ill" else Role.QUASI_IDENTIFIER
        columns[name] = Column(role=role, hierarchy=tree).over(name, Domain(tree.leaves))
        recoded[name] = (numbered.nodes, numbered.at[rng.integers(0, numbered.height + 1, n), codes[name]])
    frame = pl.DataFrame({name: np.array(TREES[name].leaves)[code] for name, code in codes.items()})
    data = Prepared("small", "Small", frame, ("job", "town"), "ill", TREES, Records(n, columns, codes))
    domains = {name: column.domain for name, column in columns.items()}
    return data, general_table(data.coded.roles, domains, codes, recoded)


def plain_count(table: GeneralTable, asked: dict[str, set[int]], weights: dict[str, np.ndarray] | None = None) -> float:
    """The paper's f_count: 1 where the value asked for covers the cell, else the share of the cell that it covers."""
    total = 0.0
    for record in range(table.n):
        share = 1.0
        for name, wanted in asked.items():
            column = table.columns[name]
            cell = set(column.nodes.members(int(column.cells[record])).tolist())
            if weights is None:
                share *= 1.0 if cell <= wanted else len(wanted) / len(cell) if wanted <= cell else 0.0
            else:
                given = weights[name]
                share *= sum(given[v] for v in cell & wanted) / sum(given[v] for v in cell)
        total += share
    return total


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_counts_weigh_records_by_the_share_of_leaves(dimensions: int) -> None:
    data, table = prepared()
    members = counts.catalogue(data)
    queries = counts.draw(data, dimensions, 40, np.random.default_rng(dimensions))
    assert queries.columns[0] == "ill"
    assert (queries.asked[:, 0] >= 0).all()
    assert ((queries.asked >= 0).sum(axis=1) == dimensions).all()
    weights = {name: np.arange(1.0, 1 + len(tree.leaves)) for name, tree in TREES.items()}
    actual, even = counts.truth(data, members, queries), counts.estimate(table, members, queries)
    weighed = counts.estimate(table, members, queries, weights)
    for place, query in enumerate(queries.asked):
        asked = {
            name: set(np.flatnonzero(members[name][node]).tolist())
            for name, node in zip(queries.columns, query, strict=True)
            if node >= 0
        }
        met = np.all([np.isin(data.coded.codes[name], list(wanted)) for name, wanted in asked.items()], axis=0)
        assert actual[place] == met.sum()
        assert even[place] == pytest.approx(plain_count(table, asked))
        assert weighed[place] == pytest.approx(plain_count(table, asked, weights))


def test_a_rule_by_estimated_counts_agrees_with_plain_counts() -> None:
    data, table = prepared()
    features = [data.coded.codes[name] for name in data.quasi_identifiers]
    book = rules.learn(features, data.coded.codes["ill"], 0.4, 5)
    found = rules.estimated(book, table, data.quasi_identifiers, "ill", {}, 0.4, 5)
    assert 0 < found.learned.sum() < len(book)
    for place, (conditions, label) in enumerate(as_sets(book)):
        asked = {data.quasi_identifiers[c]: {v} for c, v in conditions}
        tally = [plain_count(table, {**asked, "ill": {code}}) for code in range(3)]
        assert found.learned[place] == (tally[label] >= max(tally) - 1e-9)
        assert found.strict[place] == (sum(tally) >= 5 and tally[label] >= 0.4 * sum(tally))


def test_likely_shares_are_the_fixed_point_of_em() -> None:
    _, table = prepared()
    found = counts.likely_shares(table, ["job"])["job"]
    cells = [table.columns["job"].nodes.members(int(cell)) for cell in table.columns["job"].cells]
    share = np.ones(4) / 4
    for _ in range(5_000):
        step = np.zeros(4)
        for cell in cells:
            step[cell] += share[cell] / share[cell].sum()
        share = step / step.sum()
    assert found.sum() == pytest.approx(table.n)
    assert found == pytest.approx(share * table.n, abs=0.1)


def test_leaves_are_drawn_in_proportion_to_their_weights() -> None:
    nodes = tree_of(TREES["ill"]).nodes
    root, pair = len(nodes) - 1, next(i for i in range(len(nodes)) if nodes.sizes[i] == 2)
    data = np.array([root] * 30_000 + [pair] * 30_000 + [2] * 10)
    domains, roles = {"ill": Domain(TREES["ill"].leaves)}, {"ill": Role.SENSITIVE}
    table = general_table(roles, domains, {"ill": np.zeros(len(data), np.int64)}, {"ill": (nodes, data)})
    drawn = drawn_by(table, "ill", np.array([1.0, 3.0, 6.0]), np.random.default_rng(0))
    # six standard deviations of a share of 30,000 draws are below 0.02
    assert np.bincount(drawn[:30_000]) / 30_000 == pytest.approx([0.1, 0.3, 0.6], abs=0.02)
    assert np.bincount(drawn[30_000:60_000], minlength=3) / 30_000 == pytest.approx([0.25, 0.75, 0], abs=0.02)
    assert (drawn[60_000:] == 2).all()
    drawn = drawn_by(table, "ill", np.array([0.0, 0.0, 6.0]), np.random.default_rng(0))
    assert np.bincount(drawn[30_000:60_000], minlength=3) / 30_000 == pytest.approx([0.5, 0.5, 0], abs=0.02)


def test_single_secrets_are_counted_by_leaves() -> None:
    _, table = prepared()
    assert by_leaves(table, "ill") == pytest.approx([plain_count(table, {"ill": {code}}) for code in range(3)])
    column = table.columns["ill"]
    wide = np.array([len(column.nodes.members(int(cell))) > 1 for cell in column.cells])
    assert generalised(table, "ill") == pytest.approx([wide[column.truth == code].mean() for code in range(3)])
