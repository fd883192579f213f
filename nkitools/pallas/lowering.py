"""Lowers Pallas calls for a TPU, which JAX can do on any machine, and reports calls that JAX refuses."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from functools import cache

from nkitools.pallas import source_places
from nkitools.pallas.calls import Call, compiling_for, pallas_calls, placed_equations
from nkitools.pallas.chips import CHIPS, Chip
from nkitools.pallas.device_axes import Axes, abstract_mesh, on_every_device
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import Ref, Shaped
from nkitools.pallas.source_places import Place
from nkitools.rules.finding import Finding

# Messages of JAX's lowering and of the compiler with their rules. The first match counts.
_MEANINGS = (
    (r"Unimplemented primitive in Pallas TPU lowering", "PL104"),
    (r"last two dimensions of your block shape|rank 1 block\s+shapes|blocks of rank >= 1", "PL101"),
    (r"E2002|MisalignedBlockAndTiling", "PL102"),
    (r"E1001|VmemOom|memory space vmem|space=vmem|exceeded scoped vmem", "PL103"),
    (r"placeholders|debug_print|format string must|format specs or conversions|Signedness cannot be inferred", "PL302"),
    (r"not using a custom barrier", "PL209"),
    (r"matmul acc to be 32-bit|E2001|Unsupported\w*Type|Unsupported \w+ type|Invalid vector type", "PL105"),
    (r"failed to legalize operation 'arith[^\n]*x(i8|i4|f8)|Only vector<i16>", "PL105"),
    (r"64-bit types are not supported|Not implemented: .*(element|vector) type", "PL105"),
)

# Where what a compiler says to its own developers begins.
_ENDS = ("\nSee https://", "\nat location:", "\nThe MLIR operation", "\n see current operation", "\nSee details at")
_LOCATION = re.compile(r'"(?P<function>[^"]*)"\("(?P<file>[^"]+)":(?P<line>\d+)')


@dataclass(frozen=True)
class Program:
    """A lowered Pallas call, as bytes that another process can compile."""

    code: bytes
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    kept: tuple[int, ...]
    axes: Axes = ()  # of the devices that it is spread over


def lower(call: Call, chip: Chip, **compiler_params: int) -> Program | Finding:
    """Return the call lowered for ``chip``, or a finding of JAX's refusal. ``compiler_params`` replace the author's."""
    export = jax_module("jax.export")
    mesh = abstract_mesh(chip, call.axes)
    jitted = on_every_device(call.as_function(**compiler_params), mesh)
    shapes = [jax_module().ShapeDtypeStruct(aval.shape, aval.dtype) for aval in call.avals]
    try:
        with compiling_for(chip, call.axes):
            exported = export.export(jitted, platforms=["tpu"])(*shapes)
    except Exception as error:
        return finding_of_error(error, call)
    return Program(
        exported.mlir_module_serialized,
        tuple(_as_numbers(aval) for aval in exported.in_avals),
        tuple(_as_numbers(aval) for aval in exported.out_avals),
        tuple(exported.module_kept_var_idx),
        call.axes,
    )


def _as_numbers(aval: Shaped) -> tuple[tuple[int, ...], str]:
    """Return the shape and dtype of an array; for random keys those of their numbers."""
    jax = jax_module()
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    return tuple(aval.shape), str(aval.dtype)


@cache
def fills_in_floats() -> bool:
    """Return whether a print may fill a placeholder with a float32: JAX (since 0.11) is tried with such a kernel."""
    jax, pallas = jax_module(), jax_module("jax.experimental.pallas")
    array = jax.ShapeDtypeStruct((8, 128), jax_module("jax.numpy").float32)
    chip = CHIPS["v5e"]

    def kernel(x_ref: Ref, out_ref: Ref) -> None:
        pallas.debug_print("{}", x_ref[0, 0])
        out_ref[...] = x_ref[...]

    with compiling_for(chip):
        (call,) = pallas_calls(jax.make_jaxpr(pallas.pallas_call(kernel, out_shape=array))(array))
    return isinstance(lower(call, chip), Program)


def finding_of_error(error: BaseException, call: Call) -> Finding:
    """Return the finding of an error of JAX's lowering, at the line of its operation or block spec."""
    text = str(error)
    rule = rule_of(text)
    place = source_places.of_error(error, call.place)
    if rule == "PL101":
        place = _operand_place(text, call)
    elif rule == "PL209":
        place = remote_copy(call) or call.kernel_place
    elif place == call.place:
        place = call.kernel_place
    name = type(error).__name__
    message = f"kernel `{call.name}` cannot be lowered for a TPU: {name}: {first_sentences(text)}"
    return place.finding(rule, message, remedy=remedy_of(rule, text))


def remote_copy(call: Call) -> Place | None:
    """Return the line at which a kernel first copies to another device; None if it never does."""
    for equation, place in placed_equations(call.jaxpr, call.kernel_place):
        if equation.primitive.name == "dma_start":
            with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):  # a JAX with other copies
                *_, device = equation.params["tree"].unflatten(list(equation.invars))
                if device is not None:
                    return place
    return None


def _operand_place(text: str, call: Call) -> Place:
    """Return the block spec of the operand that an error names."""
    for operand in call.operands:
        if f"Block spec for {operand.mapping.origin} " in text:
            return operand.place
    return call.place


def rule_of(text: str) -> str:
    """Return the rule that a message of JAX's lowering or of the compiler is about."""
    return next((rule for pattern, rule in _MEANINGS if re.search(pattern, text)), "PL301")


# What to write where a message of the compiler names a thing of its own.
_INSTEAD = (
    ("assume_multiple", "Wrap the offset in pl.multiple_of(offset, 128), if it is a multiple of 128."),
    ("[Ss]can with \\d+ extensive output", "Write each step's row into the output in a jax.lax.fori_loop."),
    ("TPU support (is )?not installed|requires JAX TPU", "Install JAX with its TPU compiler: pip install 'jax[tpu]'."),
    # A message without one of the codes that https://openxla.org/xla/errors explains.
    (r"^(?!.*\bE\d{4}\b)", "The message names the operation: write it in another way, or move it out of the kernel."),
)


def remedy_of(rule: str, text: str) -> str:
    """Return the remedy for a message of the compiler that PL301 reports; '' for the rule's own remedy."""
    return next((remedy for pattern, remedy in _INSTEAD if rule == "PL301" and re.search(pattern, text, re.DOTALL)), "")


def first_sentences(text: str, limit: int = 400) -> str:
    """Return the start of a compiler's message, without remarks about the compiler itself."""
    text = text.replace(
        "Pallas encountered an internal verification error. Please file a bug at "
        "https://github.com/jax-ml/jax/issues/new/choose. Error details: ",
        "",
    )
    for end in _ENDS:
        text = text.partition(end)[0]
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[:limit].rstrip() + " ..."


def place_in(text: str, otherwise: Place) -> Place:
    """Return the author's line in the location that a message of the compiler carries."""
    for found in _LOCATION.finditer(text):
        if source_places.is_authors(found["file"]):
            return Place(found["file"], int(found["line"]), found["function"])
    return otherwise
