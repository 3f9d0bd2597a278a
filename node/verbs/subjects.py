"""Whom a grant or a revocation is about, and names of agents."""

from __future__ import annotations

from keys.errors import AmbiguousError, NotFoundError, UsageError
from keys.ids import DeviceId, OwnerId
from keys.limits import NAME_BYTES_MAX
from keys.statements import RIGHTS
from node.core import NodeCore
from node.handle import AgentHandle


async def device_of(core: NodeCore, text: str) -> DeviceId:
    """The device that a name, an id or a prefix of one names."""
    peers = await core.db.run(lambda db: db.peers.find(text))
    if len(peers) > 1:
        raise AmbiguousError(
            "more than one device fits", candidates=[f"{p.shown_name} {p.device}" for p in peers]
        )
    if peers:
        return peers[0].device
    try:
        return DeviceId.parse(text)
    except UsageError as exc:
        raise NotFoundError(f"no device {text[:64]!r} is known here", hint="roost peers") from exc


async def subject_of(core: NodeCore, handle: AgentHandle, text: str) -> tuple[str, bytes, bytes]:
    """(kind, key, recovery hash) of a grant's or revocation's subject."""
    peers = await core.db.run(lambda db: db.peers.all())
    for peer in peers:
        if peer.owner is not None and text == str(peer.owner):
            return "owner", bytes(peer.owner), peer.recovery
    owners = await handle.read(
        lambda store: [
            s.body["subject"]
            for s in store.authority.valid("grant")
            if s.body["subject_kind"] == "owner"
        ]
    )
    for owner in owners:
        if text == str(OwnerId(owner)):
            return "owner", owner, b""
    if text == str(await core.ownership.owner()):
        return "owner", bytes(await core.ownership.owner()), b""
    return "device", bytes(await device_of(core, text)), b""


def subject_text(kind: str, subject: bytes) -> str:
    """A subject's key as text."""
    return str(OwnerId(subject)) if kind == "owner" else str(DeviceId(subject))


def rights_of(words: tuple[str, ...]) -> list[str]:
    """Rights from words, comma-separated or not; raises ``UsageError``."""
    given = [w.strip() for word in words for w in word.split(",") if w.strip()]
    unknown = [w for w in given if w not in RIGHTS]
    if unknown or not given:
        raise UsageError(
            f"no right {unknown[0][:32]!r}" if unknown else "no rights are named",
            hint="one or more of " + ", ".join(RIGHTS),
        )
    return sorted(set(given))


def check_name(name: str) -> str:
    """A name for an agent: text of one line; raises ``UsageError``."""
    clean = name.strip()
    if not clean or not clean.isprintable() or clean == "-":
        raise UsageError("a name is a line of printable text")
    if len(clean.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise UsageError(f"a name has at most {NAME_BYTES_MAX} bytes")
    return clean
