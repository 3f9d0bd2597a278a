"""The two sides of pairing as machines: messages in, messages out (PAIRING.md 4, R39).

1. The joiner is SPAKE2's A, the opener its B. The joiner checks that the code picks the leaf it saw
   before it sends anything; the opener checks everything else before it answers.
2. The code is spent by the opener's answer, whatever follows.
3. The joiner proves first. A proof is a MAC under the SPAKE2 key and a signature of the device key,
   both over the hash of the two greetings as they were sent and as they came.
4. Nothing of the other side is to be stored before ``paired`` is there.
5. What follows goes through the ``Channel``; the opener's is shut until its person has confirmed
   the joiner's key.
6. A machine that failed once stays failed; a message out of order is a failure.

Neither machine reads a clock or a socket. Each call takes up to 20 ms of arithmetic.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from keys import pair_messages as messages
from keys.errors import BadEncoding, BadSignature, RefusedError, RoostError
from keys.ids import DeviceId, hash256
from keys.limits import PAIR_EXTRA_BYTES_MAX, PAIR_GIFT_BYTES_MAX, PAIR_GIFTS_MAX
from keys.pair_code import Offer, Reason, check_picks, failed, parse_code
from keys.pair_messages import Greeting, Introduction, Proof
from keys.pake import Pake, joiner_side, opener_side
from keys.signing import PAIRING_DOMAIN, DeviceKey, box_open, box_seal, same, verify
from keys.tls import certificate_of

JOINER: Final = b"joiner"
OPENER: Final = b"opener"

_TRANSCRIPT: Final = b"roost pairing transcript v1\0"
_EXTRA_COUNT: Final = 0  # the place of "extra" among the boxes of the opener; gifts begin at 1


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """What both sides have in common once SPAKE2 is done: its key and the transcript's hash."""

    key: bytes
    transcript: bytes

    def tag(self, role: bytes) -> bytes:
        """HMAC(K, role ‖ H) of R39."""
        return self._mac(role)

    def box_key(self, role: bytes) -> bytes:
        """The key of the boxes that ``role`` seals."""
        return self._mac(b"box of " + role)

    def prove(self, key: DeviceKey, role: bytes, extra: bytes | None = None) -> bytes:
        """The proof message of ``role``."""
        signature = key.sign(PAIRING_DOMAIN, role + self.transcript)
        return Proof(self.tag(role), signature, extra).encoded()

    def check(self, proof: Proof, role: bytes, device: DeviceId) -> None:
        """Raise ``PairingError`` for another key or transcript, ``BadSignature`` for no device."""
        if not same(proof.tag, self.tag(role)):
            raise failed(Reason.WRONG_CODE)
        verify(device, PAIRING_DOMAIN, role + self.transcript, proof.signature)

    def _mac(self, label: bytes) -> bytes:
        return hmac.digest(self.key, label + self.transcript, "sha256")


class Channel:
    """Gifts, in order, encrypted and authenticated under keys that only these two sides have."""

    __slots__ = ("_device", "_receive_key", "_received", "_released", "_send_key", "_sent")

    def __init__(self, secrets: Secrets, me: bytes, them: bytes, device: DeviceId) -> None:
        self._send_key = secrets.box_key(me)
        self._receive_key = secrets.box_key(them)
        self._sent = self._received = _EXTRA_COUNT
        self._device = device
        self._released = me == JOINER

    def release(self, confirmed: DeviceId) -> None:
        """Let gifts out to the device whose key the opener's person confirmed.

        Raises ``PairingError`` if that is not the device at the other end.
        """
        if confirmed != self._device:
            raise failed(Reason.ANOTHER_DEVICE)
        self._released = True

    def seal(self, gift: bytes) -> bytes:
        """A ``gift`` message of up to 256 KiB; up to 64 of them, each sent once and in order.

        Raises ``RefusedError`` while the opener's person has not confirmed the joiner.
        """
        if not self._released:
            raise RefusedError("nothing is given before a person confirmed the other device's key")
        assert len(gift) <= PAIR_GIFT_BYTES_MAX, "a gift over its bound"
        assert self._sent < PAIR_GIFTS_MAX, "too many gifts"
        self._sent += 1
        return messages.encode_gift(box_seal(self._send_key, self._sent, gift))

    def open(self, message: bytes) -> bytes:
        """The next gift. Raises ``BadInput``, or ``PairingError`` when the other side refused."""
        if self._received >= PAIR_GIFTS_MAX:
            raise BadEncoding(f"more than {PAIR_GIFTS_MAX} gifts")
        box = messages.decode_gift(message)
        gift = box_open(self._receive_key, self._received + 1, box)
        self._received += 1
        return gift


