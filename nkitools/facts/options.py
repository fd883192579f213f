"""The one table of options, options.tsv: each declared once, read by the launch, pytest and the command line.

An option is decided by the first of: what ``override`` says, the environment variable, the default. The pytest plugin
enters the command-line flag and the ini key as overrides, so that in a test session the order is
flag, environment variable, ini key, default.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from nkitools.facts import versions
from nkitools.facts.generations import CHIPS, DEFAULT_CHIP, GENERATIONS
from nkitools.facts.kept import Kept
from nkitools.facts.light_classes import NamedTuple
from nkitools.facts.tsv import rows_of
from nkitools.platforms import user_cache

if TYPE_CHECKING:
    from pathlib import Path

Value = str | bool | None
_T = TypeVar("_T")
_Task = TypeVar("_Task")

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "")

# The fixtures of the pytest plugin: a file that names one uses nkitools.
FIXTURES = ("device_prints", "expect_finding", "kernel_benchmark", "kernels_ran", "nki_case", "run_kernel")


class Option(NamedTuple):
    """One option and every name that it goes by.

    ``choices`` is empty if any text is allowed. An option whose default is a bool is a switch. ``is_list``: the flag
    may be given several times, or have several values with commas. ``is_number``: the text must be a non-negative
    number.
    """

    name: str
    help: str
    choices: tuple[str, ...] = ()
    default: Value = None
    metavar: str | None = None
    is_list: bool = False
    is_number: bool = False
    has_flag: bool = True

    @property
    def flag(self) -> str | None:
        """Return the pytest flag; None if there is none."""
        return "--" + self.ini.replace("_", "-") if self.has_flag else None

    @property
    def ini(self) -> str:
        """Return the ini key of pytest."""
        return f"nki_{self.name.removeprefix('nki_')}"

    @property
    def env(self) -> str:
        """Return the environment variable."""
        return f"NKITOOLS_{self.name.upper()}"

    @property
    def described(self) -> str:
        """Return the help text with the default, if the option has one."""
        is_said = "default:" in self.help or self.default in (None, False)
        return self.help if is_said else f"{self.help} (default: {self.default})"

    @property
    def is_switch(self) -> bool:
        """Return whether the option is on or off, and takes no text."""
        return isinstance(self.default, bool)

    def checked(self, value: Value, said_by: str) -> Value:
        """``value`` as the option means it; ValueError naming ``said_by`` and the choices if it means nothing.

        An empty text counts as not said: shells cannot unset a variable for one command.
        """
        if self.is_switch:
            return _switch(value, said_by)
        if value is None or value == "":
            return self.default
        if self.choices and value not in self.choices:
            raise ValueError(f"{said_by} is {value!r}; choose one of {', '.join(self.choices)}.")
        if self.is_number and not _is_number(value):
            raise ValueError(f"{said_by} is {value!r}; it must be a number that is not negative.")
        return value


def _is_number(value: Value) -> bool:
    try:
        return 0 <= float(str(value)) < float("inf")
    except ValueError:
        return False


def _switch(value: Value, said_by: str) -> bool:
    if isinstance(value, bool):
        return value
    word = (value or "").strip().lower()
    if word not in _TRUE + _FALSE:
        raise ValueError(f"{said_by} is {value!r}; choose one of {', '.join(_TRUE + _FALSE[:-1])}.")
    return word in _TRUE


# What the table does not say of itself.
_CHOICES = {"CHIPS": tuple(dict.fromkeys((*CHIPS, *GENERATIONS))), "VERSIONS": versions.choices()}


def _option(row: Mapping[str, str]) -> Option:
    """Return an option by its row: an empty field says nothing, and a switch is off by default."""
    choices, kind = row["choices"], row["kind"]
    return Option(
        row["name"],
        row["help"].replace("DEFAULT_CHIP", DEFAULT_CHIP),
        _CHOICES.get(choices) or tuple(choices.split()),
        False if kind == "switch" else row["default"] or None,
        row["metavar"] or None,
        is_list=kind == "list",
        is_number=kind == "number",
        has_flag=row["flag"] == "yes",
    )


_TABLE = tuple(_option(row) for row in rows_of(f"{os.path.splitext(__file__)[0]}.tsv"))
OPTIONS: Mapping[str, Option] = {option.name: option for option in _TABLE}
_VARIABLES = {option.name: (option.env,) for option in _TABLE}

_overrides: ContextVar[Mapping[str, Value] | None] = ContextVar("nkitools_options", default=None)


def value(name: str) -> Value:
    """Return the value of option ``name``: the override, else the environment variable, else the default.

    Raises ValueError, naming the variable and the choices, where the environment says something that means nothing.
    """
    over = _overrides.get()
    if over is not None and name in over:
        return over[name]
    option = OPTIONS[name]
    if variables(_VARIABLES[name])[0] is None:
        return option.default
    return from_environment(option) if is_in_environment(option) else option.default


def variable(name: str) -> str:
    """Return an environment variable, '' if it is not set; made fast, since every run reads many that are not."""
    return os.environ.get(name, "") if variables((name,))[0] else ""


def variables(names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return keys for the values of environment variables, equal if the values are; None for one that is not set.

    ``os.environ.get`` takes twenty times as long for an unset one: it raises and catches a KeyError.
    """
    known = getattr(os.environ, "_data", None)  # of CPython: the variables as the system has them
    return tuple(map(os.environ.get, names)) if known is None else tuple(map(known.get, _keys(names)))


