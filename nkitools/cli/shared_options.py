"""Options that several commands share: each is declared once, with one name and one meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial, wraps
from typing import Any, TypeAlias

import click

from nkitools.chip.chosen_chip import VARIABLES
from nkitools.cli.terminal import printing_apart
from nkitools.facts import options
from nkitools.facts.generations import CHIPS, DEFAULT_CHIP
from nkitools.kernel_settings import settings_of

Command: TypeAlias = Callable[..., Any]

_DEFAULT_CHIP = f"[default: {', else '.join((options.OPTIONS['chip'].env, *VARIABLES, DEFAULT_CHIP))}]"


def inputs_option(command: Command) -> Command:
    """Add ``inputs``: the path of a file of arrays."""
    return click.option(
        "--inputs",
        type=click.Path(exists=True, dir_okay=False),
        help="An .npz file with the arguments by name.  [default: `inputs` of FILE]",
    )(command)


def set_option(
    command: Command, what: str = "A keyword of KERNEL, a parameter of `inputs`, or a constant of FILE."
) -> Command:
    """Add ``settings``: values by name. ``what``: the things that the names may be of."""
    return click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", callback=_settings, help=f"{what} May be repeated."
    )(command)


def _settings(_: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    try:
        return settings_of(texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from None


def chip_option(command: Command) -> Command:
    """Add a chip, which the option ``chip`` is while the command runs."""
    return _deciding("chip", command)


def version_option(command: Command) -> Command:
    """Add an NKI version, which the option ``nki_version`` is while the command runs."""
    return _deciding("nki_version", command)


def sum_order_option(command: Command) -> Command:
    """Add an order of sums, which the option ``sum_order`` is while the command runs."""
    return _deciding("sum_order", command)


def _deciding(name: str, command: Command) -> Command:
    option = options.OPTIONS[name]

    @wraps(command)
    def decided(*args: Any, **kwargs: Any) -> Any:
        said = kwargs.pop(name)
        with options.override(**({} if said is None else {name: said})):
            return command(*args, **kwargs)

    flag = "--" + name.replace("_", "-")
    text = f"{option.help}.  [default: {option.env}, else {option.default}]"
    metavar = None
    if name == "chip":
        text, metavar = f"{', '.join(option.choices)}.  {_DEFAULT_CHIP}", "NAME"
    return click.option(flag, name, type=click.Choice(option.choices), metavar=metavar, help=text)(decided)


def chips_option(command: Command) -> Command:
    """Add ``chips``: the names of several chips."""
    return click.option(
        "--chip",
        "chips",
        default="",
        metavar="A,B",
        callback=_chips,
        help=f"Chips, side by side: {', '.join(CHIPS)}.  {_DEFAULT_CHIP}",
    )(command)


def _chips(_context: click.Context, _param: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def json_option(text: str = "Print one JSON object.") -> Callable[[Command], Command]:
    """Add ``as_json``: ``--json``, and ``--format json``, the older spelling, which is not shown.

    With it, prints of the author's file or kernel go to stderr.
    """
    return partial(_with_json, text)


def _with_json(text: str, command: Command) -> Command:
    @wraps(command)
    def decided(*args: Any, as_json: bool, form: str | None, **kwargs: Any) -> Any:
        as_json = _form(as_json, form, "text") == "json"
        with printing_apart() if as_json else nullcontext():
            return command(*args, as_json=as_json, **kwargs)

    hidden = click.option("--format", "form", type=click.Choice(["text", "json"]), hidden=True)
    return click.option("--json", "as_json", is_flag=True, help=text)(hidden(decided))


def format_option(forms: Sequence[str]) -> Callable[[Command], Command]:
    """Add ``form``, one of several forms of the answer; ``--json`` is short for ``--format json``."""
    return partial(_with_formats, forms)


def _with_formats(forms: Sequence[str], command: Command) -> Command:
    @wraps(command)
    def decided(*args: Any, as_json: bool, form: str | None, **kwargs: Any) -> Any:
        return command(*args, form=_form(as_json, form, forms[0]), **kwargs)

    every = click.option("--format", "form", type=click.Choice(forms), help=f"[default: {forms[0]}]")
    return click.option("--json", "as_json", is_flag=True, help="Short for --format json.")(every(decided))


def _form(as_json: bool, form: str | None, default: str) -> str:
    """Return the form that is asked for. UsageError if the two options say different ones."""
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} say two forms: name one")
    return "json" if as_json else form or default
