"""How Hypothesis runs: other examples every time on a desk, the same ones in continuous integration.

Strategies that discard many candidates are meant to; the health check for that would only fail by chance.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "noren",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
settings.load_profile("noren")
