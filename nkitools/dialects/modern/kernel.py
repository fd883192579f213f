"""``nki.jit`` and ``nki.simulate``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Unpack, cast, overload

from nkitools.chip.argument_types import Argument
from nkitools.chip.core import current_core
from nkitools.chip.tensor import ASSIGNMENTS
from nkitools.dialects.call_form import language_here
from nkitools.facts.versions import language_of, parameters_of
from nkitools.isa.move import assign
from nkitools.launch.compile_config import CompileConfig, SpecializationConfig
from nkitools.launch.configuration import check_nested
from nkitools.launch.kernel import KernelObject, P, lnc_grid, print_now
from nkitools.launch.launch import Launch, Said
from nkitools.launch.programs import run_launch
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.rules.finding import refuse

if TYPE_CHECKING:
    from nkitools.launch.schedule import Edge, Schedule

# Keywords of jit for AWS's compiler or runtime that change no result of a simulated kernel.
COMPILER_KEYWORDS = frozenset({
    "additional_compile_opt", "debug_kernel", "enable_out_of_bound_check", "experimental_flags", "mode",
    "show_compiler_tb",
})  # fmt: skip


CONFIGURATIONS = {"compile_config": CompileConfig, "specialization_config": SpecializationConfig}  # keywords of jit
ASSIGNMENTS.issue = assign


class Kernel(KernelObject[P]):
    """A kernel of the modern dialect, as `jit` makes it. A call runs it as `simulate` does, and returns its results.

    ``kernel[2]`` is the same kernel under LNC degree 2: on two cores. Inside a running kernel a call runs inline: as a
    part of that kernel, if this one has no degree or ``[1]``; otherwise NK610.

    ``schedule``: the dependency edges of `with_schedule`, checked when a launch of the kernel has run.
    """

    schedule: Schedule | None

    def __init__(
        self,
        function: Callable[P, Any],
        grid: tuple[int, ...] = (),
        schedule: Schedule | None = None,
        **options: Argument,
    ) -> None:
        inner = function.schedule if isinstance(function, Kernel) else None
        super().__init__(function, grid, **options)
        self.schedule = schedule or inner

    def __getitem__(self, lnc: int) -> KernelObject[P]:
        with AuthorsTraceback():
            return self.with_grid(lnc)

    def with_grid(self, grid: int | tuple[int, ...]) -> KernelObject[P]:
        """Return a new kernel object with the LNC degree ``grid``: 1 or 2. Errors: NK609 (no integer), NK613."""
        return Kernel(self.function, lnc_grid(self.__name__, grid), self.schedule, **self.options)

    def with_function(self, function: Callable[..., Any]) -> KernelObject[...]:
        """Return a kernel of another function, such as a method bound to its object, with this kernel's grid, schedule
        and options.
        """
        return Kernel(function, self.grid, self.schedule, **self.options)

    def with_schedule(self, edges: Sequence[Edge]) -> KernelObject[P]:
        """Return a new kernel object with dependency edges: pairs of an instruction's ``name=`` and the names that it
        runs after.

        They bind AWS's scheduler. Here instructions run in the order of the program, so that no result changes; the
        issued instructions of a launch show whether the names exist and the order is possible. This kernel object does
        not change; a second call on the result replaces the edges. Errors: NK609 (here: form, cycles; at the end of a
        launch: unknown and ambiguous names, an order that the data do not allow), NK610. Source: How to Use the NKI
        Scheduling APIs (SDK 2.32).
        """
        with AuthorsTraceback():
            from nkitools.launch.schedule import schedule_of

            return Kernel(self.function, self.grid, schedule_of(edges), **self.options)

    def launch(self, **said: Unpack[Said]) -> Launch:
        """Return the `Launch` that describes a call of this kernel, and run nothing. ``said``: fields of the launch
        that replace the kernel's or the options' (``chip``, ``nki_version``, ``rules``, ``sum_order``, ...).
        """
        options: dict[str, Any] = {name: self.options.get(name) for name in CONFIGURATIONS} if self.options else {}
        return Launch(self.function, self.__name__, self.grid, schedule=self.schedule, **options, **said)

    @property
    def is_alone(self) -> bool:
        """Return True if the kernel object has no LNC degree, or 1, so that it can run inline."""
        return self.grid in ((), (1,))

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the kernel's function as a part of the kernel that is running, and return its result.

        Errors: NK611 outside of a running kernel, NK609 for arguments that the function does not take, NK610 for a
        schedule or a grid other than [1], which belong to the outermost kernel, and for a configuration that disagrees
        with that kernel's (a warning if that one sets ``allow_nested_config_override``).
        """
        if self.schedule is not None:
            message = f"kernel {self.__name__} is called with a schedule inside a running kernel"
            remedy = "Give the schedule to the kernel that the host calls; its names may be those of inner kernels."
            refuse("NK610", message, remedy=remedy)
        config: Any = self.options.get("compile_config")
        check_nested(current_core(f"kernel {self.__name__}"), self.__name__, config)
        return super().inline(args, kwargs)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        __tracebackhide__ = True
        with AuthorsTraceback():
            if self.is_inside:
                return self.inline(args, kwargs)
            return run_launch(self.launched(echo=print_now), args, kwargs).outputs


