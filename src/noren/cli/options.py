"""Options whose values are the names of a registry, which is loaded only when they are given or explained."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from noren.errors import mask


def names_of(registry: str) -> tuple[str, ...]:
    """The names in a registry that is written module:name."""
    module, _, name = registry.partition(":")
    found: Iterable[str] = getattr(import_module(module), name)
    return tuple(found)


PLACE = click.Path()
"""A table: a path or a URI, as it was written."""


class ReleasePlace(click.Path):
    """Where a release is: a directory, or the address of a schema as it was written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        return found if isinstance(found, str) and "://" in found else Path(os.fsdecode(found))


RELEASE = ReleasePlace()


def on_disk(place: Any) -> Path | None:
    """The directory of a release, if it has one."""
    return place if isinstance(place, Path) else None


def named(place: Any) -> str:
    """How output calls a place: an address may hold a password, and is shown without it."""
    if isinstance(place, str) and "://" in place:
        from noren.sources.place import STORES, place_of
        from noren.sources.postgres import Address

        in_store = place.partition("://")[0] in (*STORES, "file")
        return str(place_of(place)) if in_store else Address.parse(place).name
    return mask(str(place))


def reads_queries(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose DATA may be the address of a base, of which a query is read instead of a table."""

    @functools.wraps(command)
    def asked(*args: Any, data: str, query: str | None, **rest: Any) -> Any:
        if query is not None:
            if "://" not in data:
                raise click.UsageError("--query needs the address of a base, for example postgresql://localhost/base.")
            data += ("&" if "?" in data else "?") + urlencode({"query": query})
        return command(*args, data=data, **rest)

    return click.option("--query", help="Read the rows of this SQL query; DATA is then a postgresql:// address.")(asked)


def runs_anywhere(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose work may run elsewhere; it gets the engine, None for this machine."""

    @functools.wraps(command)
    def chosen(*args: Any, engine: str, master: str | None, conf: tuple[str, ...], **rest: Any) -> Any:
        if engine != "spark" and (master is not None or conf):
            raise click.UsageError("--master and --conf are for --engine spark.")
        settings = dict(one.partition("=")[::2] for one in conf)
        if not all(name and value for name, value in settings.items()):
            raise click.UsageError("--conf takes a setting and its value, for example spark.executor.memory=4g.")
        place: Any = engine
        if engine == "spark":
            from noren.engines.spark import SparkEngine

            place = SparkEngine(master=master, conf=settings)
        return command(*args, engine=place, **rest)

    for option in (
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark. Repeatable."),
        click.option("--master", help="The Spark cluster, for example spark://host:7077 (this machine otherwise)."),
        click.option(
            "--engine",
            type=OneOf("noren.engines:ENGINES"),
            default="local",
            show_default=True,
            help="Where the work runs.",
        ),
    ):
        chosen = option(chosen)
    return chosen


class OneOf(click.Choice):
    """One name of a registry."""

    def __init__(self, registry: str) -> None:
        self.registry = registry
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return names_of(self.registry)


class NamedOption(click.Option):
    """An option that the library itself judges; its help ends with the names of a registry."""

    def __init__(self, *args: Any, registry: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.registry = registry

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        found = super().get_help_record(ctx)
        return found and (found[0], f"{found[1]} Known: {', '.join(names_of(self.registry))}.")
