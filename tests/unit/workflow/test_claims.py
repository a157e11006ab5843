"""What verification says of claims, counts and columns: each wrong one is refused, each right one is let pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign
from noren.engines.left_out import LEFT_OUT
from noren.errors import DataError, PolicyError, ReleaseError
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.policy.resolve import open_table
from noren.release.manifest import UsedMethod, VerdictEntry
from noren.schema.roles import Role
from noren.workflow.foreign import _joined as _joined_parts
from noren.workflow.foreign import read_foreign
from noren.workflow.prepare import prepare, remarks
from noren.workflow.truth import Truth, _estimate_shares
from noren.workflow.verify import ALL, NEAR, _demand_methods, demand_claims, find_unwanted, reach_of_noise

JOBS = ["cook", "clerk", "miner", "nurse"]
PEOPLE = pl.DataFrame({"town": ["Ulm", "Hof"] * 20, "job": [job for job in JOBS for _ in range(10)]})
ATTRIBUTES: dict[str, Any] = {"town": "quasi-identifier", "job": {"role": "sensitive", "values": JOBS}}
DIVERSE = nr.models.FrequencyLDiversity(on="job", l=2)
POLICY = nr.Policy(attributes=ATTRIBUTES, require=[DIVERSE])


@pytest.fixture(scope="module")
def release() -> nr.Release:
    return nr.anonymize(PEOPLE, POLICY)


# ---------------------------------------------------------------- claims

ENTRY = {"model": "m", "column": "job", "required": 2.0, "achieved": 3.0, "holds": True, "basis": "the release alone"}
ABSENT = {"model": LEFT_OUT, "column": ALL, "required": 1.0, "achieved": None, "holds": True, "basis": "the original"}


def claimed(*entries: dict[str, Any], suppressed: int = 0, people: bool = True) -> Any:
    manifest = SimpleNamespace(verdicts=[VerdictEntry(**one) for one in entries], rows_are_people=people)
    return SimpleNamespace(manifest=manifest, suppressed=suppressed)


FOUND = Verdict("m", "job", 2.0, 3.0, True, "the release alone", 9, 0, "")


@pytest.mark.parametrize(
    ("entries", "options", "said"),
    [
        ([ENTRY], {}, None),
        ([ENTRY | {"achieved": 3.0 * (1 + NEAR / 2)}], {}, None),
        ([ENTRY | {"achieved": 3.0 * (1 + 3 * NEAR)}], {}, "a verdict on m of 'job'"),
        ([ENTRY | {"achieved": 3.1}], {"people": False}, None),
        ([ENTRY | {"achieved": 3.1, "basis": "the published design"}], {}, "a verdict on"),
        ([ENTRY | {"holds": False}], {}, "a verdict on"),
        ([ENTRY | {"required": 3.0}], {}, "a verdict on"),
        ([ENTRY | {"basis": "hearsay"}], {}, "a verdict on"),
        ([ENTRY | {"basis": "the original"}], {}, "a verdict on"),
        ([ENTRY | {"basis": "the original", "achieved": None}], {}, None),
        ([ENTRY | {"achieved": None}], {}, "a verdict on"),
        ([], {}, "verdicts on requirements that it does not list"),
        ([ENTRY, ENTRY], {}, "verdicts on requirements that it does not list"),
        ([ENTRY | {"column": "town"}], {}, "verdicts on requirements that it does not list"),
        ([ENTRY | {"model": "n"}], {}, "verdicts on requirements that it does not list"),
        ([ENTRY, ABSENT], {"suppressed": 1}, None),
        ([ENTRY, ABSENT], {}, "verdicts on requirements that it does not list"),
        ([ENTRY, ABSENT, ABSENT], {"suppressed": 1}, "verdicts on requirements that it does not list"),
        ([ENTRY, ABSENT | {"column": "job"}], {"suppressed": 1}, "verdicts on requirements that it does not list"),
        ([ENTRY, ABSENT | {"achieved": 1.0}], {"suppressed": 1}, "verdicts on requirements that it does not list"),
    ],
)
def test_a_manifest_claims_what_its_cells_show(entries: Any, options: dict[str, Any], said: str | None) -> None:
    if said is None:
        demand_claims(claimed(*entries, **options), [FOUND])
        return
    with pytest.raises(ReleaseError, match=said):
        demand_claims(claimed(*entries, **options), [FOUND])


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (UsedMethod(name="decoys"), None),
        (UsedMethod(name="decoys", on=("job",)), None),
        (UsedMethod(name="decoys", on=("town", "job")), None),
        (UsedMethod(name="auto", chosen="mondrian + decoys"), None),
        (UsedMethod(name="magic"), "a method that this version does not know"),
        (UsedMethod(name="auto", chosen="mondrian + magic"), "a method that this version does not know"),
        (UsedMethod(name="decoys", on=("job", "nobody")), "a method for columns that it does not have"),
    ],
)
def test_a_manifest_names_methods_and_columns_that_there_are(method: UsedMethod, said: str | None) -> None:
    release: Any = SimpleNamespace(manifest=SimpleNamespace(methods=[method]), columns=("town", "job"))
    if said is None:
        _demand_methods(release)
        return
    with pytest.raises(ReleaseError, match=said):
        _demand_methods(release)


def test_columns_that_the_policy_drops_or_does_not_know_fail() -> None:
    policy = nr.Policy(attributes=ATTRIBUTES | {"name": "identifier", "hat": "drop"}, require=[DIVERSE])
    found = find_unwanted(["town", "name", "shoe", "hat"], policy, 7, "the release publishes")
    assert [(one.column, one.holds, one.breaches, one.required, one.achieved) for one in found] == [
        ("name", False, 7, 0.0, 1.0),
        ("shoe", False, 7, 0.0, 1.0),
        ("hat", False, 7, 0.0, 1.0),
    ]
    assert found[0].statement == "the release publishes 'name', which has the role identifier in the policy"
    assert found[1].statement == "the release publishes 'shoe', which is not in the policy"


# ---------------------------------------------------------------- the original beside the release


def truths(release: nr.Release, original: pl.DataFrame, suppressed: int = 0) -> Verdict:
    manifest = release.manifest.model_copy(update={"suppressed": suppressed})
    (found,) = Truth(nr.Release(manifest, release.store), POLICY, original)._possible()
    return found


def test_every_value_is_possible_as_often_as_it_is_true(release: nr.Release) -> None:
    fine = truths(release, PEOPLE)
    assert (fine.holds, fine.breaches, fine.achieved, fine.records) == (True, 0, 1.0, 40)
    assert fine.statement == "every value is possible at least as often as it is true"
    more = pl.concat([PEOPLE, PEOPLE.head(1)])
    one = truths(release, more)
    assert (one.holds, one.statement) == (
        False,
        "the original has 41 records, but the release has 40 and reports 0 suppressed",
    )
    left = truths(release, more, suppressed=1)
    assert left.holds
    assert left.statement.endswith(", apart from the 1 suppressed records")
    cooks = PEOPLE.with_columns(job=pl.lit("cook"))
    wrong = truths(release, cooks)
    seen = int(release.cells(["job"])["job"].inclusions()[0])
    assert (wrong.holds, wrong.statement) == (False, "some true values are not possible")
    assert (wrong.breaches, wrong.achieved) == (40 - seen, pytest.approx(seen / 40))
    assert Truth(nr.anonymize(PEOPLE.drop("job"), _plain()), None, PEOPLE)._possible() == []


def _plain() -> Policy:
    return nr.Policy(attributes={"town": "plain"}, require=[])


def test_a_sample_lies_within_eight_deviations_and_one() -> None:
    """0.3 of 1,000: a deviation is 14.49, so that up to 115.9 and one more may be missing or too many."""
    release: Any = SimpleNamespace(
        manifest=SimpleNamespace(sample=0.3),
        statements=[SimpleNamespace(name="job", lists_values=True, terms=None)],
        suppressed=6,
    )
    counted = {"job": np.array([990, 10])}
    asked: Any = SimpleNamespace(release=release, counts=lambda names, strangers: counted)
    for people, near in ((300, True), (416, True), (417, False), (184, True), (183, False)):
        release.records = people - 6
        (found,) = Truth._judge_sample(asked)
        assert (found.holds, found.breaches, found.records) == (near, 0 if near else people, people)
        assert found.achieved == people / 1000
        assert found.statement == f"the release covers {people} of 1000 records"
    release.statements = []
    assert Truth._judge_sample(asked) == []


@pytest.mark.parametrize(
    ("shown", "had", "people", "sample", "holds", "breaches", "said"),
    [
        ([2, 1], [2, 1], 4, None, True, 0, "no term is published more often than it is true"),
        ([1, 0], [2, 1], 4, None, True, 0, "no term is published more often than it is true"),
        ([3, 1], [2, 1], 4, None, False, 1, "some terms are published more often than they are true"),
        ([1, 0], [0, 0], 4, None, False, 1, "some terms are published more often than they are true"),
        ([2, 1], [2, 1], 5, None, False, 0, "the original has 4 records, but the release covers 5"),
        ([2, 1], [2, 1], 3, 0.5, True, 0, "no term is published more often than it is true"),
    ],
)
def test_no_term_is_published_more_often_than_it_is_true(shown, had, people, sample, holds, breaches, said) -> None:
    cells = SimpleNamespace(counts=lambda: np.array(shown))
    statement = SimpleNamespace(
        name="signs", d=2, domain=SimpleNamespace(values=("b", "a")), check_cells=lambda given: given
    )
    release: Any = SimpleNamespace(
        column=lambda name: statement,
        batches=lambda names: [{"signs": cells}],
        records=people,
        suppressed=0,
        manifest=SimpleNamespace(sample=sample),
    )

    class Had:
        def __len__(self) -> int:
            return 4

        def counts(self) -> np.ndarray:
            return np.array([9, had[1], had[0]])

    column: Any = SimpleNamespace(name="signs", domain=SimpleNamespace(index={"c": 0, "a": 1, "b": 2}), cells=Had())
    found = Truth._no_term_more(SimpleNamespace(release=release), column)  # type: ignore[arg-type]
    assert (found.holds, found.breaches, found.statement, found.records) == (holds, breaches, said, 4)
    assert found.achieved == pytest.approx(1 - breaches / sum(shown))


def test_dates_are_read_as_the_policy_writes_them() -> None:
    """No day is beyond twelve, so that the texts alone do not say which number is the month."""
    days = [f"{1 + i % 12:02d}/{1 + i % 3:02d}/2020" for i in range(60)]
    table = pl.DataFrame({"born": days, "job": [JOBS[i % 4] for i in range(60)]})
    attributes = {"born": {"role": "quasi-identifier", "kind": "date", "format": "%d/%m/%Y"}, "job": ATTRIBUTES["job"]}
    asked = [nr.models.KAnonymity(k=10), nr.models.DistinctLDiversity(on="job", l=2)]
    policy = nr.Policy(attributes=attributes, require=asked, method="mondrian")
    release = nr.anonymize(table, policy)
    found = {(one.model, one.column): one for one in nr.verify(release, policy, original=table)}
    assert all(one.holds for one in found.values())
    truth = Truth(release, policy, table).counts(["born"])["born"]
    born = release.column("born")
    assert not born.domain.names_all
    places = np.array(born.domain.find([f"2020-{day[3:5]}-{day[:2]}" for day in days]))
    assert truth.tolist() == np.bincount(places, minlength=born.d).tolist()


# ---------------------------------------------------------------- tables made elsewhere


def test_nothing_can_hold_where_nothing_is_required() -> None:
    policy = nr.Policy(attributes={"town": "plain"}, require=[])
    for table in (PEOPLE.drop("job"), nr.anonymize(PEOPLE.drop("job"), policy)):
        with pytest.raises(PolicyError, match="the policy has no requirements, so nothing can be checked"):
            nr.check(table, policy)


def test_values_in_the_order_that_was_given() -> None:
    roles = {"town": Role.QUASI_IDENTIFIER, "job": Role.SENSITIVE}
    source = open_table(PEOPLE, POLICY)
    given = read_foreign(source, roles, values={"job": JOBS[::-1]})
    assert given.column("job").domain.values == tuple(JOBS[::-1])
    assert read_foreign(source, roles).column("job").domain.source == "data"
    assert (given.records, given.suppressed) == (40, 0)


def test_a_missing_secret_is_no_value_wherever_it_stands() -> None:
    table = pl.DataFrame({"town": ["Ulm"] * 4, "job": [" cook", None, "clerk", "cook"]})
    roles = {"town": Role.QUASI_IDENTIFIER, "job": Role.SENSITIVE}
    found = read_foreign(open_table(table, POLICY), roles)
    statement = found.column("job")
    counts = dict(zip(statement.domain.values, _tally(found, "job"), strict=True))
    assert (counts["cook"], counts["clerk"], sum(counts.values())) == (2, 1, 4)


def _tally(published: Any, name: str) -> list[int]:
    statement = published.column(name)
    return sum(statement.tally(batch[name]) for batch in published.batches([name])).tolist()


@pytest.mark.parametrize(
    "parts",
    [
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"]).dictionary_encode()],
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"])],
        [pa.array(["a", "b"]), pa.array(["b", "c"])],
        [
            pa.array(["a", "b"]).dictionary_encode(),
            pa.DictionaryArray.from_arrays(pa.array([1, 2], pa.int8()), pa.array([None, "b", "c"])),
        ],
        [pa.array([1, 2]).dictionary_encode(), pa.array([2, 3]).dictionary_encode()],
    ],
)
def test_parts_of_a_column_are_one_however_each_is_held(parts: list[Any]) -> None:
    found = _joined_parts(parts)
    assert found.to_pylist() == [one for part in parts for one in part.to_pylist()]
    fit = all(isinstance(part, pa.DictionaryArray) and pa.types.is_string(part.type.value_type) for part in parts)
    same = len({part.type for part in parts}) == 1 and not any(
        part.dictionary.null_count for part in parts if isinstance(part, pa.DictionaryArray)
    )
    assert pa.types.is_dictionary(found.type) == (fit and same), "few texts stay few texts"


def test_rows_that_are_all_suppressed_are_nobody() -> None:
    table = pl.DataFrame({"town": ["*", "*"], "job": ["cook", "clerk"]})
    roles = {"town": Role.QUASI_IDENTIFIER, "job": Role.SENSITIVE}
    with pytest.raises(DataError, match="every row has '\\*' in all quasi-identifiers"):
        read_foreign(open_table(table, POLICY), roles)
    assert read_foreign(open_table(table, POLICY), roles, suppressed=None).records == 2
    judged = read_foreign(open_table(table, POLICY), roles, judged=True)
    assert (judged.records, judged.suppressed) == (2, 2)


# ---------------------------------------------------------------- what closeness is judged against


@pytest.mark.parametrize(
    "design", [DecoyDesign(d=4, eta=2, p=0.5), DecoyDesign(d=4, eta=2), PramDesign(d=4, keep=0.4, parts=(1, 2, 3, 4))]
)
def test_shares_are_estimated_by_inversion_and_never_below_nothing(design: Any) -> None:
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    told = design.inclusion_matrix().T @ shares
    found = _estimate_shares(design, told * 1000, 1000)
    assert found.shares == pytest.approx(shares, abs=1e-12)
    assert found.basis == "an estimate from the release"
    matrix = design.inclusion_matrix()
    scores = np.linalg.inv(matrix.T)
    if design.eta == 1:
        second = (matrix @ (scores**2).T).T @ shares
        assert found.std_error == pytest.approx(np.sqrt((second - shares) / 1000))
    less = told.copy()
    less[3] = 0
    low = _estimate_shares(design, less * 1000, 1000).shares
    assert low[3] == 0
    assert low.sum() == pytest.approx(1)


def test_sets_that_tell_nothing_leave_all_values_alike() -> None:
    found = _estimate_shares(DecoyDesign(d=4, eta=4), np.array([9, 9, 9, 9]), 9)
    assert found.shares.tolist() == [0.25] * 4


@pytest.mark.parametrize(("cells", "scale"), [(1, 2.0), (12, 0.5), (200, 4.0)])
def test_noise_lies_where_it_is_said_to_lie(cells: int, scale: float) -> None:
    """Discrete Laplace noise as a difference of geometric numbers: its mean lies inside, by far."""
    low, high = reach_of_noise(cells, scale)
    q = np.exp(-1 / scale)
    mean = cells * 2 * q / (1 - q**2)
    assert 0 <= low < mean < high
    rng = np.random.default_rng(cells)
    noise = rng.geometric(1 - q, (2000, cells)) - rng.geometric(1 - q, (2000, cells))
    sums = np.abs(noise).sum(axis=1)
    assert ((sums >= low) & (sums <= high)).all(), "once in 10^9 each"


# ---------------------------------------------------------------- what a holder should know


@pytest.mark.parametrize(("rare", "said"), [(4, True), (5, False)])
def test_values_that_few_share_are_remarked(rare: int, said: bool) -> None:
    jobs = ["cook"] * 20 + ["clerk"] * 20 + ["miner"] * rare
    table = pl.DataFrame({"town": (["Ulm", "Hof"] * 30)[: len(jobs)], "job": jobs})
    attributes = {"town": "quasi-identifier", "job": "sensitive"}
    policy = nr.Policy(attributes=attributes, require=[DIVERSE])
    found = remarks(prepare(table, policy), policy)
    told = "job: the published domain lists 1 values with fewer than five records"
    assert any(one.startswith(told) for one in found) is said
    declared = nr.Policy(attributes=ATTRIBUTES, require=[DIVERSE])
    assert not [one for one in remarks(prepare(table, declared), declared) if "names" in one]


def test_values_that_look_alike_are_refused() -> None:
    """In a policy and in a source, naming the column and no cell."""
    jobs = ["cook", " cook", "clerk"] * 20
    with pytest.raises(nr.errors.PolicyError, match="values contains 1 entries that look the same as others"):
        nr.Policy(attributes={"job": {"role": "sensitive", "values": ["cook", " cook", "clerk"]}}, require=[DIVERSE])
    policy = nr.Policy(attributes={"job": "sensitive"}, require=[DIVERSE])
    with pytest.raises(nr.errors.PolicyError, match=r"attributes\.job: 1 value looks like another") as caught:
        prepare(pl.DataFrame({"job": jobs}), policy)
    assert "cook" not in str(caught.value)
