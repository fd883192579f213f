"""Custom operators as operators of torch: ``torch.ops.<library>.<operator>``, on the CPU and on the Meta device.

On the CPU an operator runs on the simulated cores; on the Meta device (shapes alone: ``torch.export``, fake tensors)
its compiled shape function answers. Gradients are the author's, by ``torch.autograd.Function``: Neuron's custom
operators have none of their own (Neuron Custom C++ Operators in MLP Training). Where torch is not installed the same
names are called with NumPy arrays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nkitools.authors_code.positions import line_of
from nkitools.customop.abi import SCALAR_DOUBLE, SCALAR_INTEGER, SCALAR_TYPES, TENSOR, Argument, Call
from nkitools.customop.arguments import Passed, argument_name, judge_shape
from nkitools.customop.compiled_operator import DEFAULT_MEMORY, DEFAULT_TIMEOUT
from nkitools.customop.shape_call import shape_of
from nkitools.rules.finding import KernelError, error_of, refuse

if TYPE_CHECKING:
    from nkitools.customop.library import Library
    from nkitools.customop.operator import Operator

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CODES = {name: code for code, (name, _) in SCALAR_TYPES.items()}
# What a kernel's parameters are in a schema of torch. The others cannot be passed by a device either (CO112).
_SCHEMA = {"t": "Tensor", "s": "Scalar", "d": "float", "i": "int"}


class Registration:
    """The operators of one library under ``torch.ops``, until ``remove()`` or the end of a ``with``."""

    def __init__(self, library: Library) -> None:
        self.name = library.name
        # What torch knows of a library it forgets when this object goes.
        self._torch: Any = import_module("torch.library").Library(library.name, "DEF")
        try:
            for operator in library.ops.values():
                self._torch.define(schema_of(operator))
                self._torch.impl(operator.name, partial(_at_the_caller, _on_host, operator), "CPU")
                self._torch.impl(operator.name, partial(_at_the_caller, _on_meta, operator), "Meta")
        except BaseException:
            self._torch = None
            raise

    def remove(self) -> None:
        """Unregister the operators; a second call does nothing."""
        self._torch = None
        if _registered.get(self.name) is self:
            del _registered[self.name]

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


_registered: dict[str, Registration] = {}


def register_with_torch(library: Library) -> Registration:
    """Make ``torch.ops.<library>.<operator>`` of the operators of ``library``, until ``remove()`` of the result, or the
    end of a ``with`` of it.

    ``<library>`` is the name in its NEURON_LIBRARY; a library of that name that was registered before is replaced. A
    call raises `nkitools.KernelError` at the first error that the rules find. Tensors need not be contiguous, since
    those of a device always are.

    Raises ModuleNotFoundError without torch, KernelError (CO112) for kernels with parameters that cannot be passed, and
    what torch raises for a name that other code has registered.
    """
    before = _registered.get(library.name)
    if before is not None:
        before.remove()
    registration = _registered[library.name] = Registration(library)
    return registration


def schema_of(operator: Operator) -> str:
    """Return an operator as torch declares it: ``relu_forward(Tensor a0) -> Tensor``."""
    result, parameters = operator.signature[:1], operator.signature[1:]
    if result != "t" or any(letter not in _SCHEMA for letter in parameters):
        what = "a parameter of a type that cannot be passed" if result == "t" else "no torch::Tensor as its result"
        refuse(
            "CO112",
            f"operator `{operator.name}` of library `{operator.library.name}` has {what}, so that torch cannot call it",
            remedy="Kernels take torch::Tensor, torch::Scalar and double, and return a torch::Tensor.",
        )
    named = ", ".join(f"{_SCHEMA[letter]} a{index}" for index, letter in enumerate(parameters))
    return f"{operator.name}({named}) -> Tensor"


def _at_the_caller(run: Callable[..., Any], operator: Operator, *arguments: Passed) -> Any:
    """Call an implementation, and report a wrong call at the author's line instead of torch's."""
    __tracebackhide__ = True
    try:
        return run(operator, *arguments)
    except KernelError as error:
        theirs = os.path.dirname(str(import_module("torch").__file__)) + os.sep
        if not error.finding.file.startswith(theirs):
            raise
        frame = sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith((theirs, _PACKAGE)):
            frame = frame.f_back
        code = frame.f_code
        finding = replace(error.finding, file=code.co_filename, line=line_of(frame), function=code.co_name)
        raise error_of(finding) from None


def _on_host(operator: Operator, *arguments: Passed) -> Any:
    """Run an operator on tensors in C order, as a device has them whatever the strides of the author's tensors."""
    __tracebackhide__ = True
    import torch

    return operator(*(each.contiguous() if isinstance(each, torch.Tensor) else each for each in arguments))


def _on_meta(operator: Operator, *arguments: Passed) -> Any:
    """Return a tensor without data, of the shape and dtype that the shape function says."""
    __tracebackhide__ = True
    import torch

    def fill(call: Call) -> None:
        call.arguments = len(arguments)
        call.op, call.kernel = operator.numbers
        for index, (slot, value) in enumerate(zip(call.args, arguments, strict=False)):
            _describe(slot, value, f"{argument_name(index, operator.parameters)} of operator `{operator.name}`")

    call, wrong = shape_of(operator, fill, DEFAULT_TIMEOUT, DEFAULT_MEMORY)
    if wrong:
        raise error_of(wrong[0])
    return torch.empty(call.out.shape(), dtype=getattr(torch, SCALAR_TYPES[call.out.dtype][0]), device="meta")


def _describe(slot: Argument, value: Any, where: str) -> None:
    if isinstance(value, bool | int):
        slot.kind, slot.integer = SCALAR_INTEGER, int(value)
        return
    if isinstance(value, float):
        slot.kind, slot.number = SCALAR_DOUBLE, value
        return
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in _CODES:
        refuse("CO110", f"{where} is {dtype}; tensors of custom operators are {', '.join(_CODES)}")
    shape = tuple(int(size) for size in value.shape)
    judge_shape(where, shape)
    slot.kind, record = TENSOR, slot.tensor
    record.numel, record.dim, record.dtype = value.numel(), len(shape), _CODES[dtype]
    record.sizes[: len(shape)] = shape


def has_torch() -> bool:
    """Return whether torch could be imported; it is not imported for that."""
    return find_spec("torch") is not None


class OperatorNames:
    """``torch.ops`` where there is no torch: ``names.<library>.<operator>(*arrays)``, with NumPy arrays."""

    def __init__(self) -> None:
        self._libraries: dict[str, Library] = {}

    def add(self, library: Library) -> None:
        """Make a library known by its name, in the place of one that had it."""
        self._libraries[library.name] = library

    def __getattr__(self, name: str) -> Library:
        libraries: dict[str, Library] = self.__dict__.get("_libraries", {})
        if name in libraries:
            return libraries[name]
        raise AttributeError(f"no library {name!r} of custom operators is loaded; there is {sorted(libraries)}")
