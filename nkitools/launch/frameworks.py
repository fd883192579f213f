"""The frameworks whose arrays kernels take and return: NumPy, and torch and jax if the author has loaded them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Argument, FrameworkArray
from nkitools.chip.dtypes import DType, UnknownDType, as_dtype
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass
from nkitools.launch.nested_arguments import mapped, parts_of
from nkitools.rules.finding import refuse


@dataclass(frozen=True)
class Framework:
    """``has``: whether a value is an array of it; ``to_numpy``: a NumPy view of an argument's memory.

    ``cast``: the code that converts an array, with gaps ``{name}`` and ``{dtype}``.
    """

    name: str
    has: Callable[[Any], bool]
    to_numpy: Callable[[str, Any], Array]
    from_numpy: Callable[[Array, DType], Any]
    cast: str


def _numpy_view(name: str, value: FrameworkArray) -> Array:
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(value, masked.MaskedArray):
        message = f"argument `{name}` is a masked array; a kernel knows no masks"
        refuse("NK609", message, remedy=f"Pass {name}.filled().")
    return np.asarray(value)


NUMPY = Framework(
    "NumPy",
    lambda value: isinstance(value, np.ndarray),
    _numpy_view,
    lambda array, dtype: array,
    "{name}.astype(np.{dtype})",
)


def _is_torch(value: Argument) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _torch_view(name: str, value: Any) -> Array:
    """Return a NumPy view of a CPU torch tensor's memory (bfloat16 and float8 through their bits)."""
    import torch

    if value.device.type != "cpu":
        message = (
            f"argument `{name}` is a torch tensor on device {value.device}; the simulator works in the host's memory"
        )
        refuse("NK609", message, remedy=f"Pass {name}.cpu().")
    if value.is_nested:
        message = f"argument `{name}` is a nested torch tensor, whose rows differ in length"
        refuse("NK609", message, remedy=f"Pass torch.nested.to_padded_tensor({name}, 0.0).")
    if value.layout is not torch.strided:
        message = f"argument `{name}` is a torch tensor of layout {value.layout}"
        refuse("NK609", message, remedy=f"Pass {name}.to_dense().")
    for is_set, what, method in (
        (value.is_conj, "conjugate", "resolve_conj"),
        (value.is_neg, "negative", "resolve_neg"),
    ):
        if is_set():
            message = f"argument `{name}` is a torch tensor with its {what} bit set: its memory holds other values"
            refuse("NK609", message, remedy=f"Pass {name}.{method}().")
    value = value.detach()
    try:
        return np.asarray(value.numpy())
    except TypeError:  # NumPy alone has no such dtype
        pass
    except RuntimeError as error:  # a class of tensors without memory of their own: torch's FakeTensor
        why = str(error).partition("\n")[0].rstrip(".")
        message = f"argument `{name}` is a {type(value).__name__} of torch, whose elements cannot be read: {why}"
        refuse("NK609", message, remedy="Pass a tensor that has elements.")
    dtype = _named_dtype(name, str(value.dtype).removeprefix("torch."))
    bits = value.view(torch.int16 if value.element_size() == 2 else torch.uint8)
    return np.asarray(bits.numpy()).view(dtype.dtype)


def _named_dtype(name: str, dtype: str) -> DType:
    try:
        return as_dtype(dtype)
    except UnknownDType:
        pass
    message = f"argument `{name}` is a torch tensor of {dtype}, which NKI does not have"
    remedy = f"Convert it first: {name}.to(torch.float32), or another dtype of nki.language."
    return refuse("NK301", message, remedy=remedy)


def _to_torch(array: Array, dtype: DType) -> Any:
    import torch

    if dtype.dtype.names or not (hasattr(torch, dtype.name) or dtype.name == "tfloat32"):
        _no_such_dtype("torch", dtype)
    try:
        return torch.from_numpy(array)
    except TypeError:  # NumPy alone has no such dtype
        pass
    bits = array.view(np.int16 if array.itemsize == 2 else np.uint8)
    return torch.from_numpy(bits).view(getattr(torch, dtype.name))


def _is_jax(value: Argument) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _jax_view(name: str, value: Any) -> Array:
    """Return a read-only NumPy view of a jax array."""
    import jax

    if isinstance(value, jax.core.Tracer):
        message = f"argument `{name}` is a value that jax is tracing, so that it has no elements yet"
        refuse("NK609", message, remedy="Call the kernel outside of jax.jit and jax.vmap.")
    if jax.numpy.issubdtype(value.dtype, jax.dtypes.extended):
        message = f"argument `{name}` is a jax array of {value.dtype}, which has no numbers"
        refuse("NK609", message, remedy=f"Pass jax.random.key_data({name}).")
    if value.is_deleted():
        message = (
            f"argument `{name}` is a jax array that has been deleted: jax has given its memory away (donate_argnums)"
        )
        refuse("NK609", message, remedy="Pass an array that is still there.")
    return np.asarray(value)


def _to_jax(array: Array, dtype: DType) -> Any:
    import jax.numpy as jnp

    if dtype.dtype.names:
        _no_such_dtype("jax", dtype)
    return jnp.asarray(array)


def from_jax_dtype(name: str, value: Argument) -> Any:
    """Return the NKI dtype of a scalar type of jax (``jnp.bfloat16``); every other value as it is.

    Errors: NK609, a TypeError, for one that NKI lacks (NKI 0.4 release notes, JAX dtype support).
    """
    if "jax" not in sys.modules or not isinstance(value, type) or type(value).__name__ != "_ScalarMeta":
        return value
    try:
        return as_dtype(np.dtype(value))
    except UnknownDType:
        pass
    message = f"argument `{name}` is jax's dtype {np.dtype(value)}, which NKI does not have"
    remedy = "Pass a dtype of nki.language, or of jax one that NKI has: jnp.float32, jnp.bfloat16, jnp.int32."
    return refuse("NK609", message, remedy=remedy)


def _no_such_dtype(framework: str, dtype: DType) -> None:
    message = f"the kernel returns {dtype}, which {framework} does not have"
    refuse("NK301", message, remedy="Pass NumPy arrays, which give NumPy results.")


TORCH = Framework("torch", _is_torch, _torch_view, _to_torch, "{name}.to(torch.{dtype})")
FRAMEWORKS = (NUMPY, TORCH, Framework("jax", _is_jax, _jax_view, _to_jax, "{name}.astype(jnp.{dtype})"))


def framework_of(value: Argument) -> Framework | None:
    """Return the framework of an array; None if ``value`` is no array."""
    return next((framework for framework in FRAMEWORKS if framework.has(value)), None)


def arrays_in(values: Argument) -> list[Any]:
    """Return the arrays of any framework in ``values`` and its containers, in order."""
    return [part for _, part in parts_of(values) if framework_of(part) is not None]


def mapped_arrays(values: Argument, change: Callable[[Array], Array]) -> Any:
    """Return a container with ``change`` of each array in it, as NumPy sees the array, in the array's own framework.

    An array that ``change`` gives back, or whose dtype NKI does not have, stays as it is.
    """

    def part(value: Argument) -> Any:
        framework = framework_of(value)
        if framework is None:
            return value
        array = framework.to_numpy("", value)
        found = change(array)
        if framework is NUMPY or found is array:
            return found if framework is NUMPY else value
        try:
            return framework.from_numpy(found, as_dtype(found.dtype))
        except UnknownDType:
            return value

    return mapped(values, part)
