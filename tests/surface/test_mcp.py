"""The MCP server over both its transports, against real nodes, driven by the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import ResourceUpdatedNotification

from node.mcp.calling import PROFILES
from node.mcp.tools import DEFAULT
from tests.support.cluster import PASSPHRASE, Cluster
from tests.support.mcp_clients import misuse, over_http, over_stdio, use
from tests.support.quick import Quick, quick_node

WRITES = int(os.environ.get("MCP_WRITES", "20"))  # each of two processes; make soak: 200
WAIT_S = 10.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Nodes that stop when the test ends."""
    made = Cluster(tmp_path)
    yield made
    made.stop()


async def store(client: Client) -> None:
    """memory_store: aliases, near memories, provenance."""
    first = await use(client, "memory_store", content="the kettle in the hall is blue", tag="home")
    assert (first["state"], first["created"]) == ("new", True)
    again = await use(client, "memory_store", text="the kettle in the hall is blue")
    assert (again["record"], again["created"]) == (first["record"], False)
    near = await use(client, "memory_store", text="the kettle in the yard is red")
    assert [n["record"] for n in near["near"]] == [first["record"]]
    page = await use(client, "memory_store", text="kettle rule of a page", provenance="web")
    assert page["state"] == "proposed"
    assert (await misuse(client, "memory_store", text="x", provenance="user"))["code"] == "refused"
    assert (await misuse(client, "memory_store", text="x", category="idea"))["code"] == "usage"


async def search(client: Client) -> None:
    """memory_search: by its aliases; nothing that waits; unknown names are errors (M-C13)."""
    found = await use(client, "memory_search", q="kettle", k=10)
    assert {r["text"] for r in found["results"]} == {
        "the kettle in the hall is blue",
        "the kettle in the yard is red",
    }
    wrong = await misuse(client, "memory_search", qury="kettle")
    assert (wrong["code"], wrong["hint"]) == ("unknown_parameter", "did you mean query?")
    twice = await misuse(client, "memory_search", q="kettle", query="kettle")
    assert "twice" in twice["message"]
    other = await misuse(client, "memory_search", q="kettle", agent="other")
    assert other["code"] == "other_agent"
    assert (await use(client, "memory_search", q="kettle", agent="muse"))["results"]
    assert (await misuse(client, "memory_search", q="kettle", kinds=["dream"]))["code"] == "usage"


async def the_id(client: Client, word: str) -> str:
    """The memory that a word finds first."""
    return str((await use(client, "memory_search", query=word))["results"][0]["record"])


async def get(client: Client) -> None:
    """memory_get: with its origin (X-92), without storage columns."""
    shown = await use(client, "memory_get", id=await the_id(client, "hall"))
    assert shown["text"] == "the kettle in the hall is blue"
    assert shown["device"]
    assert shown["via"] in ("local", "agent")
    assert not shown.keys() & {"n", "detail", "heads", "facts", "vector"}
    assert (await misuse(client, "memory_get", id="00000000"))["code"] == "not_found"


async def listing(client: Client) -> None:
    """memory_list: pages."""
    everything = await use(client, "memory_list", limit=1000)
    first = await use(client, "memory_list", limit=1)
    second = await use(client, "memory_list", limit=1, cursor=first["next"])
    rows = [*first["records"], *second["records"]]
    assert [r["record"] for r in rows] == [r["record"] for r in everything["records"][:2]]
    assert first["total"] == len(everything["records"])


async def update(client: Client) -> None:
    """memory_update: tags, layer, text; guarded fields; a dry run changes nothing."""
    record = await the_id(client, "hall")
    shown = await use(client, "memory_get", record=record)
    same = {name: shown[name] for name in ("kind", "provenance", "via", "state", "created_at")}
    done = await use(client, "memory_update", record=record, tags=["home", "warm"], **same)
    assert done["changed"] == ["tags"]
    guarded = await misuse(client, "memory_update", record=record, state="current")
    assert guarded["code"] == "guarded_field"
    assert "state" in guarded["message"]
    text = "the kettle in the hall is green"
    assert "reason" in (await misuse(client, "memory_update", record=record, text=text))["message"]
    told = await use(client, "memory_update", id=record, text=text, reason="seen", dry_run=True)
    assert told["changed"] == ["text"]
    assert (await use(client, "memory_get", record=record))["tags"] == ["home", "warm"]
    new = await use(client, "memory_update", id=record, text=text, reason="seen", layer="week")
    assert new["supersedes"] == record
    now = await use(client, "memory_get", record=new["record"])
    assert (now["text"], now["layer"], now["tags"]) == (text, "week", ["home", "warm"])


async def retire(client: Client) -> None:
    """memory_retire: with a reason; a dry run only tells."""
    record = await the_id(client, "yard")
    assert "reason" in (await misuse(client, "memory_retire", record=record))["message"]
    await use(client, "memory_retire", record=record, reason="gone", dry_run=True)
    assert await the_id(client, "yard") == record
    await use(client, "memory_retire", record=record, reason="gone")
    assert (await use(client, "memory_search", query="yard"))["results"] == []


