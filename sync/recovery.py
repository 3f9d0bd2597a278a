"""Asking with the recovery key: a new device of an owner who lost the others (R20, R25).

The asker signs, with the key of the recovery code, its own device and the device it asks. A node
that holds agents whose owner committed to that key answers with their statements and with nothing
else; one that holds none answers as for an agent that does not exist. The statements let the asker
sign a rotation that keeps what is to stay; with it, it may read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from keys import codec
from keys.ids import AgentId, DeviceId
from keys.limits import (
    AGENTS_PER_HELLO_MAX,
    HASH_BYTES,
    KEY_BYTES,
    RECOVER_REQUEST_BYTES_MAX,
    REPLY_BYTES_MAX,
    SIGNATURE_BYTES,
    STATEMENT_BYTES_MAX,
    STATEMENTS_PAGE_MAX,
)
from keys.signing import RECOVERY_DOMAIN, SigningKey, verify
from sync.fields import blob, fields, items, row

Signed = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class RecoverRequest:
    """Proof that the asker holds a recovery key; ``public`` is that key."""

    public: bytes
    signature: bytes

    @classmethod
    def sign(cls, key: SigningKey, asker: DeviceId, asked: DeviceId) -> Self:
        """The request of ``asker`` to ``asked``; it proves nothing to anybody else."""
        return cls(key.public, key.sign(RECOVERY_DOMAIN, asker + asked))

    def check(self, asker: DeviceId, asked: DeviceId) -> None:
        """Raise ``BadSignature`` unless it is ``asker``'s to ``asked``."""
        verify(self.public, RECOVERY_DOMAIN, asker + asked, self.signature)

    def encode(self) -> bytes:
        """The canonical bytes."""
        return codec.encode({"public": self.public, "signature": self.signature})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The request in ``data``; raises ``BadEncoding``."""
        value = codec.decode(data, RECOVER_REQUEST_BYTES_MAX)
        public, signature = fields(value, ("public", "signature"))
        return cls(blob(public, KEY_BYTES), blob(signature, SIGNATURE_BYTES))


@dataclass(frozen=True, slots=True)
class RecoverReply:
    """The statements of each agent that fits."""

    agents: tuple[tuple[AgentId, tuple[Signed, ...]], ...]

    def encode(self) -> bytes:
        """The canonical bytes."""
        return codec.encode(
            {"agents": [[agent, [list(s) for s in signed]] for agent, signed in self.agents]}
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The reply in ``data``; raises ``BadEncoding``."""
        (agents,) = fields(codec.decode(data, REPLY_BYTES_MAX), ("agents",))
        return cls(tuple(_agent(value) for value in items(agents, AGENTS_PER_HELLO_MAX)))


def _agent(value: object) -> tuple[AgentId, tuple[Signed, ...]]:
    agent, signed = row(value, 2)
    return AgentId(blob(agent, HASH_BYTES)), tuple(
        _signed(one) for one in items(signed, STATEMENTS_PAGE_MAX)
    )


def _signed(value: object) -> Signed:
    data, signature = row(value, 2)
    return blob(data, 1, STATEMENT_BYTES_MAX), blob(signature, SIGNATURE_BYTES)
