"""Type stubs of ``nki`` and ``neuronxcc.nki``, for editors and type checkers, written from what the stand-in serves.

``python -m nkitools.dialects.stub_files [FOLDER]`` writes the packages ``nki-stubs`` and ``neuronxcc-stubs``
into a folder, by default that of the installed packages. The wheel has them. Both are marked partial: modules that
they do not have keep their own types.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import sysconfig
from collections.abc import Iterator
from enum import EnumMeta
from pathlib import Path
from types import ModuleType
from typing import Any

from nkitools.dialects.stand_in import modules_served
from nkitools.facts import versions
from nkitools.rules.finding import KernelError

_HEAD = """\
import builtins as _builtins
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, ParamSpec, TypeVar, overload

_P = ParamSpec("_P")
_R = TypeVar("_R")
"""
_TENSOR = '''
class NkiTensor:
    """A tensor or a tile of a kernel."""

    shape: tuple[_builtins.int, ...]
    dtype: Any
    def __getitem__(self, index: Any) -> NkiTensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __getattr__(self, name: _builtins.str) -> Any: ...
'''
_KERNEL = '''
class _Launched(Generic[_P, _R]):
    """A kernel: called, or specialised by a grid in brackets."""

    func: Callable[_P, _R]
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def __getitem__(self, grid: Any) -> Callable[_P, _R]: ...
'''
_DECORATOR = '''
@overload
def {name}({first}: Callable[_P, _R], /) -> _Launched[_P, _R]:
    """{doc}"""

@overload
def {name}({first}: None = ..., **options: Any) -> Callable[[Callable[_P, _R]], _Launched[_P, _R]]: ...
'''
# What takes a kernel and returns one, alone or with options.
_DECORATORS = frozenset({"jit", "trace", "baremetal", "benchmark", "profile"})
_BINARY = (
    "add", "and", "eq", "floordiv", "ge", "gt", "le", "lt", "matmul", "mod", "mul", "ne", "or", "pow", "sub", "truediv",
    "xor",
)  # fmt: skip
_REFLECTED = ("add", "and", "floordiv", "mod", "mul", "or", "pow", "sub", "truediv", "xor")
_PLAIN = (bool, int, float, str)


def write_stubs(folder: Path) -> list[Path]:
    """Write both packages below a folder, and return their files."""
    written = []
    for name, source in modules_served().items():
        first, *rest = name.split(".")
        path = folder.joinpath(f"{first}-stubs", *rest, "__init__.pyi")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(stub_of(name, importlib.import_module(source)), encoding="utf-8")
        written.append(path)
    for package in ("nki-stubs", "neuronxcc-stubs"):
        for each in (folder / package, *folder.joinpath(package).rglob("*/")):
            path = each / "__init__.pyi"
            if path not in written:
                path.touch()
                written.append(path)
        marker = folder / package / "py.typed"
        marker.write_text("partial\n", encoding="utf-8")
        written.append(marker)
    return written


def stub_of(name: str, module: ModuleType) -> str:
    """Return the stub of AWS's module ``name``, which ``module`` stands in for."""
    notes = _notes(name)
    is_legacy = name.startswith("neuronxcc")
    language = "neuronxcc.nki.language" if is_legacy else "nki.language"
    if name == language:
        parts = [_HEAD, _TENSOR, *(_operators() if is_legacy else ())]
    else:
        parts = [_HEAD, f"from {language} import NkiTensor\n"]
    parts += [_KERNEL if name in ("nki", "neuronxcc.nki") else ""]
    for each in sorted(module.__all__):
        value = getattr(module, each, None)
        if each != "NkiTensor" and each.isidentifier():
            parts += _member(each, value, notes.get(each, ""))
    return "".join(parts)


def _operators() -> Iterator[str]:
    """Yield the operators that tiles of the legacy dialect have."""
    for each in _BINARY:
        yield f"    def __{each}__(self, other: Any) -> Any: ...\n"
    yield from (f"    def __r{each}__(self, other: Any) -> Any: ...\n" for each in _REFLECTED)
    yield from (f"    def __{each}__(self) -> Any: ...\n" for each in ("neg", "pos", "invert", "iter"))


