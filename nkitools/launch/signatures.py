"""The call form of kernels: their signatures, and arguments bound to them."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from nkitools.facts.light_classes import NamedTuple
from nkitools.rules.finding import refuse


class _Form(NamedTuple):
    """The signature of a plain function, and the parts of the function that it depends on.

    ``names``: the parameters, if all are positional and none declares a shape, else (); the first ``required`` of them
    have no default.
    """

    made_of: tuple[Any, ...]
    signature: inspect.Signature
    names: tuple[str, ...]
    required: int


_known: WeakKeyDictionary[FunctionType, _Form] = WeakKeyDictionary()


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a kernel's function; NK609 where it has none (a builtin, a NumPy ufunc)."""
    form = _form_of(function)
    return _signature_of(function) if form is None else form.signature


def names_by_position(function: Callable[..., Any], count: int) -> tuple[str, ...] | None:
    """Return the names of the parameters that so many positional arguments fit; None where `bind` has to look."""
    form = _form_of(function)
    return form.names if form is not None and form.required <= count <= len(form.names) else None


def _form_of(function: Callable[..., Any]) -> _Form | None:
    if type(function) is not FunctionType:
        return None
    if function.__dict__:  # which may name another function, or say it itself
        is_wrapper = function.__dict__.keys() == {"__wrapped__"}
        return _form_of(function.__dict__["__wrapped__"]) if is_wrapper else None
    named = (*(function.__kwdefaults__ or {}).values(), *function.__annotations__.values())
    made_of = function.__code__, function.__defaults__, len(named), *named
    known = _known.get(function)
    if known is not None and all(map(operator.is_, known.made_of, made_of)):
        return known
    signature = _signature_of(function)
    all_of_them = signature.parameters.values()
    is_plain = all(
        each.kind is each.POSITIONAL_OR_KEYWORD and getattr(each.annotation, "declared_shape", None) is None
        for each in all_of_them
    )
    names = tuple(signature.parameters) if is_plain else ()
    required = sum(each.default is each.empty for each in all_of_them)
    _known[function] = found = _Form(made_of, signature, names, required)
    return found


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        pass
    else:
        return _evaluated(function, found)
    message = f"{function!r} has no signature, so that it cannot be a kernel"
    return refuse("NK609", message, remedy="Write it as a Python function.")


def _evaluated(function: Callable[..., Any], signature: inspect.Signature) -> inspect.Signature:
    """With `from __future__ import annotations` a declared shape is a string: evaluated, where that can be done."""
    if not any("tensor[" in str(each.annotation) for each in signature.parameters.values()):
        return signature
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:  # whatever the author's annotation does when it is evaluated: nothing but a type checker reads it
        return signature


def bind(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """Return the arguments by the names of their parameters.

    NK609 shows the signature that they do not fit, or the shape that a parameter declares (``nt.tensor[128, 512]``).
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        sentence = str(error)
    else:
        for parameter, value in bound.arguments.items():
            _check_shape(name, parameter, signature.parameters[parameter].annotation, value)
        return bound
    # Outside of the handler, so that Python does not show the one error as the cause of the other.
    parameters = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    shown = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return refuse("NK609", f"{name}: {sentence}", remedy=f"The kernel's call form is {name}{shown}.")


def _check_shape(name: str, parameter: str, annotation: Any, value: Any) -> None:
    declared = getattr(annotation, "declared_shape", None)
    given = None if declared is None else getattr(value, "shape", None)
    if declared is None or given is None or tuple(given) == tuple(declared):
        return
    message = (
        f"{name}: parameter `{parameter}` is declared as a tensor of shape {list(declared)}, the argument has "
        f"{list(given)}"
    )
    refuse("NK609", message, remedy=f"Pass an array of that shape, or declare `{parameter}` without one: nt.tensor.")


def named_arguments(signature: inspect.Signature, bound: Mapping[str, Any]) -> dict[str, Any]:
    """Return bound arguments by their names; those that ``**kwargs`` takes by their own."""
    found: dict[str, Any] = {}
    for name, value in bound.items():
        is_rest = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        found |= value if is_rest else {name: value}
    return found
