"""The commands, one module per family; each ends in one call of a verb, and shows its result."""
