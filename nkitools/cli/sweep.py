"""``nkitools sweep``: runs a kernel over a space of cases, and works with their store."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import FileError
from nkitools.cli.shared_options import chips_option, json_option, set_option, sum_order_option, version_option
from nkitools.cli.terminal import say, say_json
from nkitools.facts.case_space import choices_of, table_of
from nkitools.kernel_file import KernelFile, check_settings, load, seen

if TYPE_CHECKING:
    from nkitools.sweeps.store import Store
    from nkitools.sweeps.sweep import Progress, Sweep


class SweepCommands(click.Group):
    """A group whose command ``run`` needs no name: an argument that is no command is FILE::KERNEL."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` in front if no command is named."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(
    "sweep",
    short_help="Run a kernel on every case of a space, each checked.",
    cls=SweepCommands,
    subcommand_metavar="FILE::KERNEL | COMMAND ...",
)
def sweep_kernel() -> None:
    """Run a kernel on every case of a space, each checked.

    `nkitools sweep FILE::KERNEL --space space.toml --store cases.db` is short for `nkitools sweep run ...`; a second
    call with the same --store goes on where the first one ended. `merge` joins stores, `export` writes a table.
    """


def engine_options(command: Any) -> Any:
    """Add the options on where and how cases run."""
    for option in (
        click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
                     help="Processes of this machine, or Ray (nkitools[ray])."),
        click.option("--address", metavar="ADDRESS",
                     help="With --engine ray: a cluster, auto or ray://host:10001.  [default: one of this machine]"),
        click.option("--workers", type=click.IntRange(min=1),
                     help="Number of cases at a time.  [default: the number of cores]"),
        click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
                     help="Seconds that a case may take.  [default: no limit; in mutate 300]"),
        click.option("--memory", type=click.FloatRange(min=0, min_open=True), default=4.0, show_default=True,
                     metavar="GIB", help="GiB of memory that a worker may take."),
    ):  # fmt: skip
        command = option(command)
    return command


@sweep_kernel.command("run")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option(
    "--space",
    type=click.Path(exists=True, dir_okay=False),
    help="A TOML file with the space.  [default: `space` of FILE]",
)
@click.option(
    "--store",
    type=click.Path(dir_okay=False),
    help="A file that keeps the results, so that a second call runs the other cases alone.  [default: none]",
)
@chips_option
@version_option
@sum_order_option
@set_option
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="Number of cases to draw.  [default: all cases]"
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@click.option("--rtol", type=float, help="Allowed relative error.  [default: what the run explains]")
@click.option("--atol", type=float, help="Allowed absolute error.  [default: what the run explains]")
@json_option()
@engine_options
@click.pass_context
def run_sweep(
    context: click.Context,
    kernel: str,
    space: str | None,
    store: str | None,
    chips: tuple[str, ...],
    settings: dict[str, Any],
    sample: int | None,
    seed: int,
    rtol: float | None,
    atol: float | None,
    engine: str,
    address: str | None,
    workers: int | None,
    timeout: float | None,
    memory: float,
    as_json: bool,
) -> None:
    """Run KERNEL of FILE on every case of the space.

    FILE has `arguments`, a function of a case's names that returns the kernel's arguments, unless the space has a table
    `arguments`; a function `inputs` serves too. `reference`, a function of the arguments, returns the right results. A
    name in --set has only this value. Exit code: 0 if every case passes, 1 if one does not, 2 for a mistake in the
    command.
    """
    from nkitools.sweeps.sweep import cases_of, checked_call, make_engine, run_cases, surroundings
    from nkitools.targets.imports import stand_in

    file, name = seen(kernel, needs_inputs=False)
    with stand_in("always"):
        loaded = load(file)
        space_of = space or loaded.space
        if space_of is None:
            raise click.UsageError(f"{file} says no space: give it `space`, or name a TOML file, --space FILE")
        try:
            arguments = _arguments_of(loaded, space_of)
            call = checked_call(loaded.kernel(name), space_of, arguments, loaded.reference, rtol, atol)
            check_settings(loaded, call.kernel, settings, {*choices_of(space_of), *loaded.case_names()})
            cases = cases_of(call, _fixed(space_of, settings), chips, sample, seed)
            surroundings(call.kind)  # an option that means nothing is no result of a case
            where = make_engine(engine, workers, timeout, int(memory * 2**30), address)
        except (ValueError, ImportError) as error:
            raise click.UsageError(str(error)) from None
        with progress_line() as progress, told_in_a_line(store):
            found = run_cases(call, cases, where, store, progress)
    if as_json:
        say_json(_plain(found), allow_nan=False, default=str)
    else:
        _say_found(found)
    context.exit(int(bool(found.failed)))


