"""Which tests of a kernel a mutant is put to: their inputs, references and tolerances are the tests' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

Calls = Iterator[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Case:
    """The kernels of one module. ``calls`` gives names of tests in ``tests`` and what they are called with.

    The tests run whatever kernel their module imports, so ``calls`` takes its kernels from there.
    """

    tests: str
    calls: Callable[[ModuleType], Calls]


def _matmul(tests: ModuleType) -> Calls:
    yield "test_matmul", {"sizes": (200, 130, 520)}


def _blocked_matmul(tests: ModuleType) -> Calls:
    yield "test_it_agrees", {"sizes": (130, 769, 1025)}


def _softmax(tests: ModuleType) -> Calls:
    yield "test_softmax", {"shape": (130, 77)}
    yield "test_softmax_of_logits_whose_exponentials_overflow", {"shape": (128, 40)}


def _attention(tests: ModuleType) -> Calls:
    yield "test_attention", {"shape": (600, 64)}
    yield "test_attention_of_scores_whose_exponentials_overflow", {}


def _giou(tests: ModuleType) -> Calls:
    yield "test_sizes_that_are_no_multiple_of_the_tile", {"shape": (129, 513)}
    yield "test_sizes_that_are_no_multiple_of_the_tile", {"shape": (128, 512)}
    yield "test_boxes_smaller_than_epsilon", {}


def _all_gather_matmul(tests: ModuleType) -> Calls:
    names = ("ranks", "rows", "contraction", "columns", "cores")
    for sizes in ((3, 5, 129, 6, 1), (2, 130, 20, 1030, 2)):
        yield "test_all_gather_matmul", dict(zip(names, sizes, strict=True))
    yield "test_products_of_bfloat16", {}


def _ring_all_gather(tests: ModuleType) -> Calls:
    for dtype in (tests.np.float32, tests.ml_dtypes.bfloat16):
        yield "test_ring_all_gather", {"ranks": 3, "rows": 4, "columns": 5, "cores": 2, "dtype": dtype}


def _top_k(tests: ModuleType) -> Calls:
    yield "test_top_k", {"shape": (3, 9), "k": 9}
    yield "test_top_k", {"shape": (200, 300), "k": 13}
    yield "test_equal_values_come_by_column", {}


def _top_p(tests: ModuleType) -> Calls:
    for shape, p in (((1, 64), 1.0), ((130, 80), 0.7), ((3, 5000), 0.01)):
        yield "test_a_token_is_drawn_from_the_nucleus", {"shape": shape, "p": p}
    yield "test_any_shape", {"rows": 140, "vocabulary": 300, "p": 0.9, "seed": 1}
    yield "test_logits_whose_exponentials_overflow", {}
    yield "test_the_last_token_is_drawn_by_the_largest_number", {}
    yield "test_sums_that_meet_p_and_numbers_that_meet_a_border", {}


def _gather_scatter(tests: ModuleType) -> Calls:
    for sizes in ((5, 257, 40), (5000, 300, 520)):
        yield "test_gather", {"sizes": sizes}
        yield "test_scatter_add", {"sizes": sizes}
    yield "test_gather_of_integers", {}
    yield "test_all_updates_to_one_row", {}


def _depthwise_conv(tests: ModuleType) -> Calls:
    # 28,000 elements, or 150 x 190, of 128 channels do not fit into SBUF as a whole.
    for shape, taps in (((2, 5, 3), 7), ((1, 1, 1), 1), ((1, 130, 2050), 3), ((1, 128, 28_000), 3)):
        yield "test_conv1d", {"shape": shape, "taps": taps}
    for image, sides in (((1, 3, 12, 40), (7, 7)), ((2, 130, 60, 70), (3, 5)), ((1, 128, 150, 190), (3, 3))):
        yield "test_conv2d", {"shape": image, "taps": sides}


def _mxfp8_matmul(tests: ModuleType) -> Calls:
    float8, float8_wide = tests.MANTISSA
    for sizes, dtype, programs in (
        ((128, 2, 5, tests.np.float16), float8, 1),
        ((640, 130, 1031), float8, 2),
        ((896, 130, 520), float8_wide, 1),
    ):
        arguments = {"sizes": sizes, "dtype": dtype, "programs": programs}
        yield "test_it_multiplies_what_the_host_quantises_alike", arguments
    for deep, pairs, columns in ((1, 1, 3), (5, 65, 1031), (7, 2, 520)):
        yield "test_packed_weights_are_multiplied", {"deep": deep, "pairs": pairs, "columns": columns}


def _cross_entropy(tests: ModuleType) -> Calls:
    float32, both = tests.np.dtype(tests.np.float32), list(zip(tests.FORWARD, tests.BACKWARD, strict=True))
    for kernel in tests.FORWARD:
        yield "test_forward", {"kernel": kernel, "dtype": float32, "shape": (130, tests.CHUNK + 5)}
        yield "test_forward", {"kernel": kernel, "dtype": tests.BFLOAT16, "shape": (3, 40_000)}
    for kernel in tests.BACKWARD:
        yield "test_backward", {"kernel": kernel, "dtype": float32, "shape": (130, tests.CHUNK + 5)}
        yield "test_backward", {"kernel": kernel, "dtype": tests.BFLOAT16, "shape": (3, 40_000)}
    for forward, backward in both:
        yield "test_another_ignored_index", {"forward": forward, "backward": backward, "ignored": 50}
        yield "test_logits_of_minus_infinity", {"forward": forward, "backward": backward}
        yield "test_two_cores_share_the_rows", {"forward": forward, "backward": backward, "rows": 3}


def _flash_attention(tests: ModuleType) -> Calls:
    for causal in (True, False):
        yield "test_forward", {"shape": (600, 64), "causal": causal}
        yield "test_backward", {"shape": (600, 64), "causal": causal}
    yield "test_forward_of_bfloat16", {"causal": True}
    yield "test_forward_of_scores_whose_exponentials_overflow", {}


def _moe(tests: ModuleType) -> Calls:
    float32 = tests.np.dtype(tests.np.float32)
    # One choice; experts of exactly one block, and of one token more; more slots than int16 has numbers; counts that
    # bfloat16 does not have; rows of the result longer than a bank.
    for sizes in ((1, 8, 8, 8, 1), (128, 8, 8, 8, 8), (129, 8, 8, 8, 8), (600, 8, 8, 9, 8), (4, 520, 8, 8, 8)):
        yield "test_moe", {"sizes": sizes, "dtype": float32}
    yield "test_two_cores", {"sizes": tests.SIZE, "dtype": tests.BFLOAT16}
    yield "test_all_tokens_choose_the_same_experts", {"programs": 2}
    yield "test_moe", {"sizes": (140, 130, 140, 12, 3), "dtype": float32}
    yield "test_moe", {"sizes": (200, 8, 8, 300, 8), "dtype": float32}


def _rmsnorm_quant(tests: ModuleType) -> Calls:
    for kernel in tests.KERNELS:
        for dtype in tests.LARGEST:
            yield "test_rmsnorm_quant", {"kernel": kernel, "dtype": dtype, "shape": (130, 2049)}
        yield "test_bfloat16", {"kernel": kernel}


def _rotary(tests: ModuleType) -> Calls:
    for kernel in tests.KERNELS:
        # 40 heads of 2048 elements do not fit into a partition together.
        for interleaved, shape in ((False, (130, 3, 64)), (True, (3, 40, 2048))):
            yield "test_rotary", {"kernel": kernel, "interleaved": interleaved, "shape": shape}
        yield "test_bfloat16", {"kernel": kernel, "interleaved": False}
        yield "test_two_cores_share_the_sequence", {"kernel": kernel, "sequence": 257}


def _linear_layer(tests: ModuleType) -> Calls:
    yield "test_linear", {"shape": (200, 300, 1100), "tiling": tests.Serpentine}
    yield "test_linear", {"shape": (130, 257, 513), "tiling": tests.Tiling}
    yield "test_the_order_of_tiles_changes_no_bit", {}
    yield "test_another_activation", {}


def _paged_attention(tests: ModuleType) -> Calls:
    for size in tests.CASES[1:]:
        yield "test_paged_attention", {"size": size}
    yield "test_groups_of_queries_share_a_head_of_the_cache", {"sizes": (2, 3, 192, 4, 16)}


def _of_gallery(*names: str) -> Callable[[ModuleType], Calls]:
    """Return the calls of the kernels of these names among the shapes of the gallery."""

    def calls(tests: ModuleType) -> Calls:
        for kernel, reference, shapes in tests.CASES:
            if kernel.__name__ in names:
                arguments = {"kernel": getattr(tests, kernel.__name__), "reference": reference, "shapes": shapes}
                yield "test_a_kernel_agrees", arguments

    return calls


def _layer_norm(tests: ModuleType) -> Calls:
    yield from _of_gallery("layer_norm")(tests)
    yield "test_prints_show_moments", {}


def _state_space_scan(tests: ModuleType) -> Calls:
    yield from _of_gallery("state_space_scan")(tests)
    yield "test_prints_show_where_the_scan_goes_on", {}


def _reduce_scatter_matmul(tests: ModuleType) -> Calls:
    for ranks, rows in ((2, 260), (3, 9)):
        yield "test_ranks_share_the_rows_of_a_sum", {"ranks": ranks, "rows": rows}


def _legacy_vector_add(tests: ModuleType) -> Calls:
    yield "test_vector_add_is_exact", {"length": 65_537}


def _legacy_relu(tests: ModuleType) -> Calls:
    yield "test_relu_is_exact", {"shape": (129, 2049)}


def _legacy_transpose(tests: ModuleType) -> Calls:
    yield "test_transpose_is_exact", {"shape": (129, 257)}
    yield "test_transpose_is_exact_by_products_with_an_identity", {}


def _legacy_softmax(tests: ModuleType) -> Calls:
    yield "test_softmax", {"shape": (129, 77)}


def _legacy_matmul(tests: ModuleType) -> Calls:
    yield "test_matmul", {"sizes": (129, 257, 513)}


def _legacy_sums(tests: ModuleType) -> Calls:
    for kernel, axis in ((tests.row_sums, 1), (tests.column_sums, 0)):
        for shape in ((130, 5), (129, 2049)):
            yield "test_sums_along_either_axis", {"shape": shape, "kernel": kernel, "axis": axis}


def _legacy_conv2d(tests: ModuleType) -> Calls:
    yield "test_conv2d", {"sizes": (2, 129, 8, 9, 129, 3, 2)}
    yield "test_conv2d", {"sizes": (1, 3, 12, 600, 5, 1, 3)}
    yield "test_conv2d", {"sizes": (1, 2, 30, 300, 2, 5, 5)}


_NKI = "tests.kernels.nki."

# A kernel without a case is an error of the yardstick: see `runner.baseline`.
CASES = {
    "all_gather_matmul": Case(_NKI + "test_all_gather_matmul", _all_gather_matmul),
    "attention": Case(_NKI + "test_linear", _attention),
    "blocked_matmul": Case(_NKI + "test_blocked_matmul", _blocked_matmul),
    "conv": Case(_NKI + "test_gallery_shapes", _of_gallery("conv1d", "conv2d", "max_pool2d")),
    "cross_entropy": Case(_NKI + "test_cross_entropy", _cross_entropy),
    "depthwise_conv": Case(_NKI + "test_depthwise_conv", _depthwise_conv),
    "flash_attention": Case(_NKI + "test_flash_attention", _flash_attention),
    "gather_scatter": Case(_NKI + "test_gather_scatter", _gather_scatter),
    "giou": Case(_NKI + "test_giou", _giou),
    "layer_norm": Case(_NKI + "test_gallery_shapes", _layer_norm),
    "linear_layer": Case(_NKI + "test_linear_layer", _linear_layer),
    "matmul": Case(_NKI + "test_linear", _matmul),
    "moe": Case(_NKI + "test_moe", _moe),
    "mxfp8_matmul": Case(_NKI + "test_mxfp8_matmul", _mxfp8_matmul),
    "paged_attention": Case(_NKI + "test_paged_attention", _paged_attention),
    "reduce_scatter_matmul": Case(_NKI + "test_gallery_shapes", _reduce_scatter_matmul),
    "ring_all_gather": Case(_NKI + "test_ring_all_gather", _ring_all_gather),
    "rmsnorm_quant": Case(_NKI + "test_rmsnorm_quant", _rmsnorm_quant),
    "rotary": Case(_NKI + "test_rotary", _rotary),
    "softmax": Case(_NKI + "test_linear", _softmax),
    "state_space_scan": Case(_NKI + "test_gallery_shapes", _state_space_scan),
    "top_k": Case(_NKI + "test_top_k", _top_k),
    "top_p": Case(_NKI + "test_top_p", _top_p),
    "legacy.conv2d": Case(_NKI + "legacy.test_conv2d", _legacy_conv2d),
    "legacy.giou": Case(_NKI + "legacy.test_giou", _giou),
    "legacy.matmul": Case(_NKI + "legacy.test_elementary", _legacy_matmul),
    "legacy.relu": Case(_NKI + "legacy.test_elementary", _legacy_relu),
    "legacy.softmax": Case(_NKI + "legacy.test_elementary", _legacy_softmax),
    "legacy.sum_reduction": Case(_NKI + "legacy.test_elementary", _legacy_sums),
    "legacy.transpose": Case(_NKI + "legacy.test_elementary", _legacy_transpose),
    "legacy.vector_add": Case(_NKI + "legacy.test_elementary", _legacy_vector_add),
}
