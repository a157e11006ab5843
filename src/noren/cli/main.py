"""The command line: parse, call, render."""

from __future__ import annotations

import errno
import os
import re
import traceback
from typing import TYPE_CHECKING, Any

import click

from noren import __version__
from noren.cli.render import echo_json, say
from noren.errors import MOST_LISTED, NorenError, OutOfReach, is_utf8, mask

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Commands(click.Group):
    """A command group that turns expected errors into a message and an exit code, as text or JSON."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["noren.json"] = "--json" in args
        ctx.meta["noren.unreadable"] = not all(map(is_utf8, args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoke(ctx)
        except NorenError as error:
            if ctx.meta["noren.json"]:
                problems = [str(problem) for problem in getattr(error, "problems", ())]
                report = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
                way_out = {"way_out": mask(error.way_out)} if error.way_out else {}
                echo_json(report | ({"problems": problems[:MOST_LISTED]} if problems else {}) | way_out)
            else:
                say(f"Error: {error}", err=True)
                if error.way_out:
                    say(f"A policy that works: {mask(error.way_out)}", err=True)
            ctx.exit(error.exit_code)

    def _invoke(self, ctx: click.Context) -> Any:
        """Run the command. Python would exit with 1 for any error, but here 1 means that a requirement is not met."""
        if ctx.meta["noren.unreadable"]:
            raise NorenError("a name on the command line is not UTF-8.", hint="Rename the file.")
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["message"] = mask(error.message)
            raise
        except (NorenError, click.exceptions.Exit, click.Abort):
            raise
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            if lacks_memory(error):
                raise _no_memory() from None
            what = str(error) if error.filename is None else f"{error.filename}: {error.strerror}."
            raise NorenError(what, hint="Check the path, its permissions and the free space.") from None
        except KeyboardInterrupt:
            say("Stopped; nothing was published.", err=True)
            ctx.exit(130)
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of Rust, in Polars
                raise
            if lacks_memory(error):
                raise _no_memory() from None
            if os.environ.get("NOREN_DEBUG"):
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            hint = "Please report this fault. NOREN_DEBUG=1 shows the traceback, which may contain cells of the table."
            if is_limited():
                hint = "This process has a memory limit below the machine's memory: raise it first (ulimit -v)."
            raise OutOfReach(
                f"a fault in Noren: {type(error).__name__} at {place.filename}:{place.lineno}. Nothing was published.",
                hint=hint,
            ) from None


NO_ROOM = re.compile("find/load shared object|map segment|allocate memory|start new thread", re.IGNORECASE)
"""What libraries say when they cannot be loaded, or do not begin, for want of memory."""


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error of any library is caused by a lack of memory."""
    return isinstance(error, MemoryError) or NO_ROOM.search(str(error)) is not None


def is_limited() -> bool:
    """Return whether this process has a memory limit below the machine's memory, under which libraries fail in other
    ways."""
    try:
        import resource
    except ImportError:  # elsewhere than on Unix
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _no_memory() -> OutOfReach:
    hint = "Close other programs, use fewer columns, or use a machine with more memory."
    return OutOfReach("there is not enough memory for this.", hint=hint)


class LazyCommands(Commands):
    """A group that imports commands when they are called, also those of other distributions."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_texts())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            from importlib import import_module

            module, _ = COMMANDS[cmd_name]
            command: click.Command = getattr(import_module(f"noren.cli.{module}"), cmd_name.replace("-", "_"))
            return command
        if cmd_name in (added := _added_commands()):
            command = added[cmd_name].load()
            return command
        return _not_installed(cmd_name) if cmd_name in ELSEWHERE else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        texts = _texts()
        for group, commands in GROUPS.items():
            with formatter.section(group):
                others = [name for name in texts if name not in COMMANDS] if group == "Tools" else []
                formatter.write_dl([(name, texts[name]) for name in [*commands, *others]])


def _added_commands() -> dict[str, EntryPoint]:
    """Return the entry points of the group by name; Noren's own names take precedence."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in COMMANDS}


