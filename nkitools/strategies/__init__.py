"""Hypothesis strategies for kernels: shapes at the edges of tiles, dtypes of instructions, arrays of awkward values.

Needs Hypothesis (``pip install hypothesis``), which nkitools itself does not.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "nkitools.strategies needs Hypothesis, which is not installed: pip install hypothesis", name="hypothesis"
    ) from None

from nkitools.strategies.arrays import arrays, awkward_values
from nkitools.strategies.boxes import box_pairs, boxes
from nkitools.strategies.dtypes import dtypes
from nkitools.strategies.shapes import matrix_shapes, tile_shapes

__all__ = ["arrays", "awkward_values", "box_pairs", "boxes", "dtypes", "matrix_shapes", "tile_shapes"]
