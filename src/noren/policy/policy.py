"""The holder's statement: what the columns are, what must hold, and how to reach it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from noren.errors import NorenError, PolicyError, Problem
from noren.methods import METHODS
from noren.methods.base import Method
from noren.methods.decoys import Decoys
from noren.methods.parts import Part, shared, sought
from noren.models import MODELS
from noren.models.base import Model, columns_of, searched
from noren.policy.problems import closest, from_validation, knowledge_problems, member_problems, sharing_problems
from noren.policy.together import Gathered, Together, composites, read_groups, spelled
from noren.schema.column import Column, HierarchySpec, KnowledgeSpec
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge, read_priors
from noren.schema.roles import Role
from noren.secret import KeyRule
from noren.secret.people import Case, Spaces, Unicode
from noren.secret.publication import Repeat

MOST_BYTES = 1 << 26
"""Size of the largest policy file that is read: 64 MB."""
DEEPEST = 100
"""Tables inside tables; trees of hierarchies may be as deep."""
KEY = re.compile(r"[^=,#\]]*")
"""What may be a key: the beginning of a line."""
LARGEST = 2**31 - 1
"""The largest whole number that any parameter may have."""


class DataOptions(BaseModel):
    """How the input is written. What is not given is sniffed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    separator: str | None = Field(default=None, min_length=1, max_length=1, description="Column separator of a CSV.")
    encoding: str | None = Field(default=None, description="Text encoding of a CSV, for example utf-8 or cp1252.")
    missing_values: tuple[str, ...] = Field(default=(), description="Texts that mean 'missing', besides empty cells.")
    decimal: Literal[".", ","] | None = Field(default=None, description="The mark before decimals in all columns.")


class PeopleOptions(BaseModel):
    """Whose rows are whose. Requirements count people, not rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: tuple[str, ...] = Field(
        default=(), description="The column, or columns together, that name a person; never published by itself."
    )
    household: str | None = Field(
        default=None, description="The column that names a household: finding one member finds it (`noren risk`)."
    )
    rows: Literal["people", "independent"] = Field(
        default="people",
        description="'independent' says that every row is a person of its own, although an identifier repeats.",
    )

    @field_validator("key", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_way(self) -> PeopleOptions:
        if self.key and self.rows == "independent":
            raise ValueError("give the key of people, or say that rows are independent, not both")
        return self


class DependenceOptions(BaseModel):
    """How much one published column may tell about a protected one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    most: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Largest share of people whose protected value another column may make certain; 1 asks nothing.",
    )


class RandomnessOptions(BaseModel):
    """Several releases of the same people: a secret, its register, and who is who.

    The same person with the same value gets the same decoys in every release; what was released of whom is registered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    record_key: str | None = Field(default=None, description="Column that names a person, unique in the table.")
    secret: str | None = Field(
        default=None, description="Secret file, made with `noren secret`; its register lies beside it."
    )
    fingerprint: str | None = Field(
        default=None, description="Fingerprint of the only secret allowed; another one is refused."
    )
    mode: Literal["memoised", "fresh"] = Field(
        default="memoised",
        description="'fresh' draws new decoys under a secret: the release is registered, and refused for people whom "
        "the register knows.",
    )
    repeat: Repeat = Field(
        default="refuse",
        description="What happens where two releases of one person could be intersected: refused, or allowed.",
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="The name under which the register knows a column that was renamed; its own name says that it is "
        "a new column, although its values are those of another.",
    )
    key_unicode: Unicode = Field(default="NFKC", description="In which form keys are compared, or 'keep'.")
    key_spaces: Spaces = Field(default="trim", description="Whether spaces around a key are left out: trim, or keep.")
    key_case: Case = Field(default="fold", description="Whether capital and small letters are the same: fold, or keep.")

    @property
    def rule(self) -> KeyRule:
        """How people are told apart, as a register knows it."""
        key = str(self.record_key)
        return KeyRule(self.columns.get(key, key), self.key_unicode, self.key_spaces, self.key_case)


class SampleOptions(BaseModel):
    """Publish a random sample instead of everybody. Requirements are judged on the sample, without credit for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float | None = Field(
        default=None, gt=0, lt=1, description="Probability with which every record is in the sample; all, if left out."
    )


def _several(given: Any) -> Any:
    return tuple(given) if isinstance(given, list | tuple) else (given,)


