"""The fit of the timing model's knobs on published latencies: ``make calibrate SOURCES=DIR``."""
