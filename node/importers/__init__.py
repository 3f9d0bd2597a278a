"""Readers of files that hold memories: a file in, rows and problems out; they write nothing."""
