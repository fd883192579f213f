"""The public names and parameters of each NKI version, since and until when: one table, in ``versions.tsv``.

The modules of the dialects, signatures, lint, messages and the coverage page are made from the table. A row
is about one of these, by the form of its ``name``:

- ``@0.6``: a version; ``instead`` is the release that brought it. The versions of the modern ``nki`` are the choices of
  the option ``nki_version``.
- ``activation``: a public name of a module; ``home`` is the module of nkitools that defines it, with ``:name`` where
  the definition is called otherwise. ``-`` is a name that AWS documents and nkitools refuses.
- ``activation(engine)``: a parameter, with a row only where versions differ. The definition has every parameter of
  every version and the defaults of the newest one; ``default`` is that of older versions. ``*(mask)``: a parameter of
  any function.
- ``tile_size.pmax``: a member. ``buffer='sbuf'``: a form of writing.
- ``%snake_topk``: a meaning, which is the field of that name of `LanguageVersion`. The field is True in the versions
  that the row gives; ``instead`` is what changed, as a sentence.

``since`` is the first version with it, ``until`` the first one without it (``?``: an earlier one than the table has),
``deprecated`` the first one that announces its end. ``instead`` is the sentence with its replacement. ``front_end`` is
``tracer`` where the change came with the tracing of kernels: the former front end of the compiler
(``NKI_COMPILER_FRONTEND=custom``) has what the version before had. A version so marked traces kernels. An empty cell
means that no version of the table differs.

The version that holds is that of the run (``nki_version=`` of `nkitools.simulate`, else the option), outside of a run
the option; code asks the `LanguageVersion` of the run, ``core.language``, and compares no versions. ``auto`` is the
newest version, where removed names still run, with NK618. The modules that stand in for AWS's serve runs of several
versions, so a name of any version is an attribute. It is refused where it is used in a run of a version that lacks it,
and where it is imported or read outside of a run while the option names such a version. A constant that is imported by
name before the run is not seen again.

The module needs the standard library only, so that options and rules can name it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, lru_cache

from nkitools.facts.generations import frozen_table
from nkitools.facts.light_classes import NamedTuple

AUTO = "auto"
MODERN, LEGACY = "nki", "neuronxcc.nki"
CUSTOM = "NKI_COMPILER_FRONTEND=custom"
FILES: tuple[str, ...] = (os.path.join(os.path.dirname(__file__), "versions.tsv"),)
_SHORT = {"nki.isa": "nisa", "nki.language": "nl", "neuronxcc.nki.isa": "nisa", "neuronxcc.nki.language": "nl"}


class Row(NamedTuple):
    """One row of the table; see the module's docstring for its cells."""

    module: str
    name: str
    home: str = ""
    since: str = ""
    until: str = ""
    deprecated: str = ""
    default: str = ""
    instead: str = ""
    front_end: str = ""

    @property
    def is_modelled(self) -> bool:
        """Return whether nkitools defines the name."""
        return self.home not in ("", "-")

    @property
    def owner(self) -> str:
        """Return the name whose parameter the row is about, "" for a row about a name."""
        return self.name.partition("(")[0] if self.name.endswith(")") else ""

    @property
    def parameter(self) -> str:
        """Return the parameter that the row is about, "" for a row about a name."""
        return self.name.partition("(")[2].removesuffix(")")

    @property
    def short(self) -> str:
        """Return the name as kernels write it: ``nisa.activation``."""
        return f"{short_of(self.module)}.{self.name}"

    def comes_after(self, language: LanguageVersion) -> bool:
        """Return whether ``language`` is too early for what the row is about."""
        return _number(self.since) > _number(self._version(language))

    def is_gone(self, language: LanguageVersion) -> bool:
        """Return whether ``language`` lacks what the row is about, which NKI has removed.

        Where no version is said, the oldest version decides.
        """
        exact = self._version(language) if self._own(language).is_said else versions_of(self.module)[0]
        return bool(self.until) and _number(self.until) <= _number(exact)

    def is_in(self, language: LanguageVersion) -> bool:
        """Return whether ``language`` has what the row is about."""
        return not self.comes_after(language) and not self.is_gone(language)

    def is_leaving(self, language: LanguageVersion) -> bool:
        """Return whether no version is said, and the newest version has removed what the row is about."""
        return self.is_in(language) and self.is_gone(self._own(language).strict)

    def is_announced(self, language: LanguageVersion) -> bool:
        """Return whether the row is about something that ``language`` is to lose."""
        return bool(self.deprecated) and _number(self.deprecated) <= _number(self._version(language))

    def _own(self, language: LanguageVersion) -> LanguageVersion:
        """Return the version of the row's own dialect that holds where ``language`` does."""
        return language.in_dialect(_dialect_of(self.module))

    def _version(self, language: LanguageVersion) -> str:
        """Return the version that ``language`` is for the row; the former front end is that of an earlier version."""
        seen = self._own(language)
        return _untraced(seen.dialect)[-1] if self.front_end and seen.former_front_end else seen.name

    def leave(self) -> str:
        """Return the sentence of NK618 about a name that the newest version has removed."""
        gone = self.absence(language_of(dialect=_dialect_of(self.module)))
        return f"{self.shown} {gone}; it runs because no version is said"

    @property
    def shown(self) -> str:
        """Return the row's subject as kernels write it: ``nl.softmax(dtype=...)``, ``while register:``."""
        if self.parameter:
            return f"{short_of(self.module)}.{self.owner}({self.parameter}=...)"
        return self.name if set(self.name) & set("= ") else self.short

    @property
    def is_known(self) -> bool:
        """Return whether some version of the table has what the row is about."""
        return any(self.is_in(each) for each in languages_of(self.module))

    @property
    def differs(self) -> bool:
        """Return whether some version of the table lacks what the row is about."""
        return bool(self.since or self.until) and not all(self.is_in(each) for each in languages_of(self.module))

    def absence(self, language: LanguageVersion) -> str:
        """Return the end of a sentence that says since or until when there is what the row is about."""
        seen = self._own(language)
        if self.comes_after(seen):
            return f"is public since NKI {self.since}; this is NKI {seen.shown}"
        return f"was removed {'from NKI' if self.until == '?' else f'in NKI {self.until}'}"


