"""Section 6: to generalise quasi-identifiers or the secret, which the paper leaves to later work to balance.

SWEEP publishes the records that fit into no diverse class as one class. Cut along a Hilbert curve, small groups of them
need more general secrets and keep quasi-identifiers more precise: the size of these groups is the knob.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from noren.errors import RequirementNotMet
from noren.methods import Sweep
from noren.metrics.information import utility_scores
from noren.models import TauLDiversity
from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import Claims
from noren_papers.relations import Along
from noren_papers.tau_l.common import BOTH, CHUNKS, SWEEP, dataset, label, made

ASKED = {"adult": ((0.3, 5), (0.2, 7)), "nursery": ((0.45, 4), (0.4, 5))}
SIZES = (8, 16, 64, 256, 1024, 4096)
SIZE = "records of a chunk"
PLACE = ("data", "requirement")
PARTS = {"utility": "all columns", "utility_quasi": "quasi-identifiers", "utility_sensitive": "secret"}
SAID = Claims()
SAID(
    "Generalising secrets improves the utility: the smaller the chunks, the more information is left in all.",
    Along(SIZE, "utility", PLACE, rising=False),
)
SAID(
    "Generalisation of quasi-identifiers and of the secret can be balanced: one part gains what the other loses.",
    Along(SIZE, "utility_quasi", PLACE, rising=False),
    Along(SIZE, "utility_sensitive", PLACE),
)


def section_6(bench: Bench) -> Result:
    sizes = (*bench.pick(SIZES, (8, 64, 1024)), None)

    def kept(name: str, tau: float, l: int, chunk: int | None) -> Iterator[dict[str, Any]]:
        data, need = dataset(bench, name), TauLDiversity(on=dataset(bench, name).sensitive, tau=tau, l=l)
        try:
            table, _ = made(bench, data, Sweep(chunk=chunk), need, f"balance {tau} {l}")
        except RequirementNotMet:
            return
        left = utility_scores(table)
        yield {
            "data": data.title, "requirement": label(tau, l), "series": SWEEP if chunk is None else CHUNKS,
            SIZE: chunk or data.coded.n, "classes": len(table.sizes), "utility": left.total,
            "utility_quasi": left.quasi, "utility_sensitive": left.sensitive,
        }  # fmt: skip

    settings = [
        {"name": name, "tau": tau, "l": l, "chunk": chunk}
        for name, asked in ASKED.items() for tau, l in asked for chunk in sizes
    ]  # fmt: skip
    frame = bench.sweep(settings, kept).drop("name", "chunk")
    long = pl.concat(
        frame.select(SIZE, panel=pl.format("{} {}", *PLACE), part=pl.lit(words), left=part)
        for part, words in PARTS.items()
    )
    picture = draw.lines(
        long, x=SIZE, y="left", series="part", panel="panel", columns=2, log_x=True, order=list(PARTS.values()),
        ours=[PARTS["utility"]], y_title="information left", size=(300, 180),
        title="Section 6. Information left in quasi-identifiers and in the secret, by the size of chunks",
        note="The largest size is SWEEP as it is: the records that fit into no diverse class are one chunk.",
    )  # fmt: skip
    best = frame.sort("utility").group_by(PLACE, maintain_order=True).last()
    return Result(
        {"": frame},
        {"": picture},
        SAID.answered(frame=frame),
        (CHUNKS,),
        {"chunks": list(sizes[:-1]), "records": [dataset(bench, name).coded.n for name in BOTH]},
        ("The sum of both parts is dominated by quasi-identifiers, of which there are seven and eight, so it favours "
         "small chunks; who needs the secret precise chooses large ones.",),
        more="Most information in all: " + "; ".join(
            f"{row['data']} {row['requirement']} {row['utility']:.3f} with chunks of {row[SIZE]:,}"
            for row in best.sort(PLACE).to_dicts()
        ) + ".",
    )  # fmt: skip


FIGURES = (Figure("section-6", "To generalise quasi-identifiers or the secret", SAID, section_6, BOTH),)
