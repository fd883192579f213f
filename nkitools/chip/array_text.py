"""Arrays as text: elided as NumPy elides them, with masked elements shown as masked."""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array

THRESHOLD = 64  # elements that are shown without eliding
EDGE = 3


def short(value: float) -> str:
    """Return a number in at most six digits."""
    return f"{value:.6g}"


def elided(value: Array, mask: Array | None = None, shape: tuple[int, ...] | None = None) -> str:
    """Return ``value`` as NumPy prints it, in a few lines, with ``--`` for the elements of ``mask``.

    If ``shape`` is larger, ``value`` has the corners of an array of that shape.
    """
    threshold = THRESHOLD
    shown = value if value.dtype.kind in "fiub" or value.dtype.names else value.astype(np.float32)
    if shape is not None and shape != value.shape:
        shown, threshold = with_gaps(shown, shape), 0
        mask = None if mask is None else with_gaps(mask, shape)
    if mask is not None:
        if shape is None or shape == value.shape:
            shown, mask, threshold = _by_corners(shown, mask)
        shown = _with_masked(shown, mask)
        return np.array2string(
            shown, threshold=threshold, edgeitems=EDGE, max_line_width=120, formatter={"object": str}
        )
    with np.printoptions(threshold=threshold, edgeitems=EDGE, linewidth=120):
        return str(shown)


def corners_of(values: Array) -> Array:
    """Return the first and last elements of each axis, a copy."""
    for axis, size in enumerate(values.shape):
        if size > 2 * EDGE:
            # Not np.take, which first copies what is not contiguous.
            values = values[(slice(None),) * axis + ([*range(EDGE), *range(size - EDGE, size)],)]
    return np.array(values)


def with_gaps(corners: Array, shape: tuple[int, ...]) -> Array:
    """Return the corners of an array of ``shape``, with an element in the middle of each axis that NumPy elides."""
    for axis, size in enumerate(shape):
        if size > 2 * EDGE:
            corners = np.insert(corners, EDGE, corners.take(0, axis), axis)
    return corners


def _by_corners(value: Array, mask: Array) -> tuple[Array, Array, int]:
    """Return the corners of a long array, so that hidden elements need not be converted to text."""
    if value.size <= THRESHOLD:
        return value, mask, THRESHOLD
    return with_gaps(corners_of(value), value.shape), with_gaps(corners_of(mask), value.shape), 0


def _with_masked(value: Array, mask: Array) -> Array:
    """Return the elements as texts of one width, masked ones as ``--``."""
    if value.dtype.names or value.dtype.kind in "iub":
        texts = [str(each) for each in value.ravel()]
    else:
        texts = [short(float(each)) for each in value.ravel()]
    texts = ["--" if hidden else text for text, hidden in zip(texts, mask.ravel(), strict=True)]
    width = max(map(len, texts))
    shown = np.empty(value.size, object)
    shown[:] = [text.rjust(width) for text in texts]
    return shown.reshape(value.shape)
