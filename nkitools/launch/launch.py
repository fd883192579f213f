"""A launch: the kernel, its grid and how to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from nkitools.chip.dialect_semantics import MODERN, DialectSemantics
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import dataclass, field
from nkitools.launch.compile_config import CompileConfig, SpecializationConfig
from nkitools.launch.kept_arguments import Keeping
from nkitools.rules.finding import Reporter as Report

if TYPE_CHECKING:
    from nkitools.launch.schedule import Schedule


class Preparation(Protocol):
    """The part of a launch that all its runs have in common, see `nkitools.launch.prepared`."""

    def holds(self) -> bool:
        """Return True if nothing has changed since the preparation."""


class Said(TypedDict, total=False):
    """The fields of a `Launch` that its caller may set over the kernel's own."""

    chip: str | None
    nki_version: str
    rules: str
    sum_order: str
    usual_precision: str
    results_as_declared: bool
    echo: Callable[[str], None]
    keeping: Keeping


@dataclass(eq=False)  # not frozen, which takes three times as long to make: one is made for each call
class Launch:
    """One kernel call: the function, its grid, chip and settings.

    - ``wrap``: converts an argument's tensor into the object that the ``dialect`` passes to kernels.
    - ``precision``: ``precise`` or ``full``; by default the option's, else ``usual_precision``.
    - ``results_as_declared``: results have their tensors' dtypes also in full precision; otherwise float32 then.
    - ``returns_on_chip``: results may be tiles in SBUF or PSUM.
    - ``echo``: is called with the text of device prints as they come.
    - ``reported``: wraps the reporter, if the dialect adds to findings.
    """

    function: Callable[..., Any]
    name: str
    grid: tuple[int, ...] = ()
    grid_asked: tuple[int, ...] = ()  # what stands in the legacy dialect's brackets, which may have sizes of 0
    chip: str | None = None
    nki_version: str | None = None
    rules: str | None = None
    precision: str | None = None
    sum_order: str | None = None
    usual_precision: str = "precise"
    results_as_declared: bool = False
    returns_on_chip: bool = False
    wrap: Callable[[NkiTensor], Any] | None = None
    dialect: DialectSemantics = MODERN
    echo: Callable[[str], None] | None = None
    reported: Callable[[Report], Report] | None = None
    schedule: Schedule | None = None
    keeping: Keeping | None = None  # how arguments are treated that the kernel changes; None: in place, as AWS does
    compile_config: CompileConfig | None = None
    specialization_config: SpecializationConfig | None = None
    prepared: Preparation | None = field(default=None, init=False)  # for the runs of this launch
    environment_lnc: int = 0  # the LNC degree of the environment, where it is another one than that of the brackets
