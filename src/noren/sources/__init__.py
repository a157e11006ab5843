"""From files and frames to batches of Arrow columns, without holding the whole table."""

from noren.lazy import lazy

_HOMES = {
    "Address": "noren.sources.postgres",
    "FrameSource": "noren.sources.arrow",
    "SOURCES": "noren.sources.source",
    "Source": "noren.sources.source",
    "open_source": "noren.sources.source",
    "sampled": "noren.sources.sample",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
