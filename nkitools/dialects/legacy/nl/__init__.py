"""Functions of the legacy nki.language."""
