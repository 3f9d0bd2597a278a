"""Homes for tests of nodes that meet."""

from pathlib import Path

import pytest

from tests.support.peers import Node


@pytest.fixture
def two(tmp_path: Path) -> list[Node]:
    """Two homes after ``roost init``."""
    return [Node(tmp_path / name) for name in ("a", "b")]


@pytest.fixture
def three(tmp_path: Path) -> list[Node]:
    """Three homes after ``roost init``."""
    return [Node(tmp_path / name) for name in ("a", "b", "c")]
