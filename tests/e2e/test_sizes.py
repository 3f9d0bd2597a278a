"""Large records and many agents, under real processes (S-F1, S-F4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keys.limits import IMPORT_LINE_BYTES_MAX, TEXT_BYTES_MAX
from tests.support.cluster import Cluster
from tests.support.quick import found as found_agent
from tests.support.quick import quick_node, same

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

MIB = 1024 * 1024


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.stop()


def text_of(size: int) -> str:
    """A text of so many bytes in which each size has a word of its own."""
    return f"size{size} ".ljust(size, "x")


def test_S_F4_a_large_record_replicates_or_is_refused_where_it_is_written(
    cluster: Cluster,
) -> None:
    """1 MiB less and more a byte arrive whole; beyond what fits the limit is named."""
    a, b = (quick_node(cluster, cluster.root, name) for name in ("a", "b"))
    cluster.pair(a, b)
    found_agent(a)
    fits, refused = [MIB - 1, MIB + 1], [TEXT_BYTES_MAX + 1, 20_000_000]
    rows = cluster.root / "rows.jsonl"
    lines = [json.dumps({"text": text_of(size)}) for size in (*fits, *refused)]
    rows.write_text("\n".join([*lines, json.dumps({"text": "a small one after them"})]))
    said = a.run("remember", "muse", "--jsonl", str(rows))
    assert (said.code, said.result["written"]) == (1, len(fits) + 1)
    found = {r["line"]: r["message"] for r in said.result["refused"]}
    assert found.keys() == {3, 4}
    assert str(TEXT_BYTES_MAX) in found[3]
    assert str(IMPORT_LINE_BYTES_MAX) in found[4]
    same(a, b)
    assert len(b.finds("small")) == 1
    for size in fits:
        (record,) = b.finds(f"size{size}")
        assert b.do("show", agent="muse", record=record)["text"] == text_of(size)


def test_S_F1_many_large_files_share_one_bound_of_memory(tmp_path: Path) -> None:
    """Pages are cached for all agents together, not for each: 128 MiB read, far less kept.

    The whole, 40 agents of 10 MB over TLS, is ``python -m tests.bench.many_agents``.
    """
    program = Path(__file__).parents[1] / "support" / "many_files.py"
    argv = [sys.executable, str(program), str(tmp_path), "16", "8"]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    said = subprocess.run(argv, capture_output=True, text=True, env=environ, check=True)
    assert 16 < int(said.stdout) < 96
