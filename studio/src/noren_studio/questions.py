"""A recipient's question: plain values, the corresponding call of the library, and its Python text.

The page shows the text and a worker makes the call, both from one `Call`: what is shown is what was computed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from noren.errors import QueryError
from noren_studio.parts import refresh, refresh_frame
from noren_studio.session import Session
from noren_studio.texts import recipient as texts

KINDS = ("count", "number", "model", "test", "tables", "margins")
MEASURES = ("mean", "variance", "quantile", "correlation", "difference", "ratio")
GROUPED = ("difference", "ratio")
FAMILIES = ("gaussian", "binomial", "poisson", "multinomial", "ordinal")
LEVEL = 0.95
TABLES, MOST_TABLES = 5, 50
"""Plausible tables that are drawn at first, and at most."""
DRAWN = ("estimate", "mean", "variance", "quantile", "correlation", "difference", "ratio", "regress", "impute")
"""Verbs whose answers draw themselves."""


@dataclass(frozen=True)
class Call:
    """A method of a release with its arguments; defaults are omitted."""

    verb: str
    args: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        if self.verb == "margins":
            return f"release.margins[{self.args[0]!r}]"
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.options.items())]
        return f"release.{self.verb}({', '.join(given)})"

    def to_dict(self) -> dict[str, Any]:
        return {"verb": self.verb, "args": list(self.args), "options": dict(self.options)}


def call_of(question: Mapping[str, Any]) -> Call:
    """Return the call of a question; raise if something is not chosen yet."""
    makers: Mapping[str, Callable[[Mapping[str, Any]], Call]] = {
        "count": _count, "number": _number, "model": _model, "test": _test, "tables": _tables, "margins": _margins
    }  # fmt: skip
    return makers[question.get("kind", "count")](question)


def _count(question: Mapping[str, Any]) -> Call:
    by = [*question.get("rows", ()), *question.get("columns", ())]
    where = conditions(question.get("filters", ()))
    options: dict[str, Any] = {"where": where} if where else {}
    options |= {"estimator": question["estimator"]} if question.get("estimator") else {}
    if not by:
        if not where:
            raise QueryError(texts.CHOOSE_COLUMN, hint=texts.CHOOSE_COLUMN_HINT)
        return Call("count", (options.pop("where"),), options | _interval(question))
    return Call("estimate", (by,), options | _interval(question))


def _number(question: Mapping[str, Any]) -> Call:
    measure, of = question.get("measure", "mean"), variable_of(question, "of", "share")
    if not of or (measure == "correlation" and not question.get("second")):
        raise QueryError(texts.CHOOSE_NUMBER, hint=texts.CHOOSE_NUMBER_HINT)
    args: list[Any] = [of]
    if measure == "correlation":
        args.append(question["second"])
    if measure == "quantile" and question.get("at", 0.5) != 0.5:
        args.append(question["at"])
    by, where = list(question.get("by", ())), conditions(question.get("filters", ()))
    if measure in GROUPED and not by:
        raise QueryError(texts.CHOOSE_GROUPS, hint=texts.CHOOSE_GROUPS_HINT)
    options: dict[str, Any] = {"by": by} if by else {}
    if measure in GROUPED and question.get("against"):
        options["against"] = list(question["against"])
    options |= {"where": where} if where else {}
    return Call(measure, tuple(args), options | _interval(question))


def _model(question: Mapping[str, Any]) -> Call:
    formula = formula_of(question)
    where, family = conditions(question.get("filters", ())), question.get("family", "gaussian")
    options: dict[str, Any] = {"family": family} if family != "gaussian" else {}
    options |= {"where": where} if where else {}
    options |= {"estimator": question["fit"]} if question.get("fit") else {}
    level = question.get("level", LEVEL)
    options |= {"level": level} if level != LEVEL else {}
    return Call("regress", (formula,), options | _weighted(question))


def _test(question: Mapping[str, Any]) -> Call:
    one, two = question.get("one"), question.get("two")
    if not one or not two:
        raise QueryError(texts.CHOOSE_TWO, hint=texts.CHOOSE_TWO_HINT)
    where = conditions(question.get("filters", ()))
    return Call("test", (one, two), ({"where": where} if where else {}) | _weighted(question))


def _tables(question: Mapping[str, Any]) -> Call:
    """Return the call for imputed tables, with a seed so that the shown Python draws the same ones."""
    return Call("impute", (int(question.get("tables", TABLES)),), {"seed": int(question.get("seed", 1))})


def _margins(question: Mapping[str, Any]) -> Call:
    """Return the call for noised counts."""
    return Call("margins", (int(question.get("margin", 0)),))


def formula_of(question: Mapping[str, Any]) -> str:
    """Return the written formula, or the one of the chosen columns."""
    written = (question.get("formula") or "").strip()
    if written:
        return str(written)
    response, terms = variable_of(question, "response", "response_share"), list(question.get("terms", ()))
    if not response or not terms:
        raise QueryError(texts.CHOOSE_MODEL, hint=texts.CHOOSE_MODEL_HINT)
    return f"{quoted(response)} ~ {' + '.join(map(quoted, terms))}"


def variable_of(question: Mapping[str, Any], name: str, share: str) -> str:
    """Return a column, or one value of it whose share is requested; empty if none is chosen."""
    column, value = question.get(name) or "", question.get(share)
    return f"{column}={value}" if column and value else column


def quoted(name: str) -> str:
    """Return a column as a formula names it."""
    return name if name.isidentifier() else f"`{name}`"


def _interval(question: Mapping[str, Any]) -> dict[str, Any]:
    level = question.get("level", LEVEL)
    out: dict[str, Any] = {"level": level} if level != LEVEL else {}
    return out | ({"population": True} if question.get("population") else {}) | _weighted(question)


def _weighted(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option about survey weights, which are used unless records are counted."""
    return {"weighted": False} if question.get("unweighted") else {}


