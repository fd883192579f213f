"""The names, numbers, operands and indices of a function, from which an edit takes what may stand in another place."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from nkitools.edits.source import FUNCTIONS, Source, callee, last_word, room

_SIZES = (
    "range",
    "affine_range",
    "sequential_range",
    "static_range",
    "program_id",
    "num_programs",
    "len",
    "min",
    "max",
)
_USUAL = {"language": "nl", "isa": "nisa", "numpy": "np"}
_PLACES = ("offset", "channel_multiplier", "base")
_OPERANDS = (
    "data", "data0", "data1", "data2", "src", "operand0", "operand1", "moving", "stationary", "bias", "scale",
    "initial", "predicate", "pred",
)  # fmt: skip


@dataclass(eq=False)
class Names:
    """The names that a function and those around it give to tensors, sizes and functions."""

    source: Source
    function: ast.AST

    @staticmethod
    def of(source: Source, node: ast.AST) -> Names:
        """Return those of the outermost function around a node."""
        function = [each for each in source.enclosing(node) if isinstance(each, FUNCTIONS)][-1]
        found = source.known.setdefault(function, None)
        if not isinstance(found, Names):
            found = source.known[function] = Names(source, function)
        return found

    @staticmethod
    def at(source: Source, line: int) -> Names | None:
        """Return those of the function at the top of the module that a line is in; None where there is none."""
        found = next((each for each in source.functions if each.lineno <= line <= (each.end_lineno or 0)), None)
        return None if found is None else Names.of(source, found.body[0])

    @cached_property
    def rooms(self) -> dict[str, str]:
        """The names by which the file has the modules of the language, with their usual ones."""
        found = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for each in node.names:
                    usual = _USUAL.get(each.name.rpartition(".")[2])
                    if usual is not None:
                        found[each.asname or each.name] = usual
        return found

    def room(self, call: ast.AST) -> str:
        """Return the usual name of the module whose function is called."""
        own = room(call)
        return self.rooms.get(own, own)

    @cached_property
    def nl(self) -> str:
        """The file's name of ``nl``."""
        return next((own for own, usual in self.rooms.items() if usual == "nl"), "nl")

    @cached_property
    def nisa(self) -> str:
        """The file's name of ``nisa``."""
        return next((own for own, usual in self.rooms.items() if usual == "nisa"), "nisa")

    def turns(self, line: int) -> list[str]:
        """Return the indices of tiles that loops around a line may mean, such as ``i * size : (i + 1) * size``."""
        found = []
        for node in ast.walk(self.function):
            if (
                isinstance(node, ast.For)
                and isinstance(node.target, ast.Name)
                and node.lineno < line <= (node.end_lineno or 0)
            ):
                at = node.target.id
                found.append(at)
                for size in self.sizes:
                    if size != at and (size.isupper() or self._assigned.get(size, (line, True))[0] < line):
                        found += [f"{at} * {size} : ({at} + 1) * {size}", f"{at} : {at} + {size}"]
        for node in ast.walk(self.function):
            if isinstance(node, ast.Assign) and node.lineno < line and isinstance(node.targets[0], ast.Tuple):
                names = [
                    each.id for each in node.targets[0].elts if isinstance(each, ast.Name) and each.id in self.sizes
                ]
                found += [f"{one} : {other}" for one in names for other in names if one != other]
        return found

    @cached_property
    def keywords(self) -> dict[str, list[str]]:
        """The keywords of the calls in the function, as they are written, by the last words of the called names."""
        found: dict[str, list[str]] = {}
        for node in ast.walk(self.function):
            if isinstance(node, ast.Call):
                found.setdefault(callee(node), []).extend(map(self.source.says, node.keywords))
        return found

    @cached_property
    def masks(self) -> list[str]:
        """The masks of calls, as they are written."""
        given = (each for every in self.keywords.values() for each in every)
        return list(dict.fromkeys(each[5:] for each in given if each.startswith("mask=")))

    @cached_property
    def comparisons(self) -> list[str]:
        """The comparisons in masks, as they are written."""
        return self._texts(
            each for each in ast.walk(self.function) if isinstance(each, ast.Compare) and self._is_of_mask(each)
        )

    def _is_of_mask(self, node: ast.AST) -> bool:
        around = self.source.parents[node]
        return isinstance(around, ast.keyword | ast.Assign) or isinstance(getattr(around, "op", None), ast.BitAnd)

    @cached_property
    def flags(self) -> list[str]:
        """The flags among the arguments: those that have a default of True or False."""
        assert isinstance(self.function, FUNCTIONS)
        given = self.function.args
        pairs = [*zip(reversed(given.args), reversed(given.defaults), strict=False)]
        named = [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
        return [each.arg for each, default in named if isinstance(getattr(default, "value", None), bool)]

    def bounds(self, line: int) -> list[str]:
        """Return the arguments of `min` in the function, and sizes less the counters of the loops around a line."""
        calls = [each for each in ast.walk(self.function) if callee(each) == "min" and isinstance(each, ast.Call)]
        found = [self.source.says(argument) for each in calls for argument in each.args]
        loops = [each for each in ast.walk(self.function) if isinstance(each, ast.For)]
        counters = [last_word(each.target) for each in loops if each.lineno < line <= (each.end_lineno or 0)]
        found += [f"{size} - {each}" for each in filter(None, counters) for size in self.sizes if size != each]
        return list(dict.fromkeys(found))

    def _texts(self, nodes: Iterable[ast.AST]) -> list[str]:
        return list(dict.fromkeys(map(self.source.says, nodes)))

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of the functions of the file."""
        return frozenset(each.name for each in ast.walk(self.source.tree) if isinstance(each, FUNCTIONS))

    @cached_property
    def numbers(self) -> list[float]:
        """The numbers that are written in the function, and those of the module's constants."""
        nodes = [*ast.walk(self.function), *(each.value for each in self.source.constants)]
        values = [each.value for each in nodes if isinstance(each, ast.Constant)]
        return list(
            dict.fromkeys(each for each in values if isinstance(each, int | float) and not isinstance(each, bool))
        )

    @cached_property
    def _assigned(self) -> dict[str, tuple[int, bool]]:
        """The names that are given values, each with its first line and whether it is a size."""
        found: dict[str, tuple[int, bool]] = {}
        for node in ast.walk(self.function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    names = [each for each in ast.walk(target) if isinstance(each, ast.Name)]
                    stored = [each.id for each in names if isinstance(each.ctx, ast.Store)]
                    is_size = _is_size(node.value, found)
                    for each in stored:
                        found.setdefault(each, (node.lineno, is_size))
            elif isinstance(node, ast.For | ast.comprehension):
                counters = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
                found = dict.fromkeys(counters, (node.iter.lineno, True)) | found
            elif isinstance(node, ast.Lambda):
                found |= {each.arg: (node.lineno, True) for each in node.args.args}
            elif isinstance(node, FUNCTIONS) and node is not self.function:  # the body of a loop counts first
                found |= {each.arg: (node.lineno, True) for each in node.args.args[:1]}
        return found

    @cached_property
    def arguments(self) -> list[str]:
        """The names of the function's arguments."""
        assert isinstance(self.function, FUNCTIONS)
        return [each.arg for each in (*self.function.args.args, *self.function.args.kwonlyargs)]

    @cached_property
    def numeric_arguments(self) -> list[str]:
        """The arguments that are computed with as numbers are, and never indexed, asked for a shape or passed on."""
        loads = [each for each in ast.walk(self.function) if isinstance(each, ast.Name) and each.id in self.arguments]
        around = [(each.id, self.source.parents[each]) for each in loads]
        of_tensors = {name for name, each in around if isinstance(each, ast.Subscript | ast.Attribute | ast.Call)}
        of_numbers = {
            name
            for name, each in around
            if isinstance(each, ast.BinOp | ast.Compare | ast.Slice) or getattr(each, "arg", "") in _PLACES
        }
        return [each for each in self.arguments if each in of_numbers - of_tensors]

    @cached_property
    def unread(self) -> frozenset[str]:
        """The names that the function or its module gives a value and nothing reads: one may be missing somewhere."""
        loads = [
            each for each in ast.walk(self.function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
        ]
        read = {each.id for each in loads if not self._is_written(each)}
        constants = {last_word(target) for each in self.source.constants for target in each.targets}
        everywhere = {
            each.id for each in ast.walk(self.source.tree) if isinstance(each, ast.Name) and each.id in constants
        }
        used = {each.id for each in self.source.nodes if isinstance(each, ast.Name)}
        return frozenset(({*self._assigned, *self.arguments} - read) | ((constants & everywhere) - used))

    def _is_written(self, node: ast.AST) -> bool:
        """Return whether a name stands where an instruction or an assignment puts its result."""
        around = self.source.parents[node]
        while isinstance(around, ast.Subscript):
            if isinstance(around.ctx, ast.Store):
                return True
            node, around = around, self.source.parents[around]
        return isinstance(around, ast.keyword) and around.arg == "dst"

    @cached_property
    def unread_shapes(self) -> list[str]:
        """The sizes of arguments whose shapes the function does not ask for."""
        asked = [each.value for each in ast.walk(self.function) if isinstance(each, ast.Attribute)]
        known = {*map(last_word, asked), *self.numeric_arguments}
        return [f"{each}.shape[{axis}]" for each in self.arguments if each not in known for axis in range(3)]

    @cached_property
    def sizes(self) -> list[str]:
        """The names of sizes and counters, and those of the module's numbers."""
        own = [name for name, (_, is_size) in self._assigned.items() if is_size]
        constants = [
            last_word(each.targets[0])
            for each in self.source.constants
            if isinstance(each.value, ast.Constant | ast.BinOp) and isinstance(each.targets[0], ast.Name)
        ]
        return list(dict.fromkeys([*own, *self.numeric_arguments, *constants]))

    @cached_property
    def tensors(self) -> list[str]:
        """The names of arguments, and all others but those of sizes."""
        arguments = [each for each in self.arguments if each not in self.numeric_arguments]
        return [*arguments, *(name for name, (_, is_size) in self._assigned.items() if not is_size)]

    def line_of(self, name: str) -> int:
        """Return the line that first gives a name a value; 0 for arguments and what the function does not know."""
        return self._assigned.get(name, (0, False))[0]

    def tensors_before(self, line: int) -> list[str]:
        """Return the tensors that have a value at a line, the latest one first."""
        own = [(first, name) for name, (first, is_size) in self._assigned.items() if not is_size and first < line]
        return [*(name for _, name in sorted(own, reverse=True)), *self.tensors[: len(self.tensors) - len(self._all)]]

    @cached_property
    def _all(self) -> list[str]:
        return [name for name, (_, is_size) in self._assigned.items() if not is_size]

    @cached_property
    def operands(self) -> list[str]:
        """The operands of instructions, and what is read by indices, as they are written."""
        found = []
        for node in ast.walk(self.function):
            if isinstance(node, ast.keyword) and node.arg in _OPERANDS:
                if isinstance(node.value, ast.Name | ast.Subscript):
                    found.append(self.source.says(node.value))
            elif isinstance(node, ast.Call):
                found += [self.source.says(each) for each in node.args if isinstance(each, ast.Subscript)]
            elif (
                isinstance(node, ast.Subscript)
                and isinstance(node.ctx, ast.Load)
                and "shape" not in self.source.says(node)
            ):
                found.append(self.source.says(node))
        return list(dict.fromkeys(found))

    @cached_property
    def indices(self) -> list[str]:
        """The indices and slices that are used, as they are written."""
        found = []
        for node in ast.walk(self.function):
            if isinstance(node, ast.Subscript):
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                found += [self.source.says(each) for each in parts if not isinstance(each, ast.Constant)]
        return list(dict.fromkeys(found))

    @cached_property
    def whole_indices(self) -> list[str]:
        """The indices of tensors as they are written, in their brackets, where they have several."""
        found = []
        for node in ast.walk(self.function):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
                found.append(self.source.says(node)[len(self.source.says(node.value)) :])
        return list(dict.fromkeys(found))

    @cached_property
    def dtypes(self) -> list[str]:
        """The dtypes that are named."""
        nodes = [
            each.value for each in ast.walk(self.function) if isinstance(each, ast.keyword) and each.arg == "dtype"
        ]
        return list(dict.fromkeys(map(self.source.says, nodes)))


def _is_size(value: ast.expr, known: dict[str, tuple[int, bool]]) -> bool:
    """Return whether an expression is a number that Python computes."""
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(_is_size(each, known) for each in value.elts)
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float)
    if isinstance(value, ast.BinOp):
        return _is_size(value.left, known) and _is_size(value.right, known)
    if isinstance(value, ast.UnaryOp):
        return _is_size(value.operand, known)
    if isinstance(value, ast.Call):
        return callee(value) in _SIZES
    if isinstance(value, ast.Name):
        return known.get(value.id, (0, value.id.isupper()))[1]
    if isinstance(value, ast.Subscript):
        return last_word(value.value) == "shape"
    return last_word(value) in ("shape", "size", "pmax", "psum_fmax", "gemm_moving_fmax", "gemm_stationary_fmax")
