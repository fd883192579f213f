"""``nkitools mutate``: whether an author's tests would notice mistakes in a kernel."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from nkitools.cli.shared_options import chip_option, json_option, set_option, sum_order_option, version_option
from nkitools.cli.sweep import engine_options, progress_line
from nkitools.cli.terminal import say, say_json
from nkitools.facts.pytest_ini import test_folders
from nkitools.kernel_file import seen


@click.command("mutate", short_help="Say which mistakes in a kernel its tests notice.")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option(
    "--tests", multiple=True, metavar="PATH", help="Tests, as pytest takes them.  [default: test_FILE nearby]"
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME",
    help="A kind of mistake, or all; may be repeated.  [default: the usual ones]",
)
@partial(set_option, what="A constant of FILE.")
@chip_option
@version_option
@sum_order_option
@json_option("Print one JSON object for each mistake, in a list.")
@engine_options
@click.pass_context
def mutate_kernel(
    context: click.Context,
    kernel: str,
    tests: tuple[str, ...],
    kinds: tuple[str, ...],
    settings: dict[str, Any],
    as_json: bool,
    engine: str,
    address: str | None,
    workers: int | None,
    timeout: float | None,
    memory: float,
) -> None:
    """Make mistakes in KERNEL of FILE, one at a time, and list those that the tests do not notice.

    Each mistake changes one piece of the kernel or of its file's functions: the last tile left out, operands swapped, a
    sum that starts anew, another axis, a narrower dtype. The tests run in simulation with each. A mistake that no test
    notices is shown with its line, and with an input on which the results differ, if one is found. The tests choose
    the keywords of the kernel. A mistake with which the tests crash or do not end counts as
    noticed. Exit code: 0 if every mistake with such an input is noticed, 1 if one is not, 2 for a mistake in the
    command and if the tests do not pass without a mistake or do not run the kernel.
    """
    from nkitools.dialects.stand_in import install_stand_in
    from nkitools.edits.candidates import KINDS
    from nkitools.sweeps.mutate import USUAL, mutate
    from nkitools.sweeps.sweep import make_engine

    file, name = seen(kernel, needs_inputs=False)
    if Path(file).name.startswith("test_"):
        raise click.UsageError(f"{file} is a file of tests: put the kernel into a file of its own")
    chosen = tuple(KINDS) if kinds == ("all",) else kinds or USUAL
    install_stand_in(prefer="builtin")
    try:
        where = make_engine(engine, workers, timeout or 300.0, int(memory * 2**30), address)
        with progress_line("mistakes") as progress:
            tried = mutate(
                file, name, tests or _tests_of(file), where, kinds=chosen, settings=settings, progress=progress
            )
    except (ValueError, ImportError) as error:
        raise click.UsageError(str(error)) from None
    survivors = [each for each in tried if not each.killed]
    missed = [each for each in survivors if each.differs]
    if as_json:
        plain = [
            {"line": each.mutant.line, "kind": each.mutant.kind, "change": each.mutant.change}
            | {"killed": each.killed, "differs": each.differs}
            for each in tried
        ]
        say_json(plain)
    else:
        for each in survivors:
            shown = f"differs with {each.differs}" if each.differs else "no input was found that shows it"
            say(f"{each.line(file)}\n    {shown}")
        counted = f"{len(tried)} mistakes, {len(tried) - len(survivors)} noticed"
        share = f" ({100 * (len(tried) - len(survivors)) // max(1, len(tried))} %)"
        left = f"; {len(missed)} not, with an input that shows them; {len(survivors) - len(missed)} that no input shows"
        say(f"{name}: {counted}{share}{left if survivors else ''}")
    context.exit(int(bool(missed)))


def _tests_of(file: str) -> tuple[str, ...]:
    """Return the files of tests named like a file: beside it, in a folder of tests near it, or in the project's."""
    path = Path(file).absolute()
    name = f"test_{path.stem}.py"
    for folder in (path.parent, path.parent / "tests", path.parent.parent / "tests"):
        if (folder / name).is_file():
            return (str(folder / name),)
    found = tuple(str(each) for folder in test_folders(path) for each in sorted(Path(folder).rglob(name)))
    if not found:
        raise click.UsageError(
            f"there is no {name} beside {file}, in tests, or in the folders that pytest's testpaths names: "
            "name the tests, --tests PATH"
        )
    return found
