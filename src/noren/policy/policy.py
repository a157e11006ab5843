"""The holder's policy: columns, requirements and methods."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cached_property
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
    model_validator,
)

from noren.errors import PolicyError, Problem
from noren.methods.base import Method
from noren.methods.decoys import Decoys
from noren.methods.parts import Part, shared
from noren.models.base import Model, columns_of
from noren.policy.options import (
    SECTIONS,
    DataOptions,
    DependenceOptions,
    Margin,
    PeopleOptions,
    RandomnessOptions,
    SampleOptions,
    margin_problems,
    with_rows,
)
from noren.policy.problems import closest, knowledge_problems, member_problems
from noren.policy.reader import Reader
from noren.policy.together import Gathered, Together, composites, spelled
from noren.schema.column import Column
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge

MOST_BYTES = 1 << 26
"""Size of the largest policy file that is read: 64 MB."""
DEEPEST = 100
"""Tables inside tables; trees of hierarchies may be as deep."""
KEY = re.compile(r"[^=,#\]]*")
"""What may be a key: the beginning of a line."""


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

    title: str = Field(default="", description="Title of the release.")
    attributes: dict[str, InstanceOf[Column]] = Field(description="Role and meaning of every column.")
    require: tuple[SerializeAsAny[InstanceOf[Model]], ...] = Field(default=(), description="What must hold.")
    method: Annotated[tuple[SerializeAsAny[InstanceOf[Method]], ...], BeforeValidator(_several)] = Field(
        default_factory=lambda: (Decoys(),), description="The method or methods; each of several lists its columns."
    )
    mechanism: Literal["judged", "ignored"] = Field(
        default="judged",
        description=(
            "Whether a release is refused if somebody who replays the method may know for certain a secret that "
            "classes protect. 'ignored' publishes it, and the release states this."
        ),
    )
    together: tuple[InstanceOf[Together], ...] = Field(
        default=(),
        description="Columns that disclose each other, protected as one; their composite column is in attributes.",
    )
    data: DataOptions = Field(default_factory=DataOptions, description="Format of the input.")
    people: PeopleOptions = Field(default_factory=PeopleOptions, description="Which rows belong to one person.")
    dependence: DependenceOptions = Field(
        default_factory=DependenceOptions, description="Columns that disclose each other."
    )
    randomness: RandomnessOptions = Field(
        default_factory=RandomnessOptions, description="Several releases of the same people."
    )
    sample: SampleOptions = Field(default_factory=SampleOptions, description="Publish a random sample.")
    margins: tuple[Margin, ...] = Field(
        default=(),
        description="Counts of few columns under central differential privacy, published in addition to the cells.",
    )
    source: str = Field(default="policy", exclude=True, description="Name of the policy in messages.")
    base: Path = Field(default_factory=Path, exclude=True, description="The folder that paths are relative to.")

    _hierarchies: dict[str, Hierarchy] = PrivateAttr(default_factory=dict)
    _knowledge: dict[str, Knowledge] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, handler: ModelWrapValidatorHandler[Policy]) -> Policy:
        """Parse raw parts, and report all problems at once."""
        if isinstance(given, cls):
            return given
        raw = dict(given)
        source, base = str(raw.get("source", "policy")), Path(raw.get("base", Path()))
        reader = Reader(source, base)
        groups, listed = reader.groups(raw.get("together", ()), raw.get("attributes", {}))
        attributes = reader.attributes(listed)
        require = reader.requirements(raw.get("require", []))
        methods = reader.methods(raw.get("method", Decoys()))
        sections = {name: reader.part(name, kind, raw.get(name, kind())) for name, kind in SECTIONS.items()}
        people, randomness = sections["people"], sections["randomness"]
        reader.people(attributes, people, randomness)
        margins = with_rows(reader.margins(raw.get("margins", ())), people)
        hierarchies = reader.hierarchies(spelled(attributes))
        knowledge = reader.knowledge(attributes)
        reader.markers(spelled(attributes), sections["data"])
        gathered = Gathered(attributes, require, methods, groups, reader.broken)
        reader.problems += gathered.problems
        attributes, require, methods = gathered.attributes, gathered.require, gathered.methods
        reader.broken |= gathered.broken
        reader.cross_check(attributes, require, methods, randomness, hierarchies)
        reader.problems += knowledge_problems(knowledge, attributes, require, methods) + member_problems(attributes)
        reader.problems += margin_problems(margins, attributes, methods, people)
        reader.sizes(require, methods)
        mechanism = raw.get("mechanism", "judged")
        if mechanism not in ("judged", "ignored"):
            reader.problems.append(
                Problem("mechanism", 'must be "judged" or "ignored".', 'Remove the line; "judged" is the default.')
            )
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
                "mechanism": mechanism,
                "together": tuple(gathered.groups),
                **sections,
                "margins": margins,
                "source": source,
                "base": base,
            }
        )
        made._hierarchies = hierarchies
        made._knowledge = knowledge
        return made

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Policy:
        """Return the policy with other fields; what followed from the old ones is worked out again."""
        made = super().model_copy(update=update, deep=deep)
        for name in made.__dict__.keys() - type(self).model_fields.keys():
            del made.__dict__[name]
        return made

    def with_method(self, *methods: Method) -> Policy:
        """Return the policy with other methods; raise PolicyError if they cannot meet it."""
        return self.with_parts(method=methods)

    def with_parts(self, **changed: Any) -> Policy:
        """Return the policy with other parts; raise PolicyError if they contradict each other."""
        return Policy(**({name: getattr(self, name) for name in type(self).model_fields} | changed))

    @property
    def hierarchies(self) -> Mapping[str, Hierarchy]:
        """Return the hierarchies that do not depend on the data: files and trees."""
        return self._hierarchies

    @property
    def knowledge(self) -> Mapping[str, Knowledge]:
        """Return the knowledge table of every quasi-sensitive column; columns with the same file share one object."""
        return self._knowledge

    @cached_property
    def declared(self) -> Mapping[str, Column]:
        """Return all columns of the table, with members instead of their composites."""
        return spelled(self.attributes)

    @cached_property
    def composites(self) -> Mapping[str, tuple[str, ...]]:
        """Return the members of every composite column."""
        return composites(self.attributes)

    @property
    def methods(self) -> tuple[Method, ...]:
        return self.method

    @cached_property
    def parts(self) -> list[Part]:
        """Return the columns and requirements of each method."""
        return shared(self.attributes, self.require, self.method)

    @property
    def spent(self) -> float:
        """Return the sum of the epsilons of all margins."""
        return sum(margin.epsilon for margin in self.margins)

    @property
    def weight(self) -> str | None:
        """Return the name of the column of survey weights, or None."""
        return next((name for name, column in self.attributes.items() if column.weight), None)

    @cached_property
    def forms_classes(self) -> bool:
        """Return whether some method forms equivalence classes."""
        return any(method.forms_classes for method in self.method)

    @property
    def drawn(self) -> tuple[str, ...]:
        """Return the protected columns that are published as drawn sets or values."""
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
        """Return the policy as TOML. Hierarchies given as objects are written as trees, files as their paths."""
        from noren.policy.toml import policy_text

        return policy_text(self)

    @cached_property
    def protected(self) -> tuple[str, ...]:
        """Return the columns with a requirement, in the order of [attributes]."""
        named = columns_of(self.require)
        return tuple(name for name in self.attributes if name in named)

    @cached_property
    def published(self) -> tuple[str, ...]:
        return tuple(name for name, a in self.attributes.items() if not a.role.is_dropped)


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
