"""The one door to SPAKE2: two sides that share a short code get a key, or two different keys.

1. The joiner is side A, the opener side B, never symmetric; both device keys are the identities.
2. One object, one code, one answer: ``finish`` works once.
3. Nothing here says whether the codes were equal. The caller confirms the key.
4. A message that is not a point of the prime-order group, of the other side and of exactly 33 bytes
   raises ``BadEncoding``. (The library ignores what follows 33 bytes, takes y over the field's
   order, and raises classes that have no common base.)

The arithmetic is Python's, about 17 ms a side, and its time depends on the secret numbers; these
are used once. Callers keep it off the event loop.
"""

from __future__ import annotations

from typing import Final

from spake2.ed25519_basic import NotOnCurve
from spake2.spake2 import SPAKE2_A, SPAKE2_B, SPAKEError

from keys.errors import BadEncoding
from keys.ids import DeviceId
from keys.limits import KEY_BYTES

MESSAGE_BYTES: Final = 1 + KEY_BYTES

_FIELD_ORDER: Final = 2**255 - 19
_SIGN_BIT: Final = 1 << 255


class Pake:
    """One side of one exchange."""

    __slots__ = ("_side", "message")

    def __init__(self, side: SPAKE2_A | SPAKE2_B) -> None:
        self._side = side
        self.message: bytes = side.start()

    def __repr__(self) -> str:
        return f"<{type(self._side).__name__}>"

    def finish(self, theirs: bytes) -> bytes:
        """The 32-byte key, equal on both sides iff code and identities are; raises ``BadEncoding``.

        A second call raises too, whatever the first one did.
        """
        if len(theirs) != MESSAGE_BYTES:
            raise BadEncoding(f"a SPAKE2 message has {MESSAGE_BYTES} bytes, not {len(theirs)}")
        if int.from_bytes(theirs[1:], "little") % _SIGN_BIT >= _FIELD_ORDER:
            raise BadEncoding("a SPAKE2 message with a number over the field's order")
        try:
            key: bytes = self._side.finish(theirs)
        except (SPAKEError, NotOnCurve, ValueError, TypeError, AssertionError) as exc:
            raise BadEncoding("not a SPAKE2 message of the other side") from exc
        return key


def joiner_side(code: str, *, joiner: DeviceId, opener: DeviceId) -> Pake:
    """The joiner's side; ``opener`` is the key of the TLS leaf that the joiner saw."""
    return Pake(SPAKE2_A(code.encode(), idA=bytes(joiner), idB=bytes(opener)))


def opener_side(code: str, *, joiner: DeviceId, opener: DeviceId) -> Pake:
    """The opener's side; ``joiner`` is the key that the joiner named."""
    return Pake(SPAKE2_B(code.encode(), idA=bytes(joiner), idB=bytes(opener)))