@frozen_table
class LanguageVersion:
    """One version of NKI: the names that it has, by the rows of the table, and what they mean.

    A row named ``%meaning`` decides each of the meanings.
    """

    name: str  # "0.7"; of the legacy dialect "2.26"
    dialect: str  # the module that kernels of the version import
    is_said: bool  # the caller named the version: False is ``auto``, where what the version removed still runs
    former_front_end: bool  # the compiler parses kernels as before NKI 0.7 (NKI_COMPILER_FRONTEND=custom)

    # --- meanings ---
    traced: bool = False  # Python runs a kernel, which may use all of Python
    lnc_from_environment: bool = False  # NEURON_LOGICAL_NC_CONFIG says the LNC degree of launches without brackets
    scalar_counters: bool = False  # the counter of fori_loop is a scalar, unless a bound is a register
    stated_ranks: bool = False  # tensor_scalar_reduce, tensor_copy_predicated: at most 4 dimensions; bn_aggr: dst 3
    wide_max8: bool = False  # max8 takes a src of 5 dimensions and a dst of 3
    snake_topk: bool = False  # topk fills whole positions of its 16 partitions, and promises no order
    mean_across_partitions: bool = False  # tensor_partition_reduce takes nl.mean and nl.bitwise_xor too
    reciprocal_operator: bool = False  # tensor_scalar takes nl.reciprocal
    whole_rms_norm: bool = False  # nl.rms_norm compiles
    host_sizes: bool = False  # nl.tile_size tells the sizes that differ by chip outside of kernels too
    hbm_addresses: bool = False  # nl.ndarray takes an address in HBM
    collective_handles: bool = False  # collectives return a handle
    places_between_nodes: bool = False  # all_to_all_v takes has_rdispls on chips without a NeuronSwitch too

    def __repr__(self) -> str:
        return f"<NKI {self.shown}>"

    @property
    def shown(self) -> str:
        """Return the version as sentences name it."""
        return f"{self.name} with {CUSTOM}" if self.former_front_end else self.name

    def in_dialect(self, dialect: str) -> LanguageVersion:
        """Return the version of a dialect that holds where this one does; another dialect than its own has one."""
        return self if self.dialect == dialect else language_of(dialect=dialect)

    @property
    def copies_objects(self) -> bool:
        """Return whether a kernel gets copies of the author's objects: a modern one, before Python runs kernels."""
        return self.dialect == MODERN and not self.traced

    @property
    def front_end_notice(self) -> Notice | None:
        """Return the finding of NK618 about the former front end; None if the version's own is used."""
        return notice(by_full_name()[f"{MODERN}.{CUSTOM}"], self) if self.former_front_end else None

    @property
    def strict(self) -> LanguageVersion:
        """Return the same version as if the caller had named it."""
        return language_of(self.name, former_front_end=self.former_front_end, dialect=self.dialect)


MEANINGS: tuple[str, ...] = tuple(name for name in LanguageVersion.__annotations__ if hasattr(LanguageVersion, name))


