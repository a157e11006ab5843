"""The demonstration: a hospital table from generator to chart."""

from __future__ import annotations

from pathlib import Path

import click

from noren.cli.render import VERDICT_COLUMNS, echo_json, say, stages, table, verdict_rows


@click.command(epilog="Example: noren demo --to noren-demo")
@click.option("--to", type=click.Path(path_type=Path), default=Path("noren-demo"), show_default=True)
@click.option("--records", type=click.IntRange(1000, 10_000_000), default=20_000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print paths and figures as JSON.")
def demo(to: Path, records: int, as_json: bool) -> None:
    """Make a hospital table, release it under a shown policy, verify it, estimate job x disease."""
    from noren.cli.demo_run import run_demo

    result = run_demo(to, records, say=(lambda text: None) if as_json else say, stage=stages(as_json))
    if as_json:
        echo_json(result.to_dict())
        return
    table("Verified on the written release", VERDICT_COLUMNS, verdict_rows(result.verdicts), ("asked", "found"))
    body = [
        [r["job"], r["disease"], f"{r['count']:,.0f}", f"{r['low']:,.0f} to {r['high']:,.0f}", f"{r['truth']:,}"]
        for r in result.largest
    ]
    numbers = ("estimate", "95% interval", "truth")
    table("The ten largest cells of job x disease", ("job", "disease", *numbers), body, numbers)
    say(
        f"Error of the whole table: L1 {result.l1:.3f} in relative frequencies; "
        f"{result.covered:.1%} of {result.cells} intervals hold the truth."
    )
    say("\nWhere things are:")
    for path, what in result.files:
        say(f"  {path!s:<34} {what}")
    say(f"\nNext: noren estimate {to / 'release'} --by disease@2,age    or open {to / 'report.html'}")
