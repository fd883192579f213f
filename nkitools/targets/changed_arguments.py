"""The kernels that can change their arguments: NKI's alone, of parameters that they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nkitools.launch.kept_arguments import must_have_parameters
from nkitools.launch.kernel import as_launch
from nkitools.launch.torch_operators import is_nki_op
from nkitools.precision.runs import arrays_in
from nkitools.targets.builtin import is_jax_function
from nkitools.targets.gpsimd import is_custom_operator

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel


def must_change_arguments(kernel: Kernel, mutates: Sequence[str]) -> None:
    """Raise ValueError if a kernel cannot change the arguments that ``mutates`` names."""
    reason = ""
    if is_jax_function(kernel):
        reason = "a JAX function changes no argument. Leave mutates= out; let the function return the new array"
    elif is_custom_operator(kernel):
        reason = "a custom operator changes no argument. Leave mutates= out; let the operator return the new tensor"
    elif is_nki_op(kernel):
        reason = "an operator of nki_op says itself what it changes. Leave mutates= out; see nki_op(mutates_args=)"
    if reason:
        raise ValueError(f"mutates: {reason}.")
    launch = as_launch(kernel)
    must_have_parameters(launch.name, launch.function, mutates)


def must_be_changeable(name: str, value: Any) -> None:
    """Raise ValueError if an argument that a kernel is to change has no array that can be changed."""
    found = [part for _, (part, _) in arrays_in(name, value)]
    if not found or any(type(part).__module__.partition(".")[0] in ("jax", "jaxlib") for part in found):
        said = "an array of JAX, which nothing can change" if found else "no array in this call"
        raise ValueError(f"mutates: {name} is {said}: nothing of it is compared. Pass an array of NumPy.")
