"""Tensors of the legacy dialect: operators, assignment, result tiles."""
