"""Settings of ``node.db`` that more than one part of the node reads."""

from __future__ import annotations

import json
from typing import Final

from keys.errors import RefusedError

CLONE_SETTING: Final = "clone"  # JSON: where a copy of this device was heard, by whom, its starts
STARTS_SETTING: Final = "starts"  # the boot nonces of this home, in hex


class ClonedError(RefusedError):
    """Another copy of this device is up; nothing is written until a person decides."""

    code = "cloned"


def cloned(address: str, by: str) -> ClonedError:
    """The refusal of a write while a copy of this device is up."""
    return ClonedError(
        f"another copy of this device is up at {address or 'an unknown address'} (heard by {by});"
        " nothing is written on either",
        hint="stop this node; then `roost devices renew` makes this one a new device, or"
        " `roost devices renew --keep` lets this one go on",
        address=address,
    )


def stopped_by(said: str | None) -> ClonedError | None:
    """The refusal that the setting asks for."""
    if not said:
        return None
    found = json.loads(said)
    return cloned(str(found["address"]), str(found["by"]))
