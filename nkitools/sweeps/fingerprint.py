"""The content of a kernel and of its helpers as one hash: another one where a result may be another one.

Of a kernel that replay takes these are its reachable functions and the values that they read; of any other one the
files of the author's that it can reach.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import sysconfig
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from nkitools.replay.purity import Impure, reads_of

_FOREIGN = tuple({sysconfig.get_paths()[each] for each in ("stdlib", "platstdlib", "purelib", "platlib")})
_OURS = str(Path(__file__).parents[1])


def fingerprint(*functions: Any) -> str:
    """Return a hash of functions' sources and of all that they read; '' for a None among them."""
    digest = hashlib.sha256()
    for function in functions:
        digest.update(b"\0" if function is None else "\n".join(_parts(function)).encode())
    return digest.hexdigest()[:32]


def _parts(function: Any) -> list[str]:
    inner = inspect.unwrap(function) if callable(function) else function
    if not isinstance(inner, FunctionType):
        return _files(inner)
    try:
        reads = reads_of(inner)
    except Impure:
        return _files(inner)
    texts = [f"{each.__qualname__}\n{_source(each)}" for each, *_ in reads.functions.values()]
    values = [f"{name}={_shown(value)}" for *_, name, value in [*reads.globals.values(), *reads.attributes.values()]]
    cells = [_shown(value) for _, value in reads.cells.values()]
    return sorted(texts) + sorted(values) + sorted(cells)


def _source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return f"{function.__code__.co_code!r} {function.__code__.co_consts!r}"


def _shown(value: Any) -> str:
    """Return an immutable value's text; of a function or module its name, as its text has an address."""
    if isinstance(value, ModuleType):
        return value.__name__
    if callable(value) or repr(value).endswith(f"at {id(value):#x}>"):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value)


def _files(function: Any) -> list[str]:
    """Return the contents of the author's files that a function's module reaches by the names that it has."""
    first = sys.modules.get(str(getattr(function, "__module__", ""))) or inspect.getmodule(function)
    names = getattr(function, "__globals__", None)
    waiting: list[dict[str, Any]] = [names] if names is not None else ([vars(first)] if first else [])
    found: dict[str, str] = {}
    while waiting:
        space = waiting.pop()
        file = str(space.get("__file__") or "")
        if not file or file in found or file.startswith((_OURS, *_FOREIGN)):
            continue
        found[file] = Path(file).read_text(encoding="utf-8", errors="replace") if Path(file).is_file() else ""
        for value in list(space.values()):
            if isinstance(value, ModuleType):
                waiting.append(vars(value))
            elif (module := sys.modules.get(str(getattr(value, "__module__", "")))) is not None:
                waiting.append(vars(module))
    return [found[file] for file in sorted(found)] or [repr(type(function))]
