"""nkitools beside published measurements of chips."""