class Policy(BaseModel):
    """Columns, requirements and a method, checked against each other.

    Raises PolicyError with every problem that can be found without the data.

    >>> import noren as nr
    >>> policy = nr.Policy(
    ...     attributes={
    ...         "name": nr.identifier(),
    ...         "age": nr.quasi_identifier(bins=[0, 30, 60, 120]),
    ...         "disease": nr.sensitive(),
    ...     },
    ...     require=[nr.models.KAnonymity(k=5), nr.models.TCloseness(on="disease", t=0.3)],
    ...     method=nr.methods.Mondrian(),
    ... )
    >>> policy.published
    ('age', 'disease')
    >>> nr.Policy.parse(policy.to_toml()).require == policy.require
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    title: str = Field(default="", description="What the release is called.")
    attributes: dict[str, InstanceOf[Column]] = Field(description="Role and meaning of every column.")
    require: tuple[SerializeAsAny[InstanceOf[Model]], ...] = Field(default=(), description="What must hold.")
    method: Annotated[tuple[SerializeAsAny[InstanceOf[Method]], ...], BeforeValidator(_several)] = Field(
        default_factory=lambda: (Decoys(),), description="How it is reached; several, if each names its columns."
    )
    together: tuple[InstanceOf[Together], ...] = Field(
        default=(), description="Columns that tell each other, hidden as one; their composite stands in attributes."
    )
    data: DataOptions = Field(default_factory=DataOptions, description="How the input is written.")
    people: PeopleOptions = Field(default_factory=PeopleOptions, description="Which rows are one person's.")
    dependence: DependenceOptions = Field(
        default_factory=DependenceOptions, description="Columns that tell each other."
    )
    randomness: RandomnessOptions = Field(
        default_factory=RandomnessOptions, description="Several releases of the same people."
    )
    sample: SampleOptions = Field(default_factory=SampleOptions, description="Publish a random sample.")
    source: str = Field(default="policy", exclude=True, description="How messages call the policy.")
    base: Path = Field(default_factory=Path, exclude=True, description="The folder that paths are relative to.")

    _hierarchies: dict[str, Hierarchy] = PrivateAttr(default_factory=dict)
    _knowledge: dict[str, Knowledge] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, handler: ModelWrapValidatorHandler[Policy]) -> Policy:
        """Turn raw parts into checked ones, and say everything that is wrong with them at once."""
        if isinstance(given, cls):
            return given
        raw = dict(given)
        source, base = str(raw.get("source", "policy")), Path(raw.get("base", Path()))
        reader = _Reader(source, base)
        groups, listed = reader.groups(raw.get("together", ()), raw.get("attributes", {}))
        attributes = reader.attributes(listed)
        require = reader.requirements(raw.get("require", []))
        methods = reader.methods(raw.get("method", Decoys()))
        data = reader.part("data", DataOptions, raw.get("data", DataOptions()))
        randomness = reader.part("randomness", RandomnessOptions, raw.get("randomness", RandomnessOptions()))
        people = reader.part("people", PeopleOptions, raw.get("people", PeopleOptions()))
        reader.people(attributes, people, randomness)
        dependence = reader.part("dependence", DependenceOptions, raw.get("dependence", DependenceOptions()))
        sample = reader.part("sample", SampleOptions, raw.get("sample", SampleOptions()))
        hierarchies = reader.hierarchies(spelled(attributes))
        knowledge = reader.knowledge(attributes)
        reader.markers(spelled(attributes), data)
        gathered = Gathered(attributes, require, methods, groups, reader.broken)
        reader.problems += gathered.problems
        attributes, require, methods = gathered.attributes, gathered.require, gathered.methods
        reader.broken |= gathered.broken
        reader.cross_check(attributes, require, methods, randomness, hierarchies)
        reader.problems += knowledge_problems(knowledge, require, methods) + member_problems(attributes)
        reader.sizes(require, methods)
        known = set(cls.model_fields)
        reader.problems += [
            Problem(key, f"unknown section {key!r}.", closest(key, known)) for key in raw if key not in known
        ]
        if reader.problems:
            raise PolicyError(reader.problems, source=source)
        made = handler(
            {
                "title": str(raw.get("title", "")),
                "attributes": attributes,
                "require": tuple(require.values()),
                "method": methods,
                "together": tuple(gathered.groups),
                "data": data,
                "people": people,
                "dependence": dependence,
                "randomness": randomness,
                "sample": sample,
                "source": source,
                "base": base,
            }
        )
        made._hierarchies = hierarchies
        made._knowledge = knowledge
        return made

    def with_method(self, *methods: Method) -> Policy:
        """The same policy under other methods. Raises PolicyError where they cannot serve it."""
        parts = {name: getattr(self, name) for name in type(self).model_fields}
        return Policy(**(parts | {"method": methods}))

    @property
    def hierarchies(self) -> Mapping[str, Hierarchy]:
        """Hierarchies that are known without the data: files and trees."""
        return self._hierarchies

    @property
    def knowledge(self) -> Mapping[str, Knowledge]:
        """What links the terms of every quasi-sensitive column; one object for columns that name the same file."""
        return self._knowledge

    @property
    def declared(self) -> Mapping[str, Column]:
        """Every column as the table has it: members in the place of their composite."""
        return spelled(self.attributes)

    @property
    def composites(self) -> Mapping[str, tuple[str, ...]]:
        """The members of every composite column."""
        return composites(self.attributes)

    @property
    def methods(self) -> tuple[Method, ...]:
        return self.method

    @property
    def parts(self) -> list[Part]:
        """What each method has to do."""
        return shared(self.attributes, self.require, self.method)

    @property
    def forms_classes(self) -> bool:
        """Whether quasi-identifiers are made to look alike."""
        return any(method.forms_classes for method in self.method)

    @property
    def drawn(self) -> tuple[str, ...]:
        """Protected columns that are drawn."""
        return tuple(
            name for part in self.parts if not part.method.forms_classes for name in columns_of(part.requirements)
        )

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file. Paths in it are relative to its directory."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
            if len(raw) > MOST_BYTES:
                raise PolicyError([Problem("", f"more than {MOST_BYTES >> 20} MB.")], source=str(path))
            text = raw.decode("utf-8-sig").replace("\r\n", "\n")
        except FileNotFoundError:
            hint = "Draft one with: noren init data.csv"
            raise PolicyError([Problem("", "no such file.", hint)], source=str(path)) from None
        except (UnicodeDecodeError, OSError):
            raise PolicyError([Problem("", "cannot be read as UTF-8 text.")], source=str(path)) from None
        return cls.parse(text, source=str(path), base=path.parent)

    @classmethod
    def parse(cls, text: str, *, source: str = "policy", base: Path | None = None) -> Policy:
        """Read a policy from TOML text."""
        deep = [Problem("", f"tables are nested more than {DEEPEST} deep.")]
        if any(KEY.match(line)[0].count(".") > 2 * DEEPEST for line in text.splitlines()):  # type: ignore[index]
            raise PolicyError(deep, source=source)  # tomllib would take minutes over such a key
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError([Problem("", f"not valid TOML: {error}.")], source=source) from None
        except ValueError:  # tomllib lets Python refuse a number of thousands of digits
            raise PolicyError([Problem("", "not valid TOML: a number is too long.")], source=source) from None
        except RecursionError:
            raw = None
        if raw is None or _too_deep(raw):
            raise PolicyError(deep, source=source)
        known = set(cls.model_fields) - {"source", "base"}
        strange = [Problem(key, f"unknown section {key!r}.", closest(key, known)) for key in raw if key not in known]
        if "attributes" not in raw:
            strange.append(Problem("attributes", "missing.", "Give every column a role under [attributes]."))
        try:
            given = {key: value for key, value in raw.items() if key in known}
            policy = cls(**(given | {"source": source, "base": base or Path()}))
        except PolicyError as error:
            raise PolicyError([*strange, *error.problems], source=source) from None
        if strange:
            raise PolicyError(strange, source=source)
        return policy

    def to_toml(self) -> str:
        """The policy as TOML. Hierarchies given as objects are written as trees of rows, files as their paths."""
        from noren.policy.toml import policy_text

        return policy_text(self)

    @property
    def protected(self) -> tuple[str, ...]:
        """Columns that some requirement names, in the order of [attributes]."""
        named = columns_of(self.require)
        return tuple(name for name in self.attributes if name in named)

    @property
    def published(self) -> tuple[str, ...]:
        return tuple(name for name, a in self.attributes.items() if a.role is not Role.IDENTIFIER)


class _Reader:
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

    def people(self, attributes: Mapping[str, Column], people: PeopleOptions, randomness: RandomnessOptions) -> None:
        named = [
            *(("key", name) for name in people.key),
            *([("household", people.household)] if people.household else []),
        ]
        for option, name in named:
            if name not in attributes and name not in self.broken:
                message = f"no column {name!r} in [attributes]."
                self.problems.append(Problem(f"people.{option}", message, closest(name, attributes)))
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
            if both and attribute.role is not Role.IDENTIFIER:
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

        parts = [Part(methods[0], tuple(attributes), sought(searched(list(require.values())), methods))]
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
            self.problems.append(Problem("randomness.record_key", message, closest(key, attributes)))
        if randomness.secret is not None and key is None:
            hint = "A secret needs a record key: the column that names a person."
            self.problems.append(Problem("randomness.record_key", "missing.", hint))
        for name in randomness.columns:
            if name not in attributes and name not in self.broken:
                message = f"no column {name!r} in [attributes]."
                self.problems.append(Problem("randomness.columns", message, closest(name, attributes)))
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


def _too_deep(raw: Any) -> bool:
    level = [raw]
    for _ in range(DEEPEST):
        level = [
            child
            for one in level
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
