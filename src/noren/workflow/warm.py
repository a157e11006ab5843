"""Compiling ahead: every method and every question once, on small made-up tables, so that real ones find all kernels.

What a kernel is compiled for depends on how many values a column has, so there is a narrow table and a wide one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from io import BytesIO
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from noren.errors import NorenError, PolicyError
from noren.kernels import compiling
from noren.progress import Stage, quiet

if TYPE_CHECKING:
    import polars as pl

    from noren.policy.policy import Policy

ILLS = ("angina", "asthma", "bronchitis", "burn", "cold", "flu", "gout", "ulcer")
SIGNS = {"angina": "pain fever", "cold": "cough fever", "flu": "cough ache", "gout": "ache pain"}
RECORDS = 600


def warm(methods: Sequence[str] = (), *, workers: int | None = None, stage: Stage = quiet) -> int:
    """Compile what these methods and questions about their releases need, or everything; how many kernels that were.

    Works in processes beside each other, which share what they compile.
    """
    from noren.methods import METHODS

    if unknown := [name for name in methods if name not in METHODS]:
        raise NorenError(f"there is no method {unknown[0]!r}.", hint=f"Methods: {', '.join(METHODS)}.")
    tasks = list(methods or METHODS)
    count = max(1, min(workers or os.cpu_count() or 1, len(tasks)))
    with stage("Compiling kernels", len(tasks)) as meter:
        if count == 1:
            total = 0
            for task in tasks:
                total += compiled_by(task)
                meter(1, note=f"Compiled {task}")
            return total
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            running = {pool.submit(compiled_by, task): task for task in tasks}
            total = 0
            for done in as_completed(running):
                total += done.result()
                meter(1, note=f"Compiled {running[done]}")
            return total


def compiled_by(method: str) -> int:
    """Make releases with a method and ask them what can be asked; how many kernels were compiled for it."""
    count = 0

    def told(name: str, loaded: int) -> None:
        nonlocal count
        count += 1

    compiling.append(told)
    try:
        for work in _works(method):
            try:
                work()
            except NorenError:
                continue  # a method need not serve every table
    finally:
        compiling.remove(told)
    return count


def _works(method: str) -> Iterator[Callable[[], Any]]:
    yield _read
    for values in (20, 2_000):
        for number, policy in enumerate(_policies(method, values)):
            yield partial(_once, _table(values), policy, asked=number == 0)


def _read() -> None:
    """A table as long files are read."""
    from noren.sources.numbered import numbered_batches

    text = BytesIO(b"town,ill\nUlm,flu\n")
    list(numbered_batches(text, ["town", "ill"], ["ill"], separator=",", missing=[""], block=1 << 10))


def _once(table: pl.DataFrame, policy: Policy, *, asked: bool) -> None:
    """A release, judged, and where asked for, its tables and attacks."""
    from noren.workflow.anonymize import anonymize

    release = anonymize(table, policy)
    if asked:
        release.estimate("ill")
        release.estimate(["town", "ill"])
        release.count({"ill": ["flu"]})


def _policies(method: str, values: int) -> Iterator[Policy]:
    from noren.policy.policy import Policy

    quasi = {"hierarchy": {"widths": [values // 4, values // 2]}} if method == "incognito" else {}
    columns: dict[str, Any] = {
        "age": {"role": "quasi-identifier", **quasi},
        "town": "quasi-identifier",
        "ill": "sensitive",
        "signs": "identifier",
    }
    diverse = {"model": "frequency-l-diversity", "on": "ill", "l": 2}
    close, anonymous = {"model": "t-closeness", "on": "ill", "t": 0.3}, {"model": "k-anonymity", "k": 5}
    asks: list[list[dict[str, Any]]] = [[anonymous, diverse], [close], [diverse]]
    if method == "suppress":
        from noren.schema.knowledge import Knowledge

        known = Knowledge.from_pairs([(ill, term) for ill, terms in SIGNS.items() for term in terms.split()])
        columns["signs"] = {"role": "quasi-sensitive", "separator": " ", "knowledge": known}
        columns["ill"] = "identifier"
        near = {"model": "qs-closeness", "on": "signs", "t": 0.3}
        asks = [[{"model": "qs-diversity", "on": "signs", "l": 2, "c": 3}, anonymous], [near, anonymous]]
    elif method == "pram":
        asks = [[close]]
    elif method == "decoys":
        asks = [[diverse], [close]]
    elif method in ("anatomy", "rating"):
        asks = [[diverse]]
    for ask in asks:
        try:
            policy = Policy(attributes=columns, require=ask, method={"name": method}, dependence={"most": 1.0})
        except PolicyError:
            continue  # nor every requirement
        yield policy


def _table(values: int) -> pl.DataFrame:
    """Made-up people; nothing depends on who they are."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    ills = rng.choice(ILLS, RECORDS * (1 + values // 1000))
    n = len(ills)
    return pl.DataFrame(
        {
            "age": rng.integers(0, values, n),
            "town": [f"town {i % 7}" for i in range(n)],
            "ill": ills,
            "signs": [SIGNS.get(ill, "cough") for ill in ills],
        }
    )
