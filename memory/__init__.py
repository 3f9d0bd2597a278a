"""One SQLite file per agent: its log, its read model, and every read and write of its memory."""
