"""Every name of JAX that is private and that nkitools stands on.

JAX has no public way to hear prints, to watch the memory of an interpreted TPU, or to list what its TPU lowering knows.
What is used of its inside is named here and nowhere else. ``MARKS`` says what each name must look like; ``moved`` says
which do not in the JAX that is installed, and the part of a check that stands on them is then left out, with the
reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple

from nkitools.pallas.imports import jax_module

_INTERPRET = "jax._src.pallas.mosaic.interpret"
INTERPRETER = f"{_INTERPRET}.interpret_pallas_call"
SHARED_MEMORY = f"{_INTERPRET}.shared_memory"
RACES = f"{_INTERPRET}.race_detection_state"
VECTOR_CLOCK = f"{_INTERPRET}.vector_clock"
LOWERING = "jax._src.pallas.mosaic.lowering"
PALLAS_CORE = "jax._src.pallas.core"
PALLAS_CALL = "jax._src.pallas.pallas_call"
DEBUGGING = "jax._src.debugging"
SOURCES = "jax._src.source_info_util"
CALLBACK = "jax._src.callback"


class Mark(NamedTuple):
    """A private name: where it is, the parameters or fields that must be among its own, and which part needs it."""

    module: str
    name: str
    has: tuple[str, ...]
    part: str


PRINTS = "device prints"
GRID_PRINTS = "grid points of device prints"
WATCH = "watching TPU interpretation"
STATIC = "the source lines of a kernel"
CALLS = "compiling what was seen while it ran"
PRIMITIVES = "the list of primitives that have a TPU lowering"

MARKS = (
    Mark(
        DEBUGGING,
        "_format_print_callback",
        ("fmt", "np_printoptions", "has_placeholders", "logging_record", "args", "kwargs"),
        PRINTS,
    ),
    Mark(DEBUGGING, "debug_print_p", (), GRID_PRINTS),
    Mark(DEBUGGING, "merge_callback_args", ("in_tree", "dyn_args", "static_args"), GRID_PRINTS),
    Mark(PALLAS_CORE, "current_grid_env", (), GRID_PRINTS),
    Mark(PALLAS_CORE, "GridAxis", ("index", "size"), GRID_PRINTS),
    Mark(INTERPRETER, "interpret_pallas_call", ("args", "jaxpr", "grid_mapping", "interpret_params"), WATCH),
    Mark(INTERPRETER, "RaceDetectionState", ("races_found",), WATCH),
    Mark(INTERPRETER, "_check_for_revisiting", ("output_blocks",), WATCH),
    Mark(INTERPRETER, "DMA", ("id", "source_info", "state"), WATCH),
    Mark(INTERPRETER, "DmaState", (), WATCH),
    Mark(INTERPRETER, "memory", (), WATCH),
    Mark(SHARED_MEMORY, "SharedMemory", ("num_devices", "num_cores_per_device", "detect_races"), WATCH),
    Mark(SHARED_MEMORY, "Semaphore", ("shared_memory", "semaphore_id"), WATCH),
    Mark(VECTOR_CLOCK, "ordered", (), WATCH),
    Mark(SOURCES, "user_frames", (), STATIC),
    Mark(SOURCES, "current", (), GRID_PRINTS),
    Mark(LOWERING, "lowering_rules", (), PRIMITIVES),
    Mark(PALLAS_CALL, "pallas_call_p", (), CALLS),
)

# Methods that the watching memory overrides, with the parameters that it is called with.
METHODS = {
    "allocate_buffer": ("key", "ref_count", "value", "logging_info"),
    "get_buffer_content": ("key", "rnge", "global_core_id", "logging_info"),
    "store_buffer_content": ("key", "rnge", "value", "global_core_id", "logging_info"),
    "swap_buffer_content": ("key", "rnge", "value", "mask", "global_core_id", "logging_info"),
    "append_semaphore_task": ("semaphore_id", "global_core_id", "task"),
    "get_sempahores_with_nonzero_count": ("device_id",),
}


def of(module: str, name: str) -> Any:
    """The private ``name`` of JAX's ``module``."""
    return getattr(jax_module(module), name)


@cache
def moved(part: str) -> str:
    """What the installed JAX has otherwise than ``part`` needs it, in words; empty where everything is as known."""
    found = [sentence for mark in MARKS if mark.part == part and (sentence := _otherwise(mark))]
    if part == WATCH and not found:
        found = list(_other_methods())
    return f"jax {jax_module().__version__}: " + "; ".join(found) if found else ""


def _otherwise(mark: Mark) -> str:
    where = f"{mark.module}.{mark.name}"
    try:
        thing = of(mark.module, mark.name)
    except (ImportError, AttributeError):
        return f"{where} is not there"
    missing = [name for name in mark.has if name not in _names(thing)]
    return f"{where} has no {', '.join(missing)}" if missing else ""


def _names(thing: Any) -> Iterable[str]:
    if is_dataclass(thing):
        return [each.name for each in fields(thing)]
    return inspect.signature(thing).parameters


def _other_methods() -> Iterable[str]:
    kind = of(SHARED_MEMORY, "SharedMemory")
    for name, wanted in METHODS.items():
        method: Callable[..., Any] | None = getattr(kind, name, None)
        if method is None:
            yield f"{SHARED_MEMORY}.SharedMemory.{name} is not there"
            continue
        missing = [each for each in wanted if each not in inspect.signature(method).parameters]
        if missing:
            yield f"{SHARED_MEMORY}.SharedMemory.{name} has no {', '.join(missing)}"
