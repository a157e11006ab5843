"""Commands of the auditor: verify."""

from __future__ import annotations

from pathlib import Path

import click

from noren.cli.render import VERDICT_COLUMNS, echo_json, stages, table, verdict_rows


@click.command(epilog="Example: noren verify release --policy policy.toml --original patients.csv")
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--policy", type=click.Path(path_type=Path), help="Check these requirements instead of the claimed ones.")
@click.option("--original", type=click.Path(path_type=Path), help="The original table: exact closeness, truth in sets.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.pass_context
def verify(ctx: click.Context, release: Path, policy: Path | None, original: Path | None, as_json: bool) -> None:
    """Recompute every requirement on the cells of RELEASE. Exit code 1 if one does not hold."""
    from noren.pipeline.verify import verify as check
    from noren.policy.policy import Policy
    from noren.release.release import open_release

    opened = open_release(release)
    rules = Policy.load(policy) if policy is not None else None
    with stages(as_json)("Verifying", opened.records) as progress:
        verdicts = check(opened, rules, original=original, progress=progress)
    failed = [verdict for verdict in verdicts if verdict.holds is False]
    undecided = [verdict for verdict in verdicts if verdict.holds is None]
    if as_json:
        holds = False if failed else None if undecided else True
        echo_json({"release": str(release), "holds": holds, "verdicts": [vars(verdict) for verdict in verdicts]})
    else:
        click.echo(f"{release}: {opened.records:,} records, checksums match")
        table("Verdicts", VERDICT_COLUMNS, verdict_rows(verdicts), ("asked", "found"))
        for verdict in verdicts:
            if verdict.holds is not True:
                click.echo(f"{verdict.column}: {verdict.statement}")
        parts = [f"{len(failed)} of {len(verdicts)} do not hold"] if failed else []
        parts += [f"{len(undecided)} of {len(verdicts)} cannot be decided from the release"] if undecided else []
        fine = "Every requirement holds." if verdicts else "Nothing is required."
        click.echo(f"Requirements: {', '.join(parts)}." if parts else fine)
    ctx.exit(1 if failed else 0)
