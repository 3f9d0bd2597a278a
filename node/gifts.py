"""What two devices give each other once their keys are proven (PAIRING.md 6).

Each gift is a canonical array that starts with its kind. First come any number of
``["statements", [[bytes, signature], …]]``: what one's owner signed about devices. Then

- from the joiner ``["joiner", [[owner, proof], …]]``: its signatures over (owner, device), one for
  each owner that the opener's ``extra`` names (R19); none unless both are ``mine``;
- from the opener ``["opener", owner name, former owners, vault]``; empty but for the name unless
  both are ``mine``; the vault is encrypted under the passphrase;
- from the joiner ``["stored"]``: it keeps us as a peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keys import codec
from keys.errors import BadEncoding, BadInput
from keys.ids import OwnerId
from keys.limits import (
    KEY_BYTES,
    NAME_BYTES_MAX,
    PAIR_EXTRA_BYTES_MAX,
    PAIR_GIFT_BYTES_MAX,
    PAIR_GIFTS_MAX,
    SIGNATURE_BYTES,
    VAULT_BYTES_MAX,
)
from keys.pairing import Channel
from keys.statements import OWNER_KINDS, Statement, parse
from node.pairwire import GIFT_MESSAGE_BYTES_MAX, STALL_S, PairStream

STATEMENTS: Final = "statements"
JOINER: Final = "joiner"
OPENER: Final = "opener"
STORED: Final = "stored"
OWNERS_MAX: Final = 16
_PAGE_BYTES: Final = PAIR_GIFT_BYTES_MAX // 2


@dataclass(frozen=True, slots=True)
class JoinerGift:
    """The joiner's signatures over (owner, device), by owner."""

    proofs: dict[OwnerId, bytes]

    def encode(self) -> list[Any]:
        """The array."""
        return [JOINER, [[bytes(owner), proof] for owner, proof in self.proofs.items()]]


@dataclass(frozen=True, slots=True, repr=False)
class OpenerGift:
    """Whose device the joiner is from now on; ``vault`` empty when it is not the opener's owner."""

    owner_name: str
    former: tuple[OwnerId, ...] = ()
    vault: bytes = b""

    def encode(self) -> list[Any]:
        """The array."""
        return [OPENER, self.owner_name, [bytes(o) for o in self.former], self.vault]


def encode_owners(owners: Sequence[OwnerId]) -> bytes:
    """The opener's ``extra``: the owners whose device the joiner is to become."""
    return codec.encode([bytes(o) for o in owners[:OWNERS_MAX]])


def decode_owners(extra: bytes) -> list[OwnerId]:
    """Read ``extra``; raises ``BadEncoding``."""
    value: object = codec.decode(extra, PAIR_EXTRA_BYTES_MAX)
    if not isinstance(value, list) or len(value) > OWNERS_MAX:
        raise BadEncoding("what the opener sent along is not a list of owners")
    return [OwnerId(v) for v in value]


class Gifts:
    """Both directions of the channel on one stream."""

    def __init__(self, stream: PairStream, channel: Channel) -> None:
        self._stream, self._channel = stream, channel

    async def send_statements(self, statements: Iterable[Statement]) -> None:
        """Send statements, as many gifts as they need."""
        page: list[list[bytes]] = []
        size = 0
        for statement in statements:
            page.append([statement.data, statement.signature])
            size += len(statement.data) + SIGNATURE_BYTES
            if size >= _PAGE_BYTES:
                await self.send([STATEMENTS, page])
                page, size = [], 0
        if page:
            await self.send([STATEMENTS, page])

    async def send(self, gift: list[Any]) -> None:
        """Send one gift."""
        await self._stream.send(self._channel.seal(codec.encode(gift)))

    async def receive(self, patience_s: float = STALL_S) -> tuple[list[Statement], list[Any]]:
        """Verified statements, and the gift that follows them; waits so long for each message."""
        found: list[Statement] = []
        for _ in range(PAIR_GIFTS_MAX):
            message = await self._stream.receive(GIFT_MESSAGE_BYTES_MAX, patience_s)
            value: object = codec.decode(self._channel.open(message), PAIR_GIFT_BYTES_MAX)
            match value:
                case [str(kind), list(rows)] if kind == STATEMENTS:
                    found += [s for row in rows for s in _statement(row)]
                case [str(), *_]:
                    assert isinstance(value, list)
                    return found, value
                case _:
                    raise BadEncoding("a gift is an array that starts with its kind")
        raise BadEncoding(f"more than {PAIR_GIFTS_MAX} gifts")


def joiner_gift(value: list[Any]) -> JoinerGift:
    """Read the joiner's gift; raises ``BadEncoding``."""
    match value:
        case [str(kind), list(rows)] if kind == JOINER and len(rows) <= OWNERS_MAX:
            return JoinerGift(dict(_proof(row) for row in rows))
    raise BadEncoding("not the form of a joiner's gift")


def opener_gift(value: list[Any]) -> OpenerGift:
    """Read the opener's gift; raises ``BadEncoding``."""
    match value:
        case [str(kind), str(name), list(former), bytes(vault)] if (
            kind == OPENER
            and len(name.encode()) <= NAME_BYTES_MAX
            and len(former) <= OWNERS_MAX
            and len(vault) <= VAULT_BYTES_MAX
        ):
            return OpenerGift(name, tuple(OwnerId(o) for o in former), vault)
    raise BadEncoding("not the form of an opener's gift")


def _proof(row: object) -> tuple[OwnerId, bytes]:
    match row:
        case [bytes(owner), bytes(proof)] if (
            len(owner) == KEY_BYTES and len(proof) == SIGNATURE_BYTES
        ):
            return OwnerId(owner), proof
    raise BadEncoding("a proof is an owner and a signature")


def _statement(row: object) -> list[Statement]:
    """The owner's statement in a row; what does not verify, or is of another kind, is left out."""
    match row:
        case [bytes(data), bytes(signature)]:
            try:
                found = parse(data, signature)
            except BadInput:
                return []
            return [found] if found.kind in OWNER_KINDS else []
    raise BadEncoding("a statement travels with its signature")
