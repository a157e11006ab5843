"""The small profile: fixed seeds, so that every run sees the same cases. `make fuzz` runs thousands of others."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import noren as nr
from noren.methods.hilbert import along_curve
from noren.policy.options import PeopleOptions
from noren.workflow.prepare import prepare
from tests.fuzz.again import again
from tests.fuzz.case import make_policy, run_case, write_source
from tests.fuzz.judge import judge
from tests.fuzz.people import judge_people, judge_rule, judge_twins, replayed
from tests.fuzz.reading import Read, read_release
from tests.fuzz.ties import SURE, beyond_chance, places
from tests.fuzz.truth import against_original, overall
from tests.fuzz.worlds import CLASS_METHODS, World, make_world

BLOCKS, EACH = 10, 60
ALWAYS = 4
"""Blocks that run at every change."""


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=pytest.mark.slow if block >= ALWAYS else ()) for block in range(BLOCKS)]
)
def test_every_case_ends_in_a_true_release_or_a_clear_error(block):
    ends = set()
    for seed in range(block * EACH, (block + 1) * EACH):
        with tempfile.TemporaryDirectory(prefix="noren-fuzz-") as folder:
            outcome = run_case(seed, Path(folder))
        assert not outcome.wrong, f"python -m tests.fuzz.run --start {seed} --cases 1\n{outcome.words}"
        ends.add(outcome.end)
    assert ends == {"release", "refused"}


def test_one_seed_makes_one_world():
    assert make_world(77) == make_world(77)
    tags = {make_world(seed).tag for seed in range(200)}
    assert tags == {"decoys", *CLASS_METHODS}


# ---------------------------------------------------------------- the judge can say no


def released(method: str, folder: Path, start: int = 0) -> tuple[World, Path, Read]:
    """The first world of this method that ends in a release with a row number and a secret or terms."""
    for seed in range(start, start + 3000):
        world = make_world(seed)
        secret = any(asked["model"] != "k-anonymity" for asked in world.require)
        if world.tag != method or not secret or world.memoised or world.method.get("form") or world.rows < 20:
            continue
        if world.attributes.get("row") != {"role": "plain"}:
            continue
        home = folder / str(seed)
        home.mkdir()
        try:
            nr.anonymize(write_source(world, home), make_policy(world, home), to=home / "release")
        except nr.NorenError:
            continue
        read = read_release(home / "release")
        assert not judge(read, world.require, overall(world, read), world)
        assert not against_original(world, read, home / "release")
        return world, home / "release", read
    raise AssertionError(f"no release by {method}")


@pytest.mark.parametrize("method", ["decoys", *CLASS_METHODS])
def test_the_judge_finds_what_is_wrong(method, tmp_path):
    world, path, read = released(method, tmp_path)
    # every record in a class of its own, or with a set of one value: no requirement survives that
    for i, row in enumerate(read.rows):
        for name, entry in read.entries.items():
            if entry["form"] == "set":
                row[name] = frozenset(list(row[name])[:1])
            elif entry["form"] == "group":
                row[name] = str(i)
            elif entry["role"] in ("quasi-identifier", "sensitive-quasi-identifier"):
                row[name] = f"{row[name]} {i}"
    for name in read.groups:
        read.groups[name] = {i: {str(i): 1} for i in range(len(read.rows))}
    linked = all(asked["model"].startswith("qs-") for asked in world.require)
    if not linked:
        assert judge(read, world.require, overall(world, read), world)
    assert against_original(world, read, path) or linked


@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy"])
def test_the_judge_finds_a_record_that_is_not_what_it_was(method, tmp_path):
    world, path, read = released(method, tmp_path)
    rows = [dict(row) for row in read.rows]
    for one, other in zip(read.rows, rows[1:] + rows[:1], strict=True):
        one["row"] = other["row"]  # everybody's cells belong to a neighbour
    assert against_original(world, read, path)


def test_the_judge_finds_identifiers_and_records_too_many(tmp_path):
    world, path, read = released("mondrian", tmp_path)
    name = next(iter(world.columns))
    world.attributes["hidden"] = {"role": "identifier"}
    world.columns["hidden"] = [f"Qq{i}zzz" for i in range(world.rows)]
    assert not against_original(world, read, path)
    (path / "notes.txt").write_text(f"{world.columns['hidden'][3]} {name}")
    found = " ".join(against_original(world, read, path))
    assert "an identifier is published" in found
    assert "a file that no release has" in found
    read.rows.append(read.rows[0])
    assert "rows, the manifest says" in " ".join(against_original(world, read, path))


def test_the_judge_finds_an_exact_value_beside_the_cells(tmp_path):
    world, target, read = released("mondrian", tmp_path)
    assert not against_original(world, read, target)
    name = next(name for name, entry in read.entries.items() if entry["form"] == "node")
    world.columns[name][0] = "Qz-exact-value"
    page = target / "README.md"
    page.write_text(page.read_text(encoding="utf-8") + "\nQz-exact-value\n", encoding="utf-8")
    assert any("stand beside the cells" in words for words in against_original(world, read, target))


@pytest.mark.parametrize("decides", [True, False])
def test_the_judge_finds_that_places_decide(decides):
    found: dict[str, list[float]] = {"treatment": [], "order": []}
    for seed in range(40):
        r, n = random.Random(seed), 12
        world = World(
            seed, {"row": list(range(n)), "q": ["x"] * n}, {"row": {"role": "plain"}, "q": {"role": "q"}}, [], {}
        )
        order = list(range(n)) if decides else r.sample(range(n), n)
        rows = [{"row": str(i), "q": "early" if at < n / 2 else "late"} for at, i in enumerate(order)]
        for what, number in places(
            world, Read({}, {"row": {"form": "open"}, "q": {"form": "node"}}, rows, {}, {}), range(n)
        ).items():
            found[what].append(number)
    assert [beyond_chance(numbers) > SURE for numbers in found.values()] == [decides, decides]


def test_the_judge_finds_ways_round_a_register(tmp_path):
    """A holder who takes a new secret every time: nobody is recognised."""
    for seed in range(3000):
        world = make_world(seed)
        plain = world.attributes.get("row") == {"role": "plain"}
        if not world.memoised or not plain or world.tag != "decoys" or world.rows < 40 or world.method.get("form"):
            continue
        home = tmp_path / str(seed)
        home.mkdir()

        def afresh(later: World, target: Path, home: Path = home) -> nr.NorenError | None:
            folder = home / f"of {target.name}"
            folder.mkdir()
            try:
                data: Any = write_source(later, folder)
                nr.anonymize(data, make_policy(later, folder), to=target, secret=folder / "secret.key")
            except nr.NorenError as error:
                return error
            return None

        if afresh(world, home / "first") is not None:
            continue
        first = read_release(home / "first")
        if not any(entry["form"] == "set" for entry in first.entries.values()):
            continue
        found = " ".join(again(world, home, first, afresh))
        assert "the same people publish other sets" in found
        assert "another key column leads round the register" in found
        assert "a lost register is not missed" in found
        return
    raise AssertionError("no memoised release")


# ---------------------------------------------------------------- several rows, public curves, lookalikes


def test_the_judge_finds_what_several_rows_of_a_person_disclose(tmp_path):
    """Rows taken for people of their own, judged as rows of people."""
    found: list[str] = []
    for seed in range(4000):
        world = make_world(seed)
        if not world.person or not world.ignores or world.rows < 45 or world.tag not in ("mondrian", "hilbert"):
            continue
        home = tmp_path / str(seed)
        home.mkdir()
        try:
            policy = make_policy(world, home)
            alone = policy.model_copy(update={"people": PeopleOptions(rows="independent")})
            nr.anonymize(write_source(world, home), policy, to=home / "release")
            nr.anonymize(write_source(world, home), alone, to=home / "alone")
        except nr.NorenError:
            continue
        assert not judge_people(world, read_release(home / "release"))
        found += judge_people(world, read_release(home / "alone"))
        if any("belief" in words for words in found) and any("fit" in words for words in found):
            return
    raise AssertionError(f"found only {found}")


def test_the_judge_finds_a_method_whose_rule_is_not_ignored_and_whom_it_makes_certain(tmp_path):
    certain = right = 0
    for seed in range(4000):
        world = make_world(seed)
        if not world.curve or not world.ignores or world.method.get("blind", True) or world.rows < 120:
            continue
        home = tmp_path / str(seed)
        home.mkdir()
        data, policy = write_source(world, home), make_policy(world, home)
        nr.anonymize(data, policy, to=home / "release")
        read = read_release(home / "release")
        records = prepare(data, policy).records
        said = replayed(world, read, along_curve(records, np.arange(records.n)).tolist())
        certain, right = certain + said[0], right + said[1]
        assert not judge_rule(world, read)
        read.manifest.pop("mechanism")
        assert judge_rule(replace(world, seed=4 * seed), read)
        if certain > 60:
            break
    assert right > 0.9 * certain > 50


@pytest.mark.parametrize("twin", ["W-1\u200b", "W\u2010\u00ad1", "\u051c-1"])
def test_the_judge_finds_values_that_look_the_same(twin):
    entry = {"form": "exact", "kind": "string", "values": ["W-1", "W-2"]}
    rows = [{"ill": "W-1"}, {"ill": "W-2"}]
    assert not judge_twins(Read({}, {"ill": entry}, rows, {}, {}))
    assert judge_twins(Read({}, {"ill": entry}, [*rows, {"ill": twin}], {}, {}))
    assert judge_twins(Read({}, {"ill": entry | {"values": ["W-1", twin]}}, rows, {}, {}))


def test_worlds_hold_twins_that_are_refused_or_counted_once(tmp_path):
    worlds = [world for world in map(make_world, range(1500)) if world.twins][:12]
    assert len(worlds) == 12
    for world in worlds:
        home = tmp_path / str(world.seed)
        home.mkdir()
        outcome = run_case(world.seed, home)
        assert not outcome.wrong, outcome.words
