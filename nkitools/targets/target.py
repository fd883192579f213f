"""The interface of a target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from nkitools.facts import options
from nkitools.facts.generations import generation_of

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.record.run import Run
    from nkitools.targets.neff import DeviceTime


class Availability(NamedTuple):
    """The answer of a target: it can run here, or ``reason`` names what was looked for and not found."""

    ok: bool
    reason: str


class Prepared(NamedTuple):
    """A kernel compiled for a device, with its arguments there.

    ``launch()`` runs it once, returns when the device has finished, and gives the outputs as the device has them;
    ``fetch(outputs)`` brings those to the host in the kind of the arguments. ``compile_seconds``: the first call, with
    compilation and transfers. ``record()`` is called before each launch, which it prepares, and is not part of its
    time. ``device_time()``, where a launch is a round trip of the host, measures the device alone; it raises
    ``NoDeviceTime``. ``compile_cache`` says whether a cache of compiled kernels answered; empty where that is unknown.
    """

    launch: Callable[[], Any]
    fetch: Callable[[Any], Any]
    compile_seconds: float
    record: Callable[[], Any] | None = None
    device_time: Callable[[], DeviceTime] | None = None
    compile_cache: str = ""


class Target(ABC):
    """One place where a kernel can run.

    ``key`` is what options and marks call it, ``name`` what sentences do; ``prints`` says how device prints come.
    """

    key: str
    name: str
    prints: str

    @abstractmethod
    def available(self) -> Availability:
        """Return whether this machine has it. Cheap: it opens no device."""

    @abstractmethod
    def run(self, kernel: Kernel, /, *args: Argument, **kwargs: Any) -> Run:
        """Run ``kernel`` on arrays and say what happened.

        Raises ``NotModelled`` (NK607) for a kernel or an argument that this version cannot take to this target.
        """


class Device(Target):
    """A target that is hardware.

    Only one process at a time may have a unit of it (`units`), and a part of its environment must be set before a
    framework is imported (`environment`), so tests run their kernels in a process made for the device.
    """

    hidden: tuple[str, ...] = ()
    """Variables of the user that a process on the device must not have."""
    folders: tuple[str, ...] = ()
    """Variables that name a folder of the process's own, where the user has named none."""

    @abstractmethod
    def units(self) -> tuple[str, ...]:
        """Return what processes share the device by: its cores, or the device as a whole."""

    @abstractmethod
    def environment(self, unit: str) -> Mapping[str, str]:
        """Return the environment variables that give a process ``unit``, whatever the user has set."""

    def defaults(self) -> Mapping[str, str]:
        """Other environment variables of such a process; those that the user has set stay as they are."""
        return {}

    def locks(self, unit: str) -> tuple[str, ...]:
        """Return the parts of the device that a process with ``unit`` holds, each with a lock."""
        return (unit,)

    def of_degree(self, degree: int | None) -> Device:
        """Return the device with logical cores of ``degree`` physical ones (None: as the user has set it)."""
        return self

    @abstractmethod
    def chip(self) -> str:
        """Return the generation of the device as it says itself; empty where it does not say."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Return what a measurement must say of the machine: device, driver and package versions."""

    @abstractmethod
    def prepare(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Compile ``kernel`` and bring its arguments to the device, ready to be timed.

        Raises ``NotModelled`` (NK607) where nothing that is installed can launch without compiling again.
        """

    @abstractmethod
    def call(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run ``kernel`` once; the outputs, on the host, in the kind of the arguments."""

    def unfit(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return why ``kernel``, of a kind that runs here, was not written for this device; empty where it may be."""
        return ""

    def run(self, kernel: Kernel, /, *args: Argument, **kwargs: Any) -> Run:
        """Run ``kernel`` on the device; returns when it has finished.

        ``rules``, ``watch`` and their kin belong to simulation and are not among ``kwargs``. ``chip`` is the
        generation that the kernel is for. Raises what the device's packages raise, unchanged; `WrongDevice` where the
        device is of another generation than ``chip``; ``NotModelled`` as `Target.run`.
        """
        __tracebackhide__ = True
        from nkitools.record.run import Run
        from nkitools.record.run_session import session

        self.check_chip(kwargs.pop("chip", None))
        run = Run(kernel=kernel_name(kernel), target=self.key, chip=self.chip())
        with session(run):
            run.outputs = self.call(kernel, args, kwargs)
        return run

    def check_chip(self, asked: options.Value) -> None:
        """Raise `WrongDevice` where the device is of another generation than ``asked``, or than option ``chip``."""
        here, asked = self.chip(), asked or options.value("chip")
        if asked and here and generation_of(str(asked)) is not generation_of(here):
            raise WrongDevice(f"the kernel is to run on {asked}, and the {self.name} of this machine is of {here}")


class WrongDevice(Exception):
    """The device that is present is not the one that was asked for."""


class OtherDegree(Exception):
    """A kernel needs a process whose logical cores have another number of physical cores, ``degree``."""

    def __init__(self, message: str, degree: int) -> None:
        super().__init__(message)
        self.degree = degree


def refuse(kernel: Kernel, message: str, remedy: str) -> NoReturn:
    """Raise ``NotModelled`` at the definition of ``kernel``: no line of it has run yet that could be named."""
    __tracebackhide__ = True
    from nkitools.rules.finding import Finding, NotModelled

    code = getattr(function_of(kernel), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 0)
    raise NotModelled(Finding.of("NK607", message, (file, line, kernel_name(kernel)), remedy=remedy))


def kernel_name(kernel: Kernel) -> str:
    """Return the name of the author's function."""
    function = function_of(kernel)
    # torch's own object for an operator has no __name__.
    return str(getattr(function, "__name__", getattr(function, "_name", type(kernel).__name__)))


def function_of(kernel: Kernel) -> Any:
    """Return the author's function. AWS's kernel objects have it as ``func``, also where they do not wrap it."""
    function: Any = kernel
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    own = getattr(function, "func", None)
    return own if hasattr(own, "__code__") else function
