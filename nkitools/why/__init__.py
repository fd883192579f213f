"""Backward slices of a run, element by element: the making of each element of a result."""
