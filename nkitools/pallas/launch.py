"""Runs a JAX function with Pallas calls on the CPU."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.pallas import jax_internals
from nkitools.pallas.calls import compiling_for
from nkitools.pallas.chips import CHIPS, DEFAULT, Chip
from nkitools.pallas.detect_pallas import is_pallas_function
from nkitools.pallas.device_kinds import simulated_kinds
from nkitools.pallas.grid_prints import placing_prints
from nkitools.pallas.imports import jax_module, refuse, without_jax_warnings
from nkitools.pallas.interpret import interpret_mode, interpreted
from nkitools.pallas.interpreter_limits import gpu_language
from nkitools.pallas.interrupts import ended_by_ctrl_c
from nkitools.pallas.jax_types import Argument
from nkitools.pallas.prints import UnheardPrints, hearing_prints, prints_can_be_heard
from nkitools.pallas.reported_races import Races, gpu_mode, reporting_races
from nkitools.record.prints.device_print import Print
from nkitools.record.run import Run
from nkitools.record.run_session import session

TARGET = "pallas-interpret"


def run(fn: Callable[..., Any], /, *args: Argument, **kwargs: Argument) -> Run:
    """Run ``fn(*args, **kwargs)`` on the CPU, with every Pallas call that it makes interpreted.

    ``fn`` is any JAX function: jitted or not, a partial, a wrapper around several Pallas calls. It needs no
    ``interpret`` argument. If it has one that is an ``InterpretParams`` (of TPUs or GPUs), its calls are interpreted by
    it; otherwise plainly, and Mosaic GPU kernels by JAX's interpreter of GPUs. Races that such parameters detect are
    findings (PL203), not exceptions; no other rule is checked (`check` does). Only Pallas calls whose
    ``pl.pallas_call(...)`` is called during the run are interpreted. A function that asks for its chip
    (``pltpu.get_tpu_info``, ``pltpu.emit_pipeline``) gets v5e, unless its mesh has another one.

    ``.outputs`` have the structure that ``fn`` returns. They are NumPy arrays, or JAX arrays if one argument is a JAX
    array. Prints of ``jax.debug.print`` and ``pl.debug_print`` are written and kept in ``.prints``: one record for each
    value, with the text before it as prefix, the grid point as ``program``, file and line.

    Raises what ``fn`` raises, unchanged; ``TypeError`` for an object that cannot be called, and for a function that
    neither returns a JAX array nor names JAX; ``NotModelled`` (NK607) without JAX.
    """
    __tracebackhide__ = True
    if not callable(fn):
        raise TypeError(f"nkitools.pallas.run takes a JAX function and its arguments, not a {type(fn).__name__}")
    mode = interpret_mode(fn, args, kwargs)
    result = Run(kernel=name_of(fn), target=TARGET, chip="")
    with without_jax_warnings(), session(result) as findings:
        with simulated_kinds(CHIPS[DEFAULT]), _prints_into(result):
            try:
                outputs, races = _interpreted_with_races(fn, args, kwargs, mode)
            except Exception:
                if mode is not True or not _is_for_mosaic_gpu(fn, args, kwargs):
                    raise
                outputs, races = _interpreted_with_races(fn, args, kwargs, _possible_gpu_mode())
        findings.add(races.values())
        _check_is_jax(fn, outputs)
    result.outputs = as_given(outputs, (args, kwargs))
    return result


def _interpreted_with_races(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], mode: object
) -> tuple[Any, Races]:
    __tracebackhide__ = True
    with reporting_races(mode) as races, interpreted(mode):
        return finished(fn, args, kwargs), races


def _is_for_mosaic_gpu(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a function that plain interpretation cannot run has kernels in Mosaic GPU."""
    try:
        return "Mosaic" in gpu_language(jax_module().make_jaxpr(lambda: fn(*args, **kwargs))())
    except Exception:  # the function's own error
        return False


def _possible_gpu_mode() -> object:
    """Return the mode for interpreting a Mosaic GPU kernel; NotModelled (NK607) if the installed JAX has none."""
    mode = gpu_mode()
    if mode is None:
        refuse(
            "the kernel is for GPUs (Mosaic GPU), and JAX's interpreter of GPUs is not there: "
            f"{jax_internals.moved(jax_internals.GPU)}",
            "Install absl-py, which that interpreter takes, and a jax that nkitools knows (nkitools doctor).",
        )
    return mode


