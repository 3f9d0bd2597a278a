"""What an attacker may send in the place of an opener's SPAKE2 message (X-5)."""

FIELD_ORDER = 2**255 - 19
IDENTITY = (1).to_bytes(32, "little")
ORDER_2 = (FIELD_ORDER - 1).to_bytes(32, "little")
ORDER_8 = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
OFF_CURVE = (2).to_bytes(32, "little")
MALFORMED = {
    "empty": b"",
    "only a side byte": b"B",
    "one byte short": b"B" + ORDER_8[:-1],
    "own side": b"A" + bytes.fromhex("58" + "66" * 31),
    "no side": b"S" + bytes.fromhex("58" + "66" * 31),
    "identity": b"B" + IDENTITY,
    "order 2": b"B" + ORDER_2,
    "order 8": b"B" + ORDER_8,
    "off curve": b"B" + OFF_CURVE,
    "y over the field": b"B" + (FIELD_ORDER + 1).to_bytes(32, "little"),
    "all ones": b"B" + b"\xff" * 32,
    "10 kB": b"B" + bytes(10_000),
}
