"""Formulas: "income ~ age + C(education) + age:sex", and the columns of numbers that they stand for.

`a:b` is the product of two, `a*b` is a + b + a:b, `- 1` leaves the constant out, `C(a)` takes numbers as names. A name
that is more than letters, digits, dots and underscores stands between back quotes, as does the share of one value:
`` `native-country=Peru` ``.

Families of regression: how the mean follows from the linear predictors, and how it varies.

All have their canonical link, so that the score of a record is (y - mean) times its columns. `q` linear predictors are
one, except of the multinomial, which has one for each class but the first.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError

TOKEN = re.compile(r"\s*(`[^`]+`|C\(|\)|[+:*-]|[^\W\d][\w.]*|[01](?![\w.]))")
EXAMPLE = 'For example "income ~ age + C(education) + age:sex"; other names between back quotes.'
CONSTANT = "(constant)"

Factor = tuple[str, bool]
"""A name, and whether its values are names."""


@dataclass(frozen=True)
class Formula:
    """A response, and products of factors."""

    text: str
    response: str
    terms: tuple[tuple[Factor, ...], ...]
    constant: bool

    @classmethod
    def parse(cls, text: str) -> Formula:
        left, found, right = text.partition("~")
        if not found or not left.strip() or not right.strip():
            raise QueryError(f"{text!r} is not a formula: response ~ terms.", hint=EXAMPLE)
        response = _factors(_tokens(left, text), text)
        if len(response) != 1:
            raise QueryError(f"{left.strip()!r} is not one response.", hint=EXAMPLE)
        terms, constant = _terms(_tokens(right, text), text)
        named = [name for term in terms for name, _ in term]
        if response[0][0] in named:
            raise QueryError(f"{response[0][0]!r} stands on both sides of the formula.", hint=EXAMPLE)
        if not terms and not constant:
            raise QueryError("a formula without a term and without a constant has nothing to fit.", hint=EXAMPLE)
        return cls(text.strip(), response[0][0], tuple(terms), constant)

    @property
    def names(self) -> tuple[str, ...]:
        """The response and every name on the right, once."""
        return tuple(dict.fromkeys([self.response, *(name for term in self.terms for name, _ in term)]))

    def categorical(self, name: str) -> bool:
        """Whether the formula says that a name's values are names."""
        return any(factor == (name, True) for term in self.terms for factor in term)


def _tokens(text: str, whole: str) -> list[str]:
    out, at, text = [], 0, text.strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise QueryError(f"{whole!r}: {text[at:].strip()[:20]!r} is not understood.", hint=EXAMPLE)
        out.append(found[1])
        at = found.end()
    return out


def _terms(tokens: Sequence[str], whole: str) -> tuple[list[tuple[Factor, ...]], bool]:
    constant, terms, at = True, list[tuple[Factor, ...]](), 0
    while at < len(tokens):
        sign = "+"
        if tokens[at] in "+-":
            sign, at = tokens[at], at + 1
        stop = next((k for k in range(at, len(tokens)) if tokens[k] in ("+", "-")), len(tokens))
        part = tokens[at:stop]
        if part in (["0"], ["1"]):
            constant = (part == ["1"]) == (sign == "+")
        elif sign == "-":
            raise QueryError(f"{whole!r}: only the constant can be left out.", hint="Write - 1.")
        else:
            for term in _products(part, whole):
                if term not in terms:
                    terms.append(term)
        at = stop
    return terms, constant


def _products(tokens: Sequence[str], whole: str) -> list[tuple[Factor, ...]]:
    """The terms of one summand: a:b is one, a*b are three."""
    out: list[tuple[Factor, ...]] = []
    part: list[str] = []
    parts: list[list[str]] = [part]
    for token in tokens:
        if token == "*":
            part = []
            parts.append(part)
        else:
            part.append(token)
    for piece in parts:
        own = _factors(piece, whole)
        out += [tuple(dict.fromkeys((*term, *own))) for term in out] + [own]
    return sorted(dict.fromkeys(out), key=len)


