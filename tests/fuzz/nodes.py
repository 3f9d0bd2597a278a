"""Hostile inputs to a node that runs: its local API, its port for peers, and the pulls it makes.

A fault shows as an answer with the code ``internal``, as an error in the journal, as an answer that
does not come, or as a node that afterwards does not answer a good call.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from keys.ids import RecordId
from keys.limits import OPEN_HEADS_MAX
from keys.recovery import format_code
from keys.signing import DeviceKey
from keys.tls import certificate_of, client_context
from node.client import CALL_TARGET
from node.localapi import LocalApi
from sync import messages
from sync.frames import Ahead, End, Frame, ServerVector, Totals, pack
from sync.messages import CONTENT_TYPE, Hello, SharedAgent
from tests.fuzz import samples
from tests.fuzz.judge import check
from tests.fuzz.mutate import Maker, packed, said, written
from tests.fuzz.stores import pull_streams
from tests.support.author import Author
from tests.support.exchange import served
from tests.support.peers import PASSPHRASE, Node, remember, running
from tests.support.strangers import enter, impostor, read_request

ANSWER_S: Final = 60.0
HOME_CALLS: Final = 20_000  # a new home after so many, which has grown by then
GROWTH_BYTES_MAX: Final = 200 * 1024 * 1024
FRESH_CALLS: Final = 100  # a new record to act on after so many
RARE: Final = 0.02
EMPTY: Final = messages.StatementsReply((), (), more=False).encode()
RECORD: Final = str(RecordId(bytes(6) + b"\x70\0\x80" + bytes(7)))


def calls(record: str) -> list[dict[str, Any]]:
    """A good call of every verb but ``pair.open``, which waits two minutes for a person."""
    at = {"agent": "muse", "record": record}
    why = {"reason": "no longer so"}
    row = {"text": "a row", "tags": ["a"], "weight": 1.5, "layer": "week",
           "category": "rule", "valid_from": "2026-01-01", "derived_from": [record]}  # fmt: skip
    imported = {"text": "a line", "record": RECORD, "kind": "turn", "speaker": "Ana",
                "session": "s", "recorded_at": "2026-01-01T00:00:00Z", "state": "deprecated",
                "successors": [RECORD], "replaces": [RECORD], "derived_from": [RECORD]}  # fmt: skip
    signed = {"passphrase": PASSPHRASE}
    found: dict[str, dict[str, Any]] = {
        "remember": {"agent": "muse", **row, "provenance": "user", "source": "a",
                     "expires": "2099-01-01"},
        "remember.batch": {"agent": "muse", "rows": [row | {"line": 7}, {"text": "b"}]},
        "revise": at | why | {"text": "it is so now"},
        "retire": at | why,
        "keep": at,
        "tag": at | {"tags": ["x", "y"]},
        "untag": at | {"tags": ["x"]},
        "move": at | {"layer": "week"},
        "search": {"agent": "muse", "query": "a \"row\" OR C++ NOT*", "limit": 5, "explain": True,
                   "tags": ["a"], "layer": "week", "at": "2026-01-01", "as_of": "2026-01-01"},
        "list": {"agent": "muse", "limit": 3, "cursor": "0", "states": ["new"], "kinds": ["turn"]},
        "show": at,
        "history": at,
        "conflicts.list": {"agent": "muse"},
        "quarantine.list": {"agent": "muse"},
        "review.list": {"agent": "muse"},
        "review.show": at,
        "review.approve": at | signed | {"heads": ""},
        "review.reject": at | signed | why,
        "agent.list": {},
        "agent.show": {"agent": "muse"},
        "reinstate": at | signed | why,
        "lift": at | signed | why,
        "digest": {"agent": "muse"},
        "audit.log": at | {"limit": 5},
        "export.page": {"agent": "muse"},
        "import.begin": {"agent": "muse", "format": "roost"},
        "import.lines": {"agent": "muse", "run": "0" * 32, "rows": [imported], "approve": False},
        "peers": {},
        "pair.list": {},
        "pair.confirm": {"device": str(samples.DEVICE), "yes": True},
        "agent.accept": {"agent": "muse"} | signed,
        "permissions": {"agent": "muse"},
        "forget.status": at,
    }  # fmt: skip
    return [{"verb": verb, "params": params} for verb, params in found.items()]


def rare_calls(record: str) -> list[dict[str, Any]]:
    """Good calls that cost more, or grow the home by more than a record."""
    device = str(DeviceKey(bytes(32)).device)
    signed = {"passphrase": PASSPHRASE}
    found: dict[str, dict[str, Any]] = {
        "rebuild": {"agent": "muse"},
        "audit.verify": {"agent": "muse"},
        "doctor": {},
        "status": {},
        "sync": {},
        "peers.remove": {"device": device},
        "pair.join": {"address": "127.0.0.1:1", "code": "123456", "mine": False},
        "agent.create": {"name": "other"} | signed,
        "grant": {"agent": "muse", "subject": device, "rights": ["read"]} | signed,
        "revoke": {"agent": "muse", "subject": device} | signed,
        "devices.revoke": {"device": device} | signed,
        "owner.recover": {"code": format_code(bytes(16))} | signed,
        "forget": {"agent": "muse", "record": record, "reason": "no", "dry_run": False},
    }
    return [{"verb": verb, "params": params} for verb, params in found.items()]


def _called(good: list[dict[str, Any]]) -> Maker:
    """Calls of which mostly one parameter is wrong, so that they reach the verb."""
    whole = written(good)

    def make(rng: random.Random) -> bytes:
        call = rng.choice(good)
        keys = [key for key in call["params"] if key != "agent" or rng.random() < 0.1]
        if rng.random() < 0.1 or not keys:
            return whole(rng)
        wrong = {rng.choice(keys) for _ in range(rng.choice((1, 1, 2)))}
        pairs = [
            f"{json.dumps(key)}: "
            + (said(rng, value, rng.choice(good)) if key in wrong else json.dumps(value))
            for key, value in call["params"].items()
        ]
        text = f'{{"verb": {json.dumps(call["verb"])}, "params": {{{", ".join(pairs)}}}}}'
        return text.encode("utf-8", "surrogatepass")

    return make


async def local_api(folder: Path, seed: int, inputs: int) -> Counter[str]:
    """Calls on the socket of a running node; how often each was answered with what."""
    rng, codes = random.Random(f"local api {seed}"), Counter[str]()
    for start in range(0, inputs, HOME_CALLS):
        node = await asyncio.to_thread(Node, folder / f"api{start}")
        async with running(node) as tasks:
            await node("agent.create", name="muse", passphrase=PASSPHRASE)
            api = LocalApi(node.core.home, node.dispatch, node.journal, node.core.clock)
            await api.start(tasks)
            async with _connected(lambda: asyncio.open_unix_connection(str(api._paths[0]))) as ask:  # noqa: B023
                before, left = _resident(), min(HOME_CALLS, inputs - start)
                while left > 0:
                    record = await remember(node, "muse", f"the first of {left}")
                    usual, rare = _called(calls(record)), _called(rare_calls(record))
                    for _ in range(min(FRESH_CALLS, left)):
                        data = (rare if rng.random() < RARE else usual)(rng)
                        codes[await _call(ask, data)] += 1
                        check(not node.said("call.failed"), f"failed: {data!r}")
                    left -= FRESH_CALLS
                check(_resident() - before < GROWTH_BYTES_MAX, "the node grew")
                good = {"agent": "muse", "text": "the last"}
                check(await _call(ask, _body("remember", good)) == "result", "a good call")
            await api.stop()
            check(not failures(node), f"{failures(node)}")
    return codes


def _body(verb: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"verb": verb, "params": params}).encode()


async def _call(ask: Ask, data: bytes) -> str:
    status, body = await ask("POST", CALL_TARGET, "application/json", data)
    if status >= 500 or not body:
        check(False, f"{status} {body!r} for {data!r}")
    reply = json.loads(body.splitlines()[-1])
    code = str(reply["error"]["code"]) if "error" in reply else "result"
    check(code != "internal", f"internal for {data!r}")
    return code


async def peer_port(folder: Path, seed: int, inputs: int) -> Counter[str]:
    """Requests of a paired device on a node's port for peers."""
    rng, codes = random.Random(f"peer port {seed}"), Counter[str]()
    node, key = await asyncio.to_thread(Node, folder / "port"), DeviceKey.generate()
    async with running(node):
        await node("agent.create", name="muse", passphrase=PASSPHRASE)
        await node("remember", agent="muse", text="the first")
        await enter(node, key, "127.0.0.1:1")
        await node("grant", agent="muse", subject=str(key.device), rights=["read"],
                   passphrase=PASSPHRASE)  # fmt: skip
        agent = node.handle("muse").agent
        makers: list[tuple[str, Maker]] = [
            (messages.HELLO_PATH, packed(samples.hellos())),
            (messages.path_of(messages.STATEMENTS_PATH, agent),
             packed(samples.statements_requests())),
            (messages.path_of(messages.PULL_PATH, agent), packed(samples.pull_requests())),
            (messages.path_of(messages.PAYLOADS_PATH, agent), packed(samples.payloads_requests())),
            (messages.RECOVER_PATH, packed(samples.recover_requests())),
        ]  # fmt: skip
        context = await asyncio.to_thread(
            client_context, key, certificate_of(node.core.key), keys_dir=None
        )
        host, port = node.address.rsplit(":", 1)
        async with _connected(
            lambda: asyncio.open_connection(host, int(port), ssl=context, server_hostname="")
        ) as ask:
            for _ in range(inputs):
                path, make = rng.choice(makers)
                data = make(rng)
                status, _ = await ask("POST", path, CONTENT_TYPE, data)
                check(status < 500, f"{status} for {data.hex()} to {path}")
                codes[f"{path.rsplit('/', 1)[-1]} {status}"] += 1
            status, _ = await ask("POST", makers[0][0], CONTENT_TYPE, samples.hellos()[0])
            check(status == 200, f"a good hello was answered with {status}")
        check(not failures(node), f"{failures(node)}")
        check(bool((await node("search", agent="muse", query="first"))["results"]), "it searches")
    return codes


