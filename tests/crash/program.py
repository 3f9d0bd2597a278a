"""A process that works on agents' files until it ends or is killed, and says what is done.

``python -m tests.crash.program ACT FOLDER [COUNT]``: ``acts`` writes and forgets COUNT times in
``a.db`` and says ``ack`` after each; ``append``, ``pull`` and ``forget`` do one such act between
the lines ``begin`` and ``done``; ``serve`` serves pulls; ``forks`` starts what is to be killed.
"""

from __future__ import annotations

import os
import random
import socket
import sys
from contextlib import suppress
from pathlib import Path

from crdt.entry import Via
from crdt.fingerprint import FingerprintKey
from keys.errors import BadEncoding
from keys.ids import AgentId, RecordId
from keys.statements import Statement, agent_of
from memory.authoring import Author
from memory.door import open_connection
from memory.forgetting import forget, reach_of
from memory.notes import Note
from memory.store import AgentStore
from memory.writing import remember_batch
from sync.messages import PullRequest
from sync.outcome import outcome_of
from sync.pull import PullClient
from sync.serve import PullServer
from tests.support.author import certify, device_key, founding, owner_key, seeded
from tests.support.exchange import Pulled, always, carry_out, receive
from tests.support.founding import replace_key

KEY = FingerprintKey(seeded("the key of what is cut"))
NOW_US = 1_700_000_000_000_000
NORMAL = "ROOST_TEST_SYNCHRONOUS_NORMAL"  # the setting that loses commits: a positive control
NAMES = ("a", "b")


def statements() -> list[Statement]:
    """The agent's statements: a founding, and the certificates of two devices."""
    owner = owner_key("alice")
    found = replace_key(founding(owner), owner, KEY)
    first = certify(owner, device_key("a"), [bytes(found.id)])
    return [found, first, certify(owner, device_key("b"), [bytes(first.id)])]


def open_author(folder: Path, name: str) -> Author:
    """The writer of one of the two files; the file is made when it is not there."""
    key, known = device_key(name), statements()
    agent: AgentId = agent_of(known[0])
    connection = open_connection(folder / f"{name}.db")
    if os.environ.get(NORMAL):
        connection.execute("PRAGMA synchronous = NORMAL")
    store = AgentStore(connection, agent, [KEY], key.device)
    store.add_statements(known)
    return Author(store, key)


def text_of(record_number: int) -> str:
    """A text with a word of its own that the index keeps whole."""
    word = seeded(f"word {record_number}").hex()[:24]
    return f"the word {word} of note {record_number}"


def write(author: Author, number: int) -> RecordId:
    """Remember the text of a number."""
    done = remember_batch(author, [Note(text_of(number))], Via.LOCAL, NOW_US + number)
    return done.written[0].record


def erase(author: Author, record: RecordId, now_us: int) -> None:
    """Forget a record and clean the files."""
    reach = reach_of(author.store, [record])
    forget(author, reach, with_sources=False, reason="why", via=Via.LOCAL, now_us=now_us)
    assert author.store.clean()


def acts(folder: Path, count: int, seed: int) -> None:
    """Write, and forget a third of what is there; say what is acknowledged."""
    author, source = open_author(folder, "a"), random.Random(seed)
    rows = author.store.connection.execute("SELECT text, record FROM record WHERE live = 1")
    live = {int(text.rsplit(" ", 1)[1]): RecordId(record) for text, record in rows}
    tip = author.own_tip()
    number = tip[1] if tip else 0
    for _ in range(count):
        number += 1
        if live and source.random() < 0.3:
            gone = source.choice(sorted(live))
            record = live.pop(gone)
            erase(author, record, NOW_US + number)
            what = f"forgot {gone} {record.hex()}"
        else:
            record = live[number] = write(author, number)
            what = f"wrote {number} {record.hex()}"
        (log,) = author.store.logs.rows()
        os.write(1, f"ack {log.tip.seq} {log.tip.hash.hex()} {what}\n".encode())


def one(folder: Path, act: str) -> None:
    """One act, and its acknowledgement."""
    author = open_author(folder, "b" if act == "pull" else "a")
    source = open_author(folder, "a") if act == "pull" else author
    os.write(1, b"begin\n")
    if act == "append":
        write(author, 1_000)
    elif act == "forget":
        found = author.store.connection.execute(
            "SELECT record FROM record WHERE live = 1 ORDER BY record"
        ).fetchone()
        erase(author, RecordId(found[0]), NOW_US + 5_000)
    else:
        client = PullClient(author.store.agent, author.store.vector())
        server = PullServer(source.store, client.request, always, bytes_target=512)
        receive(client, author.store, list(iter(server.next_piece, None)))
        author.store.clean()
    os.write(1, b"done\n")


def serve(folder: Path) -> None:
    """Say the port, and serve pulls of ``a.db`` there, one after the other, for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        os.write(1, f"port {listener.getsockname()[1]}\n".encode())
        while True:
            connection, _ = listener.accept()
            store = open_author(folder, "a").store
            with connection, connection.makefile("rb") as asked, suppress(OSError, BadEncoding):
                # It was killed while it asked, or took our bytes; the next one comes.
                request = PullRequest.decode(asked.read(int.from_bytes(asked.read(4), "big")))
                for piece in iter(PullServer(store, request, always).next_piece, None):
                    connection.sendall(piece)
            store.connection.close()


def pulls(folder: Path, port: int) -> None:
    """Pull ``a.db`` into ``b.db`` again and again; say after each page what is held."""
    author = open_author(folder, "b")
    while True:
        client = PullClient(author.store.agent, author.store.vector())
        with socket.create_connection(("127.0.0.1", port)) as connection:
            body = client.request.encode()
            connection.sendall(len(body).to_bytes(4, "big") + body)
            done = Pulled(outcome_of(client, {}))
            while not client.over and (chunk := connection.recv(8_192)):
                carry_out(client, author.store, client.feed(chunk), done)
            carry_out(client, author.store, client.closed(), done)
        author.store.clean()
        for row in author.store.logs.rows():
            os.write(1, f"ack {row.tip.seq} {row.tip.hash.hex()} held\n".encode())


def forks() -> None:
    """Fork a process for each line of standard input, and say its pid and when it is dead."""
    for line in sys.stdin:
        act, folder, number, seed = line.split()
        pid = os.fork()
        if not pid:
            if act == "pulls":
                pulls(Path(folder), int(number))
            acts(Path(folder), int(number), int(seed))
        os.write(1, f"pid {pid}\n".encode())
        os.waitpid(pid, 0)
        os.write(1, b"dead\n")


def main() -> None:
    """Do what the arguments say."""
    act, *rest = sys.argv[1:]
    if act == "forks":
        forks()
    elif act == "acts":
        acts(Path(rest[0]), int(rest[1]), seed=1)
    elif act == "serve":
        serve(Path(rest[0]))
    else:
        one(Path(rest[0]), act)


if __name__ == "__main__":
    main()
