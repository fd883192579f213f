"""Every private name of JAX that nkitools uses.

JAX has no public way to capture prints, to watch the memory of an interpreted TPU, or to list what its TPU lowering
accepts. This module alone uses private names. ``MARKS`` describes the form of each; ``moved`` lists those that differ
in the installed JAX, and the part of a check that uses them is then left out, with the reason. Differences between the
supported versions of JAX (0.10.2 to 0.12) are resolved here, by name and form.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, is_dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, cast

from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import Thread

_INTERPRET = "jax._src.pallas.mosaic.interpret"
INTERPRETER = f"{_INTERPRET}.interpret_pallas_call"
SHARED_MEMORY = f"{_INTERPRET}.shared_memory"
RACES = f"{_INTERPRET}.race_detection_state"
VECTOR_CLOCK = f"{_INTERPRET}.vector_clock"
INTERPRETER_RANGES = f"{_INTERPRET}.utils"
LOWERING = "jax._src.pallas.mosaic.lowering"
INDEXING = "jax._src.state.indexing"
PLAIN_INTERPRETER = "jax._src.pallas.hlo_interpreter"
PALLAS_CORE = "jax._src.pallas.core"
PALLAS_CALL = "jax._src.pallas.pallas_call"
TPU_INFO = "jax._src.pallas.mosaic.tpu_info"
CHECKIFY = "jax._src.checkify"
CALLBACK = "jax._src.callback"
DISPATCH = "jax._src.dispatch"
DEBUGGING = "jax._src.debugging"
SOURCES = "jax._src.source_info_util"
_OF_GPU = "jax._src.pallas.mosaic_gpu.interpret"
GPU_PARAMETERS = f"{_OF_GPU}.params"
GPU_INTERPRETER = f"{_OF_GPU}.interpret_pallas_call"
GPU_CALLBACKS = f"{_OF_GPU}.gpu_callbacks"


class Mark(NamedTuple):
    """A private name: its module, the parameters or fields that it must have, and the part of a check that needs it.

    A method's name has its class in front. ``before``: the name in an older, supported JAX.
    """

    module: str
    name: str
    has: tuple[str, ...]
    part: str
    before: Mark | None = None


PRINTS = "device prints"
GRID_PRINTS = "grid points of device prints"
WATCH = "watching TPU interpretation"
CHECKS = "the checks in a kernel"
KINDS = "the chip of a function's own mesh"
SHADOW = "the shadow in float32"
GPU = "interpreting Mosaic GPU kernels"
ANNOTATED = "accesses by references with annotations"
RESHAPED = "references under another shape"
PLACED = "operands that their author has placed in a memory"
COPIES = "copies of the values that the interpreter hands to callbacks"
STATIC = "the source lines of a kernel"
TOKENS = "forgetting callbacks that have failed"
CALLS = "compiling what was seen while it ran"
PRIMITIVES = "the list of primitives that have a TPU lowering"


def _memory(method: str, *has: str) -> Mark:
    """Return a method that the watching memory overrides, with the parameters that it is called with.

    A thread was a core of all devices, by its number, before it was a device and a core (0.11).
    """
    name = f"SharedMemory.{method}"
    older = tuple("global_core_id" if each == "thread" else each for each in has)
    return Mark(SHARED_MEMORY, name, has, WATCH, Mark(SHARED_MEMORY, name, older, WATCH) if older != has else None)


def _check(method: str) -> Mark:
    """Return a method of the race detector to override, as above, with device and core as two parameters."""
    name, rest = f"RaceDetectionState.{method}", ("clock", "buffer_key", "rnge", "source_info")
    older = Mark(RACES, name, ("device_id", "local_core_id", *rest), WATCH)
    return Mark(RACES, name, ("thread", *rest), WATCH, before=older)


MARKS = (
    Mark(
        DEBUGGING,
        "_format_print_callback",
        ("fmt", "np_printoptions", "has_placeholders", "logging_record", "args", "kwargs"),
        PRINTS,
    ),
    Mark(DEBUGGING, "debug_print_p", (), GRID_PRINTS),
    Mark(DEBUGGING, "merge_callback_args", ("in_tree", "dyn_args", "static_args"), GRID_PRINTS),
    Mark(CALLBACK, "io_callback_impl", ("args", "result_avals", "callback", "sharding", "ordered"), COPIES),
    Mark(DISPATCH, "runtime_tokens.clear", (), TOKENS),
    Mark(DISPATCH, "runtime_tokens.current_tokens", (), TOKENS),
    Mark(DISPATCH, "runtime_tokens.output_runtime_tokens", (), TOKENS),
    Mark(CHECKIFY, "check_p", (), CHECKS),
    Mark(TPU_INFO, "get_device_kind", (), KINDS),
    Mark(TPU_INFO, "get_num_device_cores", (), KINDS),
    Mark(TPU_INFO, "get_tpu_info.cache_clear", (), KINDS),
    Mark(PALLAS_CORE, "current_grid_env", (), GRID_PRINTS),
    Mark(PALLAS_CORE, "GridAxis", ("index", "size"), GRID_PRINTS),
    Mark(INTERPRETER, "interpret_pallas_call", ("args", "jaxpr", "grid_mapping", "interpret_params"), WATCH),
    Mark(INTERPRETER, "RaceDetectionState", ("races_found",), WATCH),
    Mark(INTERPRETER, "_check_for_revisiting", ("output_blocks",), WATCH),
    Mark(INTERPRETER, "DMA", ("id", "source_info", "state", "virtual_device_id", "clock"), WATCH),
    Mark(INTERPRETER, "DmaState", (), WATCH),
    Mark(INTERPRETER, "memory", (), WATCH),
    Mark(SHARED_MEMORY, "SharedMemory", ("num_devices", "num_cores_per_device", "detect_races"), WATCH),
    Mark(SHARED_MEMORY, "Semaphore", ("shared_memory", "semaphore_id"), WATCH),
    Mark(
        VECTOR_CLOCK,
        "NpVectorClock.ordered",
        ("other",),
        WATCH,
        before=Mark(VECTOR_CLOCK, "ordered", ("x", "y"), WATCH),
    ),
    Mark(
        SHARED_MEMORY,
        "SharedMemory.VectorClock",
        ("vector_clock_size",),
        WATCH,
        before=Mark(VECTOR_CLOCK, "make_vector_clock", ("vector_clock_size",), WATCH),
    ),
    _check("check_read"),
    _check("check_write"),
    _memory("allocate_buffer", "key", "ref_count", "value", "logging_info"),
    _memory("get_buffer_content", "key", "rnge", "thread", "logging_info"),
    _memory("store_buffer_content", "key", "rnge", "value", "thread", "logging_info"),
    _memory("swap_buffer_content", "key", "rnge", "value", "mask", "thread", "logging_info"),
    _memory("check_failed"),
    _memory("get_random_virtual_device_id"),
    _memory("get_semaphores_and_increment_clock", "sem_ids", "global_core_id"),
    _memory("append_semaphore_task", "semaphore_id", "global_core_id", "task"),
    _memory("get_sempahores_with_nonzero_count", "device_id"),
    Mark(INTERPRETER_RANGES, "to_range", ("transforms",), ANNOTATED),
    Mark(INTERPRETER, "remove_memory_space_p.abstract_eval", (), PLACED),
    Mark(INTERPRETER, "get", ("device_id", "local_core_id", "memory_space", "buffer_id", "transforms"), RESHAPED),
    Mark(INTERPRETER, "store", ("memory_space", "buffer_id", "transforms", "val"), RESHAPED),
    Mark(INTERPRETER, "swap", ("memory_space", "buffer_id", "transforms", "val", "mask"), RESHAPED),
    Mark(INTERPRETER, "TPU_MEMORY_SPACE_NAMES", (), RESHAPED),
    Mark(INTERPRETER, "_local_core_id_or_zero_if_hbm", ("local_core_id", "memory_space"), RESHAPED),
    Mark(INDEXING, "NDIndexer", ("indices", "shape", "int_indexer_shape"), RESHAPED),
    Mark(SOURCES, "user_frames", (), STATIC),
    Mark(SOURCES, "current", (), GRID_PRINTS),
    Mark(LOWERING, "lowering_rules", (), PRIMITIVES),
    Mark(PALLAS_CALL, "pallas_call_p", (), CALLS),
    Mark(PLAIN_INTERPRETER, "pallas_call_hlo_interpret", ("args", "jaxpr", "grid_mapping"), SHADOW),
    Mark(GPU_PARAMETERS, "InterpretGPUParams", ("detect_races",), GPU),
    Mark(GPU_INTERPRETER, "reset_gpu_interpret_mode_state", (), GPU),
    Mark(
        GPU_CALLBACKS,
        "GPURaceDetectionState",
        ("races_found",),
        GPU,
        before=Mark(GPU_CALLBACKS, "RaceDetectionState", ("races_found",), GPU),
    ),
)


def of(module: str, name: str) -> Any:
    """Return the object with the private ``name`` in JAX's ``module``; a method's name has its class in front."""
    return attrgetter(name)(jax_module(module))


@cache
def moved(part: str) -> str:
    """Return in words how the installed JAX differs from what ``part`` needs; '' if it does not."""
    found = [sentence for mark in MARKS if mark.part == part and (sentence := _otherwise(mark))]
    return f"jax {jax_module().__version__}: " + "; ".join(found) if found else ""


def _otherwise(mark: Mark) -> str:
    said = _unlike(mark)
    return said if said and (mark.before is None or _unlike(mark.before)) else ""


def _unlike(mark: Mark) -> str:
    where = f"{mark.module}.{mark.name}"
    try:
        thing = of(mark.module, mark.name)
    except (ImportError, AttributeError):
        return f"{where} is not there"
    missing = [name for name in mark.has if name not in _names(thing)]
    return f"{where} has no {', '.join(missing)}" if missing else ""


def _names(thing: type | Callable[..., Any]) -> Iterable[str]:
    if is_dataclass(thing):
        return [each.name for each in fields(thing)]
    return inspect.signature(thing).parameters


@contextmanager
def bound_by(primitive: Any, bind: Callable[..., Any]) -> Iterator[None]:
    """Bind a primitive of JAX by ``bind`` inside the block; its first argument is the former function."""
    before = vars(primitive).get("bind")
    primitive.bind = partial(bind, primitive.bind)
    try:
        yield
    finally:
        if before is None:
            del primitive.bind
        else:
            primitive.bind = before


def scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """Return the numbers of constants and of carried values of a ``scan``, from the parameters of its equation."""
    if "num_consts" in params:  # before 0.11
        return int(params["num_consts"]), int(params["num_carry"])
    constants, carried, _ = params["ft_in"].unpack()
    return len(constants), len(carried)


def abstract_device(kind: str) -> Any:
    """Return the description of a TPU of that ``kind``."""
    return jax_module("jax.sharding").AbstractDevice(device_kind=kind, num_cores=1, platform="tpu")


def device_checks() -> list[Any]:
    """Return JAX's switches for checks within a kernel on a TPU and for poisoned scratch memory."""
    pallas = jax_module("jax.experimental.pallas")
    return [pallas.enable_debug_checks, pallas.enable_poison_buffers]


