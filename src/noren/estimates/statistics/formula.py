"""Formulas such as "income ~ age + I(age**2) + C(education, Treatment('low')) + age:sex", and their columns.

`a:b` is the product of two, `a*b` is a + b + a:b, `- 1` leaves the constant out. `C(a)` takes numbers as levels, and
`Treatment(level)` names the one that others are compared with. `I(...)` is arithmetic of columns, `np.log(a)` and its
like are functions, `offset(a)` has the coefficient 1. A name that is more than letters, digits, dots and underscores
stands between back quotes or in `Q("...")`, as does the share of one value: `` `native-country=Peru` ``.

Families of regression: how the mean follows from the linear predictors, and how it varies.

`q` linear predictors are one, except of the multinomial and the ordinal, which have one for each class but the first.
The others have their canonical link, so that the score of a record is (y - mean) times its columns. The ordinal has
proportional odds: its k-th predictor is the log odds of a class above the k-th, with slopes that all of them share.
"""

from __future__ import annotations

import ast
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.schema.hierarchy import value_text

QUOTED = re.compile(r"""\bQ\(\s*(['"])(.+?)\1\s*\)""")
TOKEN = re.compile(r"`[^`]+`|[^\W\d][\w.]*|[01](?![\w.])|[+:*-]")
SIGNS = ("+", "-", ":", "*")
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs")
}
ARITHMETIC: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
SUPPORTED = (
    'Supported: "y ~ a + b", "a:b", "a*b", "- 1", "C(a)", "C(a, Treatment(\'level\'))", "I(a**2)", "offset(a)", '
    f"{', '.join(f'np.{name}' for name in FUNCTIONS)}; write other names in backquotes."
)
CONSTANT = "(constant)"
TINY = 1e-12


