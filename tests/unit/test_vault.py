"""The owner vault: opens with the passphrase and with nothing else, and says what is wrong."""

import pytest

from keys import vault
from keys.codec import decode, encode
from keys.errors import KeyFileError, PassphraseError, UsageError
from keys.ids import hash256
from keys.limits import PASSPHRASE_BYTES_MAX, VAULT_BYTES_MAX, VAULT_MEMORY_BYTES_MAX, VAULT_OPS_MAX
from keys.signing import OwnerKey
from keys.vault import Cost

CHEAP = Cost(ops=1, memory_bytes=8_192)
WORDS = "correct horse"


@pytest.fixture(scope="module")
def key() -> OwnerKey:
    """An owner key."""
    return OwnerKey.generate()


@pytest.fixture(scope="module")
def blob(key: OwnerKey) -> bytes:
    """Its vault under ``WORDS``."""
    return vault.seal_owner(key, WORDS, cost=CHEAP)


def resealed(blob: bytes, **changes: object) -> bytes:
    """The vault with fields replaced and its check made anew, as somebody on purpose would."""
    names = ["kind", "version", "owner", "salt", "ops", "memory", "box"]
    fields = [changes.get(n, v) for n, v in zip(names, decode(blob, VAULT_BYTES_MAX), strict=False)]
    return encode([*fields, hash256(b"roost vault check", encode(fields))[:8]])


def test_the_passphrase_opens_it(key: OwnerKey, blob: bytes) -> None:
    """What was sealed comes back."""
    assert vault.open_owner(blob, WORDS).seed() == key.seed()


def test_the_default_cost_makes_guessing_slow(key: OwnerKey) -> None:
    """The default takes 64 MiB and three passes, and opens."""
    assert Cost(ops=3, memory_bytes=64 * 1024 * 1024) == vault.DEFAULT_COST
    assert vault.open_owner(vault.seal_owner(key, WORDS), WORDS).owner == key.owner


def test_the_owner_is_readable_without_the_passphrase(key: OwnerKey, blob: bytes) -> None:
    """A node knows whose vault it keeps."""
    assert vault.public_of(blob) == key.owner


@pytest.mark.parametrize("wrong", ["correct horsE", "correct horse ", "", "x", "k" * 64])
def test_a_wrong_passphrase_is_refused_as_such(blob: bytes, wrong: str) -> None:
    """The error is a refusal with a code of its own."""
    with pytest.raises(PassphraseError) as caught:
        vault.open_owner(blob, wrong)
    assert (caught.value.code, caught.value.exit_code) == ("wrong_passphrase", 3)


def test_every_cut_and_every_damaged_byte_is_noticed(blob: bytes) -> None:
    """Damage is told apart from a wrong passphrase."""
    damaged = [blob + b"\0", *(blob[:size] for size in range(len(blob)))]
    damaged += [blob[:i] + bytes([blob[i] ^ 1]) + blob[i + 1 :] for i in range(len(blob))]
    for data in damaged:
        with pytest.raises(KeyFileError):
            vault.open_owner(data, WORDS)
        with pytest.raises(KeyFileError):
            vault.public_of(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"memory": VAULT_MEMORY_BYTES_MAX + 1},
        {"memory": 2**63},
        {"memory": 8_191},
        {"ops": VAULT_OPS_MAX + 1},
        {"ops": 0},
        {"ops": -1},
        {"salt": b"x" * 15},
        {"owner": b"x" * 31},
        {"box": b"x" * 32},
        {"kind": "roost other"},
        {"version": 2},
        {"ops": "1"},
    ],
)
def test_a_crafted_vault_is_refused_before_any_memory_is_taken(
    blob: bytes, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costs and sizes over their bounds never reach Argon2id."""

    def stretched(*_: object) -> bytes:
        raise AssertionError("memory was taken")

    assert resealed(blob) == blob
    monkeypatch.setattr(vault, "_stretched", stretched)
    with pytest.raises(KeyFileError):
        vault.open_owner(resealed(blob, **changes), WORDS)


def test_a_vault_that_names_another_owner_is_refused(blob: bytes) -> None:
    """The key inside must be the one outside."""
    other = resealed(blob, owner=OwnerKey.generate().public)
    with pytest.raises(KeyFileError, match="another key"):
        vault.open_owner(other, WORDS)


def test_two_ways_to_type_one_text_are_one_passphrase(key: OwnerKey) -> None:
    """Composed and decomposed letters open the same vault."""
    sealed = vault.seal_owner(key, "pass\u00e9 compos\u00e9", cost=CHEAP)
    assert vault.open_owner(sealed, "passe\u0301 compose\u0301").owner == key.owner


def test_a_passphrase_has_bounds(key: OwnerKey) -> None:
    """8 characters (as composed) and 1,024 bytes are in, 7 and 1,025 out, and so is no text."""
    for good in ("12345678", "é" * 8, "x" * PASSPHRASE_BYTES_MAX):
        vault.seal_owner(key, good, cost=CHEAP)
    for bad in ("1234567", "e\u0301" * 7, "x" * (PASSPHRASE_BYTES_MAX + 1), "12345678\ud800"):
        with pytest.raises(UsageError):
            vault.seal_owner(key, bad, cost=CHEAP)


def test_a_cost_has_bounds() -> None:
    """A cost at its bounds is in, one beyond is out."""
    Cost(1, 8_192)
    Cost(VAULT_OPS_MAX, VAULT_MEMORY_BYTES_MAX)
    for ops, memory in (
        (0, 8_192),
        (VAULT_OPS_MAX + 1, 8_192),
        (1, 8_191),
        (1, VAULT_MEMORY_BYTES_MAX + 1),
    ):
        with pytest.raises(UsageError):
            Cost(ops, memory)


def test_a_changed_passphrase_opens_and_the_old_one_does_not(key: OwnerKey, blob: bytes) -> None:
    """The new vault has the same key under the new passphrase only."""
    changed = vault.change_passphrase(blob, WORDS, "battery staple", cost=CHEAP)
    assert vault.open_owner(changed, "battery staple").owner == key.owner
    with pytest.raises(PassphraseError):
        vault.open_owner(changed, WORDS)
    with pytest.raises(PassphraseError):
        vault.change_passphrase(blob, "not the words", "battery staple", cost=CHEAP)


def test_nothing_is_equal_between_two_vaults_of_one_key(key: OwnerKey, blob: bytes) -> None:
    """Each sealing has its own salt, hence its own key and box."""
    other = decode(vault.seal_owner(key, WORDS, cost=CHEAP), VAULT_BYTES_MAX)
    assert not {other[3], other[6]} & set(map(bytes, decode(blob, VAULT_BYTES_MAX)[3:8:3]))
    assert key.seed() not in blob