async def forget(client: Client) -> None:
    """memory_forget: what this session stored goes, at once."""
    record = (await use(client, "memory_store", text="a slip of the tongue"))["record"]
    told = await use(client, "memory_forget", record=record, reason="slip", dry_run=True)
    assert told["would_erase"]
    done = await use(client, "memory_forget", record=record, reason="slip")
    assert (done["record"], done["erased"]) == (record, True)
    assert (await misuse(client, "memory_store", text="a slip of the tongue"))["code"] != "internal"


async def context(client: Client) -> None:
    """memory_context: the block as text, and the ids in it."""
    done = await client.call_tool("memory_context", {"q": "kettle"})
    block, listed = (getattr(part, "text", "") for part in done.content)
    records = {e["record"] for e in json.loads(listed)["entries"]}
    assert await the_id(client, "hall") in records
    assert "green" in block
    assert "rule of a page" not in block  # M-D1: it waits for a person


async def subscribe(client: Client) -> None:
    """Ask to be told when the block reads otherwise, as older clients do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await client.subscribe_resource("memory://context")


async def resources(client: Client, record: str) -> None:
    """The block and one memory, by their addresses; nothing else is there."""
    assert [r.uri for r in (await client.list_resources()).resources] == ["memory://context"]
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "memory://record/{record}"
    (block,) = (await client.read_resource("memory://context")).contents
    assert record in getattr(block, "text", "")
    (one,) = (await client.read_resource(f"memory://record/{record}")).contents
    assert json.loads(getattr(one, "text", ""))["record"] == record
    for uri in ("memory://record/00000000", "memory://other", "file:///etc/passwd"):
        with pytest.raises(MCPError):
            await client.read_resource(uri)


TOOLS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "memory_store": store,
    "memory_search": search,
    "memory_get": get,
    "memory_list": listing,
    "memory_update": update,
    "memory_retire": retire,
    "memory_context": context,
    "memory_forget": forget,
}


async def drive(client: Client) -> None:
    """Every tool of the default profile, each as its function says."""
    listed = (await client.list_tools()).tools
    assert {t.name for t in listed} == TOOLS.keys()
    for tool in listed:
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (
            tool.name in ("memory_search", "memory_get", "memory_list", "memory_context")
        )
    for name, work in TOOLS.items():
        try:
            await work(client)
        except AssertionError as exc:
            raise AssertionError(f"{name}: {exc}") from exc


def test_the_default_profile_is_small_and_every_tool_has_a_case() -> None:
    """Eight tools at most, and none that only a person may use."""
    assert len(DEFAULT) <= 8
    assert {t.name for t in DEFAULT} == TOOLS.keys()
    words = ("approve", "grant", "lift", "pair", "reinstate", "token", "policy", "revoke")
    for tools in PROFILES.values():
        assert not [t.name for t in tools if any(w in t.verb or w in t.name for w in words)]


def test_M_H2_two_processes_on_one_agent_lose_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Started in the same second on a home without a node; one drives every tool as well."""
    node = quick_node(cluster, tmp_path, "desk", up=False)
    node.do("agent.create", name="muse", passphrase=PASSPHRASE)
    node.do("agent.create", name="other", passphrase=PASSPHRASE)

    quiet, told = asyncio.Event(), asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            told.set()

    async def write(name: str, *, drives: bool) -> set[str]:
        era: dict[str, Any] = {} if drives else {"mode": "legacy", "message_handler": hear}
        async with over_stdio(node, **era) as client:
            texts = [f"{name} notes number {i}" for i in range(WRITES)]
            done = await asyncio.gather(*(use(client, "memory_store", text=t) for t in texts))
            assert all(d["created"] for d in done)
            if drives:
                await quiet.wait()
                await drive(client)
            else:
                await subscribe(client)
                quiet.set()
                async with asyncio.timeout(10 * WAIT_S):
                    await told.wait()
            return {d["record"] for d in done}

    async def both() -> set[str]:
        first, second = await asyncio.gather(write("one", drives=True), write("two", drives=False))
        return first | second

    written = asyncio.run(both())
    assert len(written) == 2 * WRITES
    held = node.run("list", "muse", "--limit", "1000").result["records"]
    assert written <= {r["record"] for r in held if r["state"] == "new"}


@pytest.fixture
def served(cluster: Cluster, tmp_path: Path) -> tuple[Quick, str, str]:
    """A node with a listener for agents: (node, address, token)."""
    node = quick_node(cluster, tmp_path, "desk", up=False)
    node.options = (*node.options, "--api", "127.0.0.1:0")
    node.do("agent.create", name="muse", passphrase=PASSPHRASE)
    token = node.do("token.create", agent="muse", passphrase=PASSPHRASE)["token"]
    node.up()
    return node, node.api, str(token)


