"""What happened in a run: instructions, prints, findings, source lines and loop counters."""
