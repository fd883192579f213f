"""Symbolic indices, masks and slices of the legacy dialect."""
