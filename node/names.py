"""What a device, an owner or an agent may be called."""

from __future__ import annotations

import unicodedata
from typing import Final

from keys.errors import UsageError
from keys.limits import NAME_BYTES_MAX

_JOINERS: Final = "\u200c\u200d"  # emoji and some scripts are written with them
_UNPRINTABLE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


def checked_name(text: str, what: str) -> str:
    """``text`` in NFC without spaces around it, 1 to ``NAME_BYTES_MAX`` bytes, one visible line.

    ``what`` is whose name it is, for the ``UsageError``.
    """
    if any(_invisible(char) for char in text):
        raise UsageError(f"the name of the {what} has invisible characters")
    name = unicodedata.normalize("NFC", text).strip()
    if not name:
        raise UsageError(f"the {what} needs a name")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise UsageError(f"the name of the {what} is longer than {NAME_BYTES_MAX} bytes")
    return name


def _invisible(char: str) -> bool:
    category = unicodedata.category(char)
    return category in _UNPRINTABLE or (category == "Cf" and char not in _JOINERS)
