"""The MCP server: tools, resources and transports over the dispatcher."""