@overload
def jit(fn: Callable[P, Any], **kwargs: Argument) -> Kernel[P]: ...
@overload
def jit(fn: None = None, **kwargs: Argument) -> Callable[[Callable[P, Any]], Kernel[P]]: ...
def jit(fn: Callable[P, Any] | None = None, **kwargs: Argument) -> Any:
    """Make a function a kernel: ``@nki.jit`` or ``@nki.jit(...)``. A call of the kernel runs on the simulator.

    Functions, methods, ``functools.partial`` and objects with ``__call__`` can be kernels. The keywords of AWS's
    compiler (``mode``, ``debug_kernel``, ...) change nothing here. ``compile_config`` and ``specialization_config``
    (NKI 0.7): `nki.compiler.CompileConfig` and `nki.compiler.SpecializationConfig`. Errors: NK608 (``platform_target``,
    which NKI 0.3 has removed), NK609 for unknown keywords and for what is no function.
    """
    with AuthorsTraceback():
        _check_keywords(kwargs)
        if fn is None:
            return functools.partial(jit, **kwargs)
        _check_function("nki.jit decorates a function", fn)
        options: dict[str, Any] = kwargs
        return Kernel(fn, **options)


# The documented form; the keywords themselves are the options of the kernel.
jit.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
    inspect.Parameter("fn", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
    *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in CONFIGURATIONS),
    inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
])  # fmt: skip
jit.version_changes = [each for each in parameters_of("nki", "jit") if each.parameter in CONFIGURATIONS]  # type: ignore[attr-defined]


def _check_function(sentence: str, value: Argument) -> None:
    """NK609: what is called, or is a class, whose call makes an object and computes nothing."""
    if inspect.isclass(value):
        refuse("NK609", f"{sentence}, it is given the class {value.__name__}")
    if not callable(value):
        refuse("NK609", f"{sentence}, it is given {type(value).__name__}")


def platform_target() -> tuple[str, str]:
    """Return the message and the remedy (NK608) for ``nki.jit(platform_target=...)``."""
    (row,) = (each for each in parameters_of("nki", "jit") if each.parameter == "platform_target")
    return f"nki.jit(platform_target=...) {row.absence(language_of())}", row.instead


def _check_keywords(keywords: Mapping[str, Argument]) -> None:
    if "platform_target" in keywords:
        message, instead = platform_target()
        refuse("NK608", message, remedy=instead)
    rows = {each.parameter: each for each in parameters_of("nki", "jit")}
    for name, kind in CONFIGURATIONS.items():
        if name in keywords and not rows[name].is_in(language_here()):
            message = f"nki.jit: the argument `{name}` {rows[name].absence(language_here())}"
            refuse("NK609", message, remedy=rows[name].instead)
        if not isinstance(keywords.get(name), (kind, type(None))):
            refuse("NK609", f"nki.jit: {name} must be a nki.compiler.{kind.__name__}, it is {keywords[name]!r}")
    unknown = sorted(set(keywords) - COMPILER_KEYWORDS - set(CONFIGURATIONS))
    if unknown:
        known = ", ".join(sorted(COMPILER_KEYWORDS))
        refuse("NK609", f"nki.jit does not know {', '.join(unknown)}", remedy=f"It knows {known}.")


class Simulated(Generic[P]):
    """The result of `simulate`: the kernel as a function that runs on the simulator."""

    def __init__(self, kernel: KernelObject[P]) -> None:
        functools.update_wrapper(cast("Callable[..., Any]", self), cast("Callable[..., Any]", kernel))
        self.kernel = kernel

    def __repr__(self) -> str:
        return f"<simulated {self.kernel!r}>"

    def __getitem__(self, grid: int) -> Simulated[P]:
        """Return the same under a launch grid: ``nki.simulate(kernel)[2]`` is ``nki.simulate(kernel[2])``."""
        with AuthorsTraceback():
            return Simulated(self.kernel.with_grid(grid))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        __tracebackhide__ = True
        with AuthorsTraceback():
            return run_launch(self.kernel.launched(echo=print_now), args, kwargs).outputs


def simulate(kernel: Callable[P, Any]) -> Simulated[P]:
    """Return the kernel (a kernel object, ``kernel[2]`` or a plain function) as a function that runs on the simulator.

    Results are torch tensors or jax arrays if an argument is one (of both: as the first of them), else NumPy arrays. A
    kernel writes into NumPy arrays and torch tensors in place; writing into a jax array is refused. Findings are raised
    at the first error, by default. Errors: NK609 (no function, a class). Source: nki.simulate (NKI 0.6).
    """
    with AuthorsTraceback():
        if isinstance(kernel, Simulated):
            kernel = kernel.kernel
        if not isinstance(kernel, KernelObject):
            _check_function("nki.simulate takes a kernel", kernel)
        return Simulated(kernel if isinstance(kernel, KernelObject) else Kernel(kernel))


# The simulator's name before NKI 0.3, undocumented, which AWS's kernel library calls as cpu_simulate(kernel)[lnc](...).
cpu_simulate = simulate
