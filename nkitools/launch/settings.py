"""The settings of a launch: its rule level and its environment."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from nkitools.chip.chosen_chip import VARIABLES, resolve_chip
from nkitools.facts import options, versions
from nkitools.facts.kept import Kept
from nkitools.facts.light_classes import NamedTuple
from nkitools.launch.configuration import DEGREE, RING, lnc_degree_wanted
from nkitools.launch.launch import Launch

_PRECISE = "NKI_PRECISE_FP"
_OPTIONS = (
    "chip", "rules", "precision", "sum_order", "schedule_seed", "nki_version", "replay", "replay_threads", "watch",
    "memory",
)  # fmt: skip
# The environment variables that a launch reads.
DECIDING = (
    *(options.OPTIONS[name].env for name in _OPTIONS),
    *VARIABLES, _PRECISE, options.FRONT_END, DEGREE, RING, "PYTHONBREAKPOINT",
)  # fmt: skip
LEVELS = options.OPTIONS["rules"].choices
PRECISIONS = ("precise", "full")
_AWS_PRECISION = {"": "", "1": "precise", "0": "full"}


class Settings(NamedTuple):
    """The settings of runs: decided by the arguments of their launch, the options and the environment."""

    chip: str
    level: str  # of the rules
    precision: str
    sum_order: str
    seed: int | None  # of the order of programs
    language: versions.LanguageVersion
    nki_version: str  # that the language was asked for by
    lnc: int  # the degree that the environment wants, 0 for none

    @property
    def of_lines(self) -> tuple[Any, ...]:
        """Return the settings by which a line of a kernel makes the same and breaks the same rules."""
        return self.chip, self.level, self.precision, self.sum_order, self.language

    @property
    def asked(self) -> dict[str, Any]:
        """Return the arguments with which another run has the same settings, whatever the options are then."""
        return {"nki_version": self.nki_version, "sum_order": self.sum_order}

    def described(self, grid: tuple[int, ...]) -> dict[str, Any]:
        """Return the settings of the launch for a run, beside chip and precision."""
        return {
            "rules": self.level, "grid": list(grid), "schedule_seed": self.seed, "nki_version": self.language.name,
            "sum_order": self.sum_order,
        }  # fmt: skip


_kept = Kept[tuple[Any, ...], tuple[Any, Settings]](
    "settings by what decides them, each with the overrides that held then", 64, "a session of tests has a few"
)


def settings_of(launch: Launch) -> Settings:
    """Return the settings of a launch. ValueError and TypeError for an argument or option that means nothing."""
    over = options.overrides()
    key = (
        id(over), options.variables(DECIDING), launch.chip, launch.rules, launch.precision, launch.usual_precision,
        launch.sum_order, launch.nki_version, launch.dialect.name,
    )  # fmt: skip
    try:
        kept = _kept.get(key)
    except TypeError:  # one of them is a list, say, which is refused below
        kept = None
    if kept is not None and kept[0] is over:
        return kept[1]
    deciding = (
        resolve_chip(launch.chip),
        resolve_level(launch.rules),
        resolve_precision(launch.precision, launch.usual_precision),
        _chosen("sum_order", launch.sum_order, options.OPTIONS["sum_order"].choices),
        resolve_seed(),
        resolve_language(launch.nki_version, launch.dialect.name),
    )
    if options.asks_for_replay():
        options.say_that_nothing_is_replayed()
    asked = options.value("nki_version") if launch.nki_version is None else launch.nki_version
    wanted = lnc_degree_wanted(deciding[-1]) if launch.dialect.has_lnc_degrees else 0
    found = Settings(*deciding, str(asked), wanted)
    _kept[key] = over, found
    return found


def resolve_level(rules: str | None) -> str:
    """Return the rule level: the argument, else the option (``--nki-rules``, ``NKITOOLS_RULES``), else ``error``."""
    return _chosen("rules", rules, LEVELS)


def resolve_seed() -> int | None:
    """Return the seed of the order of programs (option ``schedule_seed``), None for their own order."""
    seed = options.value("schedule_seed")
    if seed is None:
        return None
    try:
        return int(seed)
    except ValueError:
        raise ValueError(f"option schedule_seed (NKITOOLS_SCHEDULE_SEED) is {seed!r}; it must be an integer") from None


def resolve_precision(precision: str | None, default: str = "precise") -> str:
    """``precise`` or ``full``: the argument, else the option (``--nki-precision``, ``NKITOOLS_PRECISION``), else AWS's.

    ``float64`` as an argument is that of a shadow run (`nkitools.precision.runs`), which no option asks for.
    AWS's is ``NKI_PRECISE_FP``, 1 or 0; nothing said, it is ``default``. Raises ValueError for anything else.
    """
    if precision == "float64":
        return precision
    if precision is None and options.value("precision") is None:
        said = options.variable(_PRECISE)
        if said not in _AWS_PRECISION:
            raise ValueError(f"NKI_PRECISE_FP is {said!r}; choose 1 (precise, the default) or 0 (full precision).")
        return _AWS_PRECISION[said] or default
    return _chosen("precision", precision, PRECISIONS)


def resolve_language(version: str | None, dialect: str) -> versions.LanguageVersion:
    """Return the NKI version of a launch: the argument, else the option; ValueError for one that there is not.

    The legacy dialect has one version.
    """
    return options.language(version).in_dialect(dialect)


def _chosen(name: str, argument: str | None, choices: Collection[str]) -> str:
    """Return the argument of a name, else the option of that name. ValueError where it is none of the choices."""
    chosen = options.value(name) if argument is None else argument
    if chosen not in choices:
        raise ValueError(f"{name}: must be one of {', '.join(choices)}, it is {chosen!r}")
    return str(chosen)
