"""Knowledge tables: public tables that list which terms belong to which sensitive label.

A record's terms link it to K(t), the labels whose term set contains every term of the record; an empty term set links
to all labels, a term that no label holds links to none. An adversary who sees the terms believes in label L with

    P(L | t) = w(L) w(L, t1) w(L, t2) ... / (the sum of the same over K(t))  if L is in K(t), else 0.

w(L) is 1 for every label unless the table gives **weights**: how common a label is among those that fit the terms
equally well (a cold before a plague). w(L, t) is 1 for every pair unless the table gives **pair weights**: how often
somebody with the label has the term. Terms that are not published say nothing. Since all labels of K(t) have all terms
of t, only ratios within a term count. **Priors** are something else: what the adversary believes about a person before
any release (alpha), if it is given and not estimated from the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.schema.confusables import count_lookalikes
from noren.schema.hierarchy import find_repeated, read_side_rows

EXTRAS = ("weight", "prior")
"""Further columns of a table of pairs, each the same in all lines of a label."""
PAIR = "pair_weight"
"""One more, which belongs to the line's own pair."""
YES = frozenset({"1", "yes", "true"})
NO = frozenset({"0", "no", "false", ""})


class KnowledgeError(NorenError):
    """A knowledge table that contradicts itself, or cannot be read."""