@dataclass(frozen=True, slots=True)
class Paired:
    """The other side, proven, and the channel to it. ``extra`` is what the opener sent along."""

    device: DeviceId
    certificate: bytes
    introduction: Introduction
    version: int  # the newest that both speak
    channel: Channel = field(repr=False)
    extra: bytes = field(default=b"", repr=False)


# The states of both machines, with the names that PAIRING.md 4 gives them.


@dataclass(frozen=True, slots=True, repr=False)
class Ready:
    """Nothing was sent or received."""


@dataclass(frozen=True, slots=True, repr=False)
class Joining:
    """The joiner has sent its greeting."""

    pake: Pake
    join: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Proving:
    """The keys are there; the other side's proof is awaited."""

    secrets: Secrets
    them: Greeting


@dataclass(frozen=True, slots=True)
class Done:
    """Both proofs were right."""

    paired: Paired


@dataclass(frozen=True, slots=True)
class Failed:
    """Something was not right; nothing follows."""


State: TypeAlias = Ready | Joining | Proving | Done | Failed


class _Side:
    """What both machines share: identity, state, and failing for good."""

    def __init__(self, key: DeviceKey, me: Introduction) -> None:
        self.state: State = Ready()
        self._key = key
        self._me = me

    @property
    def paired(self) -> Paired:
        """The result; only once the state is ``Done``."""
        assert isinstance(self.state, Done), "pairing is not done"
        return self.state.paired

    def fail(self) -> None:
        """Give up: the connection broke, time ran out, or a person said no."""
        self.state = Failed()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except RoostError:
            self.fail()
            raise

    def _greeting(self, pake: Pake, kind: str) -> bytes:
        certificate = certificate_of(self._key)
        return Greeting(self._key.device, certificate, self._me, pake.message).encoded(kind)

    def _check_them(self, them: Greeting) -> None:
        if them.device == self._key.device:
            raise failed(Reason.SELF)
        if them.introduction.mine != self._me.mine:
            raise failed(Reason.MINE)

    def _finish(self, at: Proving, me: bytes, extra: bytes = b"") -> None:
        them = at.them
        channel = Channel(at.secrets, me, OPENER if me == JOINER else JOINER, them.device)
        said = them.introduction
        version = min(said.versions[1], self._me.versions[1])
        paired = Paired(them.device, them.certificate, said, version, channel, extra)
        self.state = Done(paired)


