"""The author's own modules that a text imports, put before it: one file then needs none of the others."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path, PurePath

from nkitools.lint.project import OTHERS, Project

_MODULE = """
_module = types.ModuleType({name!r})
sys.modules[{name!r}] = _module
exec(compile({text!r}, {file!r}, "exec"), vars(_module))
"""
_LIBRARIES = ("numpy", "ml_dtypes", "jax", "torch")


class OwnModules:
    """The own modules of a run's kernel, each under a plain name. ``sources``: the texts of the run, by their paths."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._project = Project()
        self._names: dict[str, str] = {}
        self.statements: list[str] = []  # that make the modules, in their order

    def rewritten(self, text: str, file: str) -> str:
        """Return ``text``, part of ``file``, with imports of own modules by their plain names."""
        lines = text.splitlines(keepends=True)
        nodes = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Import | ast.ImportFrom)]
        for node in sorted(nodes, key=lambda each: (each.lineno, each.col_offset), reverse=True):
            said = self._import(node, file)
            if said:
                first, last = lines[node.lineno - 1], lines[(node.end_lineno or node.lineno) - 1]
                rest = last.encode()[node.end_col_offset :].decode()
                lines[node.lineno - 1 : node.end_lineno] = [first[: node.col_offset], said, rest]
        return "".join(lines)

    def _import(self, node: ast.Import | ast.ImportFrom, file: str) -> str:
        """Return what stands in the place of an import; '' where it leads to no own module."""
        if isinstance(node, ast.Import):
            parts = [self._plain(each, self._place(each.name, 0, file)) for each in node.names]
            return "; ".join(parts) if any(self._place(each.name, 0, file) for each in node.names) else ""
        found = self._place(node.module or "", node.level, file)
        if found and not _is_package(found):
            return f"from {self._named(found)} import {', '.join(map(_shown, node.names))}"
        parts = []
        for each in node.names:
            inner = self._place(f"{node.module or ''}.{each.name}".lstrip("."), node.level, file)
            if inner:
                parts.append(f"import {self._named(inner)} as {each.asname or each.name}")
            elif found:
                parts.append(f"from {self._named(found)} import {_shown(each)}")
        return "; ".join(parts)

    def _plain(self, alias: ast.alias, place: str) -> str:
        if not place or (alias.asname is None and "." in alias.name):
            return f"import {_shown(alias)}"
        return f"import {self._named(place)} as {alias.asname or alias.name}"

    def _place(self, module: str, level: int, file: str) -> str:
        """Return the file of an own module, in the run or beside its kernel; '' where an import leads to none."""
        parts = module.split(".") if module else []
        if not level and parts[0] in OTHERS:
            return ""
        folder = "" if not level else str(PurePath(file).parents[level - 1])
        ends = ["/".join([folder, *parts, "__init__.py"]), "/".join([folder, *parts]) + ".py"]
        for end in ends:
            found = [path for path in self._sources if f"/{path.lstrip('/')}".endswith(end)]
            if found or (level and Path(end).is_file()):
                return next(iter(found), end)
        found_one = None if level else self._project.find_from(module, file)
        return "" if found_one is None else found_one.path

    def _named(self, place: str) -> str:
        """Return the plain name of an own module, which is made before it is needed."""
        if place not in self._names:
            path = PurePath(place)
            name = path.parent.name if _is_package(place) else path.stem
            while name in {*self._names.values(), *OTHERS, *_LIBRARIES}:
                name += "_"
            self._names[place] = name
            text = self.rewritten(self._sources.get(place) or self._project.module(Path(place)).text, place)
            self.statements.append(_MODULE.format(name=name, text=text, file=path.name))
        return self._names[place]


def _is_package(place: str) -> bool:
    return PurePath(place).name == "__init__.py"


def _shown(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
