"""``nki.jit`` and the other ways in: without a Neuron device all of them run the simulator."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn, Unpack, overload

from nkitools.authors_code.instructions import is_dropped
from nkitools.chip.argument_types import Argument
from nkitools.dialects.legacy.aws_names.typing import FakeInput
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.kernels.error_codes import with_codes
from nkitools.dialects.legacy.kernels.kernel_checks import as_program, mutable_parameters
from nkitools.dialects.legacy.kernels.kernel_state import switches_of
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.kernels.simulated_calls import SimulatedCall
from nkitools.dialects.legacy.semantics import LEGACY
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.facts.light_classes import replace
from nkitools.launch.kept_arguments import Keeping
from nkitools.launch.kernel import KernelObject, P, grid_of, print_now
from nkitools.launch.launch import Launch, Said
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.rules.finding import refuse

MODES = ("auto", "jax", "torchxla", "baremetal", "benchmark", "simulation", "trace")
_ON_DEVICE = ("baremetal", "benchmark", "profile")

# AWS's own ways to simulate compute in float32 whatever the dtype, and old test suites were tuned to that.
# Source: NKI Known Issues, Unexpected Behavior, Simulation (SDK 2.26), which names bfloat16 and the float8 dtypes.
FULL = "full"

# Keywords for AWS's compiler, runtime or profiler that change no result of a simulated kernel.
COMPILER_KEYWORDS = frozenset({
    "additional_compile_opt", "artifacts_dir", "debug_kernel", "disable_allocation_opt", "enable_out_of_bound_check",
    "experimental_flags", "iters", "kernel_return", "num_execs", "overwrite", "profile_nth", "save_neff_name",
    "save_trace_name", "show_compiler_tb", "warmup", "working_directory",
})  # fmt: skip


class NoDevice(RuntimeError):
    """A measurement was asked for that only a Neuron device can make."""


class Latency:
    """``benchmark_result.nc_latency``, which only a device can measure."""

    def get_latency_percentile(self, percentile: int) -> NoReturn:
        """Refused: the simulator measures no time."""
        raise NoDevice(
            f"latency percentile {percentile}: there is no Neuron device on this machine, and the simulator measures "
            "no time. Run nki.benchmark on a Trainium or Inferentia2 instance."
        )


class BenchmarkResult:
    """``kernel.benchmark_result``."""

    def __init__(self) -> None:
        self.nc_latency = Latency()


class Kernel(KernelObject[P]):
    """A kernel of the legacy dialect. ``kernel[4, 2]`` sets the launch grid; inside a running kernel it runs inline."""

    def __getitem__(self, grid: int | tuple[int, ...]) -> KernelObject[P]:
        with AuthorsTraceback():
            try:
                return self.with_grid(grid)
            except (TypeError, ValueError) as error:
                remedy = "Write an integer of at least 1 for each dimension of the grid, kernel[4, 2]."
                refuse("NK609", f"kernel {self.__name__}: launch {error}", remedy=remedy)

    def with_grid(self, grid: int | tuple[int, ...]) -> KernelObject[P]:
        """Return the same kernel under a launch grid; a size of 0 is one program, as on the chip (NK621)."""
        asked = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        sizes = grid_of(tuple(1 if whole(size) == 0 else size for size in asked))
        made = type(self)(self.function, sizes, **{**self.options, "grid_asked": asked})
        made._program, made._inputs_kept = self._program, self._inputs_kept
        return made

    @property
    def mode(self) -> str:
        """Return the kernel's declared mode: a mode of jit, or ``profile``."""
        return str(self.options.get("mode", "auto"))

    @property
    def benchmark_result(self) -> BenchmarkResult:
        """The latencies of the last benchmark; asking for one is refused without a device."""
        return BenchmarkResult()

    @property
    def _returns_outputs(self) -> bool:
        """Return whether outputs are returned and inputs immutable; older kernels write outputs by reference."""
        returns = self.options.get("kernel_return", self.options.get("declared") == "jit")
        return bool(returns) and self.mode != "trace"

    @functools.cached_property
    def _declared(self) -> tuple[bool, frozenset[str]]:
        return self._returns_outputs, switches_of(self.function, self.options)

    @functools.cached_property
    def _inputs_kept(self) -> Keeping | None:
        """The treatment of immutable inputs, which stay as they are for the caller if NK406 does not end the run."""
        return Keeping(frozenset(mutable_parameters(self.function))) if self._returns_outputs else None

    @functools.cached_property
    def _program(self) -> Callable[..., Any]:
        returns_outputs, switches = self._declared
        return as_program(self.function, returns_outputs=returns_outputs, switches=switches)

    def launch(self, **said: Unpack[Said]) -> Launch:
        """Return the `Launch` that describes a call of this kernel, and run nothing; ``said``: further fields."""
        said.setdefault("chip", self.options.get("platform_target"))
        asked, kept = said.pop("keeping", None), self._inputs_kept
        if kept is not None:
            more = frozenset() if asked is None else asked.mutates
            said["keeping"] = replace(kept, mutates=kept.mutates | more) if more else kept
        return Launch(
            self._program,
            self.__name__,
            grid=self.grid,
            wrap=Tensor,
            dialect=LEGACY,
            returns_on_chip=True,
            reported=with_codes,
            grid_asked=self.options.get("grid_asked", ()),
            **said,
        )

    def simulate(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, usual_precision: str = "precise") -> Any:
        """Run the kernel on the simulator; device prints reach stdout as they come, as AWS's simulator does it."""
        return self._call(args, kwargs, usual_precision).outputs()

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], usual_precision: str) -> SimulatedCall:
        real = tuple(map(_real, args))
        named = {name: _real(value) for name, value in kwargs.items()} if kwargs else kwargs
        launch = self.launched(echo=print_now, usual_precision=usual_precision, results_as_declared=True)
        return SimulatedCall(launch, self._declared, real, named)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        __tracebackhide__ = True
        with AuthorsTraceback():
            if self.is_inside:
                return self.inline(args, kwargs)
            call = self._call(args, kwargs, FULL if self.mode == "simulation" else "precise")
            if self._only_measures(sys._getframe(1)) and call.was_simulated():
                _say_that_it_is_not_run(self.mode, self.__name__)
                return None
            if self.mode in _ON_DEVICE:
                _say_that_there_is_no_device(self.mode)
            return call.outputs()

    def _only_measures(self, caller: FrameType) -> bool:
        """Return whether nothing takes the result of a call that is to measure."""
        measures = self.mode in ("benchmark", "profile") and self._returns_outputs
        return measures and is_dropped(caller.f_code, caller.f_lasti)


