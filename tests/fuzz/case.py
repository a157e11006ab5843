"""One case from start to end: write the holder's files, run the pipeline, judge what came out."""

from __future__ import annotations

import csv
import gzip
import re
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import noren as nr
from noren.methods.hilbert import along_curve
from noren.workflow.prepare import prepare
from tests.fuzz.again import again
from tests.fuzz.judge import judge
from tests.fuzz.people import judge_people, judge_rule, judge_twins, replayed
from tests.fuzz.reading import Read, read_release
from tests.fuzz.texts import is_missing, text
from tests.fuzz.ties import places
from tests.fuzz.truth import against_original, kept_records, overall, texts_in
from tests.fuzz.worlds import World, make_world

NAMED_FROM = 5
LONG_ENOUGH = 5
"""Shorter cells stand in any text by chance."""
COMMON = ("false", "true", "(other)", "(missing)")
"""Words that messages use on their own account."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended: `release`, `refused` (an error of the package), or `wrong` with what is wrong."""

    seed: int
    tag: str
    end: str
    words: str = ""
    places: dict[str, float] = field(default_factory=dict)
    """Whether places in the table decided among equal records: see `ties`."""
    replay: dict[str, float] = field(default_factory=dict)
    """How many secrets a replay of the curve is certain of, how many rightly, and whether the policy ignores it."""

    @property
    def wrong(self) -> bool:
        return self.end == "wrong"


def run_case(seed: int, folder: Path) -> Outcome:
    """Run the case of this seed in an empty folder."""
    world = make_world(seed)
    target = folder / "public" / "release"
    try:
        data = write_source(world, folder)
        policy = make_policy(world, folder)
        options: dict[str, Any] = {"secret": folder / "secret.key"} if world.memoised else {}
        if world.saved:
            nr.anonymize(data, policy, **options).save(target, world.file_format)
        else:
            nr.anonymize(data, policy, to=target, file_format=world.file_format, **options)
    except nr.NorenError as error:
        found = quoted(world, f"{error} {error.message} {error.hint}")
        found += ["something is left of a refused release"] if left_over(folder) else []
        return Outcome(seed, world.tag, "wrong" if found else "refused", "; ".join(found) or _kind(error))
    except Exception:
        return Outcome(seed, world.tag, "wrong", "traceback: " + traceback.format_exc()[-1500:])
    told: dict[str, float] = {}
    found = judged(world, folder, target, data, policy, told)
    replay = {key: told.pop(key) for key in ("certain", "right") if key in told}
    end = "wrong" if found else "release"
    return Outcome(
        seed, world.tag, end, "; ".join(found), told, replay | ({"ignored": world.ignores} if replay else {})
    )


def judged(world: World, folder: Path, target: Path, data: Any, policy: nr.Policy, told: dict[str, float]) -> list[str]:
    """What the plain judge, the original, the package's own verification and a second release find wrong.

    What places tell of equal records is noted in `told`.
    """
    try:
        read = read_release(target)
        told |= places(world, read, kept_records(world))
        found = judge(read, world.require, overall(world, read), world)
        found += against_original(world, read, target)
        found += judge_people(world, read) + judge_rule(world, read) + judge_twins(read)
        if world.curve:
            records = prepare(data, policy).records
            told["certain"], told["right"] = replayed(world, read, along_curve(records, np.arange(records.n)).tolist())
        release = nr.open_release(target)
        if release.frame().height != len(read.rows):
            found.append("the release opens with another number of rows")
        verdicts = nr.verify(release, policy, original=data)
        short = [v for v in verdicts if v.holds is False or (v.holds is None and not _open(v, world, read))]
        found += [f"verification: {v.model} on {v.column} {v.statement}" for v in short]
        first = next((name for name, e in read.entries.items() if e["form"] not in ("open", "terms")), None)
        if first is not None and world.seed % 4 == 0:
            release.estimate(first)
        if world.memoised and not found:
            found += again(world, folder, read, partial(released, folder))
    except nr.NorenError as error:
        return [f"the release cannot be used: {type(error).__name__}: {error}"]
    except Exception:
        return ["traceback in judging: " + traceback.format_exc()[-1500:]]
    return found


def released(folder: Path, world: World, target: Path) -> nr.NorenError | None:
    """Release a world under the secret of the folder; why it is refused, or None."""
    later = folder / f"{target.name}-table"
    later.mkdir()
    try:
        nr.anonymize(write_source(world, later), make_policy(world, folder), to=target, secret=folder / "secret.key")
    except nr.NorenError as error:
        return error
    return None


