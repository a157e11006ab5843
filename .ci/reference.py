"""The reference of the policy file, from the fields that columns, models and methods declare.

`docs/policy.md` and `docs/auditor.md` are written by hand but for the tables between marks, which come from here;
`make reference` fills them in, and a test compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from noren.methods import METHODS
from noren.methods.base import ClassMethod, Method
from noren.methods.decoys import DecoyParameters
from noren.methods.suppress.method import Balance
from noren.models import MODELS
from noren.models.base import Model
from noren.policy.options import DataOptions, DependenceOptions, Margin, PeopleOptions, RandomnessOptions
from noren.policy.together import Together
from noren.policy.toml import value
from noren.schema.column import TERM_OPTIONS, Column, HierarchySpec, KnowledgeSpec

MARK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PLAIN = {bool: "`true` or `false`", int: "whole number", float: "number", str: "text"}
BOUNDS = {"ge": "at least {}", "gt": "above {}", "le": "at most {}", "lt": "below {}"}


def filled(text: str) -> str:
    """A page with the tables between its marks as they are declared now."""
    return MARK.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n\n{found[3]}", text)


# ---------------------------------------------------------------------- the tables


def attributes() -> str:
    """What every column may declare."""
    terms = (*TERM_OPTIONS, "unknown")
    return options(field for field in Column.model_fields.items() if field[0] not in terms)


def term_attributes() -> str:
    """What only quasi-sensitive columns declare."""
    return options((name, Column.model_fields[name]) for name in (*TERM_OPTIONS, "unknown"))


JUDGED = {
    "sets": "judge_sets",
    "shuffled members": "judge_members",
    "changed values": "judge_changed",
    "classes": "judge_classes",
    "terms": "judge_terms",
}
"""The grounds on which a model may be checked, and who makes the check."""


def _judges(kind: type[Model], ground: str) -> bool:
    return ground in kind.grounds or getattr(kind, JUDGED[ground]) is not getattr(Model, JUDGED[ground])


def judged() -> str:
    """Which model speaks about which cells."""
    rows = [[f"`{name}`", *("yes" if _judges(kind, one) else "no" for one in JUDGED)] for name, kind in MODELS.items()]
    return grid(("model", *JUDGED), rows)


def models() -> str:
    """One line per model: what it demands, on which cells it is checked, and its parameters."""
    rows = []
    for name, kind in MODELS.items():
        checked = [ground for ground in JUDGED if _judges(kind, ground)]
        given = [
            f"`{field}` ({_details(info)}): {(info.description or '').rstrip('.')}"
            for field, info in kind.model_fields.items()
            if field not in ("model", "on")
        ]
        rows.append([f"`{name}`", first_sentence(kind), ", ".join(checked), "; ".join(given)])
    return grid(("model", "demands", "checked on", "parameters"), rows)


def methods() -> str:
    """Every method with its sentence and its own options."""
    shared = [*Method.model_fields, *ClassMethod.model_fields]
    out = []
    for name, kind in METHODS.items():
        own = [field for field in kind.model_fields.items() if field[0] not in shared]
        out.append(f"### `{name}`\n\n{kind.sentence}" + (f"\n\n{options(own)}" if own else " It has no options."))
    return "\n\n".join(out)


def method_options() -> str:
    """What all methods take, and all that form classes."""
    return options(field for field in ClassMethod.model_fields.items() if field[0] != "name")


def options(fields: Iterable[tuple[str, FieldInfo]]) -> str:
    """Options with their values, defaults and meanings."""
    rows = [[f"`{name}`", _values(info), _default(info), info.description or ""] for name, info in fields]
    return grid(("key", "value", "default", "meaning"), rows)


def _of(kind: type[BaseModel]) -> Callable[[], str]:
    return lambda: options(kind.model_fields.items())


PARTS: Mapping[str, Callable[[], str]] = {
    "attributes": attributes,
    "hierarchies": _of(HierarchySpec),
    "term-attributes": term_attributes,
    "knowledge": _of(KnowledgeSpec),
    "models": models,
    "judged": judged,
    "method-options": method_options,
    "methods": methods,
    "decoy-parameters": _of(DecoyParameters),
    "balance": _of(Balance),
    "together": _of(Together),
    "dependence": _of(DependenceOptions),
    "data": _of(DataOptions),
    "people": _of(PeopleOptions),
    "randomness": _of(RandomnessOptions),
    "margins": _of(Margin),
}
"""What a mark may ask for."""


# ---------------------------------------------------------------------- words


def grid(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    lines = [list(header)]
    lines += [["---"] * len(lines[0]), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def first_sentence(kind: type) -> str:
    """What a docstring opens with."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def _details(info: FieldInfo) -> str:
    default = _default(info)
    return _values(info) if default in ("-", "required") else f"{_values(info)}; default {default}"


def _values(info: FieldInfo) -> str:
    """What an option may be, with its bounds."""
    return _bounded(words_of(info.annotation), info.metadata)


def _bounded(words: str, metadata: Iterable[Any]) -> str:
    found = [
        text.format(f"{getattr(one, sign):g}") for one in metadata for sign, text in BOUNDS.items() if _has(one, sign)
    ]
    return f"{words} {' and '.join(found)}" if found else words


def _has(one: Any, sign: str) -> bool:
    return getattr(one, sign, None) is not None


def words_of(kind: Any) -> str:
    """The values of a type, for people."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = [one for part in inside[1:] for one in (part.metadata if isinstance(part, FieldInfo) else [part])]
        return _bounded(words_of(inside[0]), bounds)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inside)
    if origin in (Union, UnionType):
        return ", or ".join(dict.fromkeys(words for one in inside if one is not NoneType and (words := words_of(one))))
    if origin is tuple:
        return f"list of {_several(words_of(inside[0]))}"
    if origin is dict:
        return f"table by name: {words_of(inside[1])}" if inside[1] is not Any else "table"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{one.value}`" for one in kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        needed = [name for name, info in kind.model_fields.items() if info.is_required()]
        if len(kind.model_fields) == 1:
            return f"`{{ {needed[0]} = ... }}`"
        return "file, or table (see below)" if "csv" in kind.model_fields else "table (see below)"
    return PLAIN.get(kind, "")


def _several(words: str) -> str:
    return {"text": "texts", "number": "numbers", "whole number": "whole numbers"}.get(
        words, words.replace("list", "lists", 1)
    )


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if info.default_factory is not None or info.default is None or info.default == ():
        return "-"
    return f"`{value(info.default)}`"


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