def _texts() -> dict[str, str]:
    """Return every command with its help text, or the distribution that added it."""
    known = {name: text for name, (_, text) in (COMMANDS | ELSEWHERE).items()}
    guests = {name: point for name, point in _added_commands().items() if name not in known}
    return known | {name: f"Added by {point.dist.name}." if point.dist else "" for name, point in guests.items()}


def _not_installed(name: str) -> click.Command:
    """Make a command that explains how to install its missing distribution."""
    home, _ = ELSEWHERE[name]

    def refuse() -> None:
        raise NorenError(
            f"`noren {name}` is part of {home}, which is not installed.",
            hint=f"In a clone of the repository: pip install ./{home.removeprefix('noren-')}",
        )

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, add_help_option=False, context_settings=anything)


GROUPS = {
    "Holder": {
        "init": ("holder", "Draft a policy from a table."),
        "hierarchy": ("holder", "Draft a hierarchy for a column; edit the draft."),
        "risk": ("compare", "Show what the raw table discloses."),
        "compare": ("compare", "Try all methods under one policy, and show their risk and loss."),
        "anonymize": ("holder", "Make a verified release from a table and a policy."),
        "fix": ("holder", "Change a policy that is refused, with the smallest loss of information."),
        "schema": ("holder", "Write a JSON Schema, so that editors complete and check a policy."),
        "secret": ("holder", "Make a secret file, with which each person has the same decoys in every release."),
        "key": ("holder", "Make a key that signs releases."),
        "publish": ("holder", "Write a release into a PostgreSQL database."),
    },
    "Recipient": {
        "describe": ("recipient", "Show which questions a release answers, how precisely, and which it refuses."),
        "estimate": ("recipient", "Estimate a cross tabulation from a release."),
        "count": ("recipient", "Estimate how many records meet conditions."),
        "mean": ("recipient", "Estimate the mean of a column, or the share of a value, by group."),
        "variance": ("recipient", "Estimate the variance of a column by group."),
        "quantile": ("recipient", "Estimate the median or another quantile of a column by group."),
        "correlation": ("recipient", "Estimate the correlation of two columns by group."),
        "difference": ("recipient", "Estimate differences between group means."),
        "ratio": ("recipient", "Estimate ratios of group means."),
        "regress": ("recipient", "Fit a regression to a release."),
        "test": ("recipient", "Test whether two columns are related."),
        "export": ("recipient", "Write a release for other tools: complete tables, wide CSV, Stata, SPSS."),
    },
    "Auditor": {
        "verify": ("auditor", "Check a release, or any table, against its own claims or a policy."),
        "measure": ("auditor", "Show the parameter that a table reaches in every privacy model."),
        "audit": ("audit", "Attack a release, and show what an adversary learns about people."),
        "report": ("auditor", "Write a report: guarantees, attacks and losses."),
    },
    "Tools": {
        "demo": ("demo", "Generate a hospital table, release it and analyse it."),
        "knowledge": ("knowledge", "Build a knowledge table, or check a declared distance."),
    },
}
"""Our own commands by who needs them: the module in `noren.cli`, and what the command is for."""

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

GROUP = "noren.commands"
"""The group of entry points through which other distributions add commands."""

ELSEWHERE = {
    "reproduce": ("noren-papers", "Rerun the experiments of the five papers and check their claims."),
    "datasets": ("noren-papers", "List the data sets of the papers and where to get them."),
    "strength": ("noren-papers", "Show which l or (c,l) implies a (tau,l), and what a table can reach."),
    "violation-rate": ("noren-papers", "Show how often plain decoys break semantic diversity."),
    "studio": ("noren-studio", "Open the browser interface, which runs on this machine only."),
}
"""Commands that we know of but do not hold: the distribution that adds them, and what they are for."""


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="noren")
def main() -> None:
    """Publish tables about people, and analyse what was published.

    \b
    A first run:
      noren init patients.csv > policy.toml      draft a policy, then read and correct it
      noren anonymize patients.csv policy.toml --to release
      noren verify release
      noren estimate release --by job,disease

    Exit codes: 0 done, 1 a requirement is not met, 2 the input is wrong, 3 undecided, 4 it could not be computed here
    (not enough memory, or a fault of the program).
    """


if __name__ == "__main__":
    main()