def _say_found(found: Sweep) -> None:
    """Print the first cases that do not pass, and the sums."""
    from nkitools.sweeps.sweep import not_reused

    for row in found.failed[:10]:
        say(failure_line(row))
    if len(found.failed) > 10:
        say(f"... and {len(found.failed) - 10} more")
    if found.each_time:
        say(not_reused(found))
    say(f"{found}{f' ({found.stored} of them stored before)' if found.stored else ''}")


def _fixed(space: Any, settings: dict[str, Any]) -> Any:
    """Return a space in which each name that is set has this value alone."""
    return {**choices_of(space), **{name: [value] for name, value in settings.items()}} if settings else space


def _plain(found: Sweep) -> dict[str, Any]:
    """Return a sweep as plain data; a number that JSON does not have is a text."""
    rows = [
        {name: str(value) if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()}
        for row in found.rows
    ]
    head = {"kernel": found.kernel, "cases": len(rows), "outcomes": found.outcomes}
    return {**head, "stored": found.stored, "each_time": found.each_time, "rows": rows}


def failure_line(row: dict[str, Any]) -> str:
    """Return a case that does not pass, in one line."""
    from nkitools.sweeps.checked_call import ROW

    named = ", ".join(f"{name}={value!r}" for name, value in row.items() if name not in ROW)
    said = row["error"].splitlines()[:1] or [
        f"{each['rule']} at {os.path.basename(each['file'])}:{each['line']}" for each in row["findings"][:1]
    ]
    if row["outcome"] == "wrong" and row["max_error"] is not None:
        said = [f"off by {row['max_error']:.3g}"]
    return f"{row['outcome']}: {named} on {row['chip']}: {' '.join(said)}"


def _arguments_of(file: KernelFile, space: Any) -> Any:
    """Return FILE's function of a case; None if the space has the arguments."""
    if not isinstance(space, dict) and "arguments" in table_of(space):
        return None
    if file.arguments is None:
        raise click.UsageError(
            f"{file.path} says no arguments: give it `inputs`, a function of a case's names, or the space a table "
            "[arguments]"
        )
    return file.arguments


@contextmanager
def progress_line(what: str = "cases") -> Iterator[Progress | None]:
    """Show in a terminal how many cases are done, at which rate, and how long the others will take."""
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()

    def show(done: int, before: int, total: int) -> None:
        rate = (done - before) / max(time.monotonic() - began, 1e-9)
        left = (total - done) / rate if rate else 0.0
        text = f"\r{done} of {total} {what}, {rate:.1f} a second, {left:.0f} s left\x1b[K"
        sys.stderr.write(text)
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")


def open_store(path: str) -> Store:
    """Return a store that is there; FileError, exit code 2, for another file."""
    from nkitools.sweeps.store import Store

    with told_in_a_line(path):
        return Store(path, must_exist=True)


@contextmanager
def told_in_a_line(path: str | None) -> Iterator[None]:
    """Raise FileError, exit code 2, for a store that cannot be opened, or be written any more."""
    import sqlite3

    from nkitools.sweeps.store import StoreError

    try:
        yield
    except StoreError as error:
        raise FileError(str(error)) from None
    except sqlite3.Error as error:
        raise FileError(f"{path} cannot be read or written: {error}") from None


@sweep_kernel.command("merge")
@click.argument("store", type=click.Path(dir_okay=False))
@click.argument("others", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
def merge_stores(store: str, others: tuple[str, ...]) -> None:
    """Take the cases of OTHERS over into STORE, which is made where it is not there. A case is there once."""
    from nkitools.sweeps.store import Store

    with told_in_a_line(store), Store(store) as opened:
        for other in others:
            say(f"{other}: {opened.merge(other)} new cases")


@sweep_kernel.command("export")
@click.argument("store", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(dir_okay=False))
def export_store(store: str, file: str) -> None:
    """Write the cases of STORE into FILE, by its ending: .csv, or .parquet (with nkitools[profile])."""
    from nkitools.sweeps.export import export

    with open_store(store) as opened:
        try:
            say(f"{file}: {export(opened.rows(), file)} cases")
        except (ValueError, ImportError) as error:
            raise click.UsageError(str(error)) from None
