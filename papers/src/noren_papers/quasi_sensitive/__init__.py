"""Paper 001: quasi-sensitive attributes, whose harmless terms an outside table links to secrets."""

from functools import partial

from noren_papers.base import Figure, Paper
from noren_papers.quasi_sensitive import metrics, motivation, progress, queries, search, tradeoff

PAPER = Paper(
    key="quasi-sensitive",
    number="001",
    title="Quasi-sensitive attributes: QS (c,l)-diversity and QS t-closeness by generalisation and term suppression",
    source="P. Shi, L. Xiong, B. C. M. Fung: Anonymizing data with quasi-sensitive attribute values. CIKM 2010.",
    figures=(
        Figure("6", search.TITLES["cl"], search.CLAIMS["cl"], partial(search.compute, kind="cl"), data=("columbia",)),
        Figure("7", search.TITLES["t"], search.CLAIMS["t"], partial(search.compute, kind="t"), data=("columbia",)),
        Figure("8", progress.TITLE, progress.SAID, progress.compute, data=("columbia",)),
        *(
            Figure(
                tradeoff.SHAPES[axis].number,
                tradeoff.TITLES[axis],
                tradeoff.CLAIMS[axis],
                partial(tradeoff.compute, axis=axis),
                data=("adult",),
            )
            for axis in tradeoff.SHAPES
        ),
        Figure("12", queries.TITLE, queries.SAID, queries.compute, data=("adult",)),
        Figure("section-6", metrics.TITLE, metrics.SAID, metrics.compute, data=("columbia",)),
        Figure("section-1.1", motivation.TITLE, motivation.SAID, motivation.compute, data=("adult", "columbia")),
    ),
)
