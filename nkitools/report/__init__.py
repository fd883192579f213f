"""What people are shown of runs: counts, folded findings, the first prints, JSON, tracebacks of their own lines."""
