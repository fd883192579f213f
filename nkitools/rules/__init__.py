"""The rules: the catalogue (pure data), and what a broken rule says."""
