"""nl.*: tile functions made of instructions; ranges, program ids and prints."""
