"""How an instruction is issued: its operands resolved, checked, computed and recorded."""
