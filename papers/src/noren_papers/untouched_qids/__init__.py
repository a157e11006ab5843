"""l-diversity with untouched quasi-identifiers: decoys on the sensitive attribute alone."""

from __future__ import annotations

from noren_papers.base import Figure, Paper
from noren_papers.untouched_qids import adult, clock, groups

PAPER = Paper(
    key="untouched-qids",
    number="002",
    title="l-diversity with untouched quasi-identifiers",
    source="Sei and others, IPSJ Journal 56(5), 1377-1387, May 2015 (in Japanese).",
    figures=(
        Figure("1", "MSE against g", groups.SAID_1, groups.figure_1, ("occupations", "census income")),
        Figure("2", "MSE against l", groups.SAID_2, groups.figure_2, ("occupations", "census income")),
        Figure("3", "MSE against s", groups.SAID_3, groups.figure_3, ("occupations", "census income")),
        Figure("4", "Adult: settings that can be anonymised and mean MSE", adult.SAID_4, adult.figure_4, ("adult",)),
        Figure("5", "Relationship by gender at l = 2", adult.CLAIMS_5, adult.figure_5, ("adult",)),
        Figure("time", "Estimation time", clock.CLAIMS, clock.figure_time, ("adult",)),
    ),
)
