"""Asking with a recovery key."""

from __future__ import annotations

import pytest

from keys import codec
from keys.errors import BadEncoding, BadSignature
from keys.ids import AgentId
from keys.limits import RECOVER_REQUEST_BYTES_MAX
from keys.recovery import format_code, recovery_key
from keys.signing import DeviceKey
from sync.recovery import RecoverReply, RecoverRequest

CODE_BYTES = bytes(range(16))


def test_a_claim_proves_the_key_to_the_asked_device_only() -> None:
    """The same bytes are nobody else's claim, and no claim to anybody else (X-39)."""
    key = recovery_key(format_code(CODE_BYTES))
    asker, asked, other = (DeviceKey.generate().device for _ in range(3))
    claim = RecoverRequest.decode(RecoverRequest.sign(key, asker, asked).encode())
    claim.check(asker, asked)
    for wrong in ((other, asked), (asker, other), (asked, asker)):
        with pytest.raises(BadSignature):
            claim.check(*wrong)


def test_messages_come_back_as_they_were() -> None:
    """Both messages, and nothing that is longer or of another form."""
    reply = RecoverReply(((AgentId(bytes(32)), ((b"data", bytes(64)),)),))
    assert RecoverReply.decode(reply.encode()) == reply
    whole = RecoverRequest(bytes(32), bytes(64)).encode()
    assert len(whole) <= RECOVER_REQUEST_BYTES_MAX
    for bad in (b"", whole + b"\0", whole[:-1]):
        with pytest.raises(BadEncoding):
            RecoverRequest.decode(bad)
    for size, word in ((0, "fields"), (1, "at most")):
        with pytest.raises(BadEncoding, match=word):
            RecoverRequest.decode(padded(RECOVER_REQUEST_BYTES_MAX + size))


def padded(size: int) -> bytes:
    """A map of one field, of so many bytes."""
    short = codec.encode({"x": bytes(300)})
    return codec.encode({"x": bytes(300 + size - len(short))})
