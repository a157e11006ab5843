"""Every kernel gives the same as Python and compiled: over all methods, and over tables with few and many values."""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren
from noren.errors import NorenError, PolicyError
from noren.kernel import Kernel
from noren.methods import METHODS
from noren.policy.policy import Policy
from noren.schema.knowledge import Knowledge

ILLS = ("angina", "asthma", "bronchitis", "burn", "cold", "flu", "gout", "ulcer")
SIGNS = {"angina": "pain fever", "cold": "cough fever", "flu": "cough ache", "gout": "ache pain"}
RECORDS = 240


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, numbers up to the order in which sums are rounded."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    if one is None or other is None:
        return one is other
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the kernels that Python called: each runs both ways, and both results are compared."""
    names: set[str] = set()

    def run_both(kernel: Kernel[..., Any], *args: Any) -> Any:
        again = copy.deepcopy(args)
        wrong = f"{kernel.__module__}.{kernel.__name__} differs between Python and Numba"
        result, compiled = kernel.run_python(*args), kernel.run_compiled(*again)
        assert same(result, compiled), f"{wrong}: its result"
        assert same(args, again), f"{wrong}: what it writes"
        names.add(kernel.__name__)
        return result

    monkeypatch.setattr(Kernel, "__call__", run_both)
    return names


def policies(method: str, values: int) -> Iterator[Policy]:
    """What this method can be asked for."""
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
            wanted: dict[str, Any] = {"method": {"name": method}, "dependence": {"most": 1.0}, "mechanism": "ignored"}
            yield Policy(attributes=columns, require=ask, **wanted)
        except PolicyError:
            continue  # not every method serves every requirement


def people(values: int) -> pl.DataFrame:
    """Made-up people; nothing depends on who they are."""
    rng = np.random.default_rng(0)
    n = RECORDS * (1 + values // 1000)
    ills = rng.choice(ILLS, n)
    return pl.DataFrame(
        {
            "age": rng.integers(0, values, n),
            "town": [f"town {i % 7}" for i in range(n)],
            "ill": ills,
            "signs": [SIGNS.get(ill, "cough") for ill in ills],
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("values", [20, 2_000])
@pytest.mark.parametrize("method", METHODS)
def test_kernels_of_a_method_give_the_same_both_ways(compared: set[str], method: str, values: int) -> None:
    for number, policy in enumerate(policies(method, values)):
        try:
            release = noren.anonymize(people(values), policy)
            if number == 0:
                release.estimate("ill")
                release.estimate(["town", "ill"])
                release.count({"ill": ["flu"]})
        except NorenError:
            continue  # a method need not serve every table
    assert compared


def kernels() -> dict[str, Kernel[..., Any]]:
    """Every kernel of the package."""
    found = {}
    for module in pkgutil.walk_packages(noren.__path__, "noren."):
        if "kernels" in module.name:
            held = vars(importlib.import_module(module.name)).values()
            found.update({f"{one.__module__}.{one.__name__}": one for one in held if isinstance(one, Kernel)})
    return found


def test_kernels_are_plain_functions_of_positions() -> None:
    assert kernels()
    for name, one in kernels().items():
        code = one.function.__code__
        assert not one.function.__defaults__, name
        assert not code.co_freevars, name
        assert not code.co_kwonlyargcount, name
