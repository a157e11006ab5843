"""From files and frames to batches of Arrow columns, without holding the whole table."""

from noren.lazy import lazy

_HOMES = {
    "Address": "noren.io.postgres",
    "FrameSource": "noren.io.arrow",
    "SOURCES": "noren.io.source",
    "Source": "noren.io.source",
    "open_source": "noren.io.source",
    "sampled": "noren.io.sample",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
