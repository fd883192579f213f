"""Launches under the option ``watch``: what it names is recorded in every run, by whatever way in."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from nkitools.facts import options
from nkitools.record.run import Run

_P = ParamSpec("_P")


def probed(launch: Callable[Concatenate[Any, _P], Run]) -> Callable[Concatenate[Any, _P], Run]:
    """Let a function that runs a launch record what the option names; without the option it is called as it is."""

    @wraps(launch)
    def launched(what: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> Run:
        __tracebackhide__ = True
        watch = options.value("watch")
        if not watch:
            return launch(what, *args, **kwargs)
        from nkitools.record.watch.probes import probing

        with probing(watch, of_option=True):
            return launch(what, *args, **kwargs)

    return launched
