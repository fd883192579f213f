"""Runs as files: written, packed and read again."""
