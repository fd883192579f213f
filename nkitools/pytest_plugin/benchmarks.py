"""Measurements of the process for hardware tests, handed to pytest-benchmark in this process, which shows and saves
them.

pytest-benchmark has no public way to add a measurement that was made elsewhere. The private names that are used stand
in this file, and a test names the one that another release has moved.
"""

from __future__ import annotations

import pickle
import sys
from functools import partial, reduce
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel
    from nkitools.record.time_estimate import Estimate

_CALLS = pytest.StashKey[dict[str, "Call"]]()
_OF_THE_FIXTURE = ("name", "fullname", "group", "param", "params", "extra_info", "cprofile_stats")


def estimated(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the estimated time of a kernel as a part of a sentence, or why there is none.

    The kernel runs on copies and without rules, and no session collects its run. The Pallas calls of a JAX function do
    not run: the TPU compiler estimates them for the first chip of the option ``pallas_chips``.
    """
    from nkitools.pallas import is_pallas_function
    from nkitools.report.estimate_text import us

    if is_pallas_function(kernel):
        return _estimated_pallas(kernel, args, kwargs)
    try:
        found = _estimate(kernel, args, kwargs)
    except Exception as error:  # the test is skipped whatever its kernel does
        return f"it could not be estimated: {error}"
    return f"estimated {us(found.latency_us)} on {found.chip} ({us(found.lower_us)} to {us(found.upper_us)})"


def _estimate(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Estimate:
    from nkitools.facts import options
    from nkitools.precision.runs import copied
    from nkitools.targets import simulator_for

    own, named = copied((args, kwargs))
    run = options.call_alone(partial(simulator_for(kernel).run, kernel, *own, **{**named, "rules": "off"}))
    return run.estimate()


class Call(NamedTuple):
    """A call that was timed in the process for hardware tests, for an estimate in this one."""

    module: str
    """The module of the kernel, which is imported here too, with nkitools' stand-in."""
    name: str
    """The kernel's qualified name."""
    chip: str
    """The chip that it was timed on."""
    arguments: Any
    """The arguments and the keywords, arrays as NumPy has them."""


def remember_call(
    config: pytest.Config, benchmark: Any, chip: str, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Keep a call that was timed on a NeuronCore until the other process fetches it with the measurement."""
    from nkitools.launch.frameworks import framework_of
    from nkitools.launch.nested_arguments import mapped
    from nkitools.targets.neuron_time import as_numpy
    from nkitools.targets.target import function_of

    function = function_of(kernel)
    name = str(getattr(function, "__qualname__", ""))
    if benchmark.extra_info.get("target") != "neuron" or not name:  # a module is no kernel, nor is a C++ operator
        return
    given = mapped((args, kwargs), lambda value: value if framework_of(value) is None else as_numpy(value))
    calls = config.stash.setdefault(_CALLS, {})
    calls[benchmark.fullname] = Call(str(getattr(function, "__module__", "")), name, chip, given)


def _beside(call: Call) -> dict[str, Any]:
    """Return the estimate of a timed call for ``extra_info``, or the reason if there is none."""
    try:
        kernel: Any = reduce(getattr, call.name.split("."), sys.modules[call.module])
        args, kwargs = call.arguments
        found = _estimate(kernel, args, {**kwargs, "chip": call.chip or None})
    except Exception as error:  # any: the measurement stands whatever its kernel does in simulation
        return {"estimate": f"none: {error}"}
    return {
        "estimate_seconds": found.latency_us / 1e6,
        "estimate_lower_seconds": found.lower_us / 1e6,
        "estimate_upper_seconds": found.upper_us / 1e6,
    }


def _estimated_pallas(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    from nkitools import pallas
    from nkitools.facts import options
    from nkitools.report.estimate_text import us

    chip = str(options.value("pallas_chips")).partition(",")[0].strip()
    try:
        found = pallas.estimate(kernel, *args, chips=chip, **kwargs)
    except Exception as error:  # the test is skipped whatever its kernel does
        return f"it could not be estimated: {error}"
    latency = found.latency_us(chip)
    if latency is None:
        reasons = [each.left_out for each in found.kernels] or ["the function makes no Pallas call"]
        return f"it could not be estimated: {reasons[0]}"
    return f"estimated {us(latency)} on {chip} by the TPU compiler's static profile (Pallas calls alone)"


def count_as_used(benchmark: Any) -> None:
    """Of a fixture whose kernel failed before it could be timed pytest-benchmark would warn that it was not used."""
    benchmark._mode = benchmark._mode or "not timed"


def measured(config: pytest.Config) -> list[dict[str, Any]]:
    """Return the measurements of this session so far, as plain data."""
    session = getattr(config, "_benchmarksession", None)
    calls = config.stash.get(_CALLS, {})
    return [] if session is None else [_as_plain(each, calls.get(each.fullname)) for each in session.benchmarks]


def replay(config: pytest.Config, measurements: list[dict[str, Any]]) -> None:
    """Add measurements of another process to this session's."""
    session = getattr(config, "_benchmarksession", None)
    if session is None or not measurements:
        return
    from pytest_benchmark import stats

    made: Any = stats.Metadata
    for plain in measurements:
        fixture = SimpleNamespace(**plain["fixture"], has_error=plain["has_error"])
        if plain["call"] is not None:
            fixture.extra_info.update(_beside(plain["call"]))
        metadata = made(fixture, iterations=plain["iterations"], options=plain["options"])
        for seconds in plain["seconds"]:
            metadata.update(seconds)
        session.benchmarks.append(metadata)


def _as_plain(metadata: Any, call: Call | None) -> dict[str, Any]:
    return {
        "call": call if call is not None and _can_be_sent(call) else None,
        "fixture": {name: _sendable(getattr(metadata, name, None)) for name in _OF_THE_FIXTURE},
        "has_error": metadata.has_error,
        "iterations": metadata.iterations,
        "options": {name: getattr(value, "__name__", value) for name, value in metadata.options.items()},
        # As they came from the timer: `Metadata.update` divides by the iterations.
        "seconds": [seconds * metadata.iterations for seconds in metadata.stats.data],
    }


def _can_be_sent(call: Call) -> bool:
    try:
        pickle.dumps(call)
    except Exception:  # any: what an author's object raises
        return False
    return True


def _sendable(value: Any) -> Any:
    """Return a value as another process can take it: parameters of a test may be anything."""
    if isinstance(value, dict):
        return {name: _sendable(each) for name, each in value.items()}
    return value if isinstance(value, (str, int, float, bool, list, tuple, type(None))) else repr(value)


class Suspects:
    """Says of measurements that no chip can make that they are wrong: a table alone would be believed."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Print one line for each suspect measurement."""
        for each in getattr(getattr(config, "_benchmarksession", None), "benchmarks", ()):
            suspect = each.extra_info.get("suspect")
            if suspect:
                terminalreporter.write_line(f"nki: {each.fullname}: suspect: {suspect}", yellow=True)
