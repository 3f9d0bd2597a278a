"""An agent with a shell of this account: what it cannot do without the passphrase, and the docs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from keys.errors import RoostError
from node.caller import ACCOUNT
from node.rules import RULES
from tests.support.attacks import ALL_VERBS, attacks
from tests.support.peers import PASSPHRASE
from tests.support.surface import surface

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"


def test_only_what_speaks_mcp_loads_the_sdk() -> None:
    """It takes longer to load than everything else together."""
    modules = "cli.main, cli.commands.mcp, cli.backend, node.assembly, node.process, node.network"
    code = f"import sys, {modules}; print(*({{'mcp', 'pydantic', 'aiohttp'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["aiohttp"]


def test_the_threat_model_lists_what_needs_the_passphrase() -> None:
    """The page and the table say the same."""
    page = PAGE.read_text()
    listed = page.partition("<!-- signed -->")[2].partition("<!-- /signed -->")[0]
    named = set(re.findall(r"`([^`]+)`", listed))
    assert named == {verb for verb in ALL_VERBS if RULES[verb].passphrase}


async def test_without_the_passphrase_nothing_is_signed(tmp_path: Path) -> None:
    """Every such verb, as this account on the socket; with it one works, so the calls are right."""
    async with surface(tmp_path / "home") as at:
        before = [await at.node(v, agent="muse") for v in ("permissions", "digest")]
        waiting = await at.node("review.show", agent="muse", record=at.proposed)
        for verb in sorted(v for v in ALL_VERBS if RULES[v].passphrase):
            params = attacks(at).get(verb, {}) | {"agent": "muse"}
            if verb in ("agent.create", "devices.renew", "devices.revoke", "owner.recover"):
                del params["agent"]
            if verb == "review.approve":
                params["heads"] = waiting["heads"]
            params.pop("passphrase", None)
            for given in ({}, {"passphrase": ""}, {"passphrase": "guessed wrong"}):
                with pytest.raises(RoostError):
                    await at.call(ACCOUNT, verb, **params | given)
        assert [await at.node(v, agent="muse") for v in ("permissions", "digest")] == before
        assert (await at.node("token.list"))["tokens"] == []
        approved = await at.node(
            "review.approve",
            agent="muse",
            record=at.proposed,
            heads=waiting["heads"],
            passphrase=PASSPHRASE,
        )
        assert approved["state"] != "proposed"
