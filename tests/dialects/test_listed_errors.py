"""The rules that a docstring names are those that ordinary wrong calls break."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import neuronxcc.nki as old
import neuronxcc.nki.isa as old_isa
import neuronxcc.nki.language as old_nl
import pytest

import nkitools
from nkitools.chip.core import current_core
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.dialects.legacy import valid_calls as legacy_calls
from tests.dialects.modern import test_language_calls, valid_calls
from tests.dialects.modern.valid_calls import tile
from tests.dialects.wrong_calls import Arguments, Simulate, broken_by, named_rules, written
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

Make = Callable[[], Arguments]
CHIPS = {**valid_calls.CHIPS, "abs_max": "trn3", "abs_min": "trn3"}


def on_ranks(kernel: Any, **settings: Any) -> Any:
    """Run a kernel on two ranks."""
    return nkitools.simulate(kernel, (), (), ranks=2, **settings)


def on_cores(kernel: Any, **settings: Any) -> Any:
    """Run a kernel on two cores."""
    return nkitools.simulate(kernel, grid=2, **settings)


def on_cores_of_ranks(kernel: Any, **settings: Any) -> Any:
    """Run a kernel on four ranks of two cores."""
    return nkitools.simulate(kernel, (), (), (), (), ranks=4, grid=2, **settings)


def unfinished(simulate: Simulate) -> Simulate:
    """Run a kernel that may end with a collective of which one half is missing."""

    def run(kernel: Any, **settings: Any) -> None:
        with suppress(nkitools.KernelError):
            simulate(kernel, **settings)

    return run


def as_legacy(kernel: Any, **settings: Any) -> None:
    """Run a kernel of the legacy dialect, which stores nothing (NK403)."""
    with suppress(nkitools.KernelError):
        nkitools.simulate(old.jit(kernel), **settings)


def hbm(*shape: int, dtype: Any = nl.float32) -> Any:
    """A written tensor in HBM."""
    return written(shape, dtype, nl.private_hbm if nl.num_programs(0) == 1 else nl.shared_hbm, 0)


def moved(*shape: int, **more: Any) -> Arguments:
    """Of a collective between two ranks."""
    return {"srcs": [hbm(4, 6)], "dsts": [hbm(*shape)], **more}


def group() -> Any:
    """All ranks of the run."""
    world = current_core("this test").world
    return ncc.ReplicaGroup([list(range(1 if world is None else world.size))])


def ring(*roles: str, **more: Any) -> Arguments:
    """Of a permute by channels."""
    return {**{f"{role}_by_channel": [[hbm(4, 6)]] for role in roles}, "replica_group": group(), **more}


def variable() -> Arguments:
    """Of a collective of chunks; none of which one half was called before is waited for."""
    core = current_core("this test")
    core.prepared = None
    metadata = hbm(3, 2 if core.world is None else core.world.size, dtype=nl.uint32)
    return {"srcs": [hbm(8)], "dsts": [hbm(8)], "replica_group": group(), "metadata_tensor": metadata}


COLLECTIVES: dict[str, Make] = {
    "all_reduce": lambda: moved(4, 6, replica_group=group(), op=nl.add),
    "all_gather": lambda: moved(8, 6, replica_group=group(), collective_dim=0),
    "reduce_scatter": lambda: moved(2, 6, replica_group=group(), collective_dim=0, op=nl.add),
    "all_to_all": lambda: moved(4, 6, replica_group=group(), collective_dim=0),
    "collective_permute": lambda: moved(4, 6, source_target_pairs=[(0, 1), (1, 0)]),
    "collective_permute_implicit": lambda: ring("srcs", "dsts"),
    "collective_permute_implicit_reduce": lambda: ring("srcs0", "srcs1", "dsts", op=nl.add),
    "collective_permute_implicit_current_processing_rank_id": lambda: {"iteration_id": 1, "replica_group": group()},
    "rank_id": dict,
}
TO_ALL: dict[str, Make] = {
    "all_to_all_v_prepare": variable,
    "all_to_all_v_trigger": lambda: {"prepare_instr": ncc.all_to_all_v_prepare(**variable())},
}
FROM_ALL: dict[str, Make] = {
    "all_gather_v_prepare": variable,
    "all_gather_v_trigger": lambda: {"prepare_instr": ncc.all_gather_v_prepare(**variable())},
}


def met(**more: Any) -> Arguments:
    """Of an exchange between two cores."""
    other = 1 - nl.program_id(0)
    return {"src": tile(8, 4), "dst": tile(8, 4), "send_to_rank": other, "recv_from_rank": other, **more}


BETWEEN_CORES: dict[str, Make] = {
    "core_barrier": lambda: {"data": nl.ndarray((8, 4), nl.float32, nl.shared_hbm), "cores": (0, 1)},
    "sendrecv": lambda: met(pipe_id=0),
    "sendrecv_compute": lambda: met(reduce_op=nl.add),
}
METHODS: dict[str, Make] = {
    "slice": lambda: {"self": tile(8, 4), "dim": 1, "start": 0, "end": 2, "step": 1},
    "select": lambda: {"self": tile(8, 4, 2), "dim": 1, "index": 0},
    "permute": lambda: {"self": tile(8, 4, 2), "dims": (0, 2, 1)},
    "broadcast": lambda: {"self": tile(8, 1), "dim": 1, "size": 4},
    "expand_dim": lambda: {"self": tile(8, 4), "dim": 1},
    "squeeze_dim": lambda: {"self": tile(8, 1, 4), "dim": 1},
    "reshape_dim": lambda: {"self": tile(8, 4), "dim": 1, "shape": (2, 2)},
    "flatten_dims": lambda: {"self": tile(8, 4, 2), "start_dim": 1, "end_dim": 2},
    "reshape": lambda: {"self": tile(8, 4), "shape": (8, 2, 2)},
    "rearrange": lambda: {
        "self": tile(8, 4),
        "src_pattern": ("p", ("a", "b")),
        "dst_pattern": ("p", "b", "a"),
        "fixed_sizes": {"a": 2},
    },
    "view": lambda: {"self": tile(8, 4), "dtype": nl.int32},
    "ap": lambda: {"self": tile(8, 4), "pattern": [[4, 8], [1, 4]]},
    "vector_select": lambda: {"self": hbm(8, 4), "dim": 0, "vector_offset": tile(8, 1, dtype=nl.uint32, value=0)},
    "indirect": lambda: {"self": tile(16, 32), "index": tile(16, 2, dtype=nl.uint32, value=0)},
}


def cases(home: Any, calls: dict[str, Make], simulate: Simulate = nkitools.simulate) -> list[Any]:
    """The functions of a module or class as cases of a test."""
    return [pytest.param(home, each, make, simulate, id=f"{home.__name__}.{each}") for each, make in calls.items()]


FUNCTIONS = [
    *cases(nisa, {name: partial(valid_calls.valid_call, name) for name in valid_calls.CALLS}),
    *cases(nisa, {"register_alloc": lambda: {"x": 1}}),
    *cases(nisa, BETWEEN_CORES, on_cores),
    *cases(nl, test_language_calls.CALLS),
    *cases(ncc, COLLECTIVES, on_ranks),
    *cases(ncc, {"all_to_all_v": variable}, on_ranks),
    *cases(ncc, {"all_gather_v": variable}, on_cores_of_ranks),
    *cases(ncc, TO_ALL, unfinished(on_ranks)),
    *cases(ncc, FROM_ALL, unfinished(on_cores_of_ranks)),
    *cases(old_isa, legacy_calls.ISA, as_legacy),
    *cases(old_nl, legacy_calls.LANGUAGE, as_legacy),
]
OF_TENSORS = [*cases(nl.NkiTensor, METHODS), *cases(Tensor, legacy_calls.METHODS, as_legacy)]


def unnamed(home: Any, function: Any, rules: dict[str, str]) -> dict[str, str]:
    """Those of the rules that neither a function's docstring names nor, for all functions alike, that of the module."""
    is_legacy = home in (old_isa, old_nl, Tensor)
    named = named_rules(function.__doc__ or "") | named_rules((old_isa if is_legacy else nisa).__doc__ or "")
    return {rule: what for rule, what in rules.items() if rule not in named}


@pytest.mark.parametrize(("home", "name", "make", "simulate"), FUNCTIONS)
def test_a_docstring_names_the_rules_that_wrong_calls_break(
    home: Any, name: str, make: Make, simulate: Simulate
) -> None:
    """Or that of the module does; and a rule refuses each of the calls."""
    function = getattr(home, name)
    broken = broken_by(function, make, simulate, CHIPS.get(name, "trn2"))
    assert unnamed(home, function, broken.rules) == {}
    assert broken.bare == []


@pytest.mark.parametrize(("home", "name", "make", "simulate"), OF_TENSORS)
def test_a_method_of_a_tensor_names_them_too(home: Any, name: str, make: Make, simulate: Simulate) -> None:
    """Arguments that are missing or unknown are Python's own TypeError there."""
    method = getattr(home, name)
    broken = broken_by(method, make, simulate)
    assert unnamed(home, method, broken.rules) == {}
    assert [each for each in broken.bare if not each.startswith(("no ", "an unknown keyword"))] == []
