"""``nkitools timeline``: a saved run for the viewer of Perfetto."""

from __future__ import annotations

from pathlib import Path

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.load_run import read_run
from nkitools.cli.terminal import say


@click.command("timeline", short_help="Write a saved run as a trace for the Perfetto viewer.", cls=ArrayCommand)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="The file to write.  [default: RUN.pftrace beside RUN]")  # fmt: skip
@click.option("--order", is_flag=True, help="Give each instruction one step in the order of simulation, not its time.")
@click.argument("run", metavar="RUN")
def write_timeline(output: Path | None, order: bool, run: str) -> None:
    """Write a saved RUN as a trace that https://ui.perfetto.dev opens, in estimated time.

    Every instruction is a slice on the track of its engine, with its operands, its line and its loop counters. A core
    is a process, with its DMA queues and the bytes of its memories; arrows lead to instructions that wait. With --order
    each instruction takes one step instead of its time, turns of nl loops are slices, and arrows lead to the readers of
    its results. Needs the package perfetto: pip install 'nkitools[perfetto]'.
    """
    from nkitools.report import perfetto_order, perfetto_time
    from nkitools.report.perfetto import save_timeline

    loaded = read_run(run)
    output = Path(run).with_suffix(".pftrace") if output is None else output
    try:
        save_timeline(loaded, output, order=order)
    except (ValueError, ModuleNotFoundError) as error:
        raise click.ClickException(str(error)) from None
    label = perfetto_order.LABEL if order else perfetto_time.LABEL
    say(f"nkitools: wrote {output} ({label}); open it at https://ui.perfetto.dev", err=True)
