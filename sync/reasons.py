"""Why something is not here: one code per missing change, and the sentence a person reads."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Missing(StrEnum):
    """The one reason why entries of a log are missing on a device."""

    OFFLINE = "offline"
    NOT_GRANTED = "not_granted"
    NOT_ACCEPTED = "not_accepted"
    WAITING = "waiting"
    PAYLOAD_NOWHERE = "payload_nowhere"
    QUARANTINED = "quarantined"
    HELD = "held"
    TOO_LARGE = "too_large"
    ERASED = "erased"
    DISK_FULL = "disk_full"
    NEEDS_UPGRADE = "needs_upgrade"


SENTENCES: Final[dict[Missing, str]] = {
    Missing.OFFLINE: "the device has not been reached since",
    Missing.NOT_GRANTED: "the device that wrote it holds no right to write, or we none to read",
    Missing.NOT_ACCEPTED: "the agent was offered to this device and nobody has accepted it yet",
    Missing.WAITING: "an earlier change has to come first",
    Missing.PAYLOAD_NOWHERE: "no device that was asked has the content",
    Missing.QUARANTINED: "it does not verify",
    Missing.HELD: "it is part of a mass change that waits for a person",
    Missing.TOO_LARGE: "it is over a limit",
    Missing.ERASED: "it was erased",
    Missing.DISK_FULL: "the disk is full",
    Missing.NEEDS_UPGRADE: "it was written by a newer version",
}
