"""The modern statements for those of a legacy file: the harness, assignments to tiles, instructions with ``dst``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from nkitools.edits.source import FUNCTIONS, keyword, last_word
from nkitools.lint.modern_expressions import MAKERS, OF_LEGACY_JIT, OPERATORS, RESULTS, Expressions, Form, parts_of
from nkitools.lint.module import Module
from nkitools.lint.scope import LEGACY
from nkitools.rules.finding import Finding

# Operators of instructions that have another name than the function of nl or of NumPy that the legacy dialect takes.
_OPERATOR_NAMES = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply", "absolute": "abs"}
_GONE_WITH_DST = frozenset({"dtype", "mask"})  # keywords of the legacy dialect: the destination says the one


class Written(NamedTuple):
    """The modern text for the lines of a statement, with statements in front of it, and what the text supposes."""

    first: int
    last: int
    before: tuple[str, ...]
    text: str
    supposes: str

    def sentence(self) -> str:
        """Return the remedy that says what to write."""
        written = "`, then `".join([*self.before, *filter(None, [self.text])])
        said = f"Write `{written}`." if written else "Leave the line out."
        return f"{said} That is a guess: {self.supposes}." if self.supposes else said


class Writer(Expressions):
    """Writes the statements of a legacy file, parsed as if it imported the modern dialect."""

    def __init__(self, module: Module, found: Collection[Finding], form: Form) -> None:
        super().__init__(module, found, form)
        self._assigned_to = {(each.line, each.column) for each in found if "assigns to elements" in each.message}

    def statements(self) -> Iterator[Written]:
        """Yield what to write for the statements that have another text in the modern dialect."""
        for scope in self._module.scope.all():
            self._enter(scope)
            for node in scope.nodes:
                if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
                    yield from self._written(node)

    def _written(self, node: ast.stmt) -> Iterator[Written]:
        parts = [] if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else list(parts_of(node))
        first, last = _lines(node, parts)
        self._here = frozenset(range(first, last + 1))
        self._before, self._supposes, self._left = [], "", {}
        for call in (each for part in parts for each in ast.walk(part) if isinstance(each, ast.Call)):
            mask = keyword(call, "mask")
            self._left |= (self._indices.left_by(mask.value) or {}) if mask is not None else {}
        old = "\n".join(self._module.lines[first - 1 : last])
        text = self._statement(node)
        if text is None:
            start = self._module.source.span(ast.Pass(lineno=first, col_offset=0, end_lineno=first, end_col_offset=0))[
                0
            ]
            text = self._filled(old, start, parts)
        if text != old or self._before:
            yield Written(first, last, tuple(self._before), _in_one_line(text, node), self._supposes)

    def _statement(self, node: ast.stmt) -> str | None:
        """Return the text of a statement that changes as a whole; '' to leave it out, None for other statements."""
        if isinstance(node, FUNCTIONS):
            return "@nki.jit" if any(map(self._is_legacy_decorator, node.decorator_list)) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            is_name = isinstance(node.targets[0], ast.Name)
            if is_name and (self._indices.is_mask(node.value) or len(self._indices.terms(node.value)) > 1):
                return ""  # its uses have it
            return self._assigned(node.targets[0], node.value)
        return self._updated(node) if isinstance(node, ast.AugAssign) else None

    def _is_legacy_decorator(self, node: ast.expr) -> bool:
        name = self._scope.qualified(node.func if isinstance(node, ast.Call) else node)
        options = {each.arg for each in node.keywords} if isinstance(node, ast.Call) else set()
        return name in MAKERS or (name == "nki.jit" and bool(options & OF_LEGACY_JIT))

    def _assigned(self, target: ast.expr, value: ast.expr) -> str | None:
        call = self._instruction(value)
        if call is not None and last_word(call.func) != "memset":
            return self._into(call, target)
        if (target.lineno, self._module.column(target)) not in self._assigned_to:
            return None
        dst = self._text(target)
        if isinstance(value, ast.Constant | ast.UnaryOp):
            return f"{self._isa}.memset(dst={dst}, value={self._text(value)})"
        if isinstance(value, ast.Call) and value.args and self._scope.qualified(value.func) == "nki.language.load":
            return f"{self._isa}.dma_copy(dst={dst}, src={self._text(value.args[0])})"
        return f"{self._isa}.tensor_copy(dst={dst}, src={self._text(value)})"

    def _updated(self, node: ast.AugAssign) -> str | None:
        call = self._instruction(node.value)
        if call is not None and last_word(call.func) == "nc_matmul" and isinstance(node.op, ast.Add):
            return self._into(call, node.target)
        if not self._computes(node) or type(node.op) not in OPERATORS:
            return None
        target, value = self._text(node.target), self._text(node.value)
        operator = f"{self._nl}.{OPERATORS[type(node.op)]}"
        if isinstance(node.target, ast.Subscript):
            return f"{self._isa}.tensor_tensor(dst={target}, data1={target}, data2={value}, op={operator})"
        return f"{target} = {operator}({target}, {value})"

    # Instructions

    def _instruction(self, node: ast.expr) -> ast.Call | None:
        """Return a call of an instruction that had a result and writes into ``dst`` now; None for others."""
        if not isinstance(node, ast.Call):
            return None
        module, _, name = self._scope.qualified(node.func).rpartition(".")
        if module != "nki.isa" or any(each.arg in (None, "dst") for each in node.keywords):
            return None
        old = self._form(f"{LEGACY}.nki.isa.{name}")
        return node if old and "dst" in self._form(f"nki.isa.{name}") and "dst" not in old else None

    def _into(self, call: ast.Call, target: ast.expr) -> str:
        """Return an instruction that writes into a target. A name gets a new tile, or is written in place."""
        name = last_word(call.func)
        known = self._form(f"nki.isa.{name}")
        given = dict(zip(self._form(f"{LEGACY}.nki.isa.{name}"), call.args, strict=False))
        given |= {each.arg: each.value for each in call.keywords if each.arg}
        gone = [each for each in given if each not in known and each not in _GONE_WITH_DST]
        if gone:
            self._suppose(f"`{gone[0]}` is no parameter any more")
        texts = {key: self._operand(key, value) for key, value in given.items()}
        dst = target.id if isinstance(target, ast.Name) else self._text(target)
        is_read = any(isinstance(each, ast.Name) and each.id == dst for one in given.values() for each in ast.walk(one))
        after = ""
        if isinstance(target, ast.Name) and not (is_read and name not in RESULTS and "dtype" not in given):
            operands = [texts[key] for key in known if key in given and not key.startswith(("op", "reduce"))]
            dst, after = (f"{dst}_new", f"; {dst} = {dst}_new") if is_read else (dst, "")
            self._before.append(self._tile(name, operands, texts.get("dtype", ""), dst))
        said = ", ".join([f"dst={dst}", *(f"{key}={texts[key]}" for key in known if key in texts)])
        return f"{self._isa}.{name}({said}){after}"

    def _tile(self, name: str, operands: list[str], dtype: str, dst: str) -> str:
        """Return the statement that makes the tile into which an instruction writes."""
        shape, usual, memory = RESULTS.get(name, ("{0}.shape", "", "sbuf"))
        first, second = (*operands, "...", "...")[:2]
        dtype = dtype or (f"{self._nl}.{usual}" if usual else f"{first}.dtype")
        return f"{dst} = {self._nl}.ndarray({shape.format(first, second)}, dtype={dtype}, buffer={self._nl}.{memory})"

    def _operand(self, parameter: str, node: ast.expr) -> str:
        """Return an argument of an instruction; an operator by its name in the modern dialect."""
        if parameter.startswith(("op", "reduce_op")):
            module, _, name = self._scope.qualified(node).rpartition(".")
            if module in ("numpy", "nki.language"):
                return f"{self._nl}.{_OPERATOR_NAMES.get(name, name)}"
        return self._text(node)

    def _hoisted(self, node: ast.Call) -> str:
        if self._instruction(node) is None:
            return ""
        name = last_word(node.func)
        if name == "memset":
            given = dict(zip(("shape", "value", "dtype"), node.args, strict=False))
            given |= {each.arg: each.value for each in node.keywords if each.arg}
            shape, value, dtype = (
                self._text(given[key]) if key in given else "..." for key in ("shape", "value", "dtype")
            )
            return f"{self._nl}.full({shape}, {value}, dtype={dtype})"
        self._before.append(self._into(node, ast.Name(f"{name}_tile", ast.Store())))
        return f"{name}_tile"


def _lines(node: ast.stmt, parts: list[ast.expr]) -> tuple[int, int]:
    """Return the first and the last line of a statement; of one with a body those of its head."""
    if isinstance(node, FUNCTIONS) and node.decorator_list:  # the only part that changes
        return node.decorator_list[0].lineno, node.decorator_list[-1].lineno
    if not hasattr(node, "body"):
        return node.lineno, node.end_lineno or node.lineno
    return node.lineno, max([node.lineno, *(each.end_lineno or 0 for each in parts)])


def _in_one_line(text: str, node: ast.stmt) -> str:
    """Return a statement's text without the space around it, in one line if it is a statement without a body."""
    text = text.strip()
    if "\n" not in text or hasattr(node, "body"):
        return text
    try:
        return ast.unparse(ast.parse(text))
    except SyntaxError:
        return text
