"""The description of a parameter, declared once in its `Field`, as the text of the API reference."""

from __future__ import annotations

import ast
from typing import Any

import griffe


class Fields(griffe.Extension):
    """Gives every `name: type = Field(description=...)` that description as its docstring."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        call = attr.value
        if attr.docstring or not isinstance(call, griffe.ExprCall) or call.canonical_path.split(".")[-1] != "Field":
            return
        for argument in call.arguments:
            if isinstance(argument, griffe.ExprKeyword) and argument.name == "description":
                attr.docstring = griffe.Docstring(words(str(argument.value)), parent=attr)


def words(expression: str) -> str:
    """The text of a string expression; a name in a sum of strings stands for itself."""
    node = ast.parse(expression.strip(), mode="eval").body
    if isinstance(node, ast.BinOp):
        return words(ast.unparse(node.left)) + words(ast.unparse(node.right))
    return str(node.value) if isinstance(node, ast.Constant) else f"`{ast.unparse(node)}`"