def conditions(filters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return filters for `where`; incomplete ones are ignored."""
    out: dict[str, Any] = {}
    for one in filters:
        column, how = one.get("column"), one.get("how", "in")
        if not column:
            continue
        if how == "range":
            ends = {sign: _end(one[sign]) for sign in (">=", "<=", ">", "<") if str(one.get(sign, "")).strip()}
            if ends:
                out[column] = ends
        elif values := list(one.get("values", ())):
            out[column] = {"all": values} if how == "all" else values
    return out


def _end(given: Any) -> Any:
    """Parse the end of a range: a number if possible, otherwise text, such as a date."""
    text = str(given).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and "." not in text else number


def script(call: Call, place: str) -> str:
    """Return Python code for the same answer, without the studio."""
    lines = ["import noren as nr", "", f"release = nr.open_release({place!r})", f"answer = {call.text()}"]
    lines += ["print(answer)" if call.verb == "margins" else "print(answer.frame)"]
    if call.verb in DRAWN:
        lines.append('answer.save_plot("answer.png")')
    return "\n".join(lines) + "\n"


def public_place(place: str) -> str:
    """Return a place without the password of its address."""
    if "://" not in place:
        return place
    from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

    parts = urlsplit(place)
    user, _, host = parts.netloc.rpartition("@")
    named = f"{user.partition(':')[0]}@{host}" if user else host
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "password"]
    return urlunsplit((parts.scheme, named, parts.path, urlencode(kept, quote_via=quote), ""))


# ---------------------------------------------------------------------- what is open and asked, in the draft


RELEASE, QUESTION, AUDIT = "release", "question", "audit"


def release_of(session: Session) -> str:
    """Return the place of the open release; empty if there is none."""
    return str(session.draft.asks.get(RELEASE, ""))


def asked(session: Session, part: str) -> dict[str, Any]:
    """Return a copy of the current question."""
    return copy.deepcopy(dict(session.draft.asks.get(part, {})))


def ask(
    session: Session, words: str, part: str, change: Callable[[dict[str, Any]], None], rebuild: bool = True
) -> None:
    """Change the question, and rebuild the page."""
    now = asked(session, part)
    change(now)
    _made(session, words, {**session.draft.asks, part: now}, rebuild)


def open_release(session: Session, words: str, place: str) -> None:
    """Open another release, and reset the question."""
    kept = {name: value for name, value in session.draft.asks.items() if name not in (RELEASE, QUESTION)}
    _made(session, words, {**kept, RELEASE: place}, True)


def _made(session: Session, words: str, asks: Mapping[str, Any], rebuild: bool) -> None:
    if session.history.make(words, replace(session.draft, asks=asks)):
        (refresh if rebuild else refresh_frame)()
