"""The part of a launch that the next launch of the kernel has in common with it: settings, and what they decide."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from nkitools.authors_code.called_functions import NamedFunctions, plain_function
from nkitools.chip.host_memory import HostMemory
from nkitools.chip.memory_region import MemoryRegion
from nkitools.facts import options
from nkitools.facts.generations import generation_of
from nkitools.facts.kept import Kept
from nkitools.facts.versions import LanguageVersion
from nkitools.launch.configuration import with_lnc_degree
from nkitools.launch.free_memory import memory_limit
from nkitools.launch.launch import Launch
from nkitools.launch.settings import DECIDING, settings_of
from nkitools.record.run import Run
from nkitools.record.source_sites import lines_of

_MAX_PLANS = 1_200  # of a chip, level, version and kind
_plans: dict[tuple[str, str, LanguageVersion, bool, str], Kept[tuple[Any, ...], Any]] = {}


class Prepared:
    """A launch with its settings and what follows from them, for all runs until an option or the kernel changes.

    ``launch``: with its LNC degree as grid. ``kernel``: the author's function. ``of_lines``: the settings by which a
    line of the kernel makes the same; ``lines``: what they have made, by these settings. ``silent``: the functions
    whose source has been looked at, with the configuration of the launch, and there was nothing to report.
    """

    def __init__(self, asked: Launch) -> None:
        self._overrides, self._variables = options.overrides(), options.variables(DECIDING)
        self.settings = settings = settings_of(asked)
        self.launch = launch = with_lnc_degree(asked, settings.lnc)
        self.kernel = plain_function(launch.function)
        self.of_lines = launch.dialect.name, *settings.of_lines
        self.lines = lines_of(self.kernel)
        self._has_run = False
        self._named: NamedFunctions | None = None
        self.silent: Sequence[FunctionType] | None = None
        self.generation = generation_of(settings.chip)
        self.full_precision = settings.precision != "precise"
        where = self.generation.name, settings.level, settings.language, settings.sum_order == "chip"
        declared = f"{settings.precision} as declared" if self.full_precision else "precise"
        self.plans = _plans_of(*where, declared)
        self.full_plans = _plans_of(*where, settings.precision) if self.full_precision else None
        self.programs = list(itertools.product(*(range(size) for size in launch.grid)))
        self.names = [f"program {', '.join(map(str, program)) or 0}" for program in self.programs]
        # Programs of an LNC launch share their inputs (simulator guide, "How It Works").
        self.memory = MemoryRegion.shared_hbm if launch.grid else MemoryRegion.private_hbm
        config = launch.compile_config
        self.spills = config is None or config.nki_alloc_fallback  # what NKI's allocation of SBUF fails on
        self._limits_memory = options.value("memory") is not None
        self._watch = options.value("watch")
        self.sets_breakpoints = options.variables(("PYTHONBREAKPOINT",))[0] is None

    def holds(self) -> bool:
        """Return True if options, environment and kernel are as they were at preparation."""
        return (
            options.overrides() is self._overrides
            and options.variables(DECIDING) == self._variables
            and plain_function(self.launch.function) is self.kernel
        )

    def functions(self) -> Sequence[FunctionType]:
        """Return the author's functions that the kernel names, the same tuple if nothing has changed; () at first."""
        if self._named is None:
            if self.kernel is None or not self._has_run:  # a launch may have one run alone
                self._has_run = True
                return ()
            self._named = NamedFunctions(self.kernel)
        return self._named.now()

    def host_memory(self) -> HostMemory:
        """Return the account of a run that begins: its limit is the option ``memory``, or what is free decides."""
        return HostMemory(memory_limit, at_once=self._limits_memory)

    def watched(self, run: Callable[..., Run], *args: Any) -> Run:
        """Return a run of this, recorded where the option ``watch`` says so, by whatever way in."""
        __tracebackhide__ = True
        if not self._watch:
            return run(self, *args)
        from nkitools.record.watch.probes import probing

        with probing(self._watch, of_option=True):
            return run(self, *args)


def prepared_for(launch: Launch) -> Prepared:
    """Return the prepared part of a launch, made anew if something has changed.

    ValueError and TypeError for a setting that means nothing.
    """
    known = launch.prepared
    if not isinstance(known, Prepared) or not known.holds():
        launch.prepared = known = Prepared(launch)
    return known


def _plans_of(
    generation: str, level: str, language: LanguageVersion, sums_in_order: bool, kind: str
) -> Kept[tuple[Any, ...], Any]:
    """Return the kept plans of a chip, level, version, order of sums and kind."""
    key = generation, level, language, sums_in_order, kind
    if key not in _plans:
        _plans[key] = Kept(f"plans of instructions on {generation}", _MAX_PLANS, "a plan takes about 1.4 KiB")
    return _plans[key]
