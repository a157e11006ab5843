"""The page a data protection officer reads; loaded when first used."""

from noren.lazy import lazy

_HOMES = {
    "Page": "noren.report.page",
    "attack_content": "noren.report.gains",
    "final": "noren.report.gains",
    "headline": "noren.report.gains",
    "holder_page": "noren.report.page",
    "make_report": "noren.report.page",
    "shown_scenarios": "noren.report.gains",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
