"""Commands about semantic diversity: violation-rate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from noren.cli.render import echo_json, say, table


@click.command("violation-rate", epilog="Example: noren violation-rate --values 14 --l 3 --d 3 --records 1000")
@click.option("--values", required=True, type=click.IntRange(2), help="Number of values F, in their order.")
@click.option("--l", "size", required=True, type=click.IntRange(2), help="Values in each set.")
@click.option("--d", "distance", required=True, type=click.IntRange(1), help="Required difference of ranks.")
@click.option("--records", type=click.IntRange(1), default=1000, show_default=True, help="Records of the table.")
@click.option("--draws", type=click.IntRange(100), default=200_000, show_default=True, help="Simulated sets.")
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Chart over d for l and its neighbours: .html, .png, .svg."
)
@click.option("--json", "as_json", is_flag=True, help="Print the rates as JSON.")
def violation_rate(
    values: int, size: int, distance: int, records: int, draws: int, plot: Path | None, as_json: bool
) -> None:
    """How often decoys drawn without regard to meaning break (l, d)-semantic diversity."""
    from noren.metrics.violation import curve, save_violation_chart, violation_of_table
    from noren.metrics.violation import violation_rate as rate_of

    rate = rate_of(values, size, distance, draws)
    if plot is not None:
        save_violation_chart(curve(values, [s for s in (size - 1, size, size + 1, size + 2) if 2 <= s <= values]), plot)
    whole = rate.for_records(records)
    if as_json:
        echo_json({**asdict(rate), "records": records, "table_bound": whole, "plot": str(plot) if plot else None})
        return
    rows = [
        ["theorem 5.2, corrected (lower bound)", f"{rate.bound:.4f}", f"{whole:.6g}"],
        ["exact mean over all values", f"{rate.exact:.4f}", f"{violation_of_table(rate.exact, records):.6g}"],
        [f"simulated, {draws:,} sets", f"{rate.simulated:.4f} ± {1.96 * rate.std_error:.4f}", "-"],
        ["semantic designs", "0", "0"],
    ]
    title = f"Violations of ({size},{distance})-semantic diversity by plain decoys, {values} values"
    table(title, ("how", "per record", f"in {records:,} records"), rows, ("per record", f"in {records:,} records"))
    if plot is not None:
        say(f"Written: {plot}")
