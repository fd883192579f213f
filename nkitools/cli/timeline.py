"""``nkitools timeline``: a saved run for the viewer of Perfetto."""

from __future__ import annotations

from pathlib import Path

import click

from nkitools.cli.load_run import read_run


@click.command("timeline")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="[default: RUN.pftrace]")
@click.argument("run", metavar="RUN")
def write_timeline(output: Path | None, run: str) -> None:
    """Write a saved RUN as a trace that https://ui.perfetto.dev opens: order, not time.

    Every instruction is a slice on the track of its engine, with its operands, its line and its loop counters; arrows
    lead to the instructions that read what it wrote. Needs the package perfetto: pip install 'nkitools[perfetto]'.
    """
    from nkitools.report.perfetto import LABEL, save_timeline

    loaded = read_run(run)
    output = Path(run).with_suffix(".pftrace") if output is None else output
    try:
        save_timeline(loaded, output)
    except (ValueError, ModuleNotFoundError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror or error}") from None
    click.echo(f"nkitools: wrote {output} ({LABEL}); open it at https://ui.perfetto.dev", err=True)
