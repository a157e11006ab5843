"""Ours beside the papers' proposals, over all papers: one table, with the reason in every line that loses somewhere."""

from __future__ import annotations

from pathlib import Path

from noren.files import write_whole
from noren_papers.registry import papers
from noren_papers.write import read_records

PAGE = "gains.md"


def write_gains(out: Path) -> None:
    """The page over the papers that a folder holds."""
    write_whole(out / PAGE, gains(out).encode())


def gains(out: Path) -> str:
    """Made from the records of full and quick runs alike; a quick run says so in its line."""
    lines = [
        "# Ours beside the papers' proposals",
        "",
        "Every ratio is ours over the proposal's on the same data: below 1 ours is better. Typical is the geometric "
        "mean over all points, worst the point where ours does least well. A line whose worst is above 1 says why, as "
        "far as that is known, and what was tried.",
        "",
        "| figure | what | typical | better in | worst | why it loses there |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for paper in papers():
        for record in read_records(paper, out / paper.key):
            figure = paper.figure(record.key)
            assert figure is not None
            place = f"[{paper.key} {figure.heading.lower()}]({paper.key}/{figure.name}.json)"
            for one in record.gains:
                worst = f"{one['worst']:.2f} ({one['place']})"
                quick = ", quick run" if record.quick else ""
                lines.append(
                    f"| {place}{quick} | {one['what']} | **{one['typical']:.2f}** | {one['better']} of {one['points']} "
                    f"| {worst} | {one['reason']} |"
                )
    return "\n".join(lines) + "\n"