def _notes(name: str) -> dict[str, str]:
    """Return the notes of the table of versions on the names of a module."""
    found = {}
    for row in versions.rows():
        if row.module == name and "(" not in row.name and not row.name.startswith(("%", "@")):
            said = [f"Since NKI {row.since}."] * bool(row.since) + [f"Until NKI {row.until}."] * bool(row.until)
            found[row.name] = " ".join([*said, *([f"Instead: {row.instead}"] if row.instead else [])])
    return found


def _member(name: str, value: Any, note: str) -> Iterator[str]:
    doc = _doc(value, note)
    if name in _DECORATORS and callable(value):
        first = next(iter(inspect.signature(value).parameters))
        yield _DECORATOR.format(name=name, first=first, doc=doc)
    elif isinstance(value, EnumMeta):
        yield f"\nclass {name}(Enum):\n    " + f'"""{doc}"""\n\n'
        yield from (f"    {each} = ...\n" for each in value.__members__)
    elif inspect.isclass(value) or not callable(value) or not _is_signed(value):
        yield from _object(name, value, doc)
    else:
        yield f'\ndef {name}{_signature(value)}:\n    """{doc}"""\n'


def _is_signed(value: Any) -> bool:
    try:
        inspect.signature(value)
    except (TypeError, ValueError):
        return False
    return True


def _object(name: str, value: Any, doc: str) -> Iterator[str]:
    """Yield a class as one that may be called and subclassed, and anything else with its attributes."""
    if inspect.isclass(value):
        base = "(NkiTensor)" if name == "ndarray" else ""
        given = _signature(value, "self") if _is_signed(value) else "(self, *args: Any, **kwargs: Any) -> None"
        yield f'\nclass {name}{base}:\n    """{doc}"""\n\n    def __init__{given}: ...\n'
        yield "" if base else "    def __getattr__(self, name: _builtins.str) -> Any: ...\n"
        return
    names = [each for each in dir(value) if not each.startswith("_")]
    plain = {each: kind for each in names if (kind := _kind_of(value, each)) is not None}
    if type(value).__module__.startswith("nkitools") and len(plain) > 3 and not isinstance(type(value), EnumMeta):
        yield f"\nclass _{name}:\n" + "".join(f"    {each}: _builtins.{kind}\n" for each, kind in plain.items())
        yield f"    def __getattr__(self, name: _builtins.str) -> Any: ...\n\n{name}: _{name}\n"
    else:
        yield f"\n{name}: Any\n"


def _kind_of(value: Any, name: str) -> str | None:
    """Return the type of a plain attribute; None for another one, and for one that is refused."""
    try:
        kind = type(getattr(value, name))
    except KernelError:
        return None
    return kind.__name__ if kind in _PLAIN else None


def _signature(value: Any, first: str = "") -> str:
    signature = inspect.signature(value)
    parameters = [
        each.replace(annotation=_Text(_type(str(each.annotation))), default=_default(each))
        for each in signature.parameters.values()
    ]
    if first:
        is_bare = bool(parameters) and parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY
        kind = inspect.Parameter.POSITIONAL_ONLY if is_bare else inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.insert(0, inspect.Parameter(first, kind))
    returns = "None" if first else str(signature.return_annotation).strip("'")
    shown = {"NkiTensor": "NkiTensor", "Tensor": "NkiTensor", "None": "None"}.get(returns, "Any")
    return str(signature.replace(parameters=parameters, return_annotation=_Text(shown)))


class _Text:
    """A piece of source, which shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _type(annotation: str) -> str:
    """Return a type for a stub: ``str`` or ``bool``, else ``Any``, as registers and tiles may be passed."""
    said = annotation.strip("'")
    if re.fullmatch(r"(?:str|bool)(?: \| None)?", said):
        return re.sub(r"\b(str|bool)\b", r"_builtins.\1", said)
    return "Any"


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return parameter.empty
    return parameter.default if type(parameter.default) in (*_PLAIN, type(None)) else _Text("...")


def _doc(value: Any, note: str) -> str:
    is_own = inspect.isclass(value) or callable(value)
    text = "\n\n".join(filter(None, [(inspect.getdoc(value) or "") if is_own else "", note]))
    return text.replace("\\", "\\\\").replace('"""', "'''").replace("\n", "\n    ")


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(sysconfig.get_paths()["purelib"])
    print(f"{len(write_stubs(place))} files of type stubs in {place}")
