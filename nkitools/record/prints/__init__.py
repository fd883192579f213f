"""Device prints: records, their order, large values, and who is shown them."""