@cache
def _keys(names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(map(os.environ.encodekey, names))


def overrides() -> Mapping[str, Value] | None:
    """Return the options that `override` has set here: another object in each of its blocks; None outside."""
    return _overrides.get()


def is_in_environment(option: Option) -> bool:
    """Return whether the environment decides ``option``; an empty variable decides nothing."""
    return variable(option.env) != ""


def from_environment(option: Option) -> Value:
    """Return the value of the environment variable of ``option``. ValueError if the option has no such value."""
    return option.checked(os.environ.get(option.env), option.env)


REPLAY = ("replay", "replay_threads")
"""The options that do nothing any more."""
NO_REPLAY = "nkitools no longer replays runs: every run runs the kernel's Python"


def asks_for_replay() -> bool:
    """Return whether one of the options for replay is set. ValueError for a value that it never had."""
    asked = [value(name) for name in REPLAY]
    return any(asked)


def check_replay(asked: str) -> None:
    """Say that an argument ``replay`` does nothing. ValueError for a value that it never had."""
    choices = OPTIONS["replay"].choices
    if asked not in choices:
        raise ValueError(f"replay: must be one of {', '.join(choices)}, it is {asked!r}")
    say_that_nothing_is_replayed()


@cache
def say_that_nothing_is_replayed() -> None:
    """Print it on stderr, once in a process: a warning would end a run where warnings are errors."""
    print(
        f"nkitools: {NO_REPLAY}. replay=, --nki-replay, --nki-replay-threads, their ini keys and environment variables "
        "and run.replayed do nothing, and the next version refuses them: leave them out.",
        file=sys.stderr,
    )


FRONT_END = "NKI_COMPILER_FRONTEND"
_FRONT_ENDS = {"": False, "tracer": False, "custom": True, "parser": True}


_OF_LANGUAGE = (OPTIONS["nki_version"].env, FRONT_END)
_languages = Kept[tuple[Any, ...], tuple[Any, versions.LanguageVersion]](
    "NKI versions by what decides them, each with the overrides that held then", 64, "a session of tests has a few"
)


def cache_directory() -> Path:
    """Return the directory of built libraries: ``NKITOOLS_CACHE_DIR``, else ``nkitools`` in the user's cache.

    The path is absolute; the directory need not be there yet.
    """
    from pathlib import Path

    said = os.environ.get("NKITOOLS_CACHE_DIR")
    if said:
        return Path(said).expanduser().absolute()
    return user_cache() / "nkitools"


def language(version: str | None = None) -> versions.LanguageVersion:
    """Return the NKI version asked for, else that of the option, with the front end that AWS's variable names.

    ``NKI_COMPILER_FRONTEND`` is ``custom`` for the former front end; AWS's tools also write ``parser`` and ``tracer``.
    Raises ValueError for a version, or a front end, that there is not.
    """
    over = _overrides.get()
    key = id(over), variables(_OF_LANGUAGE)
    kept = _languages.get(key) if version is None else None
    if kept is not None and kept[0] is over:
        return kept[1]
    chosen = value("nki_version") if version is None else version
    if chosen not in versions.choices():
        raise ValueError(f"nki_version: must be one of {', '.join(versions.choices())}, it is {chosen!r}")
    front_end = variable(FRONT_END)
    if front_end not in _FRONT_ENDS:
        raise ValueError(f"NKI_COMPILER_FRONTEND is {front_end!r}; choose custom, or leave the variable out.")
    found = versions.language_of(str(chosen), former_front_end=_FRONT_ENDS[front_end])
    if version is None:
        _languages[key] = over, found
    return found


@contextmanager
def override(**values: Value) -> Iterator[None]:
    """Decide options for the body of a ``with``; what held before holds again after it.

    Raises KeyError for a name that is no option and ValueError for a value that is no choice of its option.
    """
    checked = {name: OPTIONS[name].checked(said, f"option {name!r}") for name, said in values.items()}
    token = _overrides.set({**(_overrides.get() or {}), **checked})
    try:
        yield
    finally:
        _overrides.reset(token)


def with_options(function: Callable[[_Task], _T]) -> Callable[[_Task], _T]:
    """Return a function to be called in another process, where the options are as they are here."""
    return partial(_called_with, dict(_overrides.get() or {}), function)


def _called_with(said: Mapping[str, Value], function: Callable[[_Task], _T], task: _Task) -> _T:
    token = _overrides.set(said)
    try:
        return function(task)
    finally:
        _overrides.reset(token)


@contextmanager
def in_environment() -> Iterator[None]:
    """Say in environment variables what `override` decides here: for code that asks in a context of its own."""
    said = {OPTIONS[name].env: str(each) for name, each in (_overrides.get() or {}).items() if each is not None}
    former = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def call_alone(function: Callable[[], _T]) -> _T:
    """Call a function in an empty context, which no collector of runs reaches, with the options as they are here."""
    context = Context()
    context.run(_overrides.set, _overrides.get())
    return context.run(function)
