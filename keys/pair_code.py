"""Pairing codes: what they name, how long they live, how often they are given out.

1. A code is six digits. The first two are a hash of the opener's key and pick the device among
   those in sight; the last four are random and are all the secret there is.
2. A code is good for one answer. It is spent when the opener has answered one well-formed SPAKE2
   message, whatever follows, and dead after its time or after too many malformed ones.
3. At most 5 codes in 10 minutes, so at most 30 guesses in an hour, each right with 1 in 10,000.

Times are seconds of one clock that the caller reads; only differences matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import Final

from keys.errors import PairingError, UsageError
from keys.ids import DeviceId, hash256
from keys.limits import (
    PAIR_CODE_DIGITS,
    PAIR_CODE_TTL_S,
    PAIR_CODES_PER_WINDOW,
    PAIR_JOINS_PER_CODE_MAX,
    PAIR_PICK_DIGITS,
    PAIR_WINDOW_S,
)
from keys.signing import random_bytes, same

_SECRET_DIGITS: Final = PAIR_CODE_DIGITS - PAIR_PICK_DIGITS
_SEPARATORS: Final = re.compile(r"[\s-]")
_CODE: Final = re.compile(rf"[0-9]{{{PAIR_CODE_DIGITS}}}")
_NEW_CODE_HINT: Final = "make a new code with `roost pair open` on the other device"


class Reason(StrEnum):
    """Why two devices did not become peers: the ``reason`` of a ``PairingError``."""

    ANOTHER_DEVICE = "another_device"
    SELF = "self"
    MINE = "mine"
    VERSIONS = "versions"
    WRONG_CODE = "wrong_code"
    SPENT = "spent"
    EXPIRED = "expired"
    PAUSED = "paused"
    CLOSED = "closed"
    MALFORMED = "malformed"
    OVER = "over"
    DECLINED = "declined"


_TEXTS: Final[dict[Reason, tuple[str, str | None]]] = {
    Reason.ANOTHER_DEVICE: (
        "the code is of another device than the one that answered",
        "check the address; the code was not used up",
    ),
    Reason.SELF: ("a device cannot be paired with itself", None),
    Reason.MINE: (
        "one side was told --mine and the other was not",
        "give --mine on both sides (another device of yours) or on neither (somebody else's)",
    ),
    Reason.VERSIONS: ("the two devices share no protocol version", "upgrade the older one"),
    Reason.WRONG_CODE: (
        "the code was wrong, or somebody is between the two devices; it is used up",
        _NEW_CODE_HINT,
    ),
    Reason.SPENT: ("this code was used already", _NEW_CODE_HINT),
    Reason.EXPIRED: ("this code is too old", _NEW_CODE_HINT),
    Reason.PAUSED: (
        f"{PAIR_CODES_PER_WINDOW} codes were made within {PAIR_WINDOW_S // 60} minutes",
        "somebody may be guessing; wait before you make a new code with `roost pair open`",
    ),
    Reason.CLOSED: ("the other side stopped pairing", _NEW_CODE_HINT),
    Reason.MALFORMED: (
        "the other side sent something that is no pairing message",
        "check that both run Roost, and " + _NEW_CODE_HINT,
    ),
    Reason.OVER: ("this pairing is over", _NEW_CODE_HINT),
    Reason.DECLINED: (
        "the person who opened the pairing did not confirm the device; nothing was shared",
        _NEW_CODE_HINT,
    ),
}


def failed(reason: Reason, **details: object) -> PairingError:
    """The error for a person that this reason stands for."""
    message, hint = _TEXTS[reason]
    return PairingError(message, hint=hint, reason=str(reason), **details)


def pick_digits(device: DeviceId) -> str:
    """The two digits that begin every code of this device."""
    number = int.from_bytes(hash256(b"roost pairing digits", device), "big")
    return f"{number % 10**PAIR_PICK_DIGITS:0{PAIR_PICK_DIGITS}}"


def new_code(device: DeviceId) -> str:
    """A new code of this device: six digits."""
    number = int.from_bytes(random_bytes(16), "big")
    return pick_digits(device) + f"{number % 10**_SECRET_DIGITS:0{_SECRET_DIGITS}}"


def parse_code(text: str) -> str:
    """The six digits that somebody typed, spaces and hyphens aside; raises ``UsageError``."""
    code = _SEPARATORS.sub("", text)
    if not _CODE.fullmatch(code):
        raise UsageError(f"a pairing code has {PAIR_CODE_DIGITS} digits")
    return code


def check_picks(code: str, device: DeviceId) -> None:
    """Raise ``PairingError`` unless the code begins with the digits of ``device``."""
    if not same(code[:PAIR_PICK_DIGITS].encode(), pick_digits(device).encode()):
        raise failed(Reason.ANOTHER_DEVICE)


class Offer:
    """One code while it is open. Several connections may try it; one gets an answer."""

    __slots__ = ("_closed", "_lock", "_opened_s", "_tries", "code", "ttl_s")

    def __init__(self, code: str, opened_s: float, ttl_s: int) -> None:
        self.code = code
        self.ttl_s = ttl_s
        self._opened_s = opened_s
        self._tries = 0
        self._closed: Reason | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<offer, {self._closed or 'open'}>"

    @property
    def is_open(self) -> bool:
        """False once the code is spent or closed; its age is not looked at."""
        return self._closed is None

    def attempt(self, now_s: float) -> None:
        """Count one message before its arithmetic; raises ``PairingError`` if the code is dead."""
        with self._lock:
            self._check()
            if not 0 <= now_s - self._opened_s < self.ttl_s:
                self._closed = Reason.EXPIRED
            self._tries += 1
            if self._tries > PAIR_JOINS_PER_CODE_MAX:
                self._closed = Reason.SPENT
            self._check()

    def spend(self) -> None:
        """Take the one answer this code is good for; raises ``PairingError`` if it is gone."""
        with self._lock:
            self._check()
            self._closed = Reason.SPENT

    def close(self) -> None:
        """The person stopped pairing; a code that is dead already stays so for its own reason."""
        with self._lock:
            self._closed = self._closed or Reason.CLOSED

    def _check(self) -> None:
        if self._closed is not None:
            raise failed(self._closed)


@dataclass(frozen=True, slots=True)
class CodeBook:
    """When codes were opened lately, in seconds; the node keeps it across restarts."""

    opened_s: tuple[float, ...] = ()

    def open(
        self, device: DeviceId, now_s: float, ttl_s: int = PAIR_CODE_TTL_S
    ) -> tuple[CodeBook, Offer]:
        """A new code that lives ``ttl_s`` (1 to 120) seconds, and the book with it written down.

        Raises ``UsageError`` for another life, ``PairingError`` with ``wait_s`` when codes were
        opened too fast.
        """
        if not 1 <= ttl_s <= PAIR_CODE_TTL_S:
            raise UsageError(f"a pairing code lives 1 to {PAIR_CODE_TTL_S} seconds")
        # A clock that was set back leaves times ahead of now; they count for one window, too.
        recent = tuple(t for t in self.opened_s if abs(now_s - t) < PAIR_WINDOW_S)
        if len(recent) >= PAIR_CODES_PER_WINDOW:
            oldest = sorted(recent)[-PAIR_CODES_PER_WINDOW]
            raise failed(Reason.PAUSED, wait_s=int(oldest + PAIR_WINDOW_S - now_s) + 1)
        return CodeBook((*recent, now_s)), Offer(new_code(device), now_s, ttl_s)
