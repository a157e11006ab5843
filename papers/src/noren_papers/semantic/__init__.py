"""Oishi, Sei, Tahara, Ohsuga: (l,d)-semantic diversity."""

from __future__ import annotations

from noren_papers.base import Figure, Paper
from noren_papers.semantic import errors, histograms, icd, obesity, several, thirteen, violation

PAPER = Paper(
    key="semantic",
    number="003",
    title="(l,d)-semantic diversity",
    source="K. Oishi, Y. Sei, Y. Tahara, A. Ohsuga: Semantic diversity: Privacy considering distance between values "
    "of sensitive attribute. Computers & Security 94, 2020.",
    figures=(
        Figure("table-7", "Diseases of the ICD that are four apart", icd.SAID, icd.table_7, ("icd",)),
        Figure("table-8", "The true table of the worked example", obesity.CLAIMS_8, obesity.table_8),
        Figure("table-9", "The reports of the worked example", obesity.CLAIMS_9, obesity.table_9),
        Figure("table-10", "The estimate of the worked example", obesity.CLAIMS_10, obesity.table_10),
        Figure("table-11", "Adult with 13 quasi-identifiers", thirteen.SAID, thirteen.table_11, ("adult",)),
        Figure("6", "Violation probability by the theorem against F, l and d", violation.CLAIMS_6, violation.figure_6),
        Figure("8", "Histograms of the income table", histograms.SAID_8, histograms.figure_8),
        Figure("9", "Histograms of Adult's education", histograms.SAID_9, histograms.figure_9, ("adult",)),
        Figure("10", "Histograms of Adult's fnlwgt", histograms.SAID_10, histograms.figure_10, ("adult",)),
        Figure("11", "Mean squared error, income", errors.SAID_11, errors.figure_11),
        Figure("12", "Mean squared error, Adult's education", errors.SAID_12, errors.figure_12, ("adult",)),
        Figure("13", "Mean squared error, Adult's fnlwgt", errors.SAID_13, errors.figure_13, ("adult",)),
        Figure("14", "Violation rate against l at d = 3", violation.SAID["l"], violation.figure_14, ("adult",)),
        Figure("15", "Violation rate against d at l = 3", violation.SAID["d"], violation.figure_15, ("adult",)),
        Figure("section-7.4", several.TITLE, several.SAID, several.section_74, ("adult",)),
    ),
)  # fmt: skip
