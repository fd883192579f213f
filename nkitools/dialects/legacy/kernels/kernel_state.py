"""The state of the running kernel: its declaration, and facts that only its end can judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import update_wrapper
from types import CodeType, FunctionType
from typing import Any

from nkitools.chip.tensor import NkiTensor
from nkitools.launch.kernel import KernelObject

# Switches of nki.compiler's decorators.
FORCE_AUTO_ALLOC = "force_auto_alloc"
SKIP_MIDDLE_END = "skip_middle_end_transformations"
STACK_ALLOCATOR = "enable_stack_allocator"

# Undocumented, but public kernels pass them to nki.jit as experimental_flags.
SKIP_SHARED_HBM_CHECK = "skip-non-top-level-shared-hbm-check"
SKIP_MUTABLE_RETURN_CHECK = "skip-mutable-return-check"


@dataclass
class Form:
    """The state of a running kernel."""

    switches: frozenset[str] = frozenset()  # of the kernel's declaration
    code: CodeType | None = None  # the kernel's own
    began: int = 0  # the number of instructions in the record when the kernel began
    # Tensors made with nl.ndarray and its kin; of automatic ones on chip the first of each site.
    declared: list[NkiTensor] = field(default_factory=list)
    created: set[int] = field(default_factory=set)  # the ids of all their storages
    sites: set[int] = field(default_factory=set)  # the sites of automatic tensors
    placed: set[int] = field(default_factory=set)  # storages placed by hand
    assigned: set[int] = field(default_factory=set)  # storages of assigned results that were not written in place
    unbiased: set[int] = field(default_factory=set)  # positions of nisa.activation calls without a bias
    loops: list[Any] = field(default_factory=list)  # the affine ranges that run (`loop_dependences`)
    updates: dict[int, int] = field(default_factory=dict)  # instructions in them that update their destination
    # Storages and sites of reported dependences, and places of masks joined by ``and``.
    reported: set[tuple[int, int]] = field(default_factory=set)
    traces: list[Any] = field(default_factory=list)  # of the loops that run (`traced_loops`)
    joining: Any = None  # a mask that waits for the right side of its ``and`` (`mask_and`)

    @property
    def automatic(self) -> bool:
        """Return whether direct allocation is ignored."""
        return FORCE_AUTO_ALLOC in self.switches

    def declare(self, tensor: NkiTensor) -> None:
        """Note a tensor that the kernel has created."""
        storage = tensor.storage
        self.created.add(storage.id)
        if storage.physical is not None:
            self.placed.add(storage.id)
        elif storage.on_chip:
            if storage.site in self.sites:
                return
            self.sites.add(storage.site)
        self.declared.append(tensor)


FORM: ContextVar[Form | None] = ContextVar("nkitools_legacy_form", default=None)

# Called where a tensor of the dialect is made; None without a watch.
TENSOR_MADE: ContextVar[Callable[[], None] | None] = ContextVar("nkitools_legacy_tensor_made", default=None)


def form_of() -> Form:
    """Return the form of the running kernel; one of no consequence outside of any, and in functions run as they are."""
    return FORM.get() or Form()


def experimental(flags: Any) -> frozenset[str]:
    """``experimental_flags=`` of nki.jit: names in a string, separated by commas, or in a list."""
    names: Iterable[Any] = flags.split(",") if isinstance(flags, str) else flags or ()
    return frozenset(str(name).strip() for name in names)


def switched(function: Any, name: str) -> Any:
    """Return a kernel or function like ``function``, with a switch, which jit keeps."""
    if isinstance(function, KernelObject):
        switches = switches_of(function.function, function.options) | {name}
        return type(function)(function.function, function.grid, **{**function.options, "switches": switches})
    if isinstance(function, FunctionType):
        copied = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        update_wrapper(copied, function)
        copied.__kwdefaults__, copied.__dict__ = function.__kwdefaults__, {**function.__dict__}
        function = copied
    function.nki_switches = getattr(function, "nki_switches", frozenset()) | {name}
    return function


def switches_of(function: Any, options: dict[str, Any]) -> frozenset[str]:
    """Return the switches of nki.compiler's decorators and experimental flags that a kernel was declared with."""
    marks: frozenset[str] = getattr(function, "nki_switches", frozenset())
    switches: frozenset[str] = options.get("switches", frozenset())
    return marks | switches | experimental(options.get("experimental_flags"))
