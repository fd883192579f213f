"""Errors in a launch's configuration and LNC degree, and hints if the chip may compute something else."""

from __future__ import annotations

import os

from nkitools.chip.core import Core
from nkitools.facts import options
from nkitools.facts.light_classes import replace
from nkitools.facts.versions import LanguageVersion, by_full_name
from nkitools.launch.compile_config import CompileConfig
from nkitools.launch.launch import Launch
from nkitools.rules.finding import refuse, report

RING = "NKI_PREFETCH_RING_SIZE"
DEGREE = "NEURON_LOGICAL_NC_CONFIG"


def check_configuration(launch: Launch, language: LanguageVersion) -> None:
    """Refuse a configuration that the NKI version lacks, or that the environment excludes (NK609)."""
    for name in ("compile_config", "specialization_config"):
        row = None if getattr(launch, name) is None else by_full_name()[f"nki.jit({name})"]
        if row is not None and not row.is_in(language):
            message = f"kernel {launch.name}: nki.jit's argument `{name}` {row.absence(language)}"
            refuse("NK609", message, remedy=row.instead)
    if launch.compile_config is not None and launch.compile_config.prefetch_auto and RING in os.environ:
        remedy = "Leave the option or the variable out: the compiler sizes the ring of prefetch_auto itself."
        refuse("NK609", f"kernel {launch.name}: prefetch_auto=True excludes {RING}", remedy=remedy)


def report_configuration(launch: Launch) -> None:
    """Report that the chip may compute something else (NK621), and LNC degrees that disagree (NK613, a warning)."""
    if launch.compile_config is not None and launch.compile_config.non_ssa_legalization:
        message = (
            f"kernel {launch.name} is compiled with non_ssa_legalization=True, which the simulator does not model; the "
            "chip may compute something else where a memory location is written more than once"
        )
        report("NK621", message, remedy="Compare the results with those of the chip.")
    if launch.environment_lnc:
        said = launch.grid[0] if launch.grid else 1
        message = (
            f"kernel {launch.name} is launched with LNC degree {said}, and {DEGREE} says {launch.environment_lnc}; "
            "the brackets decide here, AWS's compiler may refuse it (NCC_EVRF066)"
        )
        remedy = f"Launch the kernel without brackets, and set {DEGREE} alone."
        report("NK613", message, remedy=remedy, severity="warning")


def check_nested(core: Core, name: str, config: CompileConfig | None) -> None:
    """Refuse a nested kernel whose configuration disagrees with the outermost kernel's (NK610).

    If the outermost kernel allows that, its own configuration is used, with a warning. A nested kernel without a
    configuration never disagrees, and an outermost kernel without one has the defaults.
    """
    outer, allows = core.compile_config or CompileConfig(), core.allows_nested_configs
    if config is None or config == outer:
        return
    names = [name for name, value in vars(config).items() if value != getattr(outer, name)]
    shown = ", ".join(f"{each}={getattr(config, each)!s}" for each in names)
    message = f"nested kernel {name} has the CompileConfig {shown}, which disagrees with that of the outermost kernel"
    if allows:
        remedy = "Give both kernels the same CompileConfig."
        report("NK610", f"{message}; the outermost kernel's holds", remedy=remedy, severity="warning")
        return
    remedy = (
        "Give both kernels the same CompileConfig, or the outermost one "
        "specialization_config=SpecializationConfig(allow_nested_config_override=True)."
    )
    refuse("NK610", message, remedy=remedy)


def with_lnc_degree(launch: Launch, wanted: int) -> Launch:
    """Return a launch of the modern dialect with its LNC degree as grid: (2,), or () for degree 1.

    The brackets decide, then ``wanted``, the environment's degree (0: none), else it is 1.
    """
    if not launch.dialect.has_lnc_degrees or launch.grid not in ((), (1,), (2,)):
        return launch
    said = launch.grid[0] if launch.grid else 0
    grid = (2,) if (said or wanted or 1) == 2 else ()
    other = wanted if said and said != wanted else 0
    same = grid == launch.grid and other == launch.environment_lnc
    return launch if same else replace(launch, grid=grid, environment_lnc=other)


def lnc_degree_wanted(language: LanguageVersion) -> int:
    """Return the LNC degree that NEURON_LOGICAL_NC_CONFIG says, since NKI 0.7; 0 for none (NK613 but for 1 and 2)."""
    if not language.lnc_from_environment:
        return 0
    text = options.variable(DEGREE)
    if text not in ("", "1", "2"):
        refuse("NK613", f"{DEGREE} is {text!r}; the LNC degree is 1 or 2", remedy=f"Set {DEGREE} to 1 or 2.")
    return int(text or 0)
