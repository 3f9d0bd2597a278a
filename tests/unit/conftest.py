"""Fixtures of the unit tests."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.local_node import local_node
from tests.support.roost import PASSPHRASE, Roost
from tests.support.terminal import Terminal, attach


@pytest.fixture
def roost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Roost]:
    """``roost`` on a home whose node is scripted, with the passphrase in a file."""
    passphrase_file = tmp_path / "passphrase"
    passphrase_file.write_text(PASSPHRASE + "\n")
    passphrase_file.chmod(0o600)
    for name in ("ROOST_HOME", "ROOST_DEBUG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROOST_PASSPHRASE_FILE", str(passphrase_file))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    with local_node(tmp_path / "home") as node:
        yield Roost(node, passphrase_file, capsys)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], str]], Terminal]:
    """Makes this process one that a person sits at; the argument answers questions."""

    def start(answer: Callable[[str], str]) -> Terminal:
        return attach(monkeypatch, answer)

    return start
