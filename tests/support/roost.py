"""Runs ``roost`` in this process against a scripted node, and reads what it said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.support.local_node import LocalNode

PASSPHRASE = "correct horse battery"


@dataclass(frozen=True)
class Said:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        (line,) = self.out.splitlines()
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> dict[str, Any]:
        """The error object on standard error."""
        (line,) = self.err.splitlines()
        found = json.loads(line)["error"]
        assert isinstance(found, dict)
        return found


@dataclass
class Roost:
    """``roost`` on the home of one scripted node."""

    node: LocalNode
    passphrase_file: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Said:
        self.capture.readouterr()
        code = main(["--home", str(self.node.home), *arguments])
        said = self.capture.readouterr()
        return Said(code, said.out, said.err)
