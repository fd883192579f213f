"""The cost of low precision: one call run twice, rounded as declared and in full precision."""
