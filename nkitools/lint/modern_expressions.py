"""The modern text of an expression of the legacy dialect: indices, masks, operators, calls that have another form."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from nkitools.edits.source import keyword, last_word
from nkitools.lint.legacy_indices import AXES, Indices
from nkitools.lint.module import Module
from nkitools.lint.rewriting import imported
from nkitools.lint.scope import Scope
from nkitools.rules.finding import Finding

Form = Callable[[str], tuple[str, ...]]  # the parameters of a function of NKI, by its dotted name

MAKERS = frozenset({"nki.baremetal", "nki.benchmark", "nki.profile", "nki.trace"})  # of kernels that are measured
OF_LEGACY_JIT = frozenset({"debug_kernel", "kernel_return", "mode", "platform_target", "show_compiler_tb"})
_RANGES = frozenset({"affine_range", "sequential_range", "static_range"})
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Eq: "equal", ast.NotEq: "not_equal", ast.Pow: "power",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.MatMult: "matmul",
    ast.LShift: "left_shift", ast.RShift: "right_shift", ast.USub: "negative", ast.Invert: "invert",
}  # fmt: skip
# Shape, dtype and memory of an instruction's result; {0} and {1} are its first operands. The others: as {0}.
RESULTS = {
    "nc_matmul": ("({0}.shape[1], {1}.shape[1])", "float32", "psum"),
    "nc_transpose": ("({0}.shape[1], {0}.shape[0])", "", "psum"),
    "tensor_reduce": ("({0}.shape[0], 1)", "", "sbuf"),
    "tensor_partition_reduce": ("(1, {0}.shape[1])", "", "sbuf"),
    "bn_stats": ("({0}.shape[0], 6)", "float32", "sbuf"),
    "bn_aggr": ("({0}.shape[0], 2)", "float32", "sbuf"),
    "max8": ("({0}.shape[0], 8)", "", "sbuf"),
    "nc_find_index8": ("({0}.shape[0], 8)", "uint32", "sbuf"),
}
# Functions of nl that make no tile.
_NO_TILES = frozenset({
    "affine_range", "arange", "device_print", "ds", "mgrid", "num_programs", "par_dim", "program_id", "program_ndim",
    "sequential_range", "static_range", "store"
})  # fmt: skip
_REDUCTIONS = frozenset({"max", "mean", "min", "prod", "sum"})
_AXES_SAID = " goes along several axes; a view by .ap() or .reshape() has them"


class Expressions:
    """Writes the expressions of a legacy file, parsed as if it imported the modern dialect.

    ``found``: the findings of lint in the file under the modern dialect. ``form``: what returns the parameters of a
    function.
    """

    def __init__(self, module: Module, found: Collection[Finding], form: Form) -> None:
        self._module, self._form = module, form
        self._nl = imported(module.scope, "nki.language") or "nl"
        self._isa = imported(module.scope, "nki.isa") or "nisa"
        of_tensors = (each for each in found if each.rule == "NK601")
        self._operators = {(each.line, each.column, each.facts.get("expression")) for each in of_tensors}
        self._found = {(each.rule, each.line) for each in found}
        self._left: dict[str, str] = {}  # places that the masks of the statement leave, by axis
        self._here: frozenset[int] = frozenset()  # the lines of the statement
        self._before: list[str] = []
        self._supposes = ""
        self._enter(module.scope)

    def _enter(self, scope: Scope) -> None:
        """Note the names of a scope that hold tiles, several tiles, tiles in PSUM, and tiles that a mask has cut."""
        self._scope, self._indices = scope, Indices(scope)
        self._texts: dict[ast.expr, str] = {}
        self._tiles: set[str] = set()
        self._psum: set[str] = set()
        self._blocks: dict[str, int] = {}  # the number of dimensions in front of the partitions
        # The places that the mask has left by axis, and the size of each dimension, '' for an unknown one.
        self._cut: dict[str, tuple[dict[str, str], list[str]]] = {}
        assignments = [each for each in scope.nodes if isinstance(each, ast.Assign) and len(each.targets) == 1]
        for each in sorted(assignments, key=lambda each: each.lineno):
            target, value = each.targets[0], each.value
            if isinstance(target, ast.Name) and self._is_tile(value):
                self._tiles.add(target.id)
                self._psum |= {target.id} if self._is_in_psum(value) else set()
                self._blocks |= {target.id: blocks_of(value)} if blocks_of(value) else {}
                self._cut |= self._cut_by(value, target.id)

    def _cut_by(self, value: ast.expr, name: str) -> dict[str, tuple[dict[str, str], list[str]]]:
        """Return what a mask leaves of a loaded tile, by the tile's name; {} for other values."""
        if not (isinstance(value, ast.Call) and last_word(value.func) == "load" and keyword(value, "mask")):
            return {}
        loaded = value.args[0] if value.args else None
        left = self._indices.left_by(next(each.value for each in value.keywords if each.arg == "mask")) or {}
        every = (
            [self._indices.places(each) for each in _indices_of(loaded)] if isinstance(loaded, ast.Subscript) else []
        )
        return {name: (left, [left.get(each.axis, "") if each is not None else "" for each in every])}

    def _suppose(self, what: str) -> None:
        """Say that what is written is a guess; a supposition of one kind is said once."""
        kind = what.rpartition("`")[2]
        if not kind or kind not in self._supposes:
            self._supposes = f"{self._supposes}, and {what}" if self._supposes else what

    def _has(self, rule: str) -> bool:
        """Return whether lint has found a rule broken in the statement."""
        return any((rule, line) in self._found for line in self._here)

    # What an expression is

    def _is_in_psum(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript | ast.Name):
            return last_word(node.value if isinstance(node, ast.Subscript) else node) in self._psum
        buffer = keyword(node, "buffer") if isinstance(node, ast.Call) else None
        made = isinstance(node, ast.Call) and "psum" in RESULTS.get(last_word(node.func), ())
        return made or (buffer is not None and last_word(buffer.value) == "psum")

    def _is_tile(self, node: ast.expr) -> bool:
        """Return whether an expression is certainly a tile, as far as names and calls show it."""
        match node:
            case ast.Name():
                return node.id in self._tiles
            case ast.Subscript():
                return self._is_tile(node.value)
            case ast.Call():
                module, _, name = self._scope.qualified(node.func).rpartition(".")
                return name not in _NO_TILES if module == "nki.language" else module == "nki.isa"
            case ast.BinOp() | ast.UnaryOp():
                return self._computes(node)
        return False

    def _computes(self, node: ast.expr | ast.AugAssign) -> bool:
        """Return whether an operator of Python computes on tensors."""
        if (node.lineno, self._module.column(node), ast.unparse(node)) in self._operators:
            return True
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
        return any(map(self._is_tile, [node.operand] if isinstance(node, ast.UnaryOp) else sides))

    # Texts

    def _text(self, node: ast.expr) -> str:
        """Return an expression as the modern dialect has it."""
        if node not in self._texts:
            made = self._made(node)
            source = self._module.source
            found = self._filled(source.says(node), source.span(node)[0], parts_of(node)) if made is None else made
            self._texts[node] = found
        return self._texts[node]

    def _filled(self, text: str, start: int, parts: Collection[ast.expr] | Iterator[ast.expr]) -> str:
        """Return a piece of the file, which begins at a byte, with the texts of the expressions in it."""
        raw, span = text.encode(), self._module.source.span
        for each in sorted(parts, key=span, reverse=True):
            begin, end = span(each)
            raw = raw[: begin - start] + self._text(each).encode() + raw[end - start :]
        return raw.decode()

    def _made(self, node: ast.expr) -> str | None:
        """Return the text of an expression that changes as a whole; None for others."""
        places = self._indices.places(node)
        if places is not None:
            return None if isinstance(node, ast.Name) else places.as_value(self._nl)
        match node:
            case ast.Subscript():
                return self._indexed(node)
            case ast.BinOp() | ast.Compare() | ast.UnaryOp() if self._computes(node):
                return self._function(node)
            case ast.Call():
                return self._called(node)
            case ast.Tuple() if any(last_word(getattr(each, "func", None)) == "par_dim" for each in node.elts):
                sizes = [self._text(each) for each in node.elts]
                return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
            case ast.Attribute():
                return self._name(node)
        return None

    def _name(self, node: ast.Attribute) -> str | None:
        """Return the newer name of a dtype, a number or an engine; None for other names."""
        name = self._scope.qualified(node)
        if name == "nki.language.hbm" and self._has("NK621"):
            return f"{self._nl}.shared_hbm"  # of a result
        if name.startswith("nki.isa.") and name.endswith("_engine"):
            return f"{self._isa}.engine.{node.attr.removesuffix('_engine')}"
        if name in ("nki.language.fp32", "nki.language.bfp16"):
            return f"{self._nl}.{'float32' if name.endswith('32') else 'bfloat16'}"
        most = {"min": "-3.4028234663852886e+38", "max": "3.4028234663852886e+38"}
        return most.get(node.attr) if name.rpartition(".")[0] in ("nki.language.fp32", "nki.isa.fp32") else None

    # Indices

    def _indexed(self, node: ast.Subscript) -> str | None:
        """Return an index with slices in the place of index tensors; None if it has none."""
        parts = _indices_of(node)
        if self._scope.qualified(node.value) == "nki.language.mgrid":
            grid = (self._indices.places(ast.Attribute(node, each)) for each in AXES[: len(parts)])
            return f"({', '.join(each.as_value(self._nl) for each in grid if each)})"
        blocks = self._blocks.get(last_word(node.value), 0) if isinstance(node.value, ast.Name) else 0
        terms = self._indices.terms(parts[0]) if len(parts) == 1 else []
        if 0 < blocks < len(parts):
            first = "".join(f"[{self._text(each)}]" for each in parts[:blocks])
            return f"{ast.unparse(node.value)}{first}[{', '.join(map(self._sliced, parts[blocks:]))}]"
        if len(terms) > 1:
            self._suppose(f"the elements of `{ast.unparse(node.value)}` lie one after the other")
            pattern = ", ".join(f"[{each.step}, {each.size}]" for each in terms)
            offset = " + ".join(each.start for each in terms if each.start != "0") or "0"
            return f"{self._text(node.value)}.ap([{pattern}], offset={offset})"
        if not any(self._indices.holds_index(each) for each in parts):
            return None
        left, sizes = self._cut.get(last_word(node.value), ({}, []))
        self._left = {**left, **self._left}
        said = map(self._sliced, parts, sizes if len(sizes) == len(parts) else [""] * len(parts))
        return self._reshaped(node, parts) or f"{self._text(node.value)}[{', '.join(said)}]"

    def _reshaped(self, node: ast.Subscript, parts: list[ast.expr]) -> str:
        """Return ``t.reshape((128, 4, 16))`` for ``t[p, i * 16 + j]`` of whole dimensions; '' for other indices."""
        every = [self._indices.terms(each) for each in parts]
        pairs = [each for each in every if len(each) == 2 and each[0].step == each[1].size and each[1].step == "1"]
        whole = all(each and all(one.start == "0" for one in each) for each in every)
        if not pairs or not whole or any(len(each) > 1 and each not in pairs for each in every):
            return ""
        self._suppose(f"these are all elements of `{ast.unparse(node.value)}`")
        return f"{self._text(node.value)}.reshape(({', '.join(one.size for each in every for one in each)}))"

    def _sliced(self, node: ast.expr, size: str = "") -> str:
        """Return one place between the brackets of an index; ``size``: of the dimension, if a mask has cut it."""
        places = self._indices.places(node)
        if places is None and self._indices.holds_index(node):
            self._suppose(f"`{ast.unparse(node)}`{_AXES_SAID}")
            return ":"
        if places is None:
            return self._text(node)
        left = self._left.get(places.axis) or (places.below(size) if size else "")
        if not left and isinstance(node, ast.Name):
            return node.id
        return places._replace(size=left or places.size).as_slice(self._nl)

    # Operators and calls

    def _function(self, node: ast.BinOp | ast.Compare | ast.UnaryOp) -> str | None:
        """Return the function of nl for an operator of Python on tensors."""
        if isinstance(node, ast.UnaryOp):
            operator, sides = node.op, [node.operand]
        elif isinstance(node, ast.Compare):
            operator, sides = node.ops[0], [node.left, node.comparators[0]]  # type: ignore[assignment]
        else:
            operator, sides = node.op, [node.left, node.right]  # type: ignore[assignment]
        if isinstance(operator, ast.Div):
            return self._quotient(*sides)
        name = OPERATORS.get(type(operator))
        return f"{self._nl}.{name}({', '.join(map(self._text, sides))})" if name else None

    def _quotient(self, left: ast.expr, right: ast.expr) -> str:
        nl, one, other = self._nl, self._text(left), self._text(right)
        by_number = f"{nl}.multiply({one}, 1 / {f'({other})' if isinstance(right, ast.BinOp) else other})"
        if isinstance(right, ast.Constant) or any(
            last_word(each) in ("shape", "tile_size") for each in ast.walk(right)
        ):
            return by_number
        if isinstance(left, ast.Constant):
            return f"{nl}.multiply({nl}.reciprocal({other}), {one})"
        if not self._is_tile(right) and not isinstance(right, ast.Call):
            self._suppose(f"`{other}` is a tile; if it is a number write {by_number}")
        return f"{nl}.multiply({one}, {nl}.reciprocal({other}))"

    def _called(self, node: ast.Call) -> str | None:
        """Return a call as the modern dialect has it; None for one that stays but for its arguments."""
        dotted = self._scope.qualified(node.func)
        made_by = self._scope.qualified(node.func.func) if isinstance(node.func, ast.Call) else dotted
        if node.args and (made_by in MAKERS or (dotted == "nki.jit" and _named(node) & OF_LEGACY_JIT)):
            kernel = self._text(node.args[0])
            return f"nki.jit({kernel})" if dotted == "nki.jit" else kernel
        if dotted.startswith(("nki.compiler.psum.", "nki.compiler.sbuf.")):
            self._suppose("the compiler places the tile; nl.ndarray(..., address=(partition, byte)) places it by hand")
            return f"{self._nl}.{dotted.split('.')[2]}"
        if not dotted.startswith("nki."):
            return self._method(node)
        name = dotted.rpartition(".")[2]
        if name == "divide" and len(node.args) == 2:
            return self._quotient(*node.args)
        if name in _RANGES:
            return f"range({', '.join(self._arguments(node))})"
        if name == "simulate_kernel" and node.args:
            kernel, *rest = self._arguments(node)
            return f"nki.simulate({kernel})({', '.join(rest)})"
        if name == "par_dim" and len(node.args) == 1:
            return self._text(node.args[0])
        if name == "static_cast":
            return f"{self._nl}.copy({', '.join(self._arguments(node))})"
        return self._of_blocks(node) or self._hoisted(node) or self._too_tall(node) or self._without_gone(node)

    def _arguments(self, node: ast.Call, gone: Collection[str] = (), skipped: int = 0) -> list[str]:
        """Return the arguments of a call as they are written, without some keywords and the first positional ones."""
        named = [f"{each.arg}={self._text(each.value)}" for each in node.keywords if each.arg and each.arg not in gone]
        return [*map(self._text, node.args[skipped:]), *named]

    def _method(self, node: ast.Call) -> str | None:
        """Return the function of nl for a method of a tile that is gone; None for other calls."""
        if not (isinstance(node.func, ast.Attribute) and node.args and self._is_tile(node.func.value)):
            return None
        own, given = self._text(node.func.value), self._text(node.args[0])
        forms = {"broadcast_to": f"broadcast_to({own}, {given})", "astype": f"copy({own}, dtype={given})"}
        return f"{self._nl}.{forms[node.func.attr]}" if node.func.attr in forms else None

    def _too_tall(self, node: ast.Call) -> str:
        """Return the call with 128 partitions for one that makes more; '' for other calls."""
        shape = node.args[0] if node.args and self._has("NK101") else None
        if not isinstance(shape, ast.Tuple) or len(shape.elts) < 2 or not self._is_tile(node):
            return ""
        self._suppose("a loop around it handles 128 rows in each turn")
        sizes = ", ".join([f"{self._nl}.tile_size.pmax", *map(self._text, shape.elts[1:])])
        return f"{self._text(node.func)}({', '.join([f'({sizes})', *self._arguments(node, skipped=1)])})"

    def _of_blocks(self, node: ast.Call) -> str:
        """Return a list of tiles for ``nl.ndarray((4, nl.par_dim(128), 64), ...)``; '' for other calls."""
        count = blocks_of(node)
        if not count:
            return ""
        self._suppose("each `[i, ...]` of these tiles becomes `[i][...]`")
        sizes = [self._text(each) for each in node.args[0].elts]  # type: ignore[attr-defined]
        tile = ", ".join([f"({', '.join(sizes[count:])})", *self._arguments(node, skipped=1)])
        tile = f"{self._text(node.func)}({tile})"
        for each in reversed(sizes[:count]):
            tile = f"[{tile} for _ in range({each})]"
        return tile

    def _hoisted(self, node: ast.Call) -> str:
        """Return the tile of an instruction that stands inside of an expression; '' for other calls."""
        raise NotImplementedError

    def _without_gone(self, node: ast.Call) -> str | None:
        """Return a call without its mask and other keywords that are gone; None for one that stays."""
        dotted = self._scope.qualified(node.func)
        known, mask = self._form(dotted), keyword(node, "mask")
        gone = _named(node) & {"mask"} | (_named(node) - set(known) if known and self._has("NK609") else set())
        stored = [*node.args[1:2], *(each.value for each in node.keywords if each.arg == "value")]
        is_store = dotted == "nki.language.store"
        from_psum = is_store and (self._has("NK201") or any(map(self._is_in_psum, stored)))
        more = self._more(node)
        if not (gone or from_psum or more):
            return None
        for each in stored if is_store else ():
            size = self._size_of(node.args[0]) if mask is not None and isinstance(each, ast.Name) else ""
            text = self._text(each) + size
            self._texts[each] = f"{self._nl}.copy({text})" if from_psum else text
        if gone - {"mask"}:
            self._suppose(f"`{', '.join(sorted(gone - {'mask'}))}` is what the function does by itself")
        if mask is not None and self._indices.left_by(mask.value) is None:
            self._suppose(f"`{ast.unparse(mask.value)}` leaves the elements that the slices name")
        return f"{self._text(node.func)}({', '.join([*self._arguments(node, gone), *more])})"

    def _more(self, node: ast.Call) -> list[str]:
        """Return the arguments that the legacy dialect has by itself: the dimension that a reduction keeps, a dtype."""
        module, _, name = self._scope.qualified(node.func).rpartition(".")
        given = {each.arg: each.value for each in node.keywords}
        axis = given.get("axis", node.args[1] if len(node.args) > 1 else None)
        said = "" if axis is None else ast.unparse(axis).strip("[](),")
        if module != "nki.language":
            return []
        if name == "rand" and "dtype" not in given and len(node.args) < 2:
            return [f"dtype={self._nl}.float32"]
        return ["keepdims=True"] if name in _REDUCTIONS and "keepdims" not in given and said in ("1", "-1") else []

    def _size_of(self, stored: ast.expr) -> str:
        """Return the index of a tile whose part is stored into an indexed tensor; '' if none follows."""
        every = (
            [self._indices.places(each) for each in _indices_of(stored)] if isinstance(stored, ast.Subscript) else []
        )
        if not every or None in every:
            return ""
        return f"[{', '.join(f'0:{self._left.get(each.axis, each.size)}' for each in every if each)}]"


def parts_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the nearest expressions inside of a node, without those of statements in it."""
    for child in () if isinstance(node, ast.JoinedStr) else ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif not isinstance(child, ast.stmt):
            yield from parts_of(child)


def blocks_of(node: ast.expr) -> int:
    """Return the number of dimensions in front of the partitions: 1 for ``nl.ndarray((4, nl.par_dim(128), 64))``."""
    shape = node.args[0] if isinstance(node, ast.Call) and node.args else None
    sizes = shape.elts if isinstance(shape, ast.Tuple) else []
    words = [last_word(getattr(each, "func", None)) for each in sizes]
    return words.index("par_dim") if "par_dim" in words else 0


def _indices_of(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _named(node: ast.Call) -> set[str]:
    return {each.arg for each in node.keywords if each.arg}