def first_kernel(params: Mapping[str, Any]) -> Any:
    """Return the jaxpr of a kernel, of several over meshes of cores the first, by the parameters of its equation."""
    return (params.get("jaxprs") or (params["jaxpr"],))[0]


def meshes_of(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the meshes of cores that a kernel runs over, by the parameters of its equation."""
    return tuple(params.get("meshes") or filter(None, (params.get("mesh"),)))


def forget_failed_callbacks() -> None:
    """Wait for the callbacks of earlier runs on this thread, and forget their errors.

    JAX keeps the errors, and each later run that waits for its own callbacks would raise them again.
    """
    if moved(TOKENS):
        return
    tokens = of(DISPATCH, "runtime_tokens")
    failed = False
    for token in [*tokens.current_tokens.values(), *tokens.output_runtime_tokens.values()]:
        try:
            token.block_until_ready()
        except Exception:
            failed = True
    if failed:
        tokens.clear()


def next_task(semaphore: Any, core: int) -> Callable[[], None] | None:
    """Take the last of the started DMAs of a core that signal a semaphore off its list; None if there is none."""
    with semaphore.cv:
        tasks: list[Callable[[], None]] = semaphore.tasks[core]
        return tasks.pop() if tasks else None


def gpu_parameters() -> Any:
    """Return the class of parameters for interpreting Mosaic GPU kernels, which is public since 0.11."""
    public = jax_module("jax.experimental.pallas.mosaic_gpu")
    return getattr(public, "InterpretGPUParams", None) or of(GPU_PARAMETERS, "InterpretGPUParams")


def is_gpu_mode(mode: object) -> bool:
    """Return whether ``mode`` has parameters for interpreting Mosaic GPU kernels; JAX's module is not imported."""
    return type(mode).__module__ == GPU_PARAMETERS


def forcing(mode: object) -> AbstractContextManager[Any]:
    """Return a context in which JAX interprets every Pallas call as ``mode`` says."""
    public = jax_module("jax.experimental.pallas.mosaic_gpu") if is_gpu_mode(mode) else None
    force = getattr(public, "force_gpu_interpret_mode", None)  # before 0.11 that of TPUs takes both
    force = force or jax_module("jax.experimental.pallas.tpu").force_tpu_interpret_mode
    return cast(AbstractContextManager[Any], force(mode))


def race_detector(of_gpu: bool) -> tuple[Any, str]:
    """Return the module that makes an interpreter's race detector, and the name of the class there."""
    if not of_gpu:
        return jax_module(INTERPRETER), "RaceDetectionState"
    module = jax_module(GPU_CALLBACKS)
    return module, "GPURaceDetectionState" if hasattr(module, "GPURaceDetectionState") else "RaceDetectionState"


def reset_interpreter(of_gpu: bool) -> None:
    """Let an interpreter forget the state of its last run."""
    module, name = (GPU_INTERPRETER, "gpu") if of_gpu else (INTERPRETER, "tpu")
    of(module, f"reset_{name}_interpret_mode_state")()


def are_ordered(clock: Any, other: Any) -> bool:
    """Return whether one of the moments that two vector clocks show happened before the other."""
    if hasattr(clock, "ordered"):
        return bool(clock.ordered(other))
    return bool(of(VECTOR_CLOCK, "ordered")(clock, other))  # before 0.11 clocks are arrays


def clock_functions(clock: type) -> dict[tuple[Any, str], Any]:
    """Return replacements for JAX's functions for vector clocks, with clocks of class ``clock``; {} since JAX 0.11.

    Since 0.11 clocks are objects, and the memory's attribute ``VectorClock`` is their class.
    """
    module = jax_module(VECTOR_CLOCK)
    if not hasattr(module, "make_vector_clock"):
        return {}
    return {
        (module, "make_vector_clock"): clock,
        (module, "copy_vector_clock"): lambda one: one if one is None else one.copy(),
        (module, "update_vector_clock"): lambda one, other: one.update(other),
        (module, "inc_vector_clock"): lambda one, position: one.inc(position),
    }


@contextmanager
def replaced(ours: Mapping[tuple[Any, str], Any]) -> Iterator[None]:
    """Replace members of modules inside the block, and restore them afterwards."""
    before = {(module, name): getattr(module, name) for module, name in ours}
    for (module, name), value in ours.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


def core_of(thread: Thread, cores_per_device: int) -> int:
    """Return the core within its device: of a device and a core, or of a number among the cores of all devices."""
    return int(thread[1]) if isinstance(thread, tuple) else int(thread) % cores_per_device


def access_of(*checked: Any) -> tuple[tuple[Any, Any], Any, Any, Any]:
    """Return the parts of an access for the race detector: thread (device and core), clock, buffer, ranges."""
    *thread, clock, buffer, ranges = checked
    device, core = _device_and_core(*thread)
    return (device, core), clock, buffer, getattr(ranges, "range", ranges)  # of a GPU since 0.11 with a permutation


def _device_and_core(*thread: Any) -> tuple[Any, Any]:
    if len(thread) == 2:
        return thread
    (one,) = thread
    return one if isinstance(one, tuple) else (one.device_id, 0)  # a GPU's threads are objects since 0.11
