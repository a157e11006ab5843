"""Parses the raw parts of a policy and collects all problems."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from noren.errors import NorenError, Problem
from noren.methods import METHODS
from noren.methods.base import Method
from noren.methods.decoys import Decoys
from noren.methods.parts import Part, shared
from noren.models import MODELS
from noren.models.base import Model, select_searchable
from noren.policy.options import DataOptions, Margin, PeopleOptions, RandomnessOptions
from noren.policy.problems import closest, from_validation, no_column, sharing_problems
from noren.policy.together import Together, read_groups, spelled
from noren.schema.column import Column, HierarchySpec, KnowledgeSpec
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge, read_priors

LARGEST = 2**31 - 1
"""The largest whole number that any parameter may have."""


class Reader:
    """Parses raw parts and collects all problems."""

    def __init__(self, source: str, base: Path) -> None:
        self.source = source
        self.base = base
        self.problems: list[Problem] = []
        self.broken: set[str] = set()
        self.method_read = True

    def groups(self, raw: Any, attributes: Any) -> tuple[list[Together], Any]:
        """Return the columns that are hidden together, and the table of the others."""
        if isinstance(attributes, Mapping) and isinstance(attributes.get("together"), list):
            given = attributes["together"]
            attributes = {name: value for name, value in attributes.items() if name != "together"}
            raw = raw or given
        found, problems = read_groups(raw)
        self.problems += problems
        return found, attributes

    def attributes(self, raw: Any) -> dict[str, Column]:
        if not isinstance(raw, Mapping):
            hint = 'For example: age = { role = "quasi-identifier" }'
            self.problems.append(Problem("attributes", "must be a table of columns.", hint))
            return {}
        out: dict[str, Column] = {}
        for name, given in raw.items():
            column = self.valid(f"attributes.{name}", Column, {"role": given} if isinstance(given, str) else given)
            if column is None:
                self.broken.add(name)
            else:
                out[name] = column
        if not raw:
            self.problems.append(Problem("attributes", "no column is named.", "Draft a policy with: noren init"))
        return out

    def requirements(self, raw: Any) -> dict[int, Model]:
        """Return the valid requirements by their number in the file, with public shares read from files."""
        if not isinstance(raw, list | tuple):
            self.problems.append(Problem("require", "must be a list.", "Write [[require]] with two brackets."))
            return {}
        out: dict[int, Model] = {}
        for number, value in enumerate(raw, 1):
            where = f"require[{number}]"
            if isinstance(value, Model):
                out[number] = self.read_prior(where, value)
                continue
            if not isinstance(value, Mapping):
                self.problems.append(Problem(where, f"must be a table, got {value!r}.", "Write [[require]] before it."))
                continue
            name, on = value.get("model"), value.get("on")
            kind = MODELS.get(name) if isinstance(name, str) else None
            if kind is None:
                message = "missing." if name is None else f"unknown model {name!r}."
                self.problems.append(Problem(f"{where}.model", message, closest(str(name), MODELS)))
            elif (model := self.valid(where, kind, value)) is not None:
                out[number] = self.read_prior(where, model)
                continue
            columns = on if isinstance(on, list | tuple) else [on]
            self.broken.update(column for column in columns if isinstance(column, str))
        return out

    def read_prior(self, where: str, model: Model) -> Model:
        """Return the requirement with the shares from its file."""
        given = getattr(model, "prior", None)
        if not (model.knows_shares and isinstance(given, str)):
            return model
        try:
            return model.model_copy(update={"prior": read_shares(self.base / given, model.on)})
        except NorenError as error:
            self.problems.append(Problem(f"{where}.prior", error.message, error.hint or ""))
            return model

    def methods(self, raw: Any) -> tuple[Method, ...]:
        if isinstance(raw, list | tuple):
            several = [self.method(one, f"method[{number}]") for number, one in enumerate(raw, 1)]
            if len(several) == 1:
                self.problems = [_alone(problem) for problem in self.problems]
            if not several:
                self.problems.append(Problem("method", "no method is given.", "Remove the line, or give a method."))
                return (Decoys(),)
            return tuple(several)
        return (self.method(raw, "method"),)

    def method(self, raw: Any, where: str) -> Method:
        if isinstance(raw, Method):
            return raw
        name = raw.get("name") if isinstance(raw, Mapping) else raw
        if not isinstance(name, str) or name not in METHODS:
            message = "missing." if name is None else f"unknown method {name!r}."
            self.problems.append(Problem(f"{where}.name", message, closest(str(name), METHODS)))
            self.method_read = False
            return Decoys()
        method = self.valid(where, METHODS[name], raw if isinstance(raw, Mapping) else {"name": raw})
        self.method_read &= method is not None
        return method or Decoys()

    def valid(self, where: str, kind: type[Any], raw: Any) -> Any:
        """Return a valid part of this kind, or None after noting its problems."""
        try:
            return raw if isinstance(raw, kind) else kind.model_validate(raw)
        except ValidationError as error:
            self.problems += from_validation(where, error, kind)
        except NorenError as error:
            self.problems.append(Problem(where, error.message, error.hint or ""))
        return None

    def part(self, name: str, kind: type[BaseModel], raw: Any) -> Any:
        return self.valid(name, kind, raw) or kind()

    def margins(self, raw: Any) -> tuple[Margin, ...]:
        """Return the margins."""
        if not isinstance(raw, list | tuple):
            self.problems.append(Problem("margins", "not a list.", 'Write [[margins]] with of = ["age", "disease"].'))
            return ()
        found = [self.valid(f"margins[{number}]", Margin, given) for number, given in enumerate(raw, 1)]
        return tuple(margin for margin in found if margin is not None)

    def people(self, attributes: Mapping[str, Column], people: PeopleOptions, randomness: RandomnessOptions) -> None:
        named = [
            *(("key", name) for name in people.key),
            *([("household", people.household)] if people.household else []),
        ]
        for option, name in named:
            if name not in attributes and name not in self.broken:
                self.problems.append(no_column(f"people.{option}", name, attributes))
        key = randomness.record_key
        if people.key and key is not None and people.key != (key,):
            message = f"people are identified by {', '.join(people.key)}, but decoys are memoised by {key!r}."
            self.problems.append(Problem("randomness.record_key", message, "Use the same column in both."))

    def hierarchies(self, attributes: Mapping[str, Column]) -> dict[str, Hierarchy]:
        out: dict[str, Hierarchy] = {}
        for name, attribute in attributes.items():
            spec = attribute.hierarchy
            try:
                if isinstance(spec, Hierarchy):
                    out[name] = spec
                elif isinstance(spec, HierarchySpec) and spec.csv is not None:
                    out[name] = Hierarchy.read_csv(self.base / spec.csv)
                elif isinstance(spec, HierarchySpec) and spec.tree is not None:
                    out[name] = Hierarchy.from_tree(spec.tree)
            except NorenError as error:
                self.problems.append(Problem(f"attributes.{name}.hierarchy", error.message, error.hint or ""))
        return out

    def knowledge(self, attributes: Mapping[str, Column]) -> dict[str, Knowledge]:
        out: dict[str, Knowledge] = {}
        read: dict[tuple[Path, str | None], Knowledge] = {}
        for name, attribute in attributes.items():
            spec = attribute.knowledge
            try:
                if isinstance(spec, Knowledge):
                    out[name] = spec
                elif isinstance(spec, KnowledgeSpec):
                    at = ((self.base / spec.csv).resolve(), spec.priors)
                    if at not in read:
                        found = Knowledge.read_csv(self.base / spec.csv)
                        read[at] = found if spec.priors is None else read_priors(self.base / spec.priors, found)
                    out[name] = read[at]
            except NorenError as error:
                self.problems.append(Problem(f"attributes.{name}.knowledge", error.message, error.hint or ""))
        return out

    def markers(self, attributes: Mapping[str, Column], data: DataOptions) -> None:
        """Note values that are also marks of missing cells, because such a decoy would hide nothing."""
        for name, attribute in attributes.items():
            both = [value for value in attribute.values or () if value in data.missing_values]
            if both and not attribute.role.is_dropped:
                message = f"lists {', '.join(map(repr, both))}, which [data] missing_values declares missing."
                hint = "Remove it from one of the two lists."
                self.problems.append(Problem(f"attributes.{name}.values", message, hint))

    def sizes(self, require: Mapping[int, Model], methods: Sequence[Method]) -> None:
        """Note whole numbers that are too large."""
        parts: list[tuple[str, BaseModel]] = [(f"require[{number}]", model) for number, model in require.items()]
        for where, part in [*parts, *(("method", method) for method in methods)]:
            for key, value in part.model_dump().items():
                if any(isinstance(one, int) and abs(one) > LARGEST for one in _leaves(value)):
                    message = f"a whole number beyond {LARGEST:,}."
                    self.problems.append(Problem(f"{where}.{key}", message, "Give a smaller number."))

    def cross_check(
        self,
        attributes: Mapping[str, Column],
        require: Mapping[int, Model],
        methods: Sequence[Method],
        randomness: RandomnessOptions,
        hierarchies: Mapping[str, Hierarchy],
    ) -> None:
        from noren.policy.problems import cross_problems

        asked = select_searchable(require.values(), any(method.chooses for method in methods))
        parts = [Part(methods[0], tuple(attributes), asked)]
        if len(methods) > 1:
            found = sharing_problems(attributes, require, methods)
            self.problems += found
            parts = [] if found else shared(attributes, list(require.values()), methods)
        found = cross_problems(attributes, require, parts, self.broken)
        if not self.method_read:  # what a method that was not asked for would say is of no use
            found = [p for p in found if f"the method {methods[0].name!r}" not in p.message]
        self.problems += found
        declared = spelled(attributes)
        for name, hierarchy in hierarchies.items():
            values = declared[name].values
            absent = hierarchy.missing(values) if values is not None else []
            if absent:
                more = f" and {len(absent) - 10} more" if len(absent) > 10 else ""
                listed = ", ".join(map(repr, absent[:10])) + more
                hint = "Add a line for each of them, or remove them from values."
                self.problems.append(Problem(f"attributes.{name}.hierarchy", f"misses the values {listed}.", hint))
        key = randomness.record_key
        if key is not None and key not in attributes and key not in self.broken:
            self.problems.append(no_column("randomness.record_key", key, attributes))
        if randomness.secret is not None and key is None:
            hint = "Add a record key, the column that identifies a person."
            self.problems.append(Problem("randomness.record_key", "missing.", hint))
        for name in randomness.columns:
            if name not in attributes and name not in self.broken:
                self.problems.append(no_column("randomness.columns", name, attributes))
        if len({*randomness.columns.values()}) < len(randomness.columns):
            message = "two columns have the same earlier name."
            self.problems.append(Problem("randomness.columns", message, "Give each a name of its own."))


def _alone(problem: Problem) -> Problem:
    """Return the problem of the only method, without its number."""
    return Problem(problem.where.replace("method[1]", "method", 1), problem.message, problem.hint)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield everything inside tables and lists."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        else:
            yield one


def read_shares(path: Path, columns: Sequence[str]) -> dict[str, float]:
    """Read public shares of a column's values: a CSV of value,share, or the estimate from an older release.

    To an estimate half a record is added for every value, so that none counts as impossible.
    """
    from noren.release import open_release

    if path.suffix.lower() != ".csv":
        if len(columns) > 1:
            hint = "Write a requirement for each column, or one file of shares for all."
            raise NorenError("an older release gives the shares of a single column only.", hint=hint)
        (column,) = columns
        found = open_release(path).estimate(column).frame
        counts = (found["count"] + 0.5).to_list()
        return dict(zip(found[column].cast(str).to_list(), counts, strict=True))
    hint = "Write one line of value,share for every value, under a header."
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line][1:]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise NorenError("the file of shares cannot be read as CSV in UTF-8.", hint=hint) from None
    out: dict[str, float] = {}
    for number, line in enumerate(lines, 2):
        share = _positive(line[1]) if len(line) == 2 else None
        if share is None or line[0] in out:
            what = "names a value again" if line[0] in out else "is not a value and a share above 0"
            raise NorenError(f"line {number} of the file of shares {what}.", hint=hint)
        out[line[0]] = share
    if not out:
        raise NorenError("the file of shares lists no value.", hint=hint)
    return out


def _positive(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 < found < inf else None
