"""The recovery code: what the owner keeps on paper in case every device is lost (R20).

A code is 7 groups of 5 characters, base32 of ``keys.ids`` in lower case, joined by hyphens. The
first 4 characters of the groups, 28 in all, are 140 bits: 16 random bytes and 12 bits of a hash of
them. The last character of each group is its check character. With the values a b c d of the four
and e of the check character, in GF(32) with x^5 + x^2 + 1:

    x a + x^2 b + x^3 c + x^4 d + e = number of the group, 1 to 7

So any one wrong character in a group, any two exchanged within it, and two groups exchanged are
noticed, and the group is named. What that lets through is stopped by the 12 bits: one in 4,096.

The key is derived without stretching, since the code has 128 random bits.
"""

from __future__ import annotations

import random
import re
from hashlib import blake2b
from typing import Final

from keys.errors import UsageError
from keys.ids import BASE32_ALPHABET, BASE32_VALUES, hash256
from keys.limits import RECOVERY_BYTES, RECOVERY_TEXT_CHARS_MAX
from keys.signing import SEED_BYTES, SigningKey, random_bytes

GROUPS: Final = 7
GROUP_CHARS: Final = 5
CHALLENGE_GROUPS: Final = 2

_DATA_CHARS: Final = GROUP_CHARS - 1
_CHECK_BITS: Final = GROUPS * _DATA_CHARS * 5 - RECOVERY_BYTES * 8
_SEPARATORS: Final = re.compile(r"[\s\-\u2010-\u2015\u2212_.,]+")


def new_code() -> str:
    """A new random code, in the form it is printed."""
    return format_code(random_bytes(RECOVERY_BYTES))


def format_code(secret: bytes) -> str:
    """The code of 16 secret bytes."""
    assert len(secret) == RECOVERY_BYTES
    number = int.from_bytes(secret, "big") << _CHECK_BITS | _hash_bits(secret)
    groups = []
    for index in range(GROUPS):
        first_bit = 5 * _DATA_CHARS * (GROUPS - 1 - index)
        values = [number >> first_bit + 5 * i & 31 for i in reversed(range(_DATA_CHARS))]
        values.append(_check_value(index, values))
        groups.append("".join(BASE32_ALPHABET[value] for value in values))
    return "-".join(groups)


def parse_code(text: str) -> bytes:
    """The 16 secret bytes of a code as somebody typed it.

    Case, spaces and hyphens do not matter; i and l are read as 1, o as 0. Raises ``UsageError``
    that names the groups which are mistyped (also as ``groups`` in its details), by number from 1.
    """
    groups = _groups(text)
    values = [[BASE32_VALUES.get(char, -1) for char in group] for group in groups]
    wrong = [index + 1 for index, group in enumerate(values) if not _fits(index, group)]
    if wrong:
        which = "group" if len(wrong) == 1 else "groups"
        listed = ", ".join(str(number) for number in wrong)
        raise UsageError(f"the recovery code is mistyped in {which} {listed}", groups=wrong)
    number = 0
    for group in values:
        for value in group[:_DATA_CHARS]:
            number = number << 5 | value
    secret = (number >> _CHECK_BITS).to_bytes(RECOVERY_BYTES, "big")
    if number & ((1 << _CHECK_BITS) - 1) != _hash_bits(secret):
        raise UsageError("this is not a recovery code: more than one group is wrong")
    return secret


def recovery_key(code: str) -> SigningKey:
    """The key that signs a ``rotate``; raises ``UsageError`` as ``parse_code`` does."""
    digest = blake2b(parse_code(code), digest_size=SEED_BYTES, person=b"roost recovery")
    return SigningKey(digest.digest())


def recovery_hash(public: bytes) -> bytes:
    """What a founding statement holds of the recovery key: a hash, 32 bytes."""
    return hash256(b"roost recovery key", public)


def challenge(code: str, rng: random.Random) -> list[tuple[int, str]]:
    """Two groups to ask back, as (number from 1, expected text), in the order of the code."""
    groups = _groups(code)
    numbers = sorted(rng.sample(range(1, GROUPS + 1), CHALLENGE_GROUPS))
    return [(number, groups[number - 1]) for number in numbers]


def same_group(expected: str, typed: str) -> bool:
    """Whether somebody typed the group that ``challenge`` asked for."""
    folded = "".join(_SEPARATORS.split(typed.lower()))
    return [BASE32_VALUES.get(c) for c in folded] == [BASE32_VALUES.get(c) for c in expected]


def _groups(text: str) -> list[str]:
    """The seven groups as typed; cut by count where the separators do not give seven."""
    if len(text) > RECOVERY_TEXT_CHARS_MAX:
        raise UsageError("this is too long for a recovery code")
    typed = [group for group in _SEPARATORS.split(text.lower()) if group]
    if len(typed) == GROUPS:
        return typed
    joined = "".join(typed)
    if len(joined) != GROUPS * GROUP_CHARS:
        raise UsageError(
            f"a recovery code has {GROUPS} groups of {GROUP_CHARS} characters, "
            f"this has {len(joined)} characters in all"
        )
    return [joined[i : i + GROUP_CHARS] for i in range(0, len(joined), GROUP_CHARS)]


def _fits(index: int, values: list[int]) -> bool:
    return (
        len(values) == GROUP_CHARS
        and -1 not in values
        and _check_value(index, values[:_DATA_CHARS]) == values[_DATA_CHARS]
    )


def _check_value(index: int, values: list[int]) -> int:
    """The value e of the module's docstring for group ``index`` (from 0)."""
    total = 0
    for value in reversed(values):
        total = _times_x(total ^ value)
    return total ^ (index + 1)


def _times_x(value: int) -> int:
    """A GF(32) element multiplied by x, modulo x^5 + x^2 + 1."""
    return value << 1 if value < 16 else value << 1 ^ 0b100101


def _hash_bits(secret: bytes) -> int:
    return int.from_bytes(hash256(b"roost recovery code", secret)[:2], "big") >> 16 - _CHECK_BITS
