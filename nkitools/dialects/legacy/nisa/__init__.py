"""Instructions of the legacy nki.isa, which return their results as new tiles."""
