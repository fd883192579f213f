"""``nkitools sweep report``: what the sweeps of a store say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.shared_options import json_option
from nkitools.cli.sweep import open_store
from nkitools.cli.terminal import say, say_json

if TYPE_CHECKING:
    from nkitools.sweeps.answers import Answers
    from nkitools.sweeps.store import Store


@click.command("report")
@click.argument("store", type=click.Path(exists=True, dir_okay=False))
@click.option("--kernel", help="Report this kernel alone.  [default: all]")
@click.option(
    "--map",
    "names",
    metavar="A,B",
    default="",
    help="Two parameters for the axes of the map.  [default: those that matter most]",
)
@click.option(
    "--against",
    metavar="SWEEP",
    help="An earlier sweep, by the start of its name.  [default: the last one of other code]",
)
@click.option("--page", type=click.Path(dir_okay=False), metavar="FILE", help="Write a page, too.")
@click.option(
    "--test", type=click.Path(dir_okay=False), metavar="FILE", help="Write a test of the smallest failing case."
)
@json_option("Print one JSON object for each sweep, in a list.")
@click.option("--list", "lists", is_flag=True, help="List the sweeps of the store instead.")
def report_sweeps(
    store: str,
    kernel: str | None,
    names: str,
    against: str | None,
    page: str | None,
    test: str | None,
    as_json: bool,
    lists: bool,
) -> None:
    """Say of the last sweep of each kernel in STORE where it passes and why it does not.

    A map over two names, failures by rule and line with the smallest case of each, the fastest passing cases of each
    chip, and what got worse since an earlier sweep. With --test the smallest case of the largest group of failures is
    made smaller still, by runs of the kernel, and written as a test.
    """
    with open_store(store) as opened:
        if lists:
            _list(opened, as_json=as_json)
            return
        found = _answers(opened, kernel, [each.strip() for each in names.split(",") if each.strip()], against)
    from nkitools.report.page.sweep_page import write_sweep_page
    from nkitools.report.sweep_text import sweep_lines
    from nkitools.sweeps.plain_answers import plain

    told = [plain(each) for each in found]
    if page is not None:
        write_sweep_page(told, Path(store).name, page)
    if as_json:
        say_json(told)
    else:
        say("\n\n".join("\n".join(sweep_lines(each)) for each in told))
    if test is not None:
        _write_test(found, test, err=as_json)


def _list(store: Store, *, as_json: bool) -> None:
    rows = [
        {name: each[name] for name in ("sweep", "kernel", "file", "began", "wanted", "stored")}
        for each in store.sweeps()
    ]
    if as_json:
        say_json(rows)
        return
    for each in rows:
        say(f"{each['sweep'][:12]}  {each['kernel']}  {each['stored']} of {each['wanted']} cases  {each['file']}")


def _answers(store: Store, kernel: str | None, names: list[str], against: str | None) -> list[Answers]:
    from nkitools.sweeps.answers import answers_of, latest_sweeps

    pairs = [pair for pair in latest_sweeps(store) if kernel in (None, pair[0]["kernel"])]
    if not pairs:
        there = ", ".join(sorted({each["kernel"] for each in store.sweeps()}))
        raise click.UsageError(f"the store has no sweep of {kernel}; it has {there or 'none'}")
    if against is not None:
        named = [each for each in store.sweeps() if each["sweep"].startswith(against)]
        if len(named) != 1 or len(pairs) != 1:
            raise click.UsageError(f"--against {against}: name one sweep, see --list, and one kernel, --kernel NAME")
        pairs = [(pairs[0][0], named[0])]
    try:
        return [answers_of(store, sweep, names, earlier) for sweep, earlier in pairs]
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _write_test(found: list[Answers], path: str, *, err: bool) -> None:
    from nkitools.record.whole_file import write_whole
    from nkitools.sweeps.checked_call import CheckedCall
    from nkitools.sweeps.plain_answers import case_text
    from nkitools.sweeps.smallest import as_test, smallest
    from nkitools.targets.imports import stand_in

    failing = [(each.clusters[0], each.sweep) for each in found if each.clusters]
    if not failing:
        say("no case fails: there is no test to write", err=err)
        return
    cluster, sweep = max(failing, key=lambda each: each[0].count)
    with stand_in("always"):
        try:
            call = CheckedCall.from_text(sweep["call"])
        except Exception as error:  # whatever the author's file raises
            raise click.UsageError(f"{sweep['kernel']} is not found again: {error}") from None
        values: dict[str, Any] = smallest(call, cluster.smallest)
        text = as_test(call, values, cluster.smallest["chip"], f"{cluster.outcome}: {cluster.what}")
    write_whole(path, text)
    say(f"\n{path}: {case_text({**cluster.smallest, 'values': values})}", err=err)
