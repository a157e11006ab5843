"""Commands for researchers: reproduce, datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from noren.cli import echo_json, say, stages, table

DATA = click.option(
    "--data", type=click.Path(path_type=Path), help="Folder with the papers' data sets; noren datasets tells which."
)


@click.command(
    epilog="Example: noren reproduce tau-l 14 16 --data papers-data --out reproduced. "
    "What there is: noren reproduce list. A first look: noren reproduce semantic --quick."
)
@click.argument("paper")
@click.argument("figures", nargs=-1)
@DATA
@click.option("--out", type=click.Path(path_type=Path), default=Path("reproduced"), show_default=True)
@click.option("--quick", is_flag=True, help="Smaller tables and few repetitions: a check in a few minutes.")
@click.option("--resume", is_flag=True, help="Keep what an earlier run into the same folder has finished.")
@click.option("--json", "as_json", is_flag=True, help="Print answers and paths as JSON.")
def reproduce(
    paper: str, figures: tuple[str, ...], data: Path | None, out: Path, quick: bool, resume: bool, as_json: bool
) -> None:
    """Rerun the experiments of a PAPER and answer what it claims, figure by figure.

    PAPER is a name that `noren reproduce list` shows, or `all`. Without FIGURES all of them run. Files that --data
    does not hold are replaced by generated tables of the same shape, and the summary says so.
    """
    from noren_papers.registry import HOMES
    from noren_papers.run import reproduce as run

    if paper == "list":
        _list(as_json)
        return
    if paper == "all" and figures:
        raise click.UsageError("`all` takes no figures.")
    told = None if as_json else say
    done = [
        run(name, figures, out=out, data=data, quick=quick, resume=resume, stage=stages(as_json), say=told)
        for name in (HOMES if paper == "all" else [paper])
    ]
    if as_json:
        echo_json([one.to_dict() for one in done] if paper == "all" else done[0].to_dict())
        return
    for one in done:
        rows = [
            [_heading(record), answer["claim"], answer["measured"], answer["verdict"]]
            for record in one.records
            for answer in record.answers
        ]
        table(one.paper.title, ("figure", "the paper says", "measured", "the claim"), rows)
        say(f"Summary: {one.folder / 'summary.html'} and summary.md, with charts and CSV beside them.\n")


def _heading(record: Any) -> str:
    return str(record.key.replace("-", " "))


def _list(as_json: bool) -> None:
    from noren_papers.registry import papers

    found = papers()
    if as_json:
        echo_json(
            [
                {
                    "paper": paper.key,
                    "title": paper.title,
                    "figures": [
                        {"figure": f.key, "title": f.title, "claims": list(f.claims.values()), "data": list(f.data)}
                        for f in paper.figures
                    ],
                }
                for paper in found
            ]
        )
        return
    for paper in found:
        rows = [
            [figure.key, figure.title, len(figure.claims), ", ".join(figure.data) or "generated"]
            for figure in paper.figures
        ]
        table(f"{paper.key}: {paper.title}", ("figure", "what it shows", "claims", "data"), rows, ("claims",))
    say("Run one: noren reproduce semantic 11 --data DIR --out reproduced")


@click.command(epilog="Example: noren datasets --data papers-data")
@DATA
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def datasets(data: Path | None, as_json: bool) -> None:
    """Which data sets the papers use, which of them a folder holds, and where their owners publish them."""
    from noren_papers.datasets import MISSING, check_folder, survey

    check_folder(data)
    found = survey(data)
    if as_json:
        echo_json(
            [
                {
                    "name": one.dataset.name, "file": one.dataset.path, "state": one.state, "rows": one.dataset.rows,
                    "columns": one.dataset.columns, "sha256": one.dataset.sha256, "publisher": one.dataset.publisher,
                    "cleaning": one.dataset.cleaning, "papers": list(one.dataset.papers),
                }
                for one in found
            ]
        )  # fmt: skip
        return
    rows = [
        [one.dataset.path, one.state, f"{one.dataset.rows:,} x {one.dataset.columns}", one.dataset.publisher,
         one.dataset.cleaning]
        for one in found
    ]  # fmt: skip
    table("Data sets of the papers", ("file", "state", "size", "published at", "then"), rows, ("size",))
    missing = sum(one.state == MISSING for one in found)
    if data is None:
        say("No folder was given: noren datasets --data DIR looks into one. Without files, stand-ins are generated.")
    else:
        say(f"{len(found) - missing} of {len(found)} files are in {data}; a packed .gz file is as good.")