def _open(verdict: Any, world: World, read: Read) -> bool:
    """Whether a verdict may stay undecided: the secrets of suppressed people under sets, generalised values and terms,
    the groups of people with several rows, and how often such people were drawn."""
    asked = [name for one in world.require for name in ([one["on"]] if isinstance(one.get("on"), str) else [])]
    if world.person and (
        verdict.model == "local-privacy" or read.entries.get(verdict.column, {}).get("form") == "group"
    ):
        return True
    hidden = any(read.entries[name]["form"] not in ("exact", "group") for name in asked)
    return verdict.model == "left-out" and read.manifest["suppressed"] > 0 and hidden


def _kind(error: nr.NorenError) -> str:
    """The class of the error and its first sentence, without names and numbers, so that reasons can be counted."""
    first = error.problems[0] if isinstance(error, nr.errors.PolicyError) else error
    words = first.message.splitlines()[0]
    words = re.sub(r"\d[\d.,]*%?", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "Q", words))
    return f"{type(error).__name__}: {words[:100]}"


def left_over(folder: Path) -> bool:
    public = folder / "public"
    return public.exists() and any(public.iterdir())


def quoted(world: World, words: str) -> list[str]:
    """Cells that fewer than five records share in every column, that nobody declared, and that the message repeats."""
    declared = [*texts_in(world.attributes), repr(world.attributes), repr(world.data), *world.files.values()]
    declared += world.columns
    times = {name: _times(world, name) for name in world.columns}
    shared = {cell for counts in times.values() for cell, count in counts.items() if count >= NAMED_FROM}
    known = "\0".join([*declared, *COMMON, *shared])
    out = []
    for name, counts in times.items():
        rare = [cell for cell, count in counts.items() if count < NAMED_FROM and len(cell) >= LONG_ENOUGH]
        if any(cell in words and cell not in known for cell in rare):
            out.append(f"the error quotes a rare cell of {name}: {words[:300]}")
    return out


def _times(world: World, name: str) -> Counter[str]:
    between = world.attributes[name].get("separator")
    cells: list[Any] = []
    for value in world.columns[name]:
        split = isinstance(value, str) and between
        cells += value if isinstance(value, list) else value.split(between) if split else [value]
    return Counter(text(cell) for cell in cells if not is_missing(cell))


def make_policy(world: World, folder: Path) -> nr.Policy:
    for name, content in world.files.items():
        (folder / name).write_text(content, encoding="utf-8", newline="")
    randomness: dict[str, Any] = {}
    if world.memoised:
        randomness = {"record_key": world.data["record_key"]}
        if not (folder / "secret.key").exists():
            nr.Secret.create(folder / "secret.key")
    options = {key: value for key, value in world.data.items() if key == "missing_values"}
    if world.source in ("csv", "csv.gz"):
        options["separator"] = world.separator
    policy = nr.Policy(
        attributes=world.attributes, require=world.require, method=world.method, data=options, randomness=randomness,
        dependence={"most": world.dependence}, base=folder, mechanism="ignored" if world.ignores else "judged",
        **({"people": {"key": world.person}} if world.person else {}),
    )  # fmt: skip
    if world.through_toml:
        policy = nr.Policy.parse(policy.to_toml(), base=folder)
    return policy


def write_source(world: World, folder: Path) -> Any:
    """The table in the form that the case says."""
    if world.source in ("csv", "csv.gz"):
        path = folder / f"holder-table.{world.source}"
        opener = gzip.open if world.source == "csv.gz" else open
        marker = world.data.get("missing_values", [""])[0]
        with opener(path, "wt", encoding="utf-8", newline="") as file:
            # with "\n" alone Python 3.11 would leave a lone "\r" inside a cell without quotes
            writer = csv.writer(file, delimiter=world.separator, lineterminator="\r\n")
            writer.writerow(world.columns)
            for row in zip(*world.columns.values(), strict=True):
                writer.writerow(marker if is_missing(cell) else text(cell) for cell in row)
        return path
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: _array(values) for name, values in world.columns.items()})
    if world.source == "parquet":
        pq.write_table(table, folder / "holder-table.parquet", row_group_size=17)
        return folder / "holder-table.parquet"
    if world.source == "arrow":
        with pa.OSFile(str(folder / "holder-table.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table, max_chunksize=23)
        return folder / "holder-table.arrow"
    if world.source == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table.to_pandas() if world.source == "pandas" else table


def _array(values: list[Any]) -> Any:
    import pyarrow as pa

    lists = any(isinstance(value, list) for value in values)
    kind = pa.list_(pa.string()) if lists else None
    if all(value is None for value in values):
        kind = pa.string()
    return pa.array(values, kind)