def _real(value: Argument) -> Argument:
    return value.array() if isinstance(value, FakeInput) else value


@functools.cache
def _say_that_there_is_no_device(mode: str) -> None:
    """Once a process and way in."""
    print(f"nkitools: no Neuron device here, nki.{mode} runs the simulator and measures nothing", file=sys.stderr)


@functools.cache
def _say_that_it_is_not_run(mode: str, kernel: str) -> None:
    """Once a process, way in and kernel."""
    print(
        f"nkitools: no Neuron device here, nki.{mode} measures nothing: {kernel} was simulated before on such "
        "arguments, and is not simulated again where nothing takes its result",
        file=sys.stderr,
    )


# Of these the values are looked at: how often, and which files.
_COUNTS = frozenset({"iters", "num_execs", "profile_nth", "warmup"})
_NAMES = frozenset({"artifacts_dir", "save_neff_name", "save_trace_name", "working_directory"})


def _checked(name: str, kwargs: dict[str, Any]) -> None:
    unknown = sorted(set(kwargs) - COMPILER_KEYWORDS - {"platform_target"})
    if unknown:
        known = ", ".join(sorted(COMPILER_KEYWORDS | {"platform_target"}))
        refuse("NK609", f"nki.{name} does not know {', '.join(unknown)}", remedy=f"It knows {known}.")
    for keyword, value in kwargs.items():
        number = whole(value)
        if keyword in _COUNTS and (number is None or number < 0):
            refuse("NK609", f"nki.{name}: `{keyword}` must be a number of executions, it is {value!r}")
        if keyword in _NAMES and not isinstance(value, (str, os.PathLike)):
            refuse("NK609", f"nki.{name}: `{keyword}` must be a path, it is {value!r}")
    directory = kwargs.get("working_directory")
    if directory is not None and not os.path.isabs(directory):
        refuse("NK609", f"nki.{name}: `working_directory` must be an absolute path, it is {directory!r}")