def request(address: str, lines: list[str], body: bytes = b"") -> tuple[int, bytes]:
    """The status of one raw request and all that came back."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), WAIT_S) as connection:
        lines = [*lines, f"Content-Length: {len(body)}", "Connection: close"]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return int(answer.split(b" ")[1]), answer


def test_every_tool_over_http_and_nothing_for_a_page(served: tuple[Quick, str, str]) -> None:
    """Both eras of the protocol; then hostile Host and Origin, wrong tokens (X-83 to X-87)."""
    node, address, token = served

    async def work() -> None:
        async with over_http(address, token, "legacy") as client:
            await drive(client)
        async with over_http(address, token) as client:
            record = await the_id(client, "hall")
            await resources(client, record)
            async with client.listen(resource_subscriptions=[f"memory://record/{record}"]) as told:
                write = {"agent": "muse", "text": "kettle rule to wait for", "provenance": "web"}
                await asyncio.to_thread(node.do, "remember", **write)  # changes nothing to read
                tag = {"agent": "muse", "record": record, "tags": ["seen"]}
                await asyncio.to_thread(node.do, "tag", **tag)
                async with asyncio.timeout(WAIT_S):
                    event = await anext(aiter(told))
            assert str(getattr(event, "uri", "")) == f"memory://record/{record}"

    asyncio.run(work())
    nothing_for_a_page(node, address, token)


def nothing_for_a_page(node: Quick, address: str, token: str) -> None:
    """Hostile requests are refused, and change nothing; the same with a good head works."""
    shown = node.do("list", agent="muse", states=["new", "superseded", "deprecated"])["records"]
    assert {node.do("show", agent="muse", record=r["record"])["via"] for r in shown} == {"agent"}
    good = [f"Host: {address}", f"Authorization: Bearer {token}", "Content-Type: application/json"]
    call = json.dumps({"verb": "list", "params": {}}).encode()
    status, answer = request(address, ["POST /v1/call HTTP/1.1", *good], call)
    assert status == 200
    assert b"kettle" in answer
    status, _ = request(address, ["POST /mcp HTTP/1.1", *good], b"{}")
    assert status not in (401, 403)
    before = node.do("digest", agent="muse")
    port = address.rpartition(":")[2]
    hostile = {
        f"Host: evil.example:{port}": 403,
        "Host: 127.0.0.1.evil": 403,
        f"Host: {address}\r\nOrigin: http://evil.example": 403,
        f"Host: {address}\r\nOrigin: null": 403,
        f"Host: {address}\r\nOrigin: http://{address}0": 403,
        f"Host: {address}\r\nOrigin: https://{address}": 403,
        f"Host: {address}\r\nOrigin: chrome-extension://abcdef": 403,
        f"Host: {address}\r\nOrigin: http://{address}": 401,  # ours, and no token
        f"Host: {address}\r\nOrigin: http://evil.example\r\nUpgrade: websocket"
        "\r\nConnection: Upgrade": 403,
        f"Host: {address}\r\nCookie: token={token}": 401,
        f"Host: {address}\r\nAuthorization: Bearer {token[:-1]}": 401,
        f"Host: {address}\r\nAuthorization: Basic {token}": 401,
    }
    write = json.dumps({"verb": "remember", "params": {"text": "a page was here"}}).encode()
    for path in ("/mcp", "/v1/call", f"/v1/call?token={token}"):
        for head, wanted in hostile.items():
            sent = [f"POST {path} HTTP/1.1", *head.split("\r\n"), "Content-Type: text/plain"]
            if "Authorization" not in head and wanted == 403:
                sent.append(f"Authorization: Bearer {token}")  # even a page that has the token
            status, answer = request(address, sent, write)
            assert status == wanted, (path, head)
            assert b"access-control" not in answer.lower()
            assert b"set-cookie" not in answer.lower()
            assert b"kettle" not in answer
    for verb, params in (
        ("grant", {"subject": "x", "rights": ["admin"]}),
        ("list", {"agent": "another"}),
        ("token.create", {"agent": "muse", "passphrase": PASSPHRASE}),
    ):
        body = json.dumps({"verb": verb, "params": params}).encode()
        assert request(address, ["POST /v1/call HTTP/1.1", *good], body)[0] == 403
    assert node.do("digest", agent="muse") == before
    refused = node.do("audit.refused", limit=10)["refused"]
    assert {r["verb"] for r in refused} >= {"grant", "list", "token.create"}


@pytest.mark.parametrize("client", ["some-client", "vscode", "toml"])
def test_print_config_names_absolute_paths(cluster: Cluster, tmp_path: Path, client: str) -> None:
    """What is pasted works in any directory."""
    from cli.backend import mcp_config

    said = mcp_config(Path("home"), client, ["--agent", "muse"])
    if client == "toml":
        assert str(Path.cwd() / "home") in said
        return
    parsed: dict[str, Any] = json.loads(said)
    (servers,) = parsed.values()
    entry = servers["roost"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-5:] == ["--home", str(Path.cwd() / "home"), "mcp", "--agent", "muse"]
