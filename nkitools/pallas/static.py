"""Judgement of a Pallas call without running or compiling it: its blocks, its dtypes, its memory, its prints."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator
from typing import Any

from nkitools.facts.known_faults import fault_of_form
from nkitools.pallas import jax_internals, libtpu
from nkitools.pallas.calls import Call, Operand, placed_equations, show_shape
from nkitools.pallas.chips import MIB, Chip
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import DType, Equation
from nkitools.pallas.lowering import fills_in_floats
from nkitools.pallas.source_places import Place
from nkitools.rules.finding import Finding

LANES, SUBLANES = 128, 8
_ON_CHIP = ("", "vmem")


def static_findings(call: Call, chip: Chip) -> list[Finding]:
    """Return the findings of rules PL1, PL302 and PL303 on ``chip``, in the order of the rules."""
    found = [finding for operand in call.operands for finding in _of_block(operand)]
    return [*found, *_of_memory(call, chip), *_of_operations(call, chip), *_of_unused(call)]


def _of_unused(call: Call) -> Iterator[Finding]:
    """PL303: the kernel never uses an operand but copies by DMA, which some versions of libtpu get wrong.

    The libtpu of this machine does not decide it: the kernel runs on a TPU with another one.
    """
    fault = fault_of_form("unused-operand-of-pallas-call")
    equations = [equation for equation, _ in placed_equations(call.jaxpr, call.kernel_place)]
    if all(equation.primitive.name != "dma_start" for equation in equations):
        return
    used = {id(var) for equation in equations for var in equation.invars}
    kept = {int(index) for index, _ in call.params["input_output_aliases"]}
    variables = call.jaxpr.invars[len(call.prefetched) :]
    for index, (operand, variable) in enumerate(zip(call.operands, variables, strict=False)):
        if id(variable) not in used and index + len(call.prefetched) not in kept and not operand.is_output:
            message = f"no line reads {operand.text()}; a public report says that {fault.meaning}"
            where = f"{fault.address}; {fault.versions}"
            yield operand.place.finding("PL303", f"{message} ({where})", remedy=fault.write)


def _of_block(operand: Operand) -> Iterator[Finding]:
    """PL101, or PL102 if there is no PL101."""
    if operand.memory not in _ON_CHIP or not operand.block:
        return
    sizes, shape, bits = operand.block_sizes, operand.shape, bit_width(operand.dtype)
    if len(shape) == 1:
        if not _fits_in_one_dimension(sizes[0], shape[0], bits):
            least = LANES * 32 // bits
            sizes_that_fit = (
                f"the whole {shape[0]}, a multiple of {LANES * SUBLANES}, or a power of two from {least} on"
            )
            yield operand.place.finding("PL101", f"{operand.text()}: a block of one dimension is {sizes_that_fit}")
        return
    lanes_fit = sizes[-1] == shape[-1] or sizes[-1] % LANES == 0
    rows_fit = sizes[-2] == shape[-2] or sizes[-2] % SUBLANES == 0
    if not (lanes_fit and rows_fit):
        wanted = [f"a multiple of {SUBLANES}, or the whole dimension ({shape[-2]})"] if not rows_fit else []
        wanted += [f"a multiple of {LANES}, or the whole dimension ({shape[-1]})"] if not lanes_fit else []
        which = {(False, True): "second to last dimension", (True, False): "last dimension"}
        dimensions = which.get((rows_fit, lanes_fit), "last two dimensions")
        message = f"{operand.text()}: the {dimensions} of a block must be {', and '.join(wanted)}"
        yield operand.place.finding("PL101", message)
        return
    rows = tile_rows(shape[-2], bits)
    if libtpu.version() < libtpu.PARTIAL_TILES and sizes[-2] != shape[-2] and sizes[-2] % rows:
        yield operand.place.finding(
            "PL102",
            f"{operand.text()}: {operand.dtype} lies in tiles of {rows} rows, and a block of {sizes[-2]} rows takes "
            f"part of one; it must be a multiple of {rows}, or the whole dimension ({shape[-2]})",
        )


def bit_width(dtype: DType) -> int:
    """Return the number of bits of an element in memory; a bool takes 32."""
    name = str(dtype)
    if name == "bool":
        return 32
    digits = "".join(each if each.isdigit() else " " for each in name.removeprefix("b")).split()
    return int(digits[0]) if digits else 8 * int(dtype.itemsize)


def tile_rows(rows: int, bits: int) -> int:
    """Return the number of rows in a tile of an array with ``rows`` rows.

    That is the rows of a packed register if they divide ``rows``, else 8, as seen in the compiler of libtpu 0.0.42 for
    arrays of 16 to 256 rows.
    """
    packed = SUBLANES * 32 // bits
    return packed if bits < 16 and rows % packed == 0 else SUBLANES


def _fits_in_one_dimension(block: int, size: int, bits: int) -> bool:
    is_power = block & (block - 1) == 0
    return block == size or block % (LANES * SUBLANES) == 0 or (is_power and block >= LANES * 32 // bits)


def block_bytes(call: Call) -> int:
    """Return the vector memory of the blocked operands: each block once a buffer, and one buffer without a grid."""
    blocks = 0
    for operand in call.operands:
        if operand.memory in _ON_CHIP:
            size = math.prod(operand.block_sizes) * bit_width_in_memory(operand.dtype) // 8
            blocks += size * (operand.buffers if call.grid else 1)
    return blocks


def scratch_bytes(call: Call) -> int:
    """Return the vector memory of all scratch; the compiler counts only the scratch that the kernel uses."""
    return sum(
        math.prod(each.shape) * bit_width_in_memory(each.dtype) // 8 for each in call.scratch if each.memory == "vmem"
    )


def bit_width_in_memory(dtype: DType) -> int:
    """As :func:`bit_width`; a bool array of HBM takes a byte an element."""
    return 8 if str(dtype) == "bool" else bit_width(dtype)


def vmem_limit(call: Call, chip: Chip) -> int:
    """Return the bytes of vector memory that the compiler gives the call on ``chip``."""
    return min(call.vmem_limit or chip.scoped_vmem, chip.vmem)


def _of_memory(call: Call, chip: Chip) -> Iterator[Finding]:
    """PL103. Scratch is counted at most, so that by itself it is only a warning."""
    limit, blocks, scratch = vmem_limit(call, chip), block_bytes(call), scratch_bytes(call)
    if blocks + scratch <= limit:
        return
    parts = f"{_mib(blocks)} of blocks" + (f" and at most {_mib(scratch)} of scratch" if scratch else "")
    message = f"kernel `{call.name}` takes {parts} in vector memory; the limit on {chip.name} is {_mib(limit)}"
    yield call.place.finding("PL103", message, severity="" if blocks > limit else "warning")


def _mib(size: int) -> str:
    return f"{size / MIB:.4g} MiB"


def _of_operations(call: Call, chip: Chip) -> Iterator[Finding]:
    """PL104, PL105 and PL302, operation by operation of the kernel."""
    known = _lowered_primitives()
    for equation, place in placed_equations(call.jaxpr, call.kernel_place):
        name = equation.primitive.name
        if known and equation.primitive not in known and name != "pallas_call":
            yield place.finding("PL104", f"kernel `{call.name}` uses `{name}`, which has no TPU lowering")
        elif name == "debug_print":
            wrong = print_mistake(equation)
            if wrong:
                yield place.finding("PL302", wrong)
        else:
            yield from _of_dtypes(equation, place, call, chip)


def _lowered_primitives() -> Any:
    """Return the primitives that JAX can lower for a TensorCore; () if this JAX has no such list."""
    if jax_internals.moved(jax_internals.PRIMITIVES):
        return ()
    rules = jax_internals.of(jax_internals.LOWERING, "lowering_rules")
    core = next((each for each in rules if getattr(each, "name", "") == "TC"), None)
    return rules[core] if core is not None else ()


_ARITHMETIC = frozenset(["add", "sub", "mul", "div", "rem", "max", "min", "abs", "neg", "sign", "integer_pow", "pow"])


def _of_dtypes(equation: Equation, place: Place, call: Call, chip: Chip) -> Iterator[Finding]:
    """PL105: dtypes that can never be loaded, and arithmetic that no vector unit has."""
    name = equation.primitive.name
    types: list[Any] = [getattr(var.aval, "dtype", None) for var in (*equation.invars, *equation.outvars)]
    shaped = [var.aval for var in equation.outvars if getattr(var.aval, "shape", ())]
    for dtype in types:
        if str(dtype) in ("float16", "float64", "int64", "uint64", "complex64", "complex128"):
            yield place.finding("PL105", f"kernel `{call.name}`: vector units have no {dtype} (`{name}`)")
            return
    if name in _ARITHMETIC and shaped and bit_width(shaped[0].dtype) < 16:
        yield place.finding(
            "PL105", f"kernel `{call.name}`: `{name}` on {shaped[0].dtype}; vector units compute in 16 and 32 bits"
        )
    if name == "dot_general" and not chip.narrow_matmul and bit_width(types[0]) < 16:
        yield place.finding("PL105", f"kernel `{call.name}`: a matmul of {types[0]}, which {chip.name} does not have")
    elif name == "dot_general" and str(shaped[0].dtype if shaped else "") not in ("float32", "int32", ""):
        message = f"kernel `{call.name}`: a matmul that accumulates in {shaped[0].dtype}; it accumulates in 32 bits"
        yield place.finding("PL105", message)


def print_mistake(equation: Equation) -> str:
    """Return in words why a TPU refuses a print; '' if it accepts it."""
    template, filled = equation.params["fmt"], equation.params["has_placeholders"]
    values = [var.aval for var in equation.invars]
    vectors = [value for value in values if value.shape]
    said = f"print {template!r}"
    if equation.params.get("ordered"):
        return f"{said} is ordered, which a TPU cannot keep"
    if vectors:
        if len(values) > 1:
            return f"{said} prints an array beside other values; a TPU prints one array or scalars only"
        if not filled or not template.endswith("{}"):
            return f"{said} prints an array of shape {show_shape(vectors[0].shape)}; its text must end with {{}}"
        return ""
    if not filled:
        integers = [str(value.dtype) for value in values if not _is_float(value.dtype)]
        if not integers or libtpu.version() >= libtpu.INTEGER_PRINTS:
            return ""
        return f"{said} prints an {integers[0]} without a placeholder, at which the compiler aborts"
    fields = [each for each in string.Formatter().parse(template) if each[1] is not None]
    if any(name or form or conversion for _, name, form, conversion in fields):
        return f"{said} names or formats its values; a TPU takes plain {{}} only"
    others = [str(value.dtype) for value in values if str(value.dtype) not in ("int32", "uint32")]
    fitting = "32-bit integers"
    if others and fills_in_floats():
        others, fitting = [each for each in others if each != "float32"], "integers and floats of 32 bits"
    return f"{said} fills a placeholder with {others[0]}; a TPU fills in {fitting} only" if others else ""


def _is_float(dtype: DType) -> bool:
    numpy = jax_module("jax.numpy")
    return bool(numpy.issubdtype(dtype, numpy.floating))
