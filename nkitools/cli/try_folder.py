"""``nkitools try``: the tests and scripts of a folder as they are: what runs, and why the rest does not."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import INTERRUPTED
from nkitools.cli.save_runs import NewFile
from nkitools.cli.terminal import say

if TYPE_CHECKING:
    from nkitools.field.session import Choice, Field

_ABOVE_ZERO = click.FloatRange(0, min_open=True)


@click.command("try", short_help="Run the tests and scripts of a folder as they are.")
@click.option("--root", type=click.Path(path_type=Path), help="The checkout.  [default: nearest with a .git]")
@click.option("--path", "paths", type=click.Path(path_type=Path), multiple=True, help="A folder to import from, "
              "besides the checkout and its src; may be repeated.")  # fmt: skip
@click.option("--sample", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="Run only these ids, one "
              "a line, # comments.")  # fmt: skip
@click.option("--collect-all", is_flag=True, help="Collect files without a test of the sample, too: where the cases of "
              "one file depend on the others.")  # fmt: skip
@click.option("--timeout", type=_ABOVE_ZERO, default=60.0, metavar="SECONDS", show_default=True,
              help="Processor time of a test.")  # fmt: skip
@click.option("--memory", type=_ABOVE_ZERO, default=4.0, metavar="GIB", show_default=True,
              help="Memory of a test, on Linux.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="N", show_default=True,
              help="Number of tests at a time.")  # fmt: skip
@click.option("--tpu", metavar="CHIP", help="Let the CPU pass for this TPU, and interpret every Pallas call as on it.")
@click.option("--json", "kept", type=NewFile(), metavar="FILE", help="Write outcomes as they come.")
@click.option("--resume", is_flag=True, help="Keep the outcomes in the file of --json; run the others.")
@click.argument("suite", type=click.Path(exists=True, path_type=Path), metavar="FOLDER")
@click.argument("others", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST...]")
@click.pass_context
def try_folder(
    context: click.Context, suite: Path, root: Path | None, paths: tuple[Path, ...], sample: Path | None,
    collect_all: bool, timeout: float, memory: float, jobs: int, tpu: str | None, kept: Path | None, resume: bool,
    others: tuple[str, ...],
) -> None:  # fmt: skip
    """Run the pytest tests and the scripts of FOLDER, or of a file, against nkitools' own simulator.

    Each runs in a process of its own, with limits of time and memory; on macOS, and if the suite imports JAX, the
    tests share one process. The table says how many passed, were skipped or failed as expected, which rule refused the
    others at which line of a kernel, what is not installed here, and which files of kernels nothing calls. What stands
    after -- goes to pytest. Exit code: 0 if each file can be imported, and every test and script passed, was skipped or
    failed as expected; else 1; 130 after Ctrl-C; if pytest failed or nothing was found pytest's own, which is never 0.
    Kernels that nothing calls do not count.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # a process that is forked has one thread
    if resume and kept is None:
        raise click.UsageError("--resume goes on with the file of --json")
    try:
        import pytest
    except ModuleNotFoundError:
        raise click.ClickException("tests are run by pytest: pip install 'nkitools[test]'") from None
    from nkitools.field.processes import Limits
    from nkitools.field.session import Field
    from nkitools.field.table import as_text, passes

    kept = kept and kept.absolute()
    choice = _choice(sample, kept if resume else None, collect_all)
    suite, root = suite.resolve(), (root or _root_of(suite.resolve())).resolve()
    _prepare(root, paths)
    field = Field(Limits(timeout, int(memory * 1024), **_watching(tpu)), jobs, choice, partial(_keep, kept))
    ours = ["-o", "nki_stand_in=always", "-p", "no:cacheprovider", "-p", "no:randomly", "-q"]
    shown = ["--no-header", "--no-summary", "--continue-on-collection-errors"]
    status = pytest.main([str(suite), *ours, *shown, *others], plugins=[field])
    if not field.found:
        click.echo("\n".join(field.uncollected or ["no tests, no scripts and no kernels"]))
        context.exit(int(status) or 1)
    click.echo(as_text(field.found, field.uncollected))
    _keep(kept, field)
    if status == pytest.ExitCode.INTERRUPTED:
        say("nkitools: interrupted: the other tests did not run", err=True)
        context.exit(INTERRUPTED)
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        context.exit(int(status))
    context.exit(0 if passes(field.found, field.uncollected) else 1)


def _prepare(root: Path, paths: tuple[Path, ...]) -> None:
    """Let the suite's imports find the checkout, the given folders and the stand-in."""
    import nkitools

    sys.path[:0] = [str(each.resolve()) for each in (root, root / "src", *paths) if each.is_dir()]
    os.chdir(root)
    nkitools.install_stand_in(prefer="builtin")


def _root_of(suite: Path) -> Path:
    """Return the checkout that a suite stands in; the suite's own folder where none shows."""
    folder = suite if suite.is_dir() else suite.parent
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def _choice(file: Path | None, known: Path | None, collects_all: bool) -> Choice:
    """Return which tests the options ask for."""
    from nkitools.field.session import Choice
    from nkitools.field.table import as_outcomes

    lines = [] if file is None else file.read_text(encoding="utf-8").splitlines()
    sample = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    there = known is not None and known.exists()
    outcomes = as_outcomes(json.loads(known.read_text(encoding="utf-8"))) if known is not None and there else []
    return Choice(sample, [outcome for outcome in outcomes if outcome.kind != "absent"], collects_all)


def _watching(tpu: str | None) -> dict[str, Any]:
    """Return what watches each test, as an argument of its limits: nothing without a TPU."""
    if tpu is None:
        return {}
    from nkitools.field.tpu_tests import passing_for

    try:
        return {"watching": passing_for(tpu)}
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _keep(file: Path | None, field: Field) -> None:
    """Write the outcomes until now; a reader, or one who ends the session, never meets half of a file."""
    if file is not None:
        from nkitools.field.table import as_plain
        from nkitools.record.whole_file import write_whole

        write_whole(file, json.dumps(as_plain(field.found, field.uncollected), indent=1) + "\n")
