"""Run figures of a paper and keep what they give: sheets, pictures, answers, and a summary over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noren import __version__
from noren.errors import NorenError, QueryError
from noren_papers.base import Bench, Figure, Paper, Result
from noren_papers.datasets import BY_NAME, check_folder, digest_of, find
from noren_papers.gains import write_gains
from noren_papers.registry import find_paper
from noren_papers.summary import write_summary
from noren_papers.write import Record, prepare, read_records, write_figure

Stage = Callable[[str, int | None], AbstractContextManager[Callable[..., None]]]


@dataclass(frozen=True)
class Reproduction:
    """What a run wrote and what it found, figure by figure."""

    paper: Paper
    folder: Path
    records: tuple[Record, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "paper": self.paper.key,
            "folder": str(self.folder),
            "summary": str(self.folder / "summary.html"),
            "figures": [record.to_dict() for record in self.records],
        }


def reproduce(
    paper: str,
    figures: Sequence[str] = (),
    *,
    out: str | Path,
    data: str | Path | None = None,
    quick: bool = False,
    resume: bool = False,
    stage: Stage | None = None,
    say: Callable[[str], None] | None = None,
) -> Reproduction:
    """Recompute figures of a paper (all, if none is named) and write them under out/<paper>.

    data: a folder laid out as `noren datasets` tells; generated stand-ins take the place of files that are missing.
    quick: fewer repetitions and smaller tables, every figure and every claim. Figures of earlier runs in the same
    folder stay and appear in the summary. resume: figures that an earlier run of the same kind, version and data has
    finished are not computed again.
    """
    source = None if data is None else Path(data)
    check_folder(source)
    found = find_paper(paper)
    chosen = _chosen(found, figures)
    target = prepare(Path(out) / found.key)
    shelf: dict[Any, Any] = {}
    done = []
    before = {record.key: record for record in read_records(found, target)} if resume else {}
    for figure in chosen:
        if figure.key in before and _stands(figure, before[figure.key], source, quick):
            done.append(before[figure.key])
            if say is not None:
                say(f"{found.key} {figure.heading}: stands from an earlier run")
            continue
        show = stage(f"{found.key} {figure.heading.lower()}", None) if stage is not None else nullcontext(_silent)
        with show as advance:
            bench = Bench(source, quick=quick, seed=f"{found.key}/{figure.key}", advance=advance, shelf=shelf)
            started, spent = time.perf_counter(), time.process_time()
            result = figure.compute(bench)
            seconds, cpu = time.perf_counter() - started, time.process_time() - spent
        check_result(found, figure, result)
        used = list(bench.used.values())
        record = write_figure(target, figure, result, used, quick=quick, seconds=seconds, cpu_seconds=cpu)
        done.append(record)
        write_summary(found, target, read_records(found, target))
        write_gains(Path(out))
        if say is not None:
            verdicts = ", ".join(answer["verdict"] for answer in record.answers)
            say(f"{found.key} {figure.heading}: {verdicts} ({seconds:.0f} s, {cpu:.0f} s CPU)")
    return Reproduction(found, target, tuple(done))


def _stands(figure: Figure, record: Record, folder: Path | None, quick: bool) -> bool:
    """Whether a record is of the same kind of run, version, claims and files, with all that it wrote still there."""
    same = (record.quick, record.version) == (quick, __version__)
    asked = [answer["claim"] for answer in record.answers] == list(figure.claims.values())
    return same and asked and all(_unchanged(one, folder) for one in record.data)


def _unchanged(used: dict[str, Any], folder: Path | None) -> bool:
    """A generated table is the same as long as no file has come to take its place."""
    dataset = BY_NAME.get(used["name"].removesuffix(" (stand-in)"))
    if dataset is None:
        return True
    path = find(folder, dataset)
    if used["origin"] == "generated" or path is None:
        return used["origin"] == "generated" and path is None
    return bool(digest_of(path) == used["sha256"])


def check_result(paper: Paper, figure: Figure, result: Result) -> None:
    """Every claim has its answer, every figure its sheet, its picture and our line. A gap is an error, not a blank."""
    where = f"{paper.key} {figure.heading.lower()}"
    if set(result.answers) != set(figure.claims):
        differing = sorted(set(result.answers) ^ set(figure.claims))
        raise NorenError(f"{where}: claims and answers differ in {', '.join(differing)}.")
    if "" not in result.sheets or "" not in result.pictures or not result.ours or not result.ours_series:
        raise NorenError(f"{where} has no sheet, no picture or no line of our own.")
    texts = {str(value) for sheet in result.sheets.values() for value in _texts(sheet)}
    if missing := [name for name in result.ours_series if name not in texts]:
        raise NorenError(f"{where}: {missing[0]!r} is in none of the sheets.")


def _texts(sheet: Any) -> list[str]:
    import polars as pl

    return [*sheet.columns, *(v for column in sheet.select(pl.col(pl.String)) for v in column.drop_nulls().unique())]


def _chosen(paper: Paper, keys: Sequence[str]) -> list[Figure]:
    if not keys:
        return list(paper.figures)
    out: list[Figure] = []
    for key in keys:
        figure = paper.figure(key)
        if figure is None:
            known = ", ".join(figure.key for figure in paper.figures)
            raise QueryError(f"{paper.key} has no figure {key!r}.", hint=f"It has: {known}.")
        if figure not in out:
            out.append(figure)
    return out


def _silent(done: int, *, note: str = "", total: int | None = None) -> None:
    return None
