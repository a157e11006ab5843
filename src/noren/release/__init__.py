"""What is published."""

from noren.lazy import lazy

_HOMES = {
    "Release": "noren.release.release",
    "open_release": "noren.release.release",
    "publish": "noren.release.database.publish",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
