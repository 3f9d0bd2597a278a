"""The error tree. Every error carries a code, a sentence for a person and, where one helps, a hint.

RoostError                 exit 1
├── UsageError             exit 2   the call's words are off
├── RefusedError           exit 3   permission, policy, tombstone, secret
│   └── PassphraseError             the passphrase does not open the vault
├── UnreachableError       exit 4   nobody answered
├── InUseError             exit 5   another process holds the home
├── NotFoundError          exit 1   no such agent, record, device
├── AmbiguousError         exit 2   more than one candidate
├── PairingError           exit 1   two devices did not become peers; ``reason`` says why
├── KeyFileError           exit 1   a key file is missing, unreadable or too open
├── StoreError             exit 1   the store cannot do it (a newer schema, a closed file)
│   ├── DiskFullError               no room; ``mount`` names the disk
│   ├── ReadOnlyError               the disk of the home is mounted read-only; ``mount`` names it
│   └── DamageError                 a file's bytes are not what was written
└── BadInput               exit 1   bytes from outside that are not what they claim
    ├── BadEncoding                 not canonical, over a bound, of the wrong type
    ├── BadSignature                a signature that does not verify
    └── BadChain                    a log that does not hang together

Errors carry ids, never memory text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RoostError(Exception):
    """Something failed; the message says what, the hint says what to do."""

    code = "failed"
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def as_dict(self) -> dict[str, object]:
        """The error as the object that ``--json`` prints under ``error``."""
        out: dict[str, object] = {"code": self.code, "message": self.message, **self.details}
        if self.hint:
            out["hint"] = self.hint
        return out


class UsageError(RoostError):
    """The call's words are off: a missing, unknown or malformed argument."""

    code = "usage"
    exit_code = 2


class AmbiguousError(UsageError):
    """A name or prefix that fits more than one thing; the candidates are listed."""

    code = "ambiguous"


class RefusedError(RoostError):
    """Not allowed: permission, policy, a value that may not return."""

    code = "refused"
    exit_code = 3


class PassphraseError(RefusedError):
    """The passphrase does not open the owner key."""

    code = "wrong_passphrase"


class UnreachableError(RoostError):
    """Nobody answered at any address that was tried."""

    code = "unreachable"
    exit_code = 4


class InUseError(RoostError):
    """Another process holds this home."""

    code = "in_use"
    exit_code = 5


class NotFoundError(RoostError):
    """There is no such agent, record or device here."""

    code = "not_found"


class PairingError(RoostError):
    """Two devices did not become peers; nothing was stored on either side."""

    code = "pairing"


class KeyFileError(RoostError):
    """A key file is missing, unreadable, damaged or readable by others."""

    code = "key_file"


class StoreError(RoostError):
    """The store cannot do this now: disk full, a newer schema, damage."""

    code = "store"


class DiskFullError(StoreError):
    """There is no room left on the disk of the home; what is there can still be read."""

    code = "disk_full"


class ReadOnlyError(StoreError):
    """The disk of the home is mounted read-only; what is there can still be read."""

    code = "read_only"


class DamageError(StoreError):
    """A file of the home is damaged: its bytes are not what was written."""

    code = "damaged"


class BadInput(RoostError):  # noqa: N818 - the name states what the bytes are
    """Bytes from outside that are not what they claim to be."""

    code = "bad_input"


class BadEncoding(BadInput):
    """Bytes that are not the canonical encoding of an allowed value."""

    code = "bad_encoding"


class BadSignature(BadInput):
    """A signature that does not verify."""

    code = "bad_signature"


class BadChain(BadInput):
    """Entries that do not continue the log they claim to continue."""

    code = "bad_chain"


def error_from(reply: Mapping[str, Any], exit_code: object) -> RoostError:
    """The error that a node answered with, of the class its code names, where that is loaded."""
    details = {key: value for key, value in reply.items() if key not in {"code", "message", "hint"}}
    code = str(reply.get("code", RoostError.code))
    hint = reply.get("hint")
    kind = _classes().get(code, RoostError)
    error = kind(str(reply.get("message", "failed")), hint=hint and str(hint), **details)
    error.code = code
    if type(exit_code) is int and 0 < exit_code < 256:
        error.exit_code = exit_code
    return error


def _classes() -> dict[str, type[RoostError]]:
    """Every class of error by its code."""
    found: dict[str, type[RoostError]] = {}
    waiting = [RoostError]
    while waiting:
        kind = waiting.pop()
        found.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return found
