"""Rules over the record of a whole run: races, capacity, lifetimes, speed."""
