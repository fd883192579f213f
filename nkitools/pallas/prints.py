"""Device prints of JAX: ``jax.debug.print`` and ``pl.debug_print``, kept as records and still printed.

JAX has no public way to capture prints. Its private function that formats a print is replaced during a run and restored
afterwards. A test pins its name and form. Under a JAX with another form runs work as before, a warning says that their
prints are missing, and looking one up is an error (NK607).

JAX compiles the formatting function into the program, so the prints of a program compiled outside a run would be
missed. Every run therefore sets a piece of XLA metadata, which is part of the key under which ``jax.jit`` keeps its
programs: a program compiled in a run is used in runs only.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import string
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from nkitools.pallas.imports import finding, jax_module, refuse
from nkitools.pallas.jax_internals import DEBUGGING as _MODULE
from nkitools.pallas.jax_types import Shaped
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Prints
from nkitools.rules.finding import Finding

_HOOK = "_format_print_callback"
_HOOK_PARAMETERS = ["fmt", "np_printoptions", "has_placeholders", "logging_record", "args", "kwargs"]


class UnheardPrints(Prints):
    """The prints of a run under a JAX that does not allow their capture.

    Looking one up or comparing them is NK607. Reports may count and list them: there are none, and a warning gives the
    reason.
    """

    def __getitem__(self, _: object) -> NoReturn:
        refuse(*self._why())

    def __contains__(self, _: object) -> NoReturn:
        refuse(*self._why())

    def _those(self, *_: object) -> NoReturn:
        refuse(*self._why())

    def __eq__(self, _: object) -> NoReturn:
        refuse(*self._why())

    def warning(self) -> Finding:
        """Return the run's warning that its prints are missing."""
        return finding(*self._why(), severity="warning")

    def _why(self) -> tuple[str, str]:
        return (
            f"device prints of JAX are not recorded under jax {jax_module().__version__}: "
            f"{_MODULE}.{_HOOK} is not there, or not in the known form",
            "They are still on stdout. To have them recorded, try a newer nkitools or an older jax.",
        )


class _Listener(NamedTuple):
    """The receiver of the prints, and JAX's own function, which still writes them."""

    prints: list[Print]
    write: Callable[..., None]


# JAX calls back from threads of its own, where context variables of the run are not set: hence one listener for the
# process, and the lock that lets one run at a time have it. The inner of two nested runs captures its own prints.
_lock = threading.RLock()
_listeners: list[_Listener] = []


@contextlib.contextmanager
def hearing_prints(prints: list[Print], *, silently: bool = False) -> Iterator[None]:
    """Append a record for every value that JAX prints inside the block, in order.

    ``silently``: do not write the prints, since an earlier run has.
    """
    debugging = jax_module(_MODULE)
    own_programs = jax_module("jax.experimental.xla_metadata").set_xla_metadata(nkitools="run")
    with _lock, own_programs:
        before = getattr(debugging, _HOOK)
        write = _listeners[-1].write if _listeners else before
        _listeners.append(_Listener(prints, _say_nothing if silently else write))
        setattr(debugging, _HOOK, _on_print)
        try:
            yield
        finally:
            setattr(debugging, _HOOK, before)
            _listeners.pop()


def _say_nothing(*_: Any, **__: Any) -> None:
    """Write no print."""


def prints_can_be_heard() -> bool:
    """Return whether this JAX has the known function that formats prints."""
    try:
        hook = getattr(jax_module(_MODULE), _HOOK)
    except (ImportError, AttributeError):
        return False
    return list(inspect.signature(hook).parameters) == _HOOK_PARAMETERS


def _on_print(
    fmt: str,
    np_printoptions: tuple[tuple[str, Any], ...],
    has_placeholders: bool,
    logging_record: Any,
    *args: Any,
    **kwargs: Any,
) -> None:
    """Stands in for JAX's function in compiled programs, so it is one function for all runs."""
    hear((fmt, np_printoptions, has_placeholders, logging_record), args, kwargs)


def hear(form: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], **where: Any) -> None:
    """Write and keep a print of JAX: ``form`` are its formatter's arguments, ``where`` program, file and line."""
    fmt, _, has_placeholders, _ = form
    if not _listeners:  # a callback that came after its run
        write = getattr(jax_module(_MODULE), _HOOK)
        write(*form, *args, **kwargs)
        return
    listener = _listeners[-1]
    listener.write(*form, *args, **kwargs)
    values = _filled_in(fmt, args, kwargs) if has_placeholders else _appended(fmt, args)
    listener.prints.extend(_record(label, value, where) for label, value in values)


def _record(label: str, value: Shaped | tuple[()], where: dict[str, Any]) -> Print:
    array = np.array(value)  # a copy: JAX may use the buffer again
    return Print(label, array, array.shape, str(array.dtype), **where)


def _filled_in(template: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the values in the placeholders, each with the text before it: ``"m {} n {}"`` gives the labels m and n."""
    automatic = iter(args)
    values = []
    before = ""
    for text, name, _, _ in string.Formatter().parse(template):
        before += text
        if name is not None:  # None ends a piece at an escaped brace
            values.append((_label(before), _lookup(name, automatic, args, kwargs)))
            before = ""
    return values


def _appended(template: str, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Return the values after a text without placeholders, which labels them all; a text alone has one empty value."""
    return [(_label(template), value) for value in args] or [(_label(template), ())]


def _label(text: str) -> str:
    """Return the text before a value, without separators after the value before."""
    return text.strip().lstrip(",;").lstrip()


def _lookup(name: str, automatic: Iterator[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the value of a placeholder: ``{}`` and ``{0}`` by position, ``{x}`` and ``{x.shape}`` by keyword."""
    first = re.split(r"[.\[]", name, maxsplit=1)[0]
    if not first:
        return next(automatic)
    return args[int(first)] if first.isdigit() else kwargs[first]