def _factors(tokens: Sequence[str], whole: str) -> tuple[Factor, ...]:
    out: list[Factor] = []
    at = 0
    while at < len(tokens):
        if out:
            if tokens[at] != ":":
                raise QueryError(f"{whole!r}: a sign is missing before {tokens[at]!r}.", hint=EXAMPLE)
            at += 1
        named = at < len(tokens) and tokens[at] == "C("
        at += named
        if at >= len(tokens) or tokens[at] in ("+", "-", ":", "*", ")", "C(", "0", "1"):
            raise QueryError(f"{whole!r}: a name is missing.", hint=EXAMPLE)
        out.append((tokens[at].strip("`"), bool(named)))
        at += 1
        if named:
            if at >= len(tokens) or tokens[at] != ")":
                raise QueryError(f"{whole!r}: C( is not closed.", hint=EXAMPLE)
            at += 1
    if not out:
        raise QueryError(f"{whole!r}: a name is missing.", hint=EXAMPLE)
    return tuple(out)


@dataclass(frozen=True)
class Coding:
    """How one name enters: as a number, or as levels of which the first is what the others are compared with."""

    name: str
    levels: tuple[str, ...] | None = None

    def columns(self, values: NDArray, every: bool) -> list[tuple[str, NDArray[np.float64]]]:
        """Titles and columns. Values are numbers, or places among the levels (-1 for none of them)."""
        if self.levels is None:
            return [(self.name, np.asarray(values, np.float64))]
        start = 0 if every else 1
        return [
            (f"{self.name}[{label}]", np.asarray(values == place, np.float64))
            for place, label in enumerate(self.levels)
            if place >= start
        ]


def model_matrix(
    formula: Formula, codings: Mapping[str, Coding], values: Mapping[str, NDArray], shape: tuple[int, ...]
) -> tuple[list[str], NDArray[np.float64]]:
    """Titles and the columns of the terms, last dimension. Arrays are broadcast to the shape.

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
            coding = codings[factor[0]]
            rest = tuple(other for other in term if other != factor)
            full = coding.levels is not None and not (spanned if not rest else rest in known)
            made = coding.columns(values[factor[0]], full)
            if full and not rest:
                spanned = True
            parts = [([*names, title], old * new) for names, old in parts for title, new in made]
        titles += [":".join(names) for names, _ in parts]
        columns += [np.broadcast_to(column, shape) for _, column in parts]
    return titles, np.stack(columns, axis=-1)


@dataclass(frozen=True)
class Family(ABC):
    """mean(eta), the derivative of the mean, and the log likelihood up to what does not depend on eta."""

    name: str
    link: str

    @abstractmethod
    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """(cells, q) of (cells, q)."""

    @abstractmethod
    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """(cells, q, q): d mean / d eta."""

    @abstractmethod
    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """(cells,): the log likelihood of a record."""


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
    """Classes against the first; of two classes it is the binomial."""

    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        top = np.maximum(eta.max(axis=1, keepdims=True), 0.0)
        parts = np.exp(eta - top)
        return np.asarray(parts / (np.exp(-top) + parts.sum(axis=1, keepdims=True)))

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return mean[:, :, None] * (np.eye(mean.shape[1]) - mean[:, None, :])

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        top = np.maximum(eta.max(axis=1), 0.0)
        whole = top + np.log(np.exp(-top) + np.exp(eta - top[:, None]).sum(axis=1))
        return (y * eta).sum(axis=1) - whole


FAMILIES: Mapping[str, Family] = {
    "gaussian": Gaussian("gaussian", "identity"),
    "binomial": Multinomial("binomial", "logit"),
    "poisson": Poisson("poisson", "log"),
    "multinomial": Multinomial("multinomial", "logit"),
}
