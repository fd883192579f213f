"""The limits of JAX's interpreters, as opposed to the errors of an author's function."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from nkitools.pallas import jax_internals, source_places
from nkitools.pallas.calls import equations
from nkitools.pallas.chips import ACCUMULATORS, SPARSE_CORES, Part
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import ClosedJaxpr
from nkitools.pallas.lowering import first_sentences
from nkitools.pallas.whole_function import OVER_MESH

# The files of JAX that interpret a kernel or lower it for the CPU. While a function is traced none of them runs.
_INTERPRETERS = re.compile(
    r"[\\/]jax[\\/]_src[\\/](interpreters[\\/]mlir|pallas[\\/](hlo_interpreter|mosaic(_gpu)?[\\/]interpret))"
)
REMOTE_COPIES = "JAX has no plain interpretation of copies to other devices"
# What a callback's error looks like after it has come through XLA.
_FILE = re.compile(r'File "([^"]+)", line \d+')


@contextlib.contextmanager
def whole_tracebacks() -> Iterator[None]:
    """Keep JAX's frames in tracebacks, hidden from pytest: they show the origin of an error."""
    config = jax_module().config
    before = config.jax_traceback_filtering
    config.update("jax_traceback_filtering", "tracebackhide")
    try:
        yield
    finally:
        config.update("jax_traceback_filtering", before)


def limit(error: BaseException) -> str:
    """Return in words what an interpreter cannot do; '' if the error is the function's own.

    The error must come from inside :func:`whole_tracebacks`.
    """
    return _in_words(error) if _is_interpreters(error) else ""


def _is_interpreters(error: BaseException) -> bool:
    """Return whether an error began in JAX's interpreters, or in code that they compile for the CPU."""
    if type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError"):
        files = _FILE.findall(str(error))
        return not (files and source_places.is_authors(files[-1]) and "site-packages" not in files[-1])
    own: BaseException | None = error
    while own is not None:
        if any(_INTERPRETERS.search(frame.filename) for frame in traceback.extract_tb(own.__traceback__)):
            return True
        own = own.__cause__
    return False


def _in_words(error: BaseException) -> str:
    """Return the name of the operation that JAX does not interpret, if the error has one; else the error's words."""
    text = str(error)
    for pattern, sentence in _NOT_INTERPRETED:
        found = re.search(pattern, text)
        if found is not None:
            return found.expand(sentence)
    return f"{type(error).__name__}: {_telling_line(error)}"


_IN_HOST_MEMORY = "JAX has no interpretation of a kernel together with arrays in host memory (jax.device_put)"
_NOT_INTERPRETED = (
    (r"safe_zip\(\) argument 1 has length \d+ but argument 0 has length \d+.*\(\d+, \d+, \d+\)", _IN_HOST_MEMORY),
    (r"memory_space of all inputs passed to `\w+` must be the same.*<host>", _IN_HOST_MEMORY),
    (r"MLIR translation rule for primitive '(\w+)' not found for platform cpu", r"JAX has no interpretation of `\1`"),
    (r"No state discharge rule implemented for primitive: (\w+)", r"JAX has no interpretation of `\1`"),
    (r"AccMemorySpace\(mxu_id=(\d+)\)", r"JAX has no interpretation of accumulators (pltpu.ACC(\1))"),
    (r"<MemorySpace\.(\w+): '\w+'>", r"JAX has no interpretation of \1 memory"),
    (
        r"Unsupported memory space: (\w+)@\w+",
        r"JAX has no interpretation of \1 memory that is allocated outside of the kernel",
    ),
)


def _telling_line(error: BaseException) -> str:
    """Return the message of an error; if it came through XLA, the line with the callback's message."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return first_sentences(lines[-1] if "CpuCallback" in lines[0] else str(error))


def gpu_language(closed_jaxpr: ClosedJaxpr) -> str:
    """Return the GPU language of a function's first kernel for GPUs; '' if it has none.

    The modules of the classes of its parameters, memory spaces and meshes show the language.
    """
    for equation in equations(closed_jaxpr.jaxpr):
        if equation.primitive.name in ("pallas_call", *OVER_MESH):
            params = equation.params
            kernel = jax_internals.first_kernel(params)
            spaces = [getattr(var.aval, "memory_space", None) for var in kernel.invars]
            things = [params.get("compiler_params"), *jax_internals.meshes_of(params), *spaces]
            modules = " ".join(type(each).__module__ for each in things)
            for module, language in _GPU_LANGUAGES.items():
                if module in modules:
                    return language
    return ""


def moves_between_memories(closed_jaxpr: ClosedJaxpr) -> bool:
    """Return whether a function copies an array to or from host memory (``jax.device_put``)."""
    spaces = {
        str(getattr(var.aval, "memory_space", "")).rpartition(".")[2].lower()
        for equation in equations(closed_jaxpr.jaxpr)
        if equation.primitive.name == "device_put"
        for var in (*equation.invars, *equation.outvars)
    }
    return "host" in spaces


_GPU_LANGUAGES = {"pallas.mosaic_gpu": "Mosaic GPU", "pallas.triton": "Triton"}


def lacking(error: BaseException) -> Part | None:
    """Return the hardware part that a kernel needs and its chip lacks; None if the error is about something else."""
    said = str(error) if isinstance(error, RuntimeError | ValueError) else ""
    return next((part for pattern, part in _LACKING.items() if pattern in said), None)


_LACKING = {"does not have SparseCores": SPARSE_CORES, "Accumulators are not available on TPU": ACCUMULATORS}


@dataclass(frozen=True)
class Meshes:
    """The meshes of cores that a function's kernels run over, which interpreters support in part.

    ``kinds``: class names of ``pl.kernel``'s meshes. ``in_place``: whether ``pl.core_map`` has one.
    """

    kinds: tuple[str, ...] = ()
    in_place: bool = False

    @classmethod
    def of(cls, closed_jaxpr: ClosedJaxpr) -> Meshes:
        """Return the meshes in a traced function."""
        over = [each for each in equations(closed_jaxpr.jaxpr) if each.primitive.name in OVER_MESH]
        kinds = [type(mesh) for each in over for mesh in jax_internals.meshes_of(each.params)]
        names = tuple(dict.fromkeys(kind.__name__ for kind in kinds))
        return cls(names, any(each.primitive.name == "core_map" for each in over))

    @property
    def not_interpreted(self) -> str:
        """Return why no interpreter runs the function: JAX takes one subcore of a SparseCore for all of them."""
        sparse = [kind for kind in self.kinds if "Subcore" in kind]
        return f"JAX interprets no SparseCores ({', '.join(sparse)}); its compiler alone was asked" if sparse else ""

    @property
    def not_plainly(self) -> str:
        """Return why plain interpretation gives no outputs (it drops in-place writes of ``pl.core_map``); '' if it
        does.
        """
        return "plain interpretation loses what pl.core_map writes" if self.in_place else ""
