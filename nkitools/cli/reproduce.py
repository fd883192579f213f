"""``nkitools reproduce``: a saved run as one plain file that runs elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from nkitools.cli.commands import ArrayCommand, FileError
from nkitools.cli.load_run import read_run
from nkitools.cli.terminal import say


@click.command("reproduce", short_help="Write a file that makes a saved run again elsewhere.", cls=ArrayCommand)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="The file to write.  [default: RUN_reproduced.py here]")  # fmt: skip
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Replace a word of the source. May be repeated.")
@click.argument("run", metavar="RUN")
def reproduce_run(output: Path | None, rename: tuple[str, ...], run: str) -> None:
    """Write a file that makes a saved RUN again on another machine: python FILE.

    It has the kernel, the parts of the author's files that the kernel needs, the chip and the settings, and the
    versions as a comment. Arrays are generated with the same shapes and dtypes, those of integers in the same range;
    other arguments keep their values. --rename replaces names that others should not see, everywhere. A file of this
    name is overwritten. Exit code: 2 for a run that cannot be made again: no NKI kernel, a packed dtype, an argument
    that is no plain value.
    """
    from nkitools.record.whole_file import write_whole
    from nkitools.report.reproduction import NotReproducible, reproduction

    try:
        text = reproduction(read_run(run), dict(_pair(each) for each in rename))
    except NotReproducible as error:
        raise FileError(f"{run}: {error}") from None
    path = Path(f"{Path(run).stem}_reproduced.py") if output is None else output
    write_whole(path, text)
    say(f"nkitools: wrote {path}; run it: python {path}")


def _pair(text: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not separator or not old.isidentifier() or not new.isidentifier():
        raise click.BadParameter(f"{text}: write OLD=NEW, two names", param_hint="'--rename'")
    return old, new
