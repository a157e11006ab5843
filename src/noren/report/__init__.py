"""The page a data protection officer reads; loaded when first used."""

from noren.lazy import lazy

_HOMES = {
    "Page": "noren.report.page",
    "holder_page": "noren.report.page",
    "make_report": "noren.report.page",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
