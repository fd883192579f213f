"""Makes JAX run Pallas calls on the CPU; the kernel stays as it is."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nkitools.pallas import jax_internals
from nkitools.pallas.imports import jax_module

# JAX's message for a pallas_call without interpret (jax 0.10).
_NOT_INTERPRETED = "Only interpret mode is supported on CPU"

_BUILT_EARLY = (
    "nkitools: pallas_call reads the interpret mode when it builds its function, and this one was built before the run "
    "(at import, for example). Call pl.pallas_call(...) inside the function that is run, or give it interpret=True."
)


@contextlib.contextmanager
def interpreted(mode: object) -> Iterator[None]:
    """Interpret every Pallas call that is traced inside the block on the CPU, by ``mode`` (True or InterpretParams).

    The mode is part of the key under which ``jax.jit`` keeps its traces, so that no such trace is used outside.
    """
    jax = jax_module()
    cpu = jax.local_devices(backend="cpu")[0]
    with jax.default_device(cpu), jax_internals.forcing(mode):
        try:
            yield
        except ValueError as error:
            if _NOT_INTERPRETED in str(error):
                error.add_note(_BUILT_EARLY)
            raise


@contextlib.contextmanager
def compiled_quickly() -> Iterator[None]:
    """Let XLA leave out most optimizations: a small kernel that runs once takes longer to compile than to run."""
    config, name = jax_module().config, "jax_disable_most_optimizations"
    before = config.read(name)
    config.update(name, True)
    try:
        yield
    finally:
        config.update(name, before)


def interpret_mode(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """Return the mode to force: the function's own ``interpret`` argument if it has parameters, else True.

    Forcing overrides the function's own mode, and plain interpretation of a kernel that asked for TPU interpretation
    would miss mistakes that its author looks for.
    """
    own = _argument(fn, "interpret", args, kwargs)
    of_tpu = isinstance(own, jax_module("jax.experimental.pallas.tpu").InterpretParams)
    return own if of_tpu or jax_internals.is_gpu_mode(own) else True


def _argument(fn: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """Return the value of an argument of a call, given or default; None if the function lacks it or the call does not
    fit.
    """
    if name in kwargs:
        return kwargs[name]
    try:
        bound = inspect.signature(fn).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the call itself will say what is wrong with it
        return None
    bound.apply_defaults()
    return bound.arguments.get(name)