@cache
def language_of(version: str = AUTO, *, former_front_end: bool = False, dialect: str = MODERN) -> LanguageVersion:
    """Return the record of a version: of a dialect's newest one for ``auto``."""
    is_said = version != AUTO
    name = version if is_said else versions_of(dialect)[-1]
    former = former_front_end and name not in _untraced(dialect)
    bare = LanguageVersion(name=name, dialect=dialect, is_said=True, former_front_end=former)
    found = {row.name[1:]: row.is_in(bare) for row in rows() if row.module == dialect and row.name.startswith("%")}
    return LanguageVersion(**{**vars(bare), **found, "is_said": is_said})


@cache
def languages_of(module: str = MODERN) -> tuple[LanguageVersion, ...]:
    """Return the versions of the dialect that ``module`` belongs to, the oldest first, each as if it was said."""
    return tuple(language_of(each, dialect=_dialect_of(module)) for each in versions_of(module))


def short_of(module: str) -> str:
    """Return a module as kernels write it: ``nisa``."""
    return _SHORT.get(module, module)


def _number(version: str) -> tuple[float, ...]:
    """Return a version as numbers to compare; ``?`` and no version come before all others."""
    return tuple(map(int, version.split("."))) if version not in ("", "?") else ()


@cache
def _untraced(dialect: str) -> tuple[str, ...]:
    """Return the versions of a dialect without the tracer, the oldest first."""
    traced = {row.name[1:] for row in rows() if row.module == dialect and row.name[0] == "@" and row.front_end}
    return tuple(each for each in versions_of(dialect) if each not in traced)


def _dialect_of(module: str) -> str:
    return LEGACY if module.startswith(LEGACY) else MODERN


@cache
def _lines() -> tuple[str, ...]:
    found: list[str] = []
    for each in FILES:
        with open(each, encoding="utf-8") as file:
            found += file.read().splitlines()[1:]
    return tuple(found)


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of the table."""
    return tuple(Row(*line.split("\t")) for line in _lines())


@cache
def versions_of(module: str = MODERN) -> tuple[str, ...]:
    """Return the versions of the dialect that ``module`` belongs to, the oldest first.

    Every pytest session asks for them: no other row is made.
    """
    start = f"{_dialect_of(module)}\t@"
    found = (line.removeprefix(start).partition("\t")[0] for line in _lines() if line.startswith(start))
    return tuple(sorted(found, key=_number))


def release_of(dialect: str) -> str:
    """Return the release that brought the newest version of a dialect: ``SDK 2.32``."""
    name = f"@{versions_of(dialect)[-1]}"
    return next(row.instead for row in rows() if (row.module, row.name) == (dialect, name))


def choices() -> tuple[str, ...]:
    """Return the values of the option ``nki_version``."""
    return (AUTO, *versions_of())


@cache
def names_of(module: str) -> dict[str, Row]:
    """Return the rows of the names of ``module``, also of those that are gone."""
    return {row.name: row for row in rows() if row.module == module and row.name.isidentifier()}


@cache
def _of_parameters() -> dict[str, list[Row]]:
    """Return the rows of parameters, by the name of their function."""
    found: dict[str, list[Row]] = {}
    for row in rows():
        if row.owner:
            found.setdefault(row.owner, []).append(row)
    return found


@lru_cache(maxsize=4096)
def parameters_of(module: str, name: str) -> tuple[Row, ...]:
    """Return the rows of the parameters of ``name``, and of those of any function of the dialect."""
    own = [row for row in _of_parameters().get(name, ()) if row.module == module]
    return (*own, *(row for row in _of_parameters().get("*", ()) if module.startswith(f"{row.module}.")))


@cache
def by_full_name() -> dict[str, Row]:
    """Return the rows by module and name: ``nki.language.dynamic_range``."""
    return {f"{row.module}.{row.name}": row for row in rows()}


class Notice(NamedTuple):
    """The finding of NK618 about a name or a parameter."""

    severity: str  # warning where the newest version has removed it, hint where its end is announced
    message: str
    remedy: str


def notice(row: Row | None, language: LanguageVersion) -> Notice | None:
    """Return the finding of NK618 about a row under ``language``; None if there is none."""
    if row is None:
        return None
    if row.is_leaving(language):
        return Notice("warning", row.leave(), row.instead)
    if row.is_in(language) and row.is_announced(language):
        return Notice("hint", f"{row.shown} is deprecated since NKI {row.deprecated}", row.instead)
    return None


@lru_cache(maxsize=4096)
def notice_of(full_name: str, language: LanguageVersion) -> Notice | None:
    """Return the finding of NK618 about a name, ``nki.language.exp``; None if there is none."""
    return notice(by_full_name().get(full_name), language)


def removed() -> Iterator[tuple[str, str]]:
    """Yield what the modern dialect has lost, as kernels write it, each with what to write instead."""
    for row in rows():
        if row.until and row.instead and row.module in (MODERN, *_SHORT):
            yield f"{row.parameter}=" if row.parameter else row.shown, row.instead
