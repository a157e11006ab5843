"""What a column means: roles, domains, hierarchies, distances."""

from noren.lazy import lazy

_HOMES = {
    "CALENDAR": "noren.schema.kinds",
    "Column": "noren.schema.column",
    "Hierarchy": "noren.schema.hierarchy",
    "HierarchyError": "noren.schema.hierarchy",
    "HierarchySpec": "noren.schema.column",
    "NUMERIC": "noren.schema.kinds",
    "SPANS": "noren.schema.hierarchy",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
