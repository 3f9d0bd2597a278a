"""The commands and the dashboard a person uses; they talk to the node through its local API."""
