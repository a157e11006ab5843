"""Paper 000: attributes that both identify and are sensitive, hidden among decoys."""

from __future__ import annotations

from noren_papers.base import Paper
from noren_papers.sensitive_qids import closeness, diversity, grounds, histogram, informed, reconstruction, times

PAPER = Paper(
    key="sensitive-qids",
    number="000",
    title="Sensitive quasi-identifiers: (l1..lq)-diversity and (t1..tq)-closeness",
    source="Sei, Okumura, Takenouchi, Ohsuga: Anonymization of Sensitive Quasi-Identifiers for l-diversity and "
    "t-closeness. IEEE Transactions on Dependable and Secure Computing 16(4), 2019.",
    figures=(
        diversity.FIGURE_1,
        diversity.FIGURE_2,
        closeness.FIGURE_3,
        closeness.FIGURE_4,
        times.FIGURE_5,
        reconstruction.FIGURE_6,
        histogram.FIGURE_7,
        grounds.CLOSENESS,
        informed.FIGURE,
    ),
)