class Joiner(_Side):
    """The side that types the code. ``leaf`` is the key of the TLS leaf that answered.

    Raises ``UsageError`` for what is no code. ``expected`` is the device the person picked, if one
    was picked.
    """

    def __init__(
        self,
        key: DeviceKey,
        me: Introduction,
        leaf: DeviceId,
        code: str,
        expected: DeviceId | None = None,
    ) -> None:
        super().__init__(key, me)
        self._leaf = leaf
        self._code = parse_code(code)
        self._expected = expected

    def start(self) -> bytes:
        """The first message. Raises ``PairingError`` when the code is of another device."""
        with self._failing():
            if not isinstance(self.state, Ready):
                raise failed(Reason.OVER)
            if self._leaf == self._key.device:
                raise failed(Reason.SELF)
            if self._expected not in (None, self._leaf):
                raise failed(Reason.ANOTHER_DEVICE)
            check_picks(self._code, self._leaf)
            pake = joiner_side(self._code, joiner=self._key.device, opener=self._leaf)
            join = self._greeting(pake, messages.JOIN)
        self.state = Joining(pake, join)
        return join

    def receive(self, data: bytes) -> bytes | None:
        """Take one message; the answer to it, or None when pairing is done.

        Raises ``PairingError`` or ``BadInput``; the machine has then failed.
        """
        with self._failing():
            match self.state:
                case Joining() as at:
                    return self._answered(at, data)
                case Proving() as at:
                    self._confirmed(at, data)
                    return None
                case Ready() | Done() | Failed():
                    raise failed(Reason.OVER)
                case never:
                    assert_never(never)

    def _answered(self, at: Joining, data: bytes) -> bytes:
        them = messages.decode_greeting(data, messages.ANSWER)
        if them.device != self._leaf:
            raise BadSignature("the answer names another device than the one that answered")
        self._check_them(them)
        secrets = Secrets(at.pake.finish(them.spake), _transcript(at.join, data))
        self.state = Proving(secrets, them)
        return secrets.prove(self._key, JOINER)

    def _confirmed(self, at: Proving, data: bytes) -> None:
        proof = messages.decode_proof(data, messages.CONFIRMED)
        at.secrets.check(proof, OPENER, at.them.device)
        assert proof.extra is not None, "a confirmed message has it"
        extra = box_open(at.secrets.box_key(OPENER), _EXTRA_COUNT, proof.extra)
        self._finish(at, JOINER, extra)


class Opener(_Side):
    """The side that shows the code; one machine per connection, one ``Offer`` for all of them."""

    def __init__(self, key: DeviceKey, me: Introduction, offer: Offer, extra: bytes = b"") -> None:
        assert len(extra) <= PAIR_EXTRA_BYTES_MAX, "extra over its bound"
        super().__init__(key, me)
        self._offer = offer
        self._extra = extra

    def receive(self, data: bytes, now_s: float) -> bytes:
        """Take one message; the answer to it. ``now_s`` is on the clock of the ``CodeBook``.

        After the second answer the state is ``Done``. Raises ``PairingError`` or ``BadInput``; the
        machine has then failed.
        """
        with self._failing():
            match self.state:
                case Ready():
                    return self._join(data, now_s)
                case Proving() as at:
                    return self._confirm(at, data)
                case Joining() | Done() | Failed():
                    raise failed(Reason.OVER)
                case never:
                    assert_never(never)

    def _join(self, data: bytes, now_s: float) -> bytes:
        them = messages.decode_greeting(data, messages.JOIN)
        self._check_them(them)
        self._offer.attempt(now_s)
        pake = opener_side(self._offer.code, joiner=them.device, opener=self._key.device)
        key = pake.finish(them.spake)
        answer = self._greeting(pake, messages.ANSWER)
        self._offer.spend()
        self.state = Proving(Secrets(key, _transcript(data, answer)), them)
        return answer

    def _confirm(self, at: Proving, data: bytes) -> bytes:
        proof = messages.decode_proof(data, messages.CONFIRM)
        at.secrets.check(proof, JOINER, at.them.device)
        extra = box_seal(at.secrets.box_key(OPENER), _EXTRA_COUNT, self._extra)
        confirmed = at.secrets.prove(self._key, OPENER, extra)
        self._finish(at, OPENER)
        return confirmed


def _transcript(join: bytes, answer: bytes) -> bytes:
    """H: both greetings, so keys, names, roles, mine, versions, certificates and all else."""
    parts = (len(join).to_bytes(4, "big"), join, len(answer).to_bytes(4, "big"), answer)
    return hash256(_TRANSCRIPT, *parts)
