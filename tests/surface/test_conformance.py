"""The MCP project's conformance tool against the HTTP transport.

``npm install @modelcontextprotocol/conformance@0.1.16``, then name its ``dist/index.js`` in
``MCP_CONFORMANCE`` and a Node 22 in ``MCP_NODE``; without them this is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster import PASSPHRASE, Cluster
from tests.support.quick import quick_node

TOOL = os.environ.get("MCP_CONFORMANCE")
EXPECTED = Path(__file__).parent / "conformance" / "expected-failures.yml"


@pytest.mark.skipif(not TOOL, reason="MCP_CONFORMANCE does not name the conformance tool")
def test_the_conformance_tool_is_content(tmp_path: Path) -> None:
    """It exits 0, and what has to pass did: among it the protection against DNS rebinding."""
    cluster = Cluster(tmp_path)
    node = quick_node(cluster, tmp_path, "desk", up=False)
    node.options = (*node.options, "--api", "127.0.0.1:0")
    node.do("agent.create", name="muse", passphrase=PASSPHRASE)
    token = str(node.do("token.create", agent="muse", passphrase=PASSPHRASE)["token"])
    node.up()
    command = [sys.executable, "-m", "tests.support.token_proxy", node.api, token]
    proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=node.environ)
    try:
        assert proxy.stdout is not None
        url = f"http://localhost:{proxy.stdout.readline().strip()}/mcp"
        runs = [os.environ.get("MCP_NODE", "node"), str(TOOL), "server", "--url", url]
        done = subprocess.run(
            [*runs, "--expected-failures", str(EXPECTED)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-3_000:]
        for scenario in ("server-initialize", "tools-list", "dns-rebinding-protection"):
            assert f"\u2713 {scenario}" in done.stdout
    finally:
        proxy.kill()
        proxy.communicate()
        cluster.stop()
