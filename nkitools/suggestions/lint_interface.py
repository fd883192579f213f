"""The names and signatures of NKI, as the dialects of nkitools have them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Mapping
from enum import EnumMeta
from functools import lru_cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from nkitools.dialects.call_form import language_here
from nkitools.dialects.legacy.kernels.kernel import COMPILER_KEYWORDS as LEGACY_KEYWORDS
from nkitools.dialects.legacy.kernels.keywords import UNDOCUMENTED
from nkitools.dialects.meant import Use, remedy_for
from nkitools.dialects.modern.kernel import COMPILER_KEYWORDS, CONFIGURATIONS, platform_target
from nkitools.dialects.public import plain_names, whole
from nkitools.dialects.stand_in import source_of
from nkitools.dialects.version_forms import narrowed
from nkitools.facts import versions
from nkitools.facts.invented_names import attribute_remedy, keyword_explained, keyword_remedy, size_remedy
from nkitools.issue.form import written_signature
from nkitools.lint.abstract_values import Value, short
from nkitools.lint.return_types import Arguments
from nkitools.rules.catalogue import removed_argument
from nkitools.rules.finding import KernelError

# Keywords that legacy functions take beside those of their signatures, `UNDOCUMENTED` aside.
_BESIDE = frozenset({"buffer", "dge_mode", "max_free_vec_size", "name", "perf_mode"})
_COMPLETE = ("nki.collectives.", "nki.compiler.", "nki.isa.", "nki.language.")
_OF_JIT = {
    "nki.jit": COMPILER_KEYWORDS | {"fn", *CONFIGURATIONS},
    **{f"neuronxcc.nki.{name}": LEGACY_KEYWORDS | {"platform_target", "mode", "func", "kernel"} for name in
       ("baremetal", "benchmark", "jit", "profile", "trace")},
}  # fmt: skip


class Dialects:
    """The interface of both dialects, the modern one under the NKI version that the option says."""

    def missing(self, name: str) -> tuple[str, str, str] | None:
        """Return rule, message and remedy where NKI certainly has no ``name``, else None."""
        return _missing(name, language_here())

    def meant(self, name: str, call: ast.Call | None, alone: bool) -> str:
        """Return the remedy for a missing name; '' if none is certain."""
        module, _, word = name.rpartition(".")
        use = Use(call, None, alone, in_line=True)
        return remedy_for(module, word, names_of(module), _parameters, use) if names_of(module) else ""

    def wrong_call(self, name: str, node: ast.Call) -> tuple[str, str, str] | None:
        """Rule, message and remedy where the arguments of a call do not fit the signature of ``name``."""
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            return None
        named = [each.arg for each in node.keywords if each.arg is not None]
        if name == "nki.jit" and "platform_target" in named:
            return "NK608", *platform_target()
        if name in _OF_JIT:
            return _of_another_version(name, named, language_here()) or _unknown(name, named, _OF_JIT[name], "")
        return _wrong_call(name, len(node.args), tuple(named), language_here())

    def form(self, name: str) -> str:
        """Return the call form of ``name`` as a sentence."""
        return _form_in(name, language_here())

    def bound(self, name: str, given: Arguments) -> dict[str, Value]:
        """Return the arguments of a call by their parameters; {} if they do not fit or are unknown."""
        if given.open:
            return {}
        places = _places(name, len(given.positional), tuple(given.named), language_here())
        values: dict[Any, Any] = {**dict(enumerate(given.positional)), **given.named}
        return {parameter: _valued(place, values) for parameter, place in places.items()}


def _valued(place: Any, values: Mapping[Any, Any]) -> Any:
    """Return the argument at a place of a call; those that one parameter takes together as a tuple or dictionary."""
    if isinstance(place, tuple):
        return tuple(values[each] for each in place)
    return {each: values[each] for each in place} if isinstance(place, dict) else values[place]


@lru_cache(maxsize=4096)
def _places(name: str, count: int, named: tuple[str, ...], language: versions.LanguageVersion) -> dict[str, Any]:
    """Return the places of a call's arguments, positions and names, by parameters; {} where they do not fit."""
    signature = _signature_in(name, language)
    try:
        return {} if signature is None else signature.bind(*range(count), **{each: each for each in named}).arguments
    except TypeError:
        return {}


@lru_cache(maxsize=4096)
def _wrong_call(
    name: str, count: int, named: tuple[str, ...], language: versions.LanguageVersion
) -> tuple[str, str, str] | None:
    """Return rule, message and remedy where so many arguments by position and these by name do not fit."""
    signature = _signature_in(name, language)
    if signature is None:
        return None
    form = _form_in(name, language)
    other = _of_another_version(name, named, language)
    if other is not None:
        return *other[:2], other[2] or form
    try:
        signature.bind(*[None] * count, **dict.fromkeys(named))
    except TypeError as error:
        argument, instead = removed_argument(error)
        if instead and not name.startswith("neuronxcc."):
            return "NK608", f"{short(name)}: the argument `{argument}` was removed from NKI", instead
        unknown = [each for each in named if each not in signature.parameters]
        meant = "".join(keyword_remedy(each, signature.parameters, named) for each in unknown[:1])
        return "NK609", f"{short(name)}: {error}", meant + form
    if any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
        known = {*signature.parameters, *_BESIDE, *UNDOCUMENTED.get(short(name), ())}
        return _unknown(name, named, frozenset(known), form)
    return None