class PairLogs(NamedTuple):
    """Logarithms of pair weights by term: term j has the labels of[start[j]:start[j + 1]]."""

    start: NDArray[np.int64]
    of: NDArray[np.int64]
    logs: NDArray[np.float64]
    """log w(L, t), less the largest of the term: 0 for the labels that it speaks for most, below 0 for others."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A knowledge table: label i has the term codes `codes[bounds[i]:bounds[i + 1]]`, ascending.

    `weights` (one per label, positive), `priors` (one per label, sum 1) and `pair_weights` (one per entry of `codes`,
    positive) are None unless given.
    """

    labels: tuple[str, ...]
    terms: tuple[str, ...]
    bounds: NDArray[np.int64]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    priors: NDArray[np.float64] | None = None
    pair_weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not self.labels:
            raise KnowledgeError("the knowledge table has no labels.", hint="Give at least one label with its terms.")
        if not self.terms:
            raise KnowledgeError("no label of the knowledge table has a term.", hint="Write label,term pairs.")
        for what, names in (("label", self.labels), ("term", self.terms)):
            if not all(name == name.strip() != "" for name in names):
                raise KnowledgeError(f"a {what} is empty or has spaces around it.", hint=f"Name every {what}.")
            if len(set(names)) != len(names):
                doubled = find_repeated(names)
                raise KnowledgeError(f"{what} {doubled!r} is listed twice.", hint=f"Name every {what} once.")
            if alike := count_lookalikes(names):
                message = f"{alike} {what}s look the same as others, or like an empty cell."
                raise KnowledgeError(message, hint=f"Write every {what} in one way, without invisible characters.")
        for what, numbers in (("weights", self.weights), ("priors", self.priors)):
            if numbers is not None and numbers.shape != (len(self.labels),):
                raise KnowledgeError(
                    f"{numbers.size} {what} for {len(self.labels)} labels.", hint="Give one number for every label."
                )
        if self.weights is not None and not (np.isfinite(self.weights).all() and (self.weights > 0).all()):
            raise KnowledgeError(
                "a weight is not a positive number.", hint="Give positive numbers; remove labels that are impossible."
            )
        if (own := self.pair_weights) is not None:
            if own.shape != self.codes.shape:
                message = f"{own.size} pair weights for {self.codes.size} pairs."
                raise KnowledgeError(message, hint="Give one number for every pair of a label and a term.")
            if not (np.isfinite(own).all() and (own > 0).all()):
                hint = "Give positive numbers; remove pairs that never occur."
                raise KnowledgeError("a pair weight is not a positive number.", hint=hint)
        if self.priors is not None:
            total = float(self.priors.sum())
            if not (self.priors >= 0).all() or not abs(total - 1) < 1e-6:
                raise KnowledgeError(
                    f"the priors are not a distribution over the labels: they sum to {total:g}.",
                    hint="Give every label a probability of at least 0, with sum 1.",
                )
            object.__setattr__(self, "priors", self.priors / total)

    @cached_property
    def _term_code(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms)}

    def encode(self, terms: Iterable[str]) -> NDArray[np.int64]:
        """Return the codes of terms; an unknown term becomes -1 and is linked to no label."""
        return np.array([self._term_code.get(term, -1) for term in terms], np.int64)

    @cached_property
    def label_weights(self) -> NDArray[np.float64]:
        """Return the weight w(L) of every label; 1 by default."""
        return np.ones(len(self.labels)) if self.weights is None else np.asarray(self.weights, np.float64)

    @cached_property
    def postings(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the transposed table: term j belongs to the labels `of[start[j]:start[j + 1]]`, ascending."""
        owner = np.repeat(np.arange(len(self.labels)), np.diff(self.bounds))
        start = np.concatenate(([0], np.cumsum(np.bincount(self.codes, minlength=len(self.terms)))))
        return start.astype(np.int64), owner[np.argsort(self.codes, kind="stable")].astype(np.int64)

    @cached_property
    def pairs(self) -> PairLogs | None:
        """Return the pair weights; None if none were given, or if they are equal within every term."""
        if self.pair_weights is None:
            return None
        start, of = self.postings
        place = np.argsort(self.codes, kind="stable")
        logs, term = np.log(np.asarray(self.pair_weights, np.float64))[place], self.codes[place]
        most = np.full(len(self.terms), -np.inf)
        np.maximum.at(most, term, logs)
        logs = logs - most[term]
        return PairLogs(start, of, logs) if logs.any() else None

    @cached_property
    def bits(self) -> NDArray[np.uint64]:
        """Return a (terms, words) bit array: bit L of row j says whether label L has term j."""
        out = np.zeros((len(self.terms), (len(self.labels) + 63) // 64), np.uint64)
        owner = np.repeat(np.arange(len(self.labels)), np.diff(self.bounds))
        np.bitwise_or.at(out, (self.codes, owner // 64), np.uint64(1) << (owner % 64).astype(np.uint64))
        return out

    @property
    def links(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], PairLogs | None]:
        """Return everything that determines beliefs: the terms of labels, the weights of labels, and the weights of
        pairs."""
        return self.bits, self.label_weights, self.pairs

    # ---------------------------------------------------------------- ways to write one

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[str, str]],
        *,
        labels: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        priors: Mapping[str, float] | None = None,
        pair_weights: Mapping[tuple[str, str], float] | None = None,
    ) -> Knowledge:
        """Make a table from (label, term) pairs in any order; a repeated pair counts once, an empty term only declares
        the label.

        `labels` fixes the order and may name labels without terms; otherwise labels stand in order of appearance.
        Labels and pairs that a mapping leaves out weigh 1, or have prior 0.
        """
        held: dict[str, dict[str, None]] = {label: {} for label in labels or ()}
        terms: dict[str, int] = {}
        for label, term in pairs:
            if labels is not None and label not in held:
                raise KnowledgeError(f"label {label!r} has terms but is not listed.", hint="Add it to the labels.")
            own = held.setdefault(label, {})
            if term:
                own[term] = None
                terms.setdefault(term, len(terms))
        return cls.from_sets(
            [[terms[term] for term in own] for own in held.values()],
            terms=tuple(terms),
            labels=tuple(held),
            weights=_per_label("weight", weights, held, 1.0),
            priors=_per_label("prior", priors, held, 0.0),
            pair_weights=_per_pair(pair_weights, held, terms),
        )

    @classmethod
    def from_sets(cls, sets: Sequence[Iterable[int]], *, terms: Sequence[str], **names: Any) -> Knowledge:
        """Make a table from one set of term codes per label; other arguments are the fields of the class.

        Pair weights stand in the order of `codes`: label by label, the terms of each ascending.
        """
        rows = [sorted(set(own)) for own in sets]
        codes = np.array([code for row in rows for code in row], np.int64)
        if codes.size and not (codes.min() >= 0 and codes.max() < len(terms)):
            raise KnowledgeError(
                f"a term code lies outside 0..{len(terms) - 1}.", hint="Give codes as positions in `terms`."
            )
        names.setdefault("labels", tuple(f"label {i + 1}" for i in range(len(rows))))
        bounds = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
        return cls(terms=tuple(terms), bounds=bounds, codes=codes, **names)

    @classmethod
    def read_csv(cls, path: Path) -> Knowledge:
        """Read a CSV with a header, in one of two layouts.

        Pairs: `label,term`, or any two columns in this order; further columns `weight` and `prior` hold the same
        number in every line of a label, and `pair_weight` one for the line's own pair (1 where the cell is empty). An
        empty term names a label without terms. Matrix: the first column holds the labels, every other column is a
        term, and the cells say 1/0 (or yes/no, true/false).
        """
        header, rows, lines = _read(path)
        if _is_pairs(header, rows):
            return _from_pair_rows(path, [name.lower() for name in header], rows, lines)
        if len(set(header)) != len(header):
            doubled = find_repeated(header)
            raise KnowledgeError(f"{path}: term {doubled!r} has two columns.", hint="Write one column per term.")
        pairs: list[tuple[str, str]] = []
        for row, line in zip(rows, lines, strict=True):
            for term, cell in zip(header[1:], row[1:], strict=True):
                if cell.lower() in YES:
                    pairs.append((row[0], term))
                elif cell.lower() not in NO:
                    raise KnowledgeError(
                        f"{path}: line {line}, column {term!r}: {cell!r} is neither 1 nor 0.",
                        hint="Write 1 where the label has the term and 0 elsewhere, or use the header label,term.",
                    )
        labels = [row[0] for row in rows]
        if len(set(labels)) != len(labels):
            doubled = find_repeated(labels)
            raise KnowledgeError(f"{path}: label {doubled!r} has two lines.", hint="Write one line per label.")
        return cls.from_pairs(pairs, labels=labels)


def _per_label(
    what: str, given: Mapping[str, float] | None, labels: Mapping[str, Any], default: float
) -> NDArray[np.float64] | None:
    if given is None:
        return None
    for label in given:
        if label not in labels:
            raise KnowledgeError(
                f"there is a {what} of {label!r}, but no such label.", hint="Spell labels as in the table."
            )
    return np.array([given.get(label, default) for label in labels], np.float64)


def _per_pair(
    given: Mapping[tuple[str, str], float] | None, held: Mapping[str, Mapping[str, Any]], terms: Mapping[str, int]
) -> NDArray[np.float64] | None:
    """Return one weight for every pair, in the order of `Knowledge.codes`."""
    if given is None:
        return None
    for label, term in given:
        if term not in held.get(label, ()):
            message = f"there is a pair weight of {label!r} and {term!r}, but no such pair."
            raise KnowledgeError(message, hint="Spell labels and terms as in the table.")
    rows = [sorted(own, key=terms.__getitem__) for own in held.values()]
    pairs = [(label, term) for label, own in zip(held, rows, strict=True) for term in own]
    return np.array([given.get(pair, 1.0) for pair in pairs], np.float64)


def _from_pair_rows(path: Path, header: list[str], rows: list[list[str]], lines: list[int]) -> Knowledge:
    if len(set(header[2:])) != len(header[2:]):
        raise KnowledgeError(f"{path}: two columns are called {find_repeated(header[2:])!r}.", hint="Keep one of them.")
    place = {name: header.index(name, 2) for name in header[2:]}
    found = {name: _numbers(path, name, at, rows, lines) for name, at in place.items()}
    pairs = [(row[0], row[1]) for row in rows]
    return Knowledge.from_pairs(
        pairs, weights=found.get("weight"), priors=found.get("prior"), pair_weights=found.get(PAIR)
    )


def _is_pairs(header: list[str], rows: list[list[str]]) -> bool:
    """Return whether the lines are pairs: by their header, or two columns of which the second is not yes/no."""
    if len(header) == 2:
        return header[1].lower() == "term" or any(row[1].lower() not in YES | NO for row in rows)
    return len(header) > 2 and {name.lower() for name in header[2:]} <= {*EXTRAS, PAIR}


def _numbers(path: Path, what: str, place: int, rows: list[list[str]], lines: list[int]) -> dict[Any, float]:
    """Return the weight or the prior of every label, or the weight of every pair; 1 for an empty cell of a pair."""
    out: dict[Any, float] = {}
    for row, line in zip(rows, lines, strict=True):
        text, key = (row[place] or "1", (row[0], row[1])) if what == PAIR else (row[place], row[0])
        if what == PAIR and not row[1]:
            if row[place]:
                message = f"{path}: line {line} has a {PAIR} and names no term."
                raise KnowledgeError(message, hint="Leave the cell empty if a label has no terms.")
            continue
        try:
            number = float(text)
        except ValueError:
            number = np.nan
        if not (0 < number < np.inf or (what == "prior" and number == 0)):
            message = f"{path}: line {line}: the {what} is not a positive number."
            raise KnowledgeError(message, hint="For example 1 or 0.25.")
        if out.setdefault(key, number) != number:
            if what == PAIR:
                message = f"{path}: line {line}: its pair is in an earlier line, with another {PAIR}."
                raise KnowledgeError(message, hint="Write every pair once.")
            message = f"{path}: line {line}: the label has another {what} than above."
            raise KnowledgeError(message, hint=f"Write the same {what} in all lines of a label.")
    return out


def read_priors(path: Path, knowledge: Knowledge) -> Knowledge:
    """Return the knowledge table with priors from a CSV of label,prior. Unlisted labels have prior 0."""
    header, rows, lines = _read(path)
    if len(header) != 2:
        raise KnowledgeError(f"{path}: a table of priors has two columns.", hint="Write label,prior.")
    if len({row[0] for row in rows}) != len(rows):
        raise KnowledgeError(f"{path}: a label has two lines.", hint="Write every label once.")
    given = _numbers(path, "prior", 1, rows, lines)
    held = dict.fromkeys(knowledge.labels)
    return replace(knowledge, priors=_per_label("prior", given, held, 0.0))


def _read(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Return header, rows and their line numbers; every row is as wide as the header."""
    table = read_side_rows(path, KnowledgeError, ",;\t|")
    if len(table) < 2:
        raise KnowledgeError(f"{path}: no lines below the header.", hint="Write label,term and below it the pairs.")
    header = table[0][0]
    for row, line in table[1:]:
        if len(row) != len(header):
            raise KnowledgeError(
                f"{path}: line {line} has {len(row)} cells, the header {len(header)}.",
                hint="Quote a cell that contains the separator.",
            )
        if not row[0]:
            raise KnowledgeError(f"{path}: line {line} names no label.", hint="Put the label into the first column.")
    return header, [row for row, _ in table[1:]], [line for _, line in table[1:]]


def knowledge_rows(knowledge: Knowledge) -> dict[str, list[Any]]:
    """Return the lines of the table as columns: label, term and, if given, weight, prior and pair weight.

    A label without terms has one line, with neither a term nor a pair weight. The terms of a label stand in the order
    of their texts: the order of a holder's file is lost when the lines are read again, and a table has one form only.
    """
    sizes = np.diff(knowledge.bounds)
    rank = np.empty(len(knowledge.terms), np.int64)
    rank[sorted(range(len(rank)), key=knowledge.terms.__getitem__)] = np.arange(len(rank))
    order = np.lexsort((rank[knowledge.codes], np.repeat(np.arange(len(sizes)), sizes)))
    owner = np.repeat(np.arange(len(sizes)), np.maximum(sizes, 1))
    bare = np.repeat(sizes == 0, np.maximum(sizes, 1))
    code = np.zeros(len(owner), np.int64)
    code[~bare] = knowledge.codes[order]
    numbers = {"weight": knowledge.weights, "prior": knowledge.priors}
    out: dict[str, list[Any]] = {
        "label": [knowledge.labels[i] for i in owner.tolist()],
        "term": [None if none else knowledge.terms[c] for none, c in zip(bare.tolist(), code.tolist(), strict=True)],
    }
    out |= {name: found[owner].tolist() for name, found in numbers.items() if found is not None}
    if knowledge.pair_weights is not None:
        own = iter(knowledge.pair_weights[order].tolist())
        out[PAIR] = [None if none else next(own) for none in bare.tolist()]
    return out


def knowledge_of_rows(rows: Mapping[str, Sequence[Any]]) -> Knowledge:
    """Rebuild a table from `knowledge_rows`; raise ValueError or KnowledgeError for contradictory lines."""
    known = {"label", "term", *EXTRAS, PAIR}
    if not {"label", "term"} <= set(rows) or not set(rows) <= known or None in rows["label"]:
        raise ValueError("a knowledge table has labels and terms")
    extras = {}
    for name in EXTRAS:
        if name in rows:
            found = dict(zip(rows["label"], rows[name], strict=True))
            if any(found[label] != number for label, number in zip(rows["label"], rows[name], strict=True)):
                raise ValueError("a label has two numbers")
            extras[name] = found
    pairs = list(zip(rows["label"], (text or "" for text in rows["term"]), strict=True))
    own: dict[tuple[str, str], float] | None = None
    if PAIR in rows:
        if any((number is None) != (term == "") for (_, term), number in zip(pairs, rows[PAIR], strict=True)):
            raise ValueError("every pair has a weight, and nothing else has one")
        own = {}
        for pair, number in zip(pairs, rows[PAIR], strict=True):
            if number is not None and own.setdefault(pair, number) != number:
                raise ValueError("a pair has two weights")
    return Knowledge.from_pairs(pairs, weights=extras.get("weight"), priors=extras.get("prior"), pair_weights=own)
