"""A kernel's function as a program of this dialect: checks before it runs and after it has returned."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import CodeType, FunctionType
from typing import Any

from nkitools.authors_code.called_functions import NamedFunctions, plain_function
from nkitools.authors_code.source_text import running
from nkitools.chip.core import Core, current_core
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.kernels.allocated_kernels import check_allocated
from nkitools.dialects.legacy.kernels.annotations import checked_annotations
from nkitools.dialects.legacy.kernels.error_codes import placed
from nkitools.dialects.legacy.kernels.first_turns import Rewrites, rewrites_of
from nkitools.dialects.legacy.kernels.immutable_inputs import IMMUTABLE
from nkitools.dialects.legacy.kernels.kernel_source import KnownSource, place_of, report_source
from nkitools.dialects.legacy.kernels.kernel_state import (
    FORM,
    SKIP_MIDDLE_END,
    SKIP_MUTABLE_RETURN_CHECK,
    STACK_ALLOCATOR,
    Form,
)
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.launch.results import tensors_of
from nkitools.launch.tracebacks import hands_over
from nkitools.record.columns import Columns
from nkitools.rules.finding import report


def mutable_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the parameters that are annotated nt.mutable_tensor."""
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if "mutable_tensor" in str(each.annotation)]


def as_program(function: Callable[..., Any], *, returns_outputs: bool, switches: frozenset[str]) -> Callable[..., Any]:
    """Return ``function`` as a program with its immutable inputs, and with a judgement at its end."""
    signature, mutable = inspect.signature(function), mutable_parameters(function)
    inner, plain, rewritten = inspect.unwrap(function), plain_function(function), _Rewritten()
    named, source = None if plain is None else NamedFunctions(plain), KnownSource()
    misses_switch = STACK_ALLOCATOR in switches and SKIP_MIDDLE_END not in switches

    @hands_over
    def program(*args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(*args, **kwargs).arguments if mutable else {}
        free = {name: _storages(arguments.get(name)) for name in mutable}
        functions = () if named is None else named.now()
        codes = rewritten.codes_of(functions)
        with running(codes) if codes else nullcontext():
            core, code = current_core("nki.jit"), getattr(inner, "__code__", None)
            form = Form(switches, code, core.record.count)
            immutable = core.input_ids.difference(*free.values()) if returns_outputs else frozenset()
            form_before, immutable_before = FORM.set(form), IMMUTABLE.set(immutable)
            try:
                shows_nothing = source.shows_nothing(functions, code)
                is_first = not any(core.program)  # which makes the reports that are equal for all
                if is_first and not shows_nothing:
                    report_source(functions)
                if is_first and misses_switch:
                    _report_switch(function)
                if shows_nothing:
                    result = function(*args, **kwargs)
                else:
                    with checked_annotations(code):
                        result = function(*args, **kwargs)
                _after(core, form, result, free if returns_outputs else {}, function)
                return result
            finally:
                core.record.close()
                IMMUTABLE.reset(immutable_before)
                FORM.reset(form_before)

    return functools.wraps(function)(program)


class _Rewritten:
    """The rewritten codes of a kernel's functions, made again if there are others or the code of one has changed."""

    def __init__(self) -> None:
        self._functions: Sequence[FunctionType] = ()
        self._made: Rewrites = ()
        self._codes: list[tuple[FunctionType, CodeType]] = []

    def codes_of(self, functions: Sequence[FunctionType]) -> Rewrites:
        """Return the rewritten codes of the functions as they are now."""
        if functions is self._functions and not self._made:  # none has changed, see `NamedFunctions`
            return self._made
        self._functions = functions
        known, now = self._codes, [each.__code__ for each in functions]
        made = dict(self._made)
        if len(known) != len(now) or not all(
            each is function and code in (before, made.get(function))
            for (function, before), each, code in zip(known, functions, now, strict=True)
        ):
            self._codes = list(zip(functions, now, strict=True))
            self._made = rewrites_of(functions)
        return self._made


def _storages(value: Any) -> set[int]:
    """Return the ids of the storages in an argument, which may be a list or tuple of tensors."""
    if isinstance(value, Tensor):
        return {value.storage.id}
    return {id_ for item in value for id_ in _storages(item)} if isinstance(value, (list, tuple)) else set()


def _report_switch(function: Callable[..., Any]) -> None:
    """NK614: a switch of nki.compiler's stands without another that it needs."""
    with placed(place_of(function).function):
        message = "nki.compiler.enable_stack_allocator must be used together with skip_middle_end_transformations"
        report("NK614", message, remedy="Put @nki.compiler.skip_middle_end_transformations below it.")


def _after(core: Core, form: Form, result: Any, mutable: dict[str, set[int]], function: Callable[..., Any]) -> None:
    tensors = tensors_of(result)
    if not any(core.program):  # the launch's first program makes the reports that are equal for all
        if mutable:
            _check_returned(form, tensors, mutable, function)
        _check_in_hbm(tensors, function)
        check_allocated(form, tensors)
    if not tensors and all(index == size - 1 for index, size in zip(core.program, core.grid, strict=True)):
        _check_outputs(function)


def _check_returned(
    form: Form, tensors: list[NkiTensor], mutable: dict[str, set[int]], function: Callable[..., Any]
) -> None:
    """NK407: parameters annotated as mutable come back."""
    if SKIP_MUTABLE_RETURN_CHECK in form.switches:
        return
    returned = {tensor.storage.id for tensor in tensors}
    for name, storages in mutable.items():
        if storages - returned:
            with placed(place_of(function).end):
                message = f"parameter `{name}` is annotated nt.mutable_tensor and is not returned"
                report("NK407", message, facts={"tensor": name})


def _check_in_hbm(tensors: list[NkiTensor], function: Callable[..., Any]) -> None:
    """NK209: on chip there is nothing that could be handed to the host."""
    for tensor in tensors:
        if tensor.on_chip:
            with placed(place_of(function).end):
                report("NK209", f"the kernel returns {describe(tensor)}", about=(tensor,))


def _check_outputs(function: Callable[..., Any]) -> None:
    """NK403: a kernel that returns nothing has written to some argument at least."""
    core = current_core("nki.jit")
    if not core.input_ids.isdisjoint(Columns(core.record).written_storages):
        return
    with placed(place_of(function).function):
        report(
            "NK403",
            "the kernel returns no tensor and has written to none of its arguments",
            remedy="Return what it computes: a tensor created in nl.shared_hbm. If it does store, look for loops that "
            "run zero times.",
        )
