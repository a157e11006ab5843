"""A policy's raw parts turned into checked ones, with every problem that is met on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from noren.errors import NorenError, Problem
from noren.methods import METHODS
from noren.methods.base import Method
from noren.methods.decoys import Decoys
from noren.methods.parts import Part, shared
from noren.models import MODELS
from noren.models.base import Model, searched
from noren.policy.options import DataOptions, Margin, PeopleOptions, RandomnessOptions
from noren.policy.problems import closest, closest_column, from_validation, sharing_problems
from noren.policy.together import Together, read_groups, spelled
from noren.schema.column import Column, HierarchySpec, KnowledgeSpec
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge, read_priors

LARGEST = 2**31 - 1
"""The largest whole number that any parameter may have."""


class Reader:
    """Turns raw parts into checked ones and gathers every problem on the way."""

    def __init__(self, source: str, base: Path) -> None:
        self.source = source
        self.base = base
        self.problems: list[Problem] = []
        self.broken: set[str] = set()
        self.method_read = True

    def groups(self, raw: Any, attributes: Any) -> tuple[list[Together], Any]:
        """Columns that are hidden together, and the others' table: the line may have been written under it."""
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
            value = {"role": given} if isinstance(given, str) else given
            if isinstance(value, Column):
                out[name] = value
                continue
            try:
                out[name] = Column.model_validate(value)
            except ValidationError as error:
                self.broken.add(name)
                self.problems += from_validation(f"attributes.{name}", error, Column)
            except NorenError as error:
                self.broken.add(name)
                self.problems.append(Problem(f"attributes.{name}", error.message, error.hint or ""))
        if not raw:
            self.problems.append(Problem("attributes", "no column is named.", "Draft a policy with: noren init"))
        return out

    def requirements(self, raw: Any) -> dict[int, Model]:
        """The sound ones by their number in the file."""
        if not isinstance(raw, list | tuple):
            self.problems.append(Problem("require", "must be a list.", "Write [[require]] with two brackets."))
            return {}
        out: dict[int, Model] = {}
        for number, value in enumerate(raw, 1):
            where = f"require[{number}]"
            if isinstance(value, Model):
                out[number] = value
                continue
            if not isinstance(value, Mapping):
                self.problems.append(Problem(where, f"must be a table, got {value!r}.", "Write [[require]] before it."))
                continue
            name, on = value.get("model"), value.get("on")
            kind = MODELS.get(name) if isinstance(name, str) else None
            if kind is None:
                message = "missing." if name is None else f"unknown model {name!r}."
                self.problems.append(Problem(f"{where}.model", message, closest(str(name), MODELS)))
            else:
                try:
                    out[number] = kind.model_validate(value)
                    continue
                except ValidationError as error:
                    self.problems += from_validation(where, error, kind)
            columns = on if isinstance(on, list | tuple) else [on]
            self.broken.update(column for column in columns if isinstance(column, str))
        return out

    def methods(self, raw: Any) -> tuple[Method, ...]:
        if isinstance(raw, list | tuple):
            several = [self.method(one, f"method[{number}]") for number, one in enumerate(raw, 1)]
            if len(several) == 1:
                self.problems = [_alone(problem) for problem in self.problems]
            if not several:
                self.problems.append(Problem("method", "no method is given.", "Leave it out, or name one."))
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
        try:
            return METHODS[name].model_validate(raw if isinstance(raw, Mapping) else {"name": raw})
        except ValidationError as error:
            self.problems += from_validation(where, error, METHODS[name])
            self.method_read = False
            return Decoys()

    def part(self, name: str, kind: type[BaseModel], raw: Any) -> Any:
        if isinstance(raw, kind):
            return raw
        try:
            return kind.model_validate(raw)
        except ValidationError as error:
            self.problems += from_validation(name, error, kind)
            return kind()

    def margins(self, raw: Any) -> tuple[Margin, ...]:
        """Tables of counts that are published with noise."""
        if not isinstance(raw, list | tuple):
            self.problems.append(Problem("margins", "not a list.", 'Write [[margins]] with of = ["age", "disease"].'))
            return ()
        out = []
        for number, given in enumerate(raw, 1):
            try:
                out.append(given if isinstance(given, Margin) else Margin.model_validate(given))
            except ValidationError as error:
                self.problems += from_validation(f"margins[{number}]", error, Margin)
        return tuple(out)

    def people(self, attributes: Mapping[str, Column], people: PeopleOptions, randomness: RandomnessOptions) -> None:
        named = [
            *(("key", name) for name in people.key),
            *([("household", people.household)] if people.household else []),
        ]
        for option, name in named:
            if name not in attributes and name not in self.broken:
                message = f"no column {name!r} in [attributes]."
                self.problems.append(Problem(f"people.{option}", message, closest_column(name, attributes)))
        key = randomness.record_key
        if people.key and key is not None and people.key != (key,):
            message = f"people are told apart by {', '.join(people.key)}, and decoys are memoised by {key!r}."
            self.problems.append(Problem("randomness.record_key", message, "Name the same column in both."))

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
        """A text that means "missing" is never read as a value: as a decoy it would hide nothing."""
        for name, attribute in attributes.items():
            both = [value for value in attribute.values or () if value in data.missing_values]
            if both and not attribute.role.is_dropped:
                message = f"lists {', '.join(map(repr, both))}, which [data] missing_values declares missing."
                hint = "Remove it from one of them: a value that is never true hides nothing."
                self.problems.append(Problem(f"attributes.{name}.values", message, hint))

    def sizes(self, require: Mapping[int, Model], methods: Sequence[Method]) -> None:
        """Whole numbers that no table can mean, and that arithmetic on counts cannot hold."""
        parts: list[tuple[str, BaseModel]] = [(f"require[{number}]", model) for number, model in require.items()]
        for where, part in [*parts, *(("method", method) for method in methods)]:
            for key, value in part.model_dump().items():
                if any(isinstance(one, int) and abs(one) > LARGEST for one in _leaves(value)):
                    message = f"a whole number beyond {LARGEST:,}."
                    self.problems.append(Problem(f"{where}.{key}", message, "No table is that large."))

    def cross_check(
        self,
        attributes: Mapping[str, Column],
        require: Mapping[int, Model],
        methods: Sequence[Method],
        randomness: RandomnessOptions,
        hierarchies: Mapping[str, Hierarchy],
    ) -> None:
        from noren.policy.problems import cross_problems

        asked = searched(require.values(), any(method.chooses for method in methods))
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
            message = f"no column {key!r} in [attributes]."
            self.problems.append(Problem("randomness.record_key", message, closest_column(key, attributes)))
        if randomness.secret is not None and key is None:
            hint = "A secret needs a record key: the column that names a person."
            self.problems.append(Problem("randomness.record_key", "missing.", hint))
        for name in randomness.columns:
            if name not in attributes and name not in self.broken:
                message = f"no column {name!r} in [attributes]."
                self.problems.append(Problem("randomness.columns", message, closest_column(name, attributes)))
        if len({*randomness.columns.values()}) < len(randomness.columns):
            message = "two columns cannot have been one and the same."
            self.problems.append(Problem("randomness.columns", message, "Give each a name of its own."))


def _alone(problem: Problem) -> Problem:
    """The problem of the only method, as if it were written without a number."""
    return Problem(problem.where.replace("method[1]", "method", 1), problem.message, problem.hint)


def _leaves(value: Any) -> Iterator[Any]:
    """Everything inside tables and lists."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        else:
            yield one
