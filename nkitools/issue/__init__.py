"""The issue of an instruction: its operands resolved, checked, computed and recorded."""