@dataclass(frozen=True)
class Factor:
    """One factor of a term: a column, the levels of one (`C`), or a function of some (`tree`)."""

    text: str
    names: tuple[str, ...]
    is_levels: bool = False
    reference: str | None = None
    """The level that others are compared with, if it is not the first."""
    tree: ast.expr | None = field(default=None, compare=False)

    def values(self, columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the numbers of the factor, from those of its columns; NaN if one of them is missing."""
        if self.tree is None:
            return columns[self.names[0]]
        with np.errstate(all="ignore"):
            found = np.asarray(_value(self.tree, columns), np.float64)
        missing = np.any(np.broadcast_arrays(*(np.isnan(columns[name]) for name in self.names)), axis=0)
        if not (np.isfinite(found) | missing).all():
            raise QueryError(
                f"{self.text!r} is no finite number for some values.", hint="Use another function, such as np.log1p."
            )
        return np.where(missing, np.nan, found)


@dataclass(frozen=True)
class Formula:
    """A response, products of factors, and offsets."""

    text: str
    response: Factor
    terms: tuple[tuple[Factor, ...], ...]
    constant: bool
    offsets: tuple[Factor, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Formula:
        left, found, right = QUOTED.sub(r"`\2`", text).partition("~")
        if not found or not left.strip() or not right.strip():
            raise QueryError(f"{text!r} is not a formula of the form response ~ terms.", hint=SUPPORTED)
        response = _product(_tokens(left, text), text)
        if len(response) != 1 or len(response[0].names) != 1 or response[0].is_levels:
            raise QueryError(f"{left.strip()!r} is not a single response.", hint=SUPPORTED)
        terms, constant = _terms(_tokens(right, text), text)
        named = [name for term in terms for factor in term for name in factor.names]
        if response[0].names[0] in named:
            raise QueryError(f"{response[0].names[0]!r} is on both sides of the formula.", hint=SUPPORTED)
        offsets = tuple(term[0] for term in terms if term[0].text.startswith("offset("))
        terms = [term for term in terms if term[0] not in offsets]
        if any(factor.text.startswith("offset(") for term in terms for factor in term):
            raise QueryError(f"{text!r}: an offset is a term of its own.", hint=SUPPORTED)
        if not terms and not constant:
            raise QueryError("a formula needs a term or a constant.", hint=SUPPORTED)
        return cls(text.strip(), response[0], tuple(terms), constant, offsets)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """Return every factor on the right side, once."""
        return tuple(dict.fromkeys([*(factor for term in self.terms for factor in term), *self.offsets]))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the response and every column on the right side, once."""
        right = (name for factor in self.factors for name in factor.names)
        return tuple(dict.fromkeys([*self.response.names, *right]))

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the columns that occur not only as levels."""
        used = (name for one in (self.response, *self.factors) if not one.is_levels for name in one.names)
        return tuple(dict.fromkeys(used))


def _tokens(text: str, whole: str) -> list[str]:
    out, at, text = [], 0, text.strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise QueryError(f"{whole!r}: {text[at:].strip()[:20]!r} is not understood.", hint=SUPPORTED)
        stop = found.end()
        if text[stop : stop + 1] == "(" and found[0] not in SIGNS:
            stop = _closing(text, stop, whole)
        out.append(text[at:stop])
        at = stop + len(text[stop:]) - len(text[stop:].lstrip())
    return out


def _closing(text: str, at: int, whole: str) -> int:
    """Return the position after the closing bracket; brackets in quotes are ignored."""
    depth, quote = 0, ""
    for place in range(at, len(text)):
        sign = text[place]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "`'\"":
            quote = sign
        else:
            depth += (sign == "(") - (sign == ")")
            if not depth:
                return place + 1
    raise QueryError(f"{whole!r}: a bracket is not closed.", hint=SUPPORTED)


def _terms(tokens: Sequence[str], whole: str) -> tuple[list[tuple[Factor, ...]], bool]:
    constant, terms, at = True, list[tuple[Factor, ...]](), 0
    while at < len(tokens):
        sign = "+"
        if tokens[at] in ("+", "-"):
            sign, at = tokens[at], at + 1
        stop = next((k for k in range(at, len(tokens)) if tokens[k] in ("+", "-")), len(tokens))
        part = tokens[at:stop]
        if part in (["0"], ["1"]):
            constant = (part == ["1"]) == (sign == "+")
        elif sign == "-":
            raise QueryError(f"{whole!r}: only the constant can be removed.", hint="Write - 1.")
        else:
            terms += [term for term in _crossed(part, whole) if term not in terms]
        at = stop
    return terms, constant


def _crossed(tokens: Sequence[str], whole: str) -> list[tuple[Factor, ...]]:
    """Expand one summand into terms: a:b is one, a*b are three."""
    out: list[tuple[Factor, ...]] = []
    edges = [-1, *(k for k, token in enumerate(tokens) if token == "*"), len(tokens)]
    for before, after in pairwise(edges):
        own = _product(tokens[before + 1 : after], whole)
        out += [tuple(dict.fromkeys((*term, *own))) for term in out] + [own]
    return sorted(dict.fromkeys(out), key=len)


def _product(tokens: Sequence[str], whole: str) -> tuple[Factor, ...]:
    for place, token in enumerate(tokens):
        if place % 2 and token != ":":
            raise QueryError(f"{whole!r}: a sign is missing before {token!r}.", hint=SUPPORTED)
    names = tokens[::2]
    if not len(tokens) % 2 or any(name in (*SIGNS, "0", "1") for name in names):
        raise QueryError(f"{whole!r}: a name is missing.", hint=SUPPORTED)
    return tuple(_factor(name) for name in names)


def _factor(text: str) -> Factor:
    if text.startswith("`") and text.endswith("`") and text.count("`") == 2:
        return Factor(text[1:-1], (text[1:-1],))
    if not text.endswith(")"):
        return Factor(text, (text,))
    quoted: list[str] = []

    def hide(found: re.Match[str]) -> str:
        quoted.append(found[0][1:-1])
        return f"_quoted_{len(quoted) - 1}"

    try:
        call = ast.parse(re.sub(r"`[^`]+`", hide, text), mode="eval").body
    except (SyntaxError, ValueError):
        raise QueryError(f"{text!r} is not understood.", hint=SUPPORTED) from None
    assert isinstance(call, ast.Call)
    for node in ast.walk(call):
        if isinstance(node, ast.Name) and node.id.startswith("_quoted_"):
            node.id = quoted[int(node.id[8:])]
    head = _dotted(call.func)
    if head == "C" and call.args and not call.keywords:
        return _levels(text, call)
    if head in ("I", "offset") and len(call.args) == 1 and not call.keywords:
        names = tuple(dict.fromkeys(_names(call.args[0], text)))
        tree = call.args[0]
    else:
        names, tree = tuple(dict.fromkeys(_names(call, text))), call
    if not names:
        raise QueryError(f"{text!r} names no column.", hint=SUPPORTED)
    return Factor(re.sub(r"\s+", " ", text).replace("`", ""), names, tree=tree)


def _levels(text: str, call: ast.Call) -> Factor:
    """Parse `C(a)` or `C(a, Treatment(level))`."""
    name = _dotted(call.args[0])
    reference = None
    if len(call.args) == 2 and isinstance(way := call.args[1], ast.Call) and _dotted(way.func) == "Treatment":
        given = [*way.args, *(word.value for word in way.keywords if word.arg == "reference")]
        if len(given) == 1 and isinstance(given[0], ast.Constant):
            reference = value_text(given[0].value)
    if name is None or len(call.args) != 1 + (reference is not None):
        raise QueryError(f"{text!r} is not understood.", hint=SUPPORTED)
    return Factor(name, (name,), True, reference)


def _dotted(node: ast.expr) -> str | None:
    """Return a name with dots; None for anything else."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _names(node: ast.expr, text: str) -> Iterator[str]:
    """Return the columns in an expression; raise if it cannot be computed."""
    if (name := _dotted(node)) is not None:
        yield name
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and type(node.op) in ARITHMETIC:
        parts = [node.operand]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in ARITHMETIC:
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and _called(node) in FUNCTIONS and len(node.args) == 1 and not node.keywords:
        parts = node.args
    else:
        raise QueryError(f"{text!r} is not understood.", hint=SUPPORTED)
    for part in parts:
        yield from _names(part, text)


def _called(node: ast.Call) -> str:
    """Return the function's name, with or without `np.` before it."""
    return (_dotted(node.func) or "").removeprefix("np.").removeprefix("numpy.")


def _value(node: ast.expr, columns: Mapping[str, NDArray[np.float64]]) -> Any:
    if (name := _dotted(node)) is not None:
        return columns[name]
    if isinstance(node, ast.BinOp):
        return ARITHMETIC[type(node.op)](_value(node.left, columns), _value(node.right, columns))
    if isinstance(node, ast.UnaryOp):
        return ARITHMETIC[type(node.op)](_value(node.operand, columns))
    if isinstance(node, ast.Compare):
        return ARITHMETIC[type(node.ops[0])](_value(node.left, columns), _value(node.comparators[0], columns))
    if isinstance(node, ast.Call):
        return FUNCTIONS[_called(node)](_value(node.args[0], columns))
    assert isinstance(node, ast.Constant)
    return float(node.value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Coding:
    """The coding of a factor: a number, or levels of which the first is the reference."""

    title: str
    levels: tuple[str, ...] | None = None

    def columns(self, values: NDArray, every: bool) -> list[tuple[str, NDArray[np.float64]]]:
        """Return titles and columns. Values are numbers, or positions among the levels (-1 for none)."""
        if self.levels is None:
            return [(self.title, np.asarray(values, np.float64))]
        start = 0 if every else 1
        return [
            (f"{self.title}[{label}]", np.asarray(values == place, np.float64))
            for place, label in enumerate(self.levels)
            if place >= start
        ]


def model_matrix(
    formula: Formula, codings: Mapping[Factor, Coding], values: Mapping[Factor, NDArray], shape: tuple[int, ...]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return titles and the columns of the terms in the last dimension, broadcast to the shape.

    Without a constant, and where a product's lower terms are missing, the first categorical factor keeps all levels.
    """
    titles, columns = [], []
    if formula.constant:
        titles.append(CONSTANT)
        columns.append(np.ones(shape))
    spanned = formula.constant
    known = set(formula.terms)
    for term in formula.terms:
        parts: list[tuple[list[str], NDArray[np.float64]]] = [([], np.ones(1))]
        for factor in term:
            coding = codings[factor]
            rest = tuple(other for other in term if other != factor)
            full = coding.levels is not None and not (spanned if not rest else rest in known)
            made = coding.columns(values[factor], full)
            if full and not rest:
                spanned = True
            parts = [([*names, title], old * new) for names, old in parts for title, new in made]
        titles += [":".join(names) for names, _ in parts]
        columns += [np.broadcast_to(column, shape) for _, column in parts]
    return titles, np.stack(columns, axis=-1)


def offset_of(formula: Formula, values: Mapping[Factor, NDArray], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the sum of the offsets, with a last dimension of one."""
    out = np.zeros(shape)
    for factor in formula.offsets:
        out = out + values[factor]
    return out[..., None]


@dataclass(frozen=True)
class Family(ABC):
    """A response distribution: mean(eta), the derivative of the mean, and the log likelihood up to a constant."""

    name: str
    link: str

    @abstractmethod
    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (cells, q) means of (cells, q) predictors."""

    @abstractmethod
    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a (cells, q, q) array: d mean / d eta, row by mean."""

    @abstractmethod
    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a (cells,) array: the log likelihood of a record."""

    def residual(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a (cells, q) array: d gain / d eta."""
        return y - self.mean(eta)

    def curvature(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a (cells, q, q) array: minus the second derivative of the gain."""
        return self.slope(self.mean(eta))


class Gaussian(Family):
    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return eta

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones((*mean.shape, 1))

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return -((y - eta)[:, 0] ** 2) / 2


class Poisson(Family):
    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(np.minimum(eta, 50.0))

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return mean[..., None]

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return (y * eta - self.mean(eta))[:, 0]


class Multinomial(Family):
    """Classes against the first one; with two classes this is the binomial."""

    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        top = np.maximum(eta.max(axis=1, keepdims=True), 0.0)
        parts = np.exp(eta - top)
        return np.asarray(parts / (np.exp(-top) + parts.sum(axis=1, keepdims=True)))

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return mean[:, :, None] * (np.eye(mean.shape[1]) - mean[:, None, :])

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        top = np.maximum(eta.max(axis=1), 0.0)
        whole = top + np.log(np.exp(-top) + np.exp(eta - top[:, None]).sum(axis=1))
        return np.asarray((y * eta).sum(axis=1) - whole)


class Ordinal(Family):
    """Ordered classes: P(class above k) is the logistic function of the k-th predictor, which falls with k."""

    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        above = _logistic(eta)
        return np.asarray(above - np.concatenate([above[:, 1:], np.zeros((len(eta), 1))], axis=1))

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        above = np.cumsum(mean[:, ::-1], axis=1)[:, ::-1]
        each = above * (1 - above)
        out = each[:, :, None] * np.eye(mean.shape[1])
        out[:, :-1, 1:] -= each[:, None, 1:] * np.eye(mean.shape[1] - 1)
        return np.asarray(out)

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(np.maximum(self._chance(y, eta), TINY))

    def _chance(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = self.mean(eta)
        return np.asarray((y * mean).sum(axis=1) + (1 - y.sum(axis=1)) * (1 - mean.sum(axis=1)))

    def residual(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        below = np.concatenate([1 - y.sum(axis=1, keepdims=True), y[:, :-1]], axis=1)
        above = _logistic(eta)
        return np.asarray((y - below) * above * (1 - above) / np.maximum(self._chance(y, eta), TINY)[:, None])

    def curvature(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        own = self.residual(y, eta)
        bend = own * (1 - 2 * _logistic(eta))
        return np.asarray(own[:, :, None] * own[:, None, :] - bend[:, :, None] * np.eye(y.shape[1]))


def _logistic(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(eta, -700, 700))))


FAMILIES: Mapping[str, Family] = {
    "gaussian": Gaussian("gaussian", "identity"),
    "binomial": Multinomial("binomial", "logit"),
    "poisson": Poisson("poisson", "log"),
    "multinomial": Multinomial("multinomial", "logit"),
    "ordinal": Ordinal("ordinal", "logit"),
}
