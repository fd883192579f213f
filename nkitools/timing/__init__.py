"""The time that a run would take on a chip: costs and dependences, a schedule on the engines, and what bounds it."""
