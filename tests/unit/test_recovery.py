"""Recovery codes: forgiving about form, strict about content, and they name the wrong group."""

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys import recovery
from keys.errors import UsageError
from keys.ids import BASE32_ALPHABET, hash256

SECRET = bytes(range(16))
CODE = recovery.format_code(SECRET)
GROUPS = CODE.split("-")


def with_group(number: int, group: str) -> str:
    """``CODE`` with one group replaced."""
    return "-".join([*GROUPS[: number - 1], group, *GROUPS[number:]])


def test_the_form_of_a_code_is_fixed() -> None:
    """A code printed years ago is still read."""
    assert CODE == "000gc-40r4y-0m301-e209m-185g2-r38ee-1yfam"


@given(st.binary(min_size=16, max_size=16))
def test_what_was_printed_is_read(secret: bytes) -> None:
    """Printing and reading are inverse."""
    assert recovery.parse_code(recovery.format_code(secret)) == secret


def test_new_codes_differ() -> None:
    """A code is random."""
    assert len({recovery.new_code() for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "typed",
    [
        CODE.upper(),
        f"  {CODE}\n",
        CODE.replace("-", ""),
        CODE.replace("-", " "),
        CODE.replace("-", " \u2013 "),
        CODE.replace("0", "o").replace("1", "l"),
        " ".join(CODE.replace("-", "")),
    ],
)
def test_form_does_not_matter(typed: str) -> None:
    """Case, separators and look-alikes are forgiven."""
    assert recovery.parse_code(typed) == SECRET


@pytest.mark.parametrize("number", range(1, 8))
def test_every_single_wrong_character_names_its_group(number: int) -> None:
    """All 31 wrong characters at each of the 5 places are noticed in their group."""
    group = GROUPS[number - 1]
    for at in range(5):
        for char in set(BASE32_ALPHABET + "u!") - {group[at]}:
            with pytest.raises(UsageError) as caught:
                recovery.parse_code(with_group(number, group[:at] + char + group[at + 1 :]))
            assert caught.value.details == {"groups": [number]}


@given(st.binary(min_size=16, max_size=16))
def test_every_exchange_of_two_characters_or_groups_is_noticed(secret: bytes) -> None:
    """Exchanges inside a group, and of whole groups, name the groups."""
    groups = recovery.format_code(secret).split("-")
    for number, group in enumerate(groups, 1):
        for i, j in combinations(range(5), 2):
            chars = list(group)
            chars[i], chars[j] = chars[j], chars[i]
            if "".join(chars) != group:
                typed = [*groups[: number - 1], "".join(chars), *groups[number:]]
                with pytest.raises(UsageError, match=f"group {number}$"):
                    recovery.parse_code("-".join(typed))
    for i, j in combinations(range(7), 2):
        typed = groups.copy()
        typed[i], typed[j] = typed[j], typed[i]
        with pytest.raises(UsageError, match=f"groups {i + 1}, {j + 1}$"):
            recovery.parse_code("-".join(typed))


def test_a_group_that_is_too_short_or_too_long_is_named() -> None:
    """With the separators kept, the group of the wrong length is known."""
    with pytest.raises(UsageError, match=r"group 3$"):
        recovery.parse_code(with_group(3, GROUPS[2][:-1]))
    with pytest.raises(UsageError, match=r"group 3$"):
        recovery.parse_code(with_group(3, GROUPS[2] + "0"))


@pytest.mark.parametrize(
    "typed", ["", "-", "abc", CODE + "-" + GROUPS[0], "0" * 257, "\u0661" * 35]
)
def test_what_is_no_code_is_a_usage_error(typed: str) -> None:
    """Other text is refused as the words of a call are."""
    with pytest.raises(UsageError):
        recovery.parse_code(typed)


def test_groups_that_fit_but_do_not_belong_together_are_refused() -> None:
    """One group of another code passes its own check and not the one over all."""
    other = recovery.format_code(bytes(range(100, 116))).split("-")
    with pytest.raises(UsageError, match="more than one group"):
        recovery.parse_code(with_group(2, other[1]))


def test_the_key_follows_from_the_code() -> None:
    """The same code gives the same key, in whatever form it was typed; another gives another."""
    key = recovery.recovery_key(CODE)
    assert recovery.recovery_key(CODE.upper().replace("-", " ")).public == key.public
    assert recovery.recovery_key(recovery.new_code()).public != key.public
    assert key.public.hex().startswith("9ae36b66057816ce")
    assert recovery.recovery_hash(key.public) == hash256(b"roost recovery key", key.public)


def test_two_groups_are_asked_back() -> None:
    """The answer is taken in any form, another group is not."""
    for seed in range(20):
        asked = recovery.challenge(CODE, random.Random(seed))
        assert [number for number, _ in asked] == sorted({number for number, _ in asked})
        assert len(asked) == 2
        for number, expected in asked:
            assert expected == GROUPS[number - 1]
            assert recovery.same_group(expected, f" {expected.upper()} ")
            assert not recovery.same_group(expected, expected[:-1])
            assert not recovery.same_group(expected, expected[:-1] + "!")