def _decorated(name: str, function: Callable[..., Any] | None, mode: str, kwargs: dict[str, Any]) -> Any:
    with AuthorsTraceback():
        _checked(name, kwargs)
        if function is None:
            return lambda found: _decorated(name, found, mode, kwargs)
        if not callable(function):
            refuse("NK609", f"nki.{name} decorates a function, it is given {type(function).__name__}")
        # Declared again it stays what it was declared first: nki.benchmark(jit_kernel) still returns its outputs.
        declared = function.options.get("declared", name) if isinstance(function, Kernel) else name
        return Kernel(function, mode=mode, declared=declared, **kwargs)


@overload
def jit(func: Callable[P, Any], mode: str = "auto", **kwargs: Keyword) -> Kernel[P]: ...
@overload
def jit(func: None = None, mode: str = "auto", **kwargs: Keyword) -> Callable[[Callable[P, Any]], Kernel[P]]: ...
def jit(func: Callable[P, Any] | None = None, mode: str = "auto", **kwargs: Keyword) -> Any:
    """Return ``func`` as a kernel; without ``func`` a decorator, for ``@nki.jit(mode=...)``.

    ``mode``: ``auto``, ``jax``, ``torchxla``, ``baremetal``, ``benchmark``, ``simulation`` or ``trace``, another is
    NK609. All run the simulator. ``simulation`` computes as `simulate_kernel` does; the others round each value to its
    dtype, as the chip does. Arguments are immutable (NK406), except those annotated ``nt.mutable_tensor`` and all under
    ``trace``. ``platform_target`` names the chip. Keywords of AWS's compiler and profiler change nothing; others are
    NK609.
    """
    with AuthorsTraceback():
        if mode not in MODES:
            refuse("NK609", f"nki.jit: `mode` must be one of {', '.join(MODES)}, it is {mode!r}")
    return _decorated("jit", func, mode, kwargs)


def trace(func: Callable[..., Any] | None = None, **kwargs: Keyword) -> Any:
    """Return ``func`` as a kernel, or a helper of kernels, that may write its outputs into its arguments.

    A call runs the simulator and returns what ``func`` returns. Keywords are those of nki.jit (NK609).
    """
    return _decorated("trace", func, "trace", kwargs)


def baremetal(kernel: Callable[..., Any] | None = None, **kwargs: Keyword) -> Any:
    """Return ``kernel`` as a kernel that runs on the simulator, not on a device; a line on stderr says so once.

    It may write its outputs into its arguments, unless it is an nki.jit kernel. Keywords are those of nki.jit (NK609).
    """
    return _decorated("baremetal", kernel, "baremetal", kwargs)


def benchmark(kernel: Callable[..., Any] | None = None, **kwargs: Keyword) -> Any:
    """Return ``kernel`` as a kernel that runs on the simulator, which measures no time; a line on stderr says so once.

    Its ``benchmark_result`` raises NoDevice if a latency is asked for. A call whose result is not used does nothing if
    ``kernel`` is an nki.jit kernel that was simulated before with the same settings, on arguments of the same shapes,
    dtypes and numbers. All else is as for nki.baremetal.
    """
    return _decorated("benchmark", kernel, "benchmark", kwargs)


def profile(func: Callable[..., Any] | None = None, **kwargs: Keyword) -> Any:
    """Return ``func`` as a kernel that runs on the simulator, which makes no profile; all else as nki.benchmark."""
    return _decorated("profile", func, "profile", kwargs)


def simulate_kernel(kernel: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
    """Run a kernel (or ``kernel[grid]``, or a plain function) on the simulator and return its outputs.

    A kernel that takes its outputs by reference writes them into the given arrays. Values of bfloat16, float16 and
    other narrow floating-point dtypes are kept in float32 and rounded at the end, as AWS documents for its simulator
    (it names bfloat16 and float8). ``NKI_PRECISE_FP=1`` or the option ``precision`` rounds every value, as
    `nkitools.simulate` does.
    """
    __tracebackhide__ = True
    with AuthorsTraceback():
        if (isinstance(kernel, KernelObject) and not isinstance(kernel, Kernel)) or not callable(kernel):
            refuse("NK609", f"nki.simulate_kernel takes a kernel of neuronxcc.nki, it is given {kernel!r}")
        target = kernel if isinstance(kernel, Kernel) else Kernel(kernel, mode="trace")
        return target.simulate(args, kwargs, usual_precision=FULL)