def interpreted_outputs(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Run,
    chip: Chip,
    mode: object,
    *,
    silently: bool,
) -> Any:
    """Return the outputs of ``fn``, interpreted by ``mode`` (True: plainly) as if for ``chip``.

    ``silently``: do not capture prints again. Exceptions of ``fn`` pass through; TypeError for a function without JAX.
    """
    __tracebackhide__ = True
    prints = listening(None) if silently else _prints_into(result)
    with compiling_for(chip), interpreted(mode), prints:
        outputs = finished(fn, args, kwargs)
    _check_is_jax(fn, outputs)
    return outputs


def sees_tpu(left_out: dict[str, str]) -> bool:
    """Return whether JAX sees a TPU; if not, note in ``left_out`` the platforms that it does see."""
    platforms = sorted({str(device.platform) for device in jax_module().devices()})
    if "tpu" not in platforms:
        left_out["device"] = f"no TPU: jax.devices() has {', '.join(platforms)} only"
    return "tpu" in platforms


def device_outputs(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``fn`` on the TPU that JAX sees and return its outputs.

    A failing ``pl.debug_check`` ends the kernel, and scratch memory begins as NaN.
    """
    with contextlib.ExitStack() as stack:
        for switch in jax_internals.device_checks():
            stack.enter_context(switch(True))
        stack.enter_context(jax_module().default_device(tpu()))
        return finished(fn, args, kwargs)


def tpu() -> Any:
    """Return the first TPU."""
    return jax_module().devices("tpu")[0]


def listening(prints: list[Print] | None) -> contextlib.AbstractContextManager[Any]:
    """Return a context that captures prints with their grid points in a list; without a list it drops them."""
    if not prints_can_be_heard():
        return contextlib.nullcontext()
    stack = contextlib.ExitStack()
    stack.enter_context(hearing_prints([] if prints is None else prints, silently=prints is None))
    stack.enter_context(placing_prints())
    return stack


def as_given(outputs: Argument, arguments: Argument) -> Any:
    """Return the outputs as JAX arrays if one of the arguments is one, else as NumPy arrays."""
    return outputs if _has_jax_array(arguments) else _to_numpy(outputs)


def _prints_into(result: Run) -> contextlib.AbstractContextManager[Any]:
    """Return a context that captures the prints of a run, if this JAX allows it."""
    if prints_can_be_heard():
        return listening(result.prints)
    result.prints = unheard = UnheardPrints()
    result.findings.append(unheard.warning())
    return contextlib.nullcontext()


def finished(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``fn`` and return its outputs after they are computed and all callbacks have run, also if ``fn`` fails."""
    jax = jax_module()
    jax_internals.forget_failed_callbacks()  # the caller's own
    try:
        args, kwargs = jax.tree_util.tree_map(_not_to_be_donated, (args, kwargs))
        with ended_by_ctrl_c(name_of(fn)):
            outputs = jax.block_until_ready(fn(*args, **kwargs))
        jax.effects_barrier()
    except BaseException:
        jax_internals.forget_failed_callbacks()  # the first error counts
        raise
    return outputs


def _not_to_be_donated(leaf: Argument) -> Any:
    """Return a copy of a JAX array: a function that its arguments are donated to deletes them, and runs repeatedly."""
    return leaf.copy() if isinstance(leaf, jax_module().Array) else leaf


def _check_is_jax(fn: Callable[..., Any], outputs: Argument) -> None:
    """Refuse a function that used no JAX: it ran, but no Pallas kernel did."""
    if not _has_jax_array(outputs) and not is_pallas_function(fn):
        raise TypeError(
            f"`{name_of(fn)}` returned no JAX array and names nothing of JAX, so nothing of it ran as a Pallas kernel. "
            "Give nkitools.pallas.run the function that calls pl.pallas_call; an NKI kernel goes to nkitools.simulate."
        )


def _has_jax_array(tree: Argument) -> bool:
    jax = jax_module()
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(tree))


def _to_numpy(outputs: Argument) -> Any:
    """Return the same structure with NumPy arrays, writable, in place of JAX's."""
    jax = jax_module()
    return jax.tree_util.tree_map(lambda leaf: np.array(leaf) if isinstance(leaf, jax.Array) else leaf, outputs)


def name_of(fn: Callable[..., Any]) -> str:
    """Return the name of the author's function."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))
