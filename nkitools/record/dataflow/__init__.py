"""Which instruction made, overwrote or read the elements that another one touches: exact, element by element."""
