"""A crash at every system call that writes or syncs, of an append, a pull and a forget."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.checks import Held
from tests.crash.program import acts, open_author, text_of
from tests.support.byte_scan import found_in

ROOT = Path(__file__).parents[2]
STRACE = shutil.which("strace")
CALLS = "pwrite64,fdatasync,fsync,ftruncate,unlink,rename"
STRIDE = int(os.environ.get("CRASH_STRIDE", "64"))  # 1: a crash at every one
ACTS = ("append", "pull", "forget")
pytestmark = pytest.mark.skipif(STRACE is None, reason="strace is missing: install it")


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """Two files, one of them with some writes and erasures behind it."""
    folder = tmp_path / "prepared"
    folder.mkdir()
    said = os.dup(1)
    with (tmp_path / "said").open("wb") as out:
        os.dup2(out.fileno(), 1)
        try:
            acts(folder, 12, seed=3)
        finally:
            os.dup2(said, 1)
            os.close(said)
    open_author(folder, "b").store.connection.close()
    return folder


def _run(folder: Path, act: str, *options: str, killed: bool) -> bool:
    """Whether the act of a process under strace, which is ``killed`` or not, was acknowledged."""
    command = ["strace", "-f", *options, sys.executable, "-m", "tests.crash.program", act]
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, str(folder)], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)) is killed, done.stderr
    assert killed or done.returncode == 0, done.stderr
    return "done" in done.stdout


def _calls(folder: Path, act: str, trace: Path) -> tuple[list[tuple[str, int]], int]:
    """Each call that the act makes, its opening of the files included: which, and its how many-th.

    And how many come before it is said to be done. strace counts the calls of each name by
    themselves.
    """
    assert _run(folder, act, "-e", f"trace={CALLS},write", "-o", str(trace), killed=False)
    lines = re.findall(r"^\d+ +(\w+)\((.*)", trace.read_text(), re.MULTILINE)
    said = next(i for i, (_, rest) in enumerate(lines) if rest.startswith('1, "done'))
    names = [name for name, _ in lines if name != "write"]
    before = sum(name != "write" for name, _ in lines[:said])
    return [(name, names[: i + 1].count(name)) for i, name in enumerate(names)], before


@pytest.mark.slow
def test_X_78_a_crash_at_any_system_call(
    prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Done or not begun after it, never half; said to be done only once the bytes are gone."""
    total = tried = acknowledged = 0
    for act in ACTS:
        whole = tmp_path / act
        shutil.copytree(prepared, whole)
        calls, before = _calls(whole, act, tmp_path / "trace")
        total += len(calls)
        # A sample, with the last call before the acknowledgement and the first one after it.
        for place in sorted({*range(len(calls) % STRIDE, len(calls), STRIDE), before - 1, before}):
            name, number = calls[place]
            folder = tmp_path / f"{act}-{name}-{number}"
            shutil.copytree(prepared, folder)
            inject = f"inject={name}:signal=SIGKILL:when={number}"
            options = ("-e", f"trace={name}", "-e", inject, "-o", "/dev/null")
            done = _run(folder, act, *options, killed=True)
            assert done is (place >= before), f"{act}, {name} number {number}"
            tried, acknowledged = tried + 1, acknowledged + done
            _check(prepared, folder, act, done=done, why=f"{act}, {name} number {number}")
            shutil.rmtree(folder)
    with capsys.disabled():
        sys.stdout.write(f"\n{total} system calls, {tried} crashes, {acknowledged} acknowledged\n")
    assert total > 100, "positive control: the acts do write"
    assert 0 < acknowledged < tried, "positive control: killed before it was said, and after"


def _check(prepared: Path, folder: Path, act: str, *, done: bool, why: str) -> None:
    before, victim = _texts(prepared), min(_texts(prepared))
    if act == "forget" and done:
        assert found_in(folder, before[victim].split()[2]) == [], f"{why}: acknowledged too early"
    held = {name: Held(folder, name).check(why) for name in "ab"}
    after = _texts(folder)
    if act == "append":
        assert (text_of(1_000) in after.values()) or not done, why
        assert before.items() <= after.items(), why
    elif act == "pull":
        assert held["b"] == held["a"] or not done, why
        assert held["b"] <= held["a"], why
        assert after == before, why
    else:
        assert set(before) - set(after) in (set(), {victim}), why
        assert victim not in after or not done, why
        if victim not in after:
            assert found_in(folder, before[victim].split()[2]) == [], f"{why}: half a forget"


def _texts(folder: Path) -> dict[bytes, str]:
    store = open_author(folder, "a").store
    rows = store.connection.execute("SELECT record, text FROM record WHERE state <> 'erased'")
    found = {bytes(record): str(text) for record, text in rows}
    store.connection.close()
    return found
