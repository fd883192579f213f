"""``nki.compiler.frontend``, undocumented: what AWS's kernel library and benchmarks on the chip trace kernels with.

Tracing runs a kernel's Python and issues its instructions. Here the simulator does so, by all of its rules. There is no
module of the compiler to go on with: what asks for one is refused (NK607).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from nkitools.chip.argument_types import Argument, Kernel
from nkitools.launch.frameworks import framework_of
from nkitools.launch.kernel import as_launch
from nkitools.launch.nested_arguments import mapped
from nkitools.launch.programs import run_launch
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.record.run import Run
from nkitools.rules.finding import not_modelled, refuse

__all__ = ["CompilationResult", "NKIFrontend", "ParserFrontend", "TracerFrontend"]


class CompilationResult:
    """A traced kernel: its ``function_name``, its ``run`` on the simulator, and the run's ``outputs`` by their names.

    Every other attribute of AWS's result belongs to its compiler: NK607.
    """

    def __init__(self, function_name: str, run: Run, outputs: dict[str, Any]) -> None:
        self.function_name = function_name
        self.run = run
        self.outputs = outputs

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        message = f"CompilationResult.{name}: nkitools runs a kernel where AWS's compiler translates it"
        not_modelled(message, remedy="Ask for .run or .outputs, or run this file with AWS's own packages.")


class NKIFrontend:
    """The base of the front ends: `ParserFrontend` reads a kernel's source, `TracerFrontend` runs its Python.

    Both run it here. Which of the two languages holds says the NKI version (`nki_version`).
    """

    def compile(
        self,
        kernel: Kernel,
        *,
        inputs: Mapping[str, Argument],
        target: str | None = None,
        lnc: int = 1,
        artifacts_dir: str | None = None,
        output_names: Sequence[str] | None = None,
        dump_python_ast: bool = False,
    ) -> CompilationResult:
        """Run a kernel on copies of its arguments, and return the run.

        ``inputs``: the arguments by their names; ``target``: the chip; ``lnc``: the LNC degree; ``output_names``: one
        for each result (default: ``output_0`` and so on). No file is written, also into no ``artifacts_dir``.
        Errors: those of the kernel; NK609 for other numbers of names, NK607 for ``dump_python_ast``.
        """
        with AuthorsTraceback():
            if dump_python_ast:
                not_modelled("NKIFrontend.compile(dump_python_ast=True): nkitools makes no such tree of a kernel")
            launch = as_launch(kernel, grid=lnc, chip=target)
            run = run_launch(launch, (), mapped(dict(inputs), partial(_copied, {})))
            return CompilationResult(launch.name, run, _named(launch.name, run.outputs, output_names))


class ParserFrontend(NKIFrontend):
    """The front end of NKI 0.6, as far as it goes here (`NKIFrontend`)."""


class TracerFrontend(NKIFrontend):
    """The front end of NKI 0.7, as far as it goes here (`NKIFrontend`)."""


def _copied(copies: dict[int, Any], value: Argument) -> Any:
    """Return a copy of an array, of the same array the same one: to compile a kernel changes no argument."""
    return value if framework_of(value) is None else copy.deepcopy(value, copies)


def _named(kernel: str, outputs: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the results by their names."""
    results = outputs if isinstance(outputs, (tuple, list)) else () if outputs is None else (outputs,)
    if names is None:
        names = [f"output_{number}" for number in range(len(results))]
    if len(names) != len(results):
        refuse("NK609", f"output_names: kernel {kernel} has {len(results)} results, {len(names)} are named")
    return dict(zip(names, results, strict=True))
