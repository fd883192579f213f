"""The interface of NKI for lint, its answers kept in the user's cache, so that no dialect is imported again.

An answer depends on the name, on how a call's arguments are given, on the NKI version and on the package's sources. A
file of answers belongs to one state of these sources.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkitools.facts import __version__, options
from nkitools.lint.abstract_values import Value
from nkitools.lint.return_types import Arguments
from nkitools.record.whole_file import write_whole

if TYPE_CHECKING:
    from nkitools.suggestions.lint_interface import Dialects

_PACKAGE = Path(__file__).parents[1]
_MOST_ANSWERS = 20_000
_SOURCES = (".py", ".toml", ".tsv")


class RememberedInterface:
    """Answers as `Dialects` does, from a file if the same question was answered before."""

    def __init__(self) -> None:
        self._path = options.cache_directory() / "lint" / f"{_state_of_sources()}.json"
        self._answers: dict[str, Any] = {}
        self._is_new = False
        with suppress(OSError, ValueError):
            found = json.loads(self._path.read_text(encoding="utf-8"))
            self._answers = found if isinstance(found, dict) else {}

    @cached_property
    def _dialects(self) -> Dialects:
        from nkitools.suggestions.lint_interface import Dialects

        return Dialects()

    def missing(self, name: str) -> tuple[str, str, str] | None:
        """Return rule, message and remedy if NKI certainly has no ``name``, else None."""
        found = self._answer(f"missing {name}", lambda: self._dialects.missing(name))
        return None if found is None else (found[0], found[1], found[2])

    def meant(self, name: str, call: ast.Call | None, alone: bool) -> str:
        """Return the call to write for a missing name; '' if none is certain."""
        text = "" if call is None else ast.unparse(call)
        return str(self._answer(f"meant {name} {alone} {text}", lambda: self._dialects.meant(name, call, alone)))

    def wrong_call(self, name: str, node: ast.Call) -> tuple[str, str, str] | None:
        """Return rule, message and remedy if the arguments of a call do not fit the signature of ``name``."""
        stars = any(isinstance(each, ast.Starred) for each in node.args) or any(not each.arg for each in node.keywords)
        form = f"{len(node.args)}{'*' * stars}:{','.join(str(each.arg) for each in node.keywords)}"
        found = self._answer(f"call {name} {form}", lambda: self._dialects.wrong_call(name, node))
        return None if found is None else (found[0], found[1], found[2])

    def form(self, name: str) -> str:
        """Return the call form of ``name`` as a sentence."""
        return str(self._answer(f"form {name}", lambda: self._dialects.form(name)))

    def bound(self, name: str, given: Arguments) -> dict[str, Value]:
        """Return the arguments of a call by their parameters; {} if they do not fit or are unknown."""
        form = f"{len(given.positional)}{'*' * given.open}:{','.join(given.named)}"
        found = self._answer(f"bound {name} {form}", lambda: self._places(name, given))
        every: dict[Any, Value] = {**dict(enumerate(given.positional)), **given.named}
        return {parameter: _filled(place, every) for parameter, place in found.items()}

    def _places(self, name: str, given: Arguments) -> dict[str, Any]:
        """Return for each parameter the position or name of its argument; a list or an object of them for * and **."""
        positional: Any = tuple(range(len(given.positional)))
        named: Any = {each: each for each in given.named}
        return dict(self._dialects.bound(name, Arguments(positional, named, given.open)))

    def _answer(self, question: str, ask: Callable[[], Any]) -> Any:
        language = options.language()
        key = f"{language.name} {language.is_said} {language.former_front_end} {question}"
        if key not in self._answers:
            self._answers[key] = ask()
            self._is_new = True
        return self._answers[key]

    def keep(self) -> None:
        """Write the answers if there are new ones and the cache can be written."""
        if self._is_new and len(self._answers) <= _MOST_ANSWERS:
            with suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                for old in self._path.parent.glob("*.json"):
                    if old != self._path:
                        old.unlink()
                write_whole(self._path, json.dumps(self._answers))


def _filled(place: Any, given: dict[Any, Value]) -> Any:
    if isinstance(place, (list, tuple)):
        return tuple(given[each] for each in place)
    return {key: given[each] for key, each in place.items()} if isinstance(place, dict) else given[place]


def _state_of_sources() -> str:
    """Return a name for the package as it is: its version, and when and how large its sources are."""
    said = []
    for folder, _, files in os.walk(_PACKAGE):
        for name in files:
            if name.endswith(_SOURCES):
                status = os.stat(os.path.join(folder, name))
                said.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join([__version__, sys.version, *sorted(said)]).encode()).hexdigest()[:32]
