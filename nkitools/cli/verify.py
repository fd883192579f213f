"""``nkitools verify``: one verdict on a kernel, and how sure it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.save_runs import NewFile
from nkitools.cli.shared_options import (
    chips_option,
    inputs_option,
    json_option,
    set_option,
    sum_order_option,
    version_option,
)
from nkitools.cli.terminal import say, say_json
from nkitools.kernel_file import seen, split


@click.command("verify", short_help="Judge a kernel: one verdict, and how sure it is.", cls=ArrayCommand)
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option(
    "--reference", metavar="FILE::NAME", help="The right results, or a function of them.  [default: FILE's reference]"
)
@chips_option
@inputs_option
@set_option
@version_option
@sum_order_option
@click.option("--mutates", multiple=True, metavar="NAME", help="A parameter that KERNEL may change; may be repeated.")
@click.option("--rtol", type=float, help="Allowed relative error.  [default: what the run explains]")
@click.option("--atol", type=float, help="Allowed absolute error.  [default: what the run explains]")
@click.option(
    "--max-traffic",
    type=float,
    metavar="TIMES",
    help="A number: how many times the least possible bytes may move from and to HBM.  [default: any]",
)
@click.option("--seconds", type=float, default=60.0, show_default=True, metavar="SECONDS",
              help="Seconds that all rows together may take.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of other values, shapes and mutants.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first row that fails.")
@click.option("--html", "page", type=NewFile(), metavar="FILE", help="Also write the verdict as a page of HTML here.")
@json_option()
@click.pass_context
def verify_kernel(
    context: click.Context,
    /,
    kernel: str,
    reference: str | None,
    chips: tuple[str, ...],
    inputs: str | None,
    settings: dict[str, Any],
    mutates: tuple[str, ...],
    page: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say whether KERNEL of FILE is right, check by check, and how sure that is. Each check is a row of the answer.

    FILE has `inputs` and `reference`; a parameter `rng` of `inputs` is a generator, with which other values are drawn,
    and `space` names other shapes. With --reference FILE::NAME they are those of that file, so that the kernel's file
    need not be trusted. The kernel and the reference run in a process each. The quickest rows come first; when
    --seconds are over, each row that is left is `unknown`. Exit code: 0 if no row fails, also if rows are unknown, 1 if
    one fails, 2 for a mistake in the command and if the kernel could not be tried.
    """
    from nkitools.verdict.subject import OfFile
    from nkitools.verdict.verify import Options, verdict_of

    file, name = seen(kernel, needs_inputs=inputs is None and reference is None)
    against = None if reference is None else split(reference)
    subject = OfFile(file, name, against, inputs, settings=settings)
    try:
        asked = Options(chips=chips, mutates=mutates, **options)
        found = verdict_of(subject, asked, {}, (lambda row: None) if as_json else (lambda row: say(str(row))))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if page is not None:
        from nkitools.report.page.verdict_page import write_verdict_page

        write_verdict_page(found.as_plain(), found.sentence(), kernel, page)
    if as_json:
        say_json(found.as_plain(), allow_nan=False, indent=None, separators=(",", ":"))
    else:
        say(found.sentence())
    context.exit(found.status)
