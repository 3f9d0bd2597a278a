"""The verbs of the dispatcher: what the command line, and later agents, may ask of a node."""