class _Answers:
    """What a peer with one agent says: always that it has news, and then what it was told to."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.agent = rng, samples.AGENT
        self.pull = _one_of(samples.streams())
        hostile = packed(samples.statements_replies())
        self.statements: Maker = lambda rng: hostile(rng) if rng.random() < 0.2 else EMPTY

    def to(self, path: str) -> bytes:
        """The body of the answer to a request for a path."""
        if path == messages.HELLO_PATH:
            shared = (SharedAgent(self.agent, self.rng.randbytes(32), self.rng.randbytes(32)),)
            return Hello((1, 1), "", bytes(16), 0, (), shared).encode()
        return (self.statements if path.endswith("/statements") else self.pull)(self.rng)


async def pulls(folder: Path, seed: int, inputs: int) -> Counter[str]:
    """Rounds of a running node with a peer whose every answer to a pull is hostile."""
    rng, codes = random.Random(f"pulls {seed}"), Counter[str]()
    node, key = await asyncio.to_thread(Node, folder / "pulls"), DeviceKey.generate()
    answers = _Answers(rng)
    async with running(node):
        await node("agent.create", name="muse", passphrase=PASSPHRASE)
        record = await remember(node, "muse", "the first")
        agent = answers.agent = node.handle("muse").agent

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while request := await read_request(reader):
                body = answers.to(request.split(b" ", 2)[1].decode())
                head = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\n"
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()

        async with impostor(key, node, talk) as address:
            await enter(node, key, address)
            await node("grant", agent="muse", subject=str(key.device), rights=["read", "write"],
                       passphrase=PASSPHRASE)  # fmt: skip
            ids = await node.handle("muse").read(lambda store: store.statement_ids())
            author = Author(agent, key, sorted(ids)[:OPEN_HEADS_MAX])
            good = _streams_of(author)
            answers.pull = pull_streams(good)
            for _ in range(inputs):
                async with asyncio.timeout(ANSWER_S):
                    done = await node("sync")
                error = done["peers"][0].get("error") or {"code": "none"}
                check(error["code"] != "internal", f"{done}")
                codes[str(error["code"])] += 1
            answers.pull, answers.statements = _one_of(good[3:4]), _one_of([EMPTY])
            await node("sync")
            held = await node.handle("muse").read(lambda store: store.vector())
            check(held[author.log] == [author.tip], "a good answer is taken after all the others")
        check(not failures(node), f"{failures(node)}")
        shown = await node("show", agent="muse", record=record)
        check(shown["text"] == "the first", "the node shows what it had")
        verified = await node("audit.verify", agent="muse")
        check(not verified.get("problems"), f"{verified}")
    return codes


def _one_of(valid: list[bytes]) -> Maker:
    return lambda rng: rng.choice(valid)


def _streams_of(author: Author) -> list[bytes]:
    """Good answers with parts of one log: alone, with an erasure, with an erasure ahead of it."""
    author.open()
    author.write("one", "two")
    author.write("three")
    author.forget(author.records[0])
    entries = author.raw
    parts = [entries[:1], entries[:3], entries[:4], entries]
    frames: list[list[Frame]] = [
        [Totals(len(p), 0), served(p), ServerVector({author.log: [author.tip]}), End(False)]
        for p in parts
    ]
    frames.append([Totals(0, 1), Ahead(entries[-1], entries[0]), ServerVector({}), End(False)])
    return [b"".join(map(pack, whole)) for whole in frames]


def failures(node: Node) -> list[dict[str, Any]]:
    """Lines of the journal that tell of a fault of Roost."""
    return [line for line in node.lines if line.get("level") == "error" or "traceback" in line]


Ask = Callable[[str, str, str, bytes], Awaitable[tuple[int, bytes]]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def _connected(dial: Callable[[], Awaitable[Streams]]) -> AsyncIterator[Ask]:
    """One connection for many requests; it is made anew where the node closed it."""
    held: list[Streams] = []

    async def ask(method: str, path: str, kind: str, data: bytes) -> tuple[int, bytes]:
        async with asyncio.timeout(ANSWER_S):
            if not held:
                held.append(await dial())
            reader, writer = held[0]
            head = f"{method} {path} HTTP/1.1\r\nHost: roost\r\nContent-Type: {kind}\r\n"
            writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            await writer.drain()
            status, body, closes = await _answer(reader)
        if closes:
            held.pop()[1].close()
        return status, body

    try:
        yield ask
    finally:
        for _, writer in held:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """Status, body, and whether the connection ends with it."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status, closes, body = int(head.split(b" ", 2)[1]), b"connection: close" in head, b""
    if b"transfer-encoding: chunked" in head:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        length = head.partition(b"content-length:")[2].partition(b"\r")[0]
        body = await reader.readexactly(int(length or b"0"))
    return status, body, closes


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
