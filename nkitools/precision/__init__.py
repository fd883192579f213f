"""What low precision costs a kernel: one call run twice, rounded as declared and in full precision."""
