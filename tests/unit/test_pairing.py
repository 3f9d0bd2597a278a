"""Pairing, both sides, without an attacker: results, order, and what costs a code."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from keys import limits, pair_messages
from keys.errors import BadInput, PairingError, UsageError
from keys.pair_code import pick_digits
from keys.pair_messages import Greeting
from keys.pairing import Done, Failed, Joiner, Joining, Opener, Proving, Ready
from keys.pake import joiner_side
from keys.tls import certificate_of
from tests.support.pairing import (
    DESK,
    JOINER,
    MIDDLE,
    NOW,
    OPENER,
    PHONE,
    edited,
    introduction,
    offer,
    proving,
    refused,
    run,
    started,
    two,
)


def test_with_the_right_code_each_has_the_other() -> None:
    """Key, certificate, introduction, the common version, and what the opener sent along."""
    joiner, opener = two()
    run(joiner, opener)
    here, there = joiner.paired, opener.paired
    assert (here.device, here.introduction, here.extra) == (OPENER.device, DESK, b"more")
    assert (there.device, there.introduction, there.extra) == (JOINER.device, PHONE, b"")
    assert (here.certificate, there.certificate) == tuple(map(certificate_of, (OPENER, JOINER)))
    assert here.version == there.version == 1


def test_the_states_are_those_of_the_document() -> None:
    """Ready, Joining, Proving, Done on one side; Ready, Proving, Done on the other."""
    joiner, opener = two()
    seen = [type(joiner.state), type(opener.state)]
    join = joiner.start()
    seen.append(type(joiner.state))
    confirm = joiner.receive(opener.receive(join, NOW))
    seen += [type(joiner.state), type(opener.state)]
    joiner.receive(opener.receive(confirm or b"", NOW))
    seen += [type(joiner.state), type(opener.state)]
    assert seen == [Ready, Ready, Joining, Proving, Proving, Done, Done]


def test_the_newest_common_version_is_taken() -> None:
    """A newer peer that still speaks ours is spoken to in ours."""
    shown = offer()
    newer = Joiner(JOINER, replace(PHONE, versions=(1, 2)), OPENER.device, shown.code)
    opener = Opener(OPENER, DESK, shown)
    run(newer, opener)
    assert newer.paired.version == opener.paired.version == 1


def middle_joiner(code: str) -> Joiner:
    """The attacker's side towards the opener."""
    return Joiner(MIDDLE, introduction("phone"), OPENER.device, code)


def test_mine_on_one_side_only_is_said_by_name_and_costs_no_code() -> None:
    """Both people read what to do; the code is still good."""
    shown = offer()
    joiner = Joiner(JOINER, introduction("phone", mine=False), OPENER.device, shown.code)
    error = refused("mine", lambda: Opener(OPENER, DESK, shown).receive(joiner.start(), NOW))
    assert "--mine" in error.message
    refused("mine", joiner.receive, pair_messages.encode_refused(error))
    run(*two(shown))


def test_an_answer_with_another_mine_is_refused() -> None:
    """The joiner does not rely on the opener for that check."""
    joiner, opener = two()
    refused("mine", joiner.receive, edited(opener.receive(joiner.start(), NOW), 4, False))


def test_a_device_is_not_paired_with_itself() -> None:
    """Neither by calling itself nor by being called."""
    code = pick_digits(JOINER.device) + "0000"
    refused("self", Joiner(JOINER, PHONE, JOINER.device, code).start)
    pake = joiner_side(code, joiner=OPENER.device, opener=OPENER.device)
    join = Greeting(OPENER.device, certificate_of(OPENER), PHONE, pake.message).encoded("join")
    refused("self", lambda: Opener(OPENER, DESK, offer()).receive(join, NOW))


def test_a_picked_device_must_be_the_one_that_answers() -> None:
    """Nothing is sent to another one."""
    shown = offer()
    picked = Joiner(JOINER, PHONE, OPENER.device, shown.code, expected=MIDDLE.device)
    refused("another_device", picked.start)
    right = Joiner(JOINER, PHONE, OPENER.device, shown.code, expected=OPENER.device)
    run(right, Opener(OPENER, DESK, shown))


def test_what_is_no_code_is_refused_before_anything_is_sent() -> None:
    """As the words of a call are."""
    with pytest.raises(UsageError):
        Joiner(JOINER, PHONE, OPENER.device, "12345")


def test_an_expired_code_is_refused() -> None:
    """The clock is the caller's."""
    joiner, opener = two()
    join = joiner.start()
    refused("expired", opener.receive, join, NOW + limits.PAIR_CODE_TTL_S)


def test_every_message_out_of_order_is_a_failure_for_good() -> None:
    """In each state, each of the other messages; and nothing works afterwards."""
    joiner, opener = two()
    join = joiner.start()
    answer = opener.receive(join, NOW)
    confirm = joiner.receive(answer) or b""
    confirmed = opener.receive(confirm, NOW)
    joiner.receive(confirmed)
    for message in (join, answer, confirm, confirmed):
        refused("over", joiner.receive, message)
        refused("over", opener.receive, message, NOW)
    run_to: dict[str, Callable[[], Joiner | Opener]] = {
        "opener, Ready": lambda: two()[1],
        "opener, Proving": lambda: proving()[1],
        "joiner, Joining": lambda: started()[0],
        "joiner, Proving": lambda: proving()[0],
    }
    right = {"opener, Ready": join, "joiner, Joining": answer}
    gift = pair_messages.encode_gift(b"x" * 20)
    for name, make in run_to.items():
        for message in {join, answer, confirm, confirmed, gift} - {right.get(name)}:
            side = make()
            with pytest.raises((BadInput, PairingError)):
                side.receive(message, NOW) if isinstance(side, Opener) else side.receive(message)
            assert isinstance(side.state, Failed)
    unstarted, _ = two()
    refused("over", unstarted.receive, answer)
    refused("over", unstarted.start)


def test_the_secrets_are_in_no_repr() -> None:
    """What ends up in the journal holds neither keys nor the code."""
    shown = offer()
    joiner, opener = two(shown)
    confirm = joiner.receive(opener.receive(joiner.start(), NOW)) or b""
    assert isinstance(opener.state, Proving)
    secrets = opener.state.secrets
    things = [shown, joiner, opener, joiner.state, secrets]
    joiner.receive(opener.receive(confirm, NOW))
    things += [joiner.state, joiner.paired, joiner.paired.channel]
    for thing in things:
        assert shown.code not in repr(thing)
        assert repr(secrets.key) not in repr(thing)
