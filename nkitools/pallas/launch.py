"""Runs a JAX function with Pallas calls on the CPU and says what happened."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.pallas.imports import jax_module
from nkitools.pallas.interpret import interpret_mode, interpreted
from nkitools.pallas.prints import UnheardPrints, hearing_prints, prints_can_be_heard
from nkitools.pallas.recognise import is_pallas_function
from nkitools.record.collect import announce
from nkitools.record.run import Run

TARGET = "pallas-interpret"


def run(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Run:
    """Run ``fn(*args, **kwargs)`` on the CPU, with every Pallas call that it makes interpreted.

    ``fn`` is any JAX function: jitted or not, a partial, a wrapper around several Pallas calls. It needs no
    ``interpret`` argument; where it has one that is an ``InterpretParams``, all its calls are interpreted so, otherwise
    plainly. A Pallas call is reached only if ``pl.pallas_call(...)`` itself is called during the run.

    NumPy arrays in give NumPy arrays out, in the structure that ``fn`` returns; as soon as one argument is a JAX array,
    the outputs stay JAX arrays. What ``jax.debug.print`` and ``pl.debug_print`` say is printed and kept in ``.prints``:
    one record a value, with the text before it as prefix; interpretation does not tell the grid point, file or line.

    Raises what ``fn`` raises, unchanged; ``TypeError`` for what is not a JAX function; ``NotModelled`` (NK607) without
    JAX.
    """
    __tracebackhide__ = True
    if not callable(fn):
        raise TypeError(f"nkitools.pallas.run takes a JAX function and its arguments, not a {type(fn).__name__}")
    mode = interpret_mode(fn, args, kwargs)
    result = Run(kernel=_name(fn), target=TARGET, chip="")
    announce(result)
    try:
        with interpreted(mode), _prints_into(result):
            outputs = _finished(fn, args, kwargs)
        _check_is_jax(fn, outputs)
    except BaseException as error:
        result.error = error
        raise
    result.outputs = outputs if _has_jax_array((args, kwargs)) else _to_numpy(outputs)
    return result


def _prints_into(result: Run) -> contextlib.AbstractContextManager[None]:
    """Listens for the prints of a run, where this JAX lets itself be listened to."""
    if prints_can_be_heard():
        return hearing_prints(result.prints)
    result.prints = unheard = UnheardPrints()
    result.findings.append(unheard.warning())
    return contextlib.nullcontext()


def _finished(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``fn`` returns, once it is computed and every callback has been made, in success and in failure."""
    jax = jax_module()
    try:
        outputs = jax.block_until_ready(fn(*args, **kwargs))
    except BaseException:
        with contextlib.suppress(Exception):  # a callback that failed fails here again; the first error speaks
            jax.effects_barrier()
        raise
    jax.effects_barrier()
    return outputs


def _check_is_jax(fn: Callable[..., Any], outputs: Any) -> None:
    """Refuse a function that showed nothing of JAX: it ran, but no Pallas kernel did."""
    if not _has_jax_array(outputs) and not is_pallas_function(fn):
        raise TypeError(
            f"`{_name(fn)}` returned no JAX array and names nothing of JAX, so nothing of it ran as a Pallas kernel. "
            "Give nkitools.pallas.run the function that calls pl.pallas_call; an NKI kernel goes to nkitools.simulate."
        )


def _has_jax_array(tree: Any) -> bool:
    jax = jax_module()
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(tree))


def _to_numpy(outputs: Any) -> Any:
    """The same structure with NumPy arrays, writable, in place of JAX's."""
    jax = jax_module()
    return jax.tree_util.tree_map(lambda leaf: np.array(leaf) if isinstance(leaf, jax.Array) else leaf, outputs)


def _name(fn: Callable[..., Any]) -> str:
    """The name of the author's function."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))
