"""Python files as modules: where an import of a file starts, what it is called, and the file run by itself."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from nkitools.authors_code.known_modules import is_installed
from nkitools.authors_code.source_text import nodes_of
from nkitools.facts.pytest_ini import import_paths
from nkitools.lint.module import Unreadable, read
from nkitools.lint.project import project_directory

_modules: dict[str, ModuleType] = {}  # those that no import leads to, by their files
_roots: set[Path] = set()  # the folders that files were imported from


def text_of(path: Path) -> str:
    """Return the text of a file in its own encoding; '' if it cannot be decoded: running it gives Python's error."""
    try:
        return read(path)
    except Unreadable:
        return ""


def place_of(file: Path) -> Path:
    """Return the real path of a file, but keep links inside packages and links to names without .py."""
    path = Path(os.path.abspath(file))
    real = path.resolve()
    return path if (path.parent / "__init__.py").is_file() or real.suffix != ".py" else real


def module_of(name: str, file: str) -> ModuleType:
    """Return the module of a file: that of its name where an import leads to the file, else the file, run once."""
    there = sys.modules.get(name)
    if there is not None and _is_file(getattr(there, "__file__", None), file):
        return there
    if file not in _modules:
        root, dotted = module_place(Path(file))
        extend_path(root, Path(file))
        for each in dict.fromkeys((name, dotted)):
            if _leads_to(each, file):
                return importlib.import_module(each)
        _modules[file] = run_alone(Path(file), name.rpartition(".")[2])
    return _modules[file]


def known_modules() -> list[ModuleType]:
    """Return the modules that no import leads to."""
    return list(_modules.values())


def module_place(path: Path) -> tuple[Path, str]:
    """Return the folder that an import of the file starts from, and the module's dotted name.

    Packages are folders with an ``__init__.py``, as pytest has it, and those that relative imports of the file name.
    """
    root, parts = path.parent, [path.stem.replace(".", "_")]  # no import leads to a name with a dot
    if path.stem == "__init__":
        root, parts = root.parent, [root.name]
    relative = _relative_levels(path)
    while (root / "__init__.py").is_file() or len(parts) <= relative:
        if root == root.parent:
            break
        parts.insert(0, root.name)
        root = root.parent
    return root, ".".join(parts)


def _relative_levels(path: Path) -> int:
    """Return the number of folders that the file's relative imports go up: 1 for ``from .tiles import add``."""
    return max((each.level for each in nodes_of(text_of(path)) if isinstance(each, ast.ImportFrom)), default=0)


def extend_path(root: Path, path: Path) -> None:
    """Put on ``sys.path`` what a file is imported from: see `load`."""
    top = project_directory(path)
    # A json.py has another name as a module: a worker that starts with this path would take it for Python's json.
    last = [root] if root == path.parent and path.stem in sys.stdlib_module_names else []
    first = [*([] if last else [str(root)]), *import_paths(path)]
    sys.path[:0] = [each for each in dict.fromkeys(first) if each not in sys.path]
    sys.path += [str(each) for each in (*last, top, top / "src") if each.is_dir() and str(each) not in sys.path]


def forget_namesakes(root: Path) -> None:
    """Put the folder that imports of a file start from first, and forget modules of other such folders by these names.

    Else the second of two files would get the companion of the first one, where both have the same name.
    """
    others = _roots - {root}
    _roots.add(root)
    if str(root) in sys.path and others:
        sys.path.remove(str(root))
    here = {each.stem for each in root.glob("*.py")} | {each.parent.name for each in root.glob("*/__init__.py")}
    for name, module in list(sys.modules.items()):
        file, top = getattr(module, "__file__", None), name.partition(".")[0]
        if file is None or top not in here or top == "nkitools" or is_installed(file):
            continue
        if not Path(file).is_relative_to(root) and any(Path(file).is_relative_to(each) for each in others):
            del sys.modules[name]


class _TextLoader(SourceFileLoader):
    """Compiles the text of a file each time: Python's own cache takes two texts of one second and size for one."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the file as it is now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def run_alone(path: Path, name: str) -> ModuleType:
    """Run a file that is no module of a package; each call runs it anew."""
    taken = name in sys.stdlib_module_names or not _is_file(getattr(sys.modules.get(name), "__file__", str(path)), path)
    if taken:  # a kernel in select.py does not become Python's select
        name = f"nkitools_file_{name}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_TextLoader(name, str(path)))
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        raise
    _modules[str(path)] = module
    return module


def _leads_to(name: str, file: str) -> bool:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and _is_file(spec.origin, file)


def _is_file(one: str | None, other: str | Path) -> bool:
    return one is not None and Path(one).resolve() == Path(other).resolve()
