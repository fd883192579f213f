"""Help texts of options say the unit and the default."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from nkitools.cli import main
from nkitools.facts.options import OPTIONS

UNITS = ("SECONDS", "GIB", "MIB", "number", "Number", "Seed", "error", "seconds")


def options_of(name: str, command: click.Command) -> Iterator[tuple[str, click.Option]]:
    """Yield the shown options of a command and its subcommands, each with its name, as a user types it."""
    if isinstance(command, click.Group):
        for inner in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), inner)
            assert found is not None
            yield from options_of(f"{name} {inner}", found)
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            yield f"{name} {each.opts[-1]}", each


def test_an_option_of_a_command_says_unit_and_default() -> None:
    """Choices and numbers say their default, and numbers what they count; a file or a filter may have none."""
    silent, without_unit = [], []
    for name, option in options_of("nkitools", main):
        if option.is_flag or name.endswith("--help"):
            continue
        (_, text) = option.get_help_record(click.Context(main)) or ("", "")
        has_default = isinstance(option.default, str | int | float) and option.default != ""
        is_number = isinstance(option.type, click.types.FloatParamType | click.types.IntParamType)
        if (is_number or isinstance(option.type, click.Choice) or has_default) and "default:" not in text:
            silent.append(name)
        if is_number and not any(unit in f"{option.metavar} {text}" for unit in UNITS):
            without_unit.append(name)
    assert silent == []
    assert without_unit == []


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_the_plugin_says_unit_and_default(name: str) -> None:
    """Each that is no switch names its default, or what decides without it; a number has its unit."""
    option = OPTIONS[name]
    if option.default not in (None, False):
        assert f"default: {option.default}" in option.described
    if option.is_number and "does nothing" not in option.help:
        assert option.metavar in ("SECONDS", "MIB", "GIB")
