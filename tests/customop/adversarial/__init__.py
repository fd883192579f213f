"""Operators made to hurt, or to look as if they did: their sources, and what is expected of each."""
