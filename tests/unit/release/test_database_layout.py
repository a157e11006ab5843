"""Tables of a release in a base, without a server: which there are, what their columns are called and hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from noren.release.database.layout import Lookup, PairTally, comments, kept_pairs, node_ranges, range_type, view_query
from noren.release.database.publish import _foreign_key
from noren.schema.nodes import Nodes
from noren.statements import CodeCells, Statement
from tests.statements import exact_column, group_column, node_column, set_column, term_column

COLUMNS: tuple[Statement, ...] = (exact_column("town", 3), set_column("ill", 4), node_column("age", 3))
AGES = (("int8range", ["[0,0]", "[0,3)"]), ["0", "[0, 3)"])


def lookups() -> list[Lookup | None]:
    """Of the second column two sets, of the third two general values that are intervals."""
    two = CodeCells(3, np.array([0, 1], np.uint8))
    sets = pa.array([["0", "1"], ["2", "3"]])
    return [None, Lookup("sets_2", two, sets), Lookup("nodes_3", two, pa.array(AGES[1]), AGES[0])]


def test_people_read_intervals_where_there_are_some() -> None:
    _, sets, ages = lookups()
    assert sets is not None
    assert ages is not None
    assert sets.definition('"s"') == ['CREATE TABLE "s"."sets_2" (id int PRIMARY KEY, value text[] NOT NULL)']
    assert ages.definition('"s"') == [
        'CREATE TABLE "s"."nodes_3" (id int PRIMARY KEY, value text NOT NULL, interval int8range NOT NULL)'
    ]


def test_the_view_joins_what_numbers_mean() -> None:
    assert view_query('"s"', COLUMNS) == (
        'SELECT c."town", l1.value AS "ill", l2.interval AS "age" FROM "s".cells c '
        'JOIN "s"."sets_2" l1 ON l1.id = c."ill" JOIN "s"."nodes_3" l2 ON l2.id = c."age"'
    )


def test_a_number_must_stand_in_its_table() -> None:
    keys = [_foreign_key('"s"', column, lookup) for column, lookup in zip(COLUMNS, lookups(), strict=True)]
    assert keys[0] is None
    assert keys[1] == 'FOREIGN KEY ("ill") REFERENCES "s"."sets_2" (id)'
    groups = _foreign_key('"s"', group_column("pay", 3), None)
    assert groups == 'FOREIGN KEY ("pay") REFERENCES "s".groups_1_keys (id)'
    assert _foreign_key('"s"', term_column("signs", ("cough", "fever"), None), None) is None  # its table has no keys


def test_every_table_and_column_has_a_sentence() -> None:
    made = comments('"s"', [*COLUMNS, group_column("pay", 3)], [*lookups(), None], [(2, 3)])
    told = dict(line.removeprefix("COMMENT ON ").split(" IS ", 1) for line in made)
    assert set(told) == {
        *(f'{kind} "s".{name}' for kind, name in (("VIEW", "records"), ("TABLE", "cells"), ("TABLE", "manifest"))),
        *(f'COLUMN "s".{table}."{name}"' for table in ("records", "cells") for name in ("town", "ill", "age", "pay")),
        *(f'TABLE "s".{name}' for name in ('"sets_2"', '"nodes_3"', "counts_2_3", '"groups_1"')),
    }
    assert told['TABLE "s".counts_2_3'] == "E'How many rows of cells have each pair of numbers in ill and age.'"
    assert told['TABLE "s"."nodes_3"'] == "E'What the numbers in column age of cells mean.'"
    assert told['COLUMN "s".cells."town"'] == "E'Published exactly.'"
    assert told['COLUMN "s".cells."ill"'] == f"E'{COLUMNS[1].field()['description']}'"


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize(
    ("labels", "made"),
    [
        (["[0, 6]", "[7, 10)", "12"], ("int8range", ["[0,6]", "[7,10)", "[12,12]"])),
        (["[1.5, 2]", "*"], ("numrange", ["[1.5,2]", "(,)"])),
        (["below 18", "90 and above"], ("int8range", ["(,18)", "[90,)"])),
        (["[2020-01-01, 2020-02-01)"], ("daterange", ["[2020-01-01,2020-02-01)"])),
        (["[20200101, 2020-02-01)"], None),  # a date, but not as dates are written
        (["[2020-01-01, 2020-02-31)"], None),
        (["{a, b}", "a"], None),
        (["[0, 6]", "(missing)"], None),
        (["*"], None),
    ],
)
def test_labels_as_ranges(labels: list[str], made: tuple[str, list[str]] | None) -> None:
    assert range_type(labels) == made


def test_a_column_without_general_values_has_no_ranges() -> None:
    assert node_ranges(None) is None
    nodes = Nodes.from_members(3, ["0", "[1, 3)", "any"], [(0,), (1, 2), (0, 1, 2)])
    assert node_ranges(nodes) == ("int8range", ["[0,0]", "[1,3)", "(,)"])


# ---------------------------------------------------------------------- counts of pairs


def test_counts_are_kept_where_they_are_short() -> None:
    """By hand: 800 rows allow 100 combinations of a pair and 400 lines in all."""
    assert kept_pairs({1: 10, 2: 10, 5: 11}, 800) == [(1, 2)]
    assert kept_pairs({1: 10, 2: 10, 3: 10, 4: 10}, 800) == [(1, 2), (1, 3), (1, 4), (2, 3)]
    assert kept_pairs({3: 2}, 800) == []
    tally = PairTally({1: 2, 4: 3}, 100)
    tally.add({1: np.array([0, 1, 1], np.int32), 4: np.array([2, 0, 0], np.int32)})
    tally.add({1: np.array([1], np.int32), 4: np.array([0], np.int32)})
    (((first, second), table),) = tally.tables()
    assert (first, second) == (1, 4)
    assert table.to_pydict() == {"first": [0, 1], "second": [2, 0], "rows": [1, 3]}