def _unknown(name: str, named: Collection[str], known: frozenset[str], form: str) -> tuple[str, str, str] | None:
    unknown = sorted(set(named) - known)
    if not unknown:
        return None
    message = f"{short(name)} does not know the keyword argument `{'`, `'.join(unknown)}`"
    meant = keyword_remedy(unknown[0], known, named)
    return "NK609", message, meant + (form or f"It knows {', '.join(sorted(known))}.")


@lru_cache(maxsize=1024)
def _form_in(name: str, language: versions.LanguageVersion) -> str:
    signature = _signature_in(name, language)
    return "" if signature is None else f"The call form is {short(name)}{_shown(signature)}."


def _shown(signature: inspect.Signature) -> str:
    """Return a signature without annotations, as it is written."""
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return written_signature(signature.replace(parameters=bare, return_annotation=signature.empty)).replace("'", "")


@lru_cache(maxsize=1024)
def module_of(dotted: str) -> ModuleType | None:
    """Return the module that stands in for one of AWS's; None for an unknown one."""
    source = source_of(dotted)
    return None if source is None else import_module(source)


def _split(name: str) -> tuple[ModuleType | None, list[str]]:
    """Return the module that a dotted name begins with, and the rest of it."""
    words = name.split(".")
    for count in range(len(words), 0, -1):
        module = module_of(".".join(words[:count]))
        if module is not None:
            return module, words[count:]
    return None, words


@lru_cache(maxsize=1024)
def _missing(name: str, language: versions.LanguageVersion) -> tuple[str, str, str] | None:
    module, rest = _split(name)
    foreign = name.partition(".")[0] not in ("nki", "neuronxcc")
    if foreign or module is None or not rest or rest[0].startswith("_"):
        return None
    if len(rest) == 2 and rest[0] in ("NkiTensor", "tile_size"):
        return _missing_member(whole(vars(module), rest[0]), *rest)
    if rest[0] in plain_names(vars(module)):
        return None
    try:
        getattr(module, rest[0])
    except KernelError as error:
        found = error.finding
        # AWS has names beyond its documentation. The list is complete only for the modules that kernels use.
        plain = len(rest) == 1 and name.startswith(_COMPLETE)
        known = found.rule == "NK608" or plain
        return (found.rule, found.message, found.remedy) if known else None
    except AttributeError:
        return None
    return None


def _missing_member(owner: Any, name: str, member: str) -> tuple[str, str, str] | None:
    if member.startswith("_") or hasattr(owner if isinstance(owner, type) else type(owner), member):
        return None
    if name == "tile_size":
        return "NK607", f"nl.tile_size has no `{member}`", size_remedy(member, type(owner))
    remedy = attribute_remedy(member)
    return ("NK601", f"a tensor has no attribute `{member}`", remedy) if remedy else None


def _of_another_version(
    name: str, named: Collection[str], language: versions.LanguageVersion
) -> tuple[str, str, str] | None:
    """Rule, message and remedy where a call names an argument that the version does not have."""
    for row in _changes(name):
        if row.parameter in named and not row.default and not row.is_in(language):
            rule = "NK608" if row.is_gone(language) else "NK609"
            return rule, f"{short(name)}: the argument `{row.parameter}` {row.absence(language)}", row.instead
    return None


def _changes(name: str) -> tuple[versions.Row, ...]:
    module, _, function = name.rpartition(".")
    return tuple(row for row in versions.parameters_of(module, function) if row.owner != "*")


def _signature(name: str) -> inspect.Signature | None:
    return _signature_in(name, language_here())


@lru_cache(maxsize=1024)
def _signature_in(name: str, language: versions.LanguageVersion) -> inspect.Signature | None:
    found = _whole_signature(name)
    return found if found is None else narrowed(found, _changes(name), language)


@lru_cache(maxsize=1024)
def _whole_signature(name: str) -> inspect.Signature | None:
    module, rest = _split(name)
    if module is None or len(rest) != 1 or rest[0] not in module.__all__:
        return None
    found: Any = whole(vars(module), rest[0])
    if isinstance(found, EnumMeta) or not callable(found):  # from Python 3.13 on each enum class has a signature
        return None
    if isinstance(found, FunctionType) or hasattr(type(found), "__signature__") or hasattr(found, "__signature__"):
        return inspect.signature(found)
    return None


def parameters_of(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a function of NKI, in order; none for an unknown one."""
    signature = _signature(name)
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return (
        () if signature is None else tuple(key for key, each in signature.parameters.items() if each.kind not in kinds)
    )


def required_of(name: str) -> tuple[str, ...]:
    """Return the parameters of a function of NKI that a call must give; none for an unknown function."""
    signature = _signature(name)
    every = () if signature is None else signature.parameters.items()
    return tuple(key for key, each in every if each.default is each.empty and key in parameters_of(name))


def names_of(module: str) -> list[str]:
    """Return the public names of a module of NKI; none for an unknown one."""
    found = module_of(module)
    return [] if found is None else list(found.__all__)


def _parameters(module: str, name: str) -> Mapping[str, inspect.Parameter]:
    found = _signature(f"{module}.{name}")
    return {} if found is None else found.parameters


def explained(name: str) -> str:
    """Return the remedy for an invented name of a function or of a keyword (``scr=``); '' for an unknown one."""
    if name.endswith("="):
        return keyword_explained(name)
    root, _, word = name.rpartition(".")
    module = {"": "nki.isa", "nl": "nki.language", "nisa": "nki.isa"}.get(root, root)
    return remedy_for(module, word, names_of(module), _parameters) if names_of(module) else ""
