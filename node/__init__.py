"""The running process: configuration, data directory, local HTTP, scheduler, tool dispatch, MCP."""
