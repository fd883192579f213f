"""Scores of candidates."""
