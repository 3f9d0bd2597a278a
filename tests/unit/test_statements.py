"""Statements from outside: exactly their fields, and nothing in them can stop a node."""

from typing import Any

import pytest

from keys import codec
from keys.authority import Authority
from keys.errors import BadEncoding
from keys.ids import AgentId, hash256
from keys.signing import STATEMENT_DOMAIN, OwnerKey
from keys.statements import Statement, parse, sign, successor_proof
from tests.support.author import WALL_MS, certify, device_key, founding, owner_key, seeded

OWNER = owner_key("alice")
AGENT = AgentId(seeded("agent"))


def signed(key: OwnerKey, value: object) -> tuple[bytes, bytes]:
    """A statement's bytes whatever its form, and the signature over their hash."""
    data = codec.encode(value)
    return data, key.sign(STATEMENT_DOMAIN, hash256(data))


def later(body: dict[str, Any]) -> list[object]:
    """A statement of a kind that a later version may have."""
    return [1, bytes(AGENT), OWNER.public, [], "later", body]


@pytest.mark.parametrize("version", [True, 1.0, 0, 2, None, "1"], ids=repr)
def test_the_version_is_the_number_one(version: object) -> None:
    """What equals 1 without being it would give one statement several ids."""
    value = later({"wall_ms": WALL_MS})
    assert parse(*signed(OWNER, value)).kind == "later"

    with pytest.raises(BadEncoding):
        parse(*signed(OWNER, [version, *value[1:]]))


@pytest.mark.parametrize("wall_ms", ["x", -1, 1.5, True, None, [], 2**62], ids=repr)
def test_a_kind_from_a_later_version_has_a_stamp_like_all_others(wall_ms: object) -> None:
    """Its stamp enters record times, so that no set holds one that has none."""
    for body in ({"wall_ms": wall_ms}, {}):
        with pytest.raises(BadEncoding):
            parse(*signed(OWNER, later(body)))


def test_a_kind_from_a_later_version_is_kept_and_counts_for_nothing_but_time() -> None:
    """It waits in the set for the upgrade; what was signed after it is not before it."""
    found = founding(OWNER)
    agent = AgentId(bytes(found.id))
    data, signature = signed(
        OWNER, [1, bytes(agent), OWNER.public, [bytes(found.id)], "later", {"wall_ms": WALL_MS + 5}]
    )
    unknown = parse(data, signature)
    after = sign(
        OWNER, "undo", {"run": bytes(16), "wall_ms": 0}, agent=agent, after=[bytes(unknown.id)]
    )

    authority = Authority(agent, [after, unknown, found])

    assert (unknown.data, unknown.signature) == (data, signature)
    assert not authority.is_valid(unknown.id)
    assert authority.times[after.id] == WALL_MS + 5


def test_only_a_founding_statement_founds_an_agent() -> None:
    """An id that is the hash of another statement names nobody's agent."""
    certificate = certify(OWNER, device_key("a"))
    rotation = {
        "owner": OWNER.public,
        "new": OWNER.public,
        "recovery": bytes(32),
        "keeps": [],
        "proof": successor_proof(OWNER, OWNER.public),
    }
    others: list[Statement] = [
        certificate,
        sign(OWNER, "rotate", rotation | {"wall_ms": 0}, agent=b"", after=[]),
    ]
    for other in others:
        authority = Authority(AgentId(bytes(other.id)), [other])
        assert authority.founding is None
        assert authority.founder == b""
        assert authority.key_commitments() == []


def test_nobody_founds_an_agent_in_the_name_of_another_owner() -> None:
    """The owner that a founding statement names is the one who signed it."""
    mallory = owner_key("mallory")
    body = founding(OWNER).body
    forged = sign(mallory, "found", body, agent=b"", after=[])

    authority = Authority(AgentId(bytes(forged.id)), [forged])

    assert authority.founding is None
    assert not authority.holds_owner(OWNER.public, "read")
    assert not authority.holds_owner(mallory.public, "read")
