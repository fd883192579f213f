"""Flags and ini keys, declared from the one table of options, and who decides between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nkitools.facts import options
from nkitools.facts.options import OPTIONS, Option, Value


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare every option of the table."""
    group = parser.getgroup("nkitools", "kernels for AWS Neuron and TPU (nkitools)")
    for option in OPTIONS.values():
        kind: Any = "bool" if option.is_switch else "string"
        parser.addini(option.ini, option.described, type=kind, default=None)
        if option.flag is not None:
            _add_flag(group, option.flag, option)


def _add_flag(group: pytest.OptionGroup, flag: str, option: Option) -> None:
    # pytest's default is None, whatever the option's own: only what the user said may beat the environment.
    text = option.described
    if option.is_switch:
        group.addoption(flag, dest=option.ini, action="store_true", default=None, help=text)
        return
    if option.is_list:
        group.addoption(flag, dest=option.ini, action="append", metavar=option.metavar, default=None, help=text)
        return
    choices = list(option.choices) or None
    group.addoption(flag, dest=option.ini, choices=choices, metavar=option.metavar, default=None, help=text)


def decided(config: pytest.Config, option: Option) -> Value:
    """Return the value of ``option`` in this session: flag, else environment variable, else ini key, else default.

    Raises UsageError for a value in the environment or the ini file that the option does not have.
    """
    flag = config.getoption(option.ini, None)
    try:
        if flag is not None:
            said = ",".join(flag) if isinstance(flag, list) else option.checked(flag, str(option.flag))
            return _absolute(option, said, config.invocation_params.dir)
        if options.is_in_environment(option):
            return _absolute(option, options.from_environment(option), config.invocation_params.dir)
        ini = option.checked(config.getini(option.ini), f"ini key {option.ini}")
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    return _absolute(option, ini, config.inipath.parent if config.inipath else config.rootpath)


def _absolute(option: Option, value: Value, base: Path) -> Value:
    """Return a directory as an absolute path: relative ones count from the current folder, or the ini file's."""
    return str(base / value) if option.name == "report" and isinstance(value, str) else value


def all_decided(config: pytest.Config) -> dict[str, Value]:
    """Return the values that flags and ini keys decide; the environment, which a test may change, decides the others.

    Raises UsageError for a value that its option does not have, also in the environment.
    """
    values = {name: decided(config, option) for name, option in OPTIONS.items()}
    return {name: value for name, value in values.items() if _is_pinned(config, OPTIONS[name])}


def _is_pinned(config: pytest.Config, option: Option) -> bool:
    if config.getoption(option.ini, None) is not None:
        return True
    return not options.is_in_environment(option) and config.getini(option.ini) not in (None, "")
