"""Nothing that another device or an agent wrote acts on the terminal, in any field (X-90)."""

import json
import re
from typing import Any

import pytest

from keys.errors import AmbiguousError, RefusedError
from tests.support.local_node import Script
from tests.support.roost import Roost

HOSTILE = (
    "\x1b]0;owned\x07 \x1b]52;c;b3duZWQ=\x1b\\ \x1b[2J\x9b31m\x90\x85 \x08\x00\x7f \u202egnp\u2066"
    " \u200b\u200d\ufeff \u2028 \U000e0041 \n\rerror: all is lost"
)
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


def hostile(**more: Any) -> dict[str, Any]:
    """A result whose every field is hostile, but those that are numbers."""
    names = (
        "agent record device name owner digest digest_before digest_after state kind text layer "
        "source reason recorded_at valid_from last_seen why successor by via entry since subject "
        "revoked detail message code event next supersedes provenance replaces heads standing"
    )
    return dict.fromkeys(names.split(), HOSTILE) | {"tags": [HOSTILE], "rights": [HOSTILE]} | more


ITEM = hostile(addresses=[HOSTILE], records=1, seq=1, version=1)
EVERY = hostile(
    agents=[ITEM],
    peers=[ITEM | {"agents": [ITEM], "they_lack": 1}, ITEM | {"error": HOSTILE}],
    alerts=[ITEM],
    checks=[ITEM],
    results=[ITEM],
    withheld=[ITEM],
    records=[ITEM],
    versions=[ITEM],
    permissions=[ITEM],
    unconfirmed=[HOSTILE, ITEM],
    found=[ITEM],
    review=[ITEM],
    conflicts=[ITEM, HOSTILE],
    quarantine=[ITEM],
    erased=[HOSTILE, ITEM],
    derived=[HOSTILE],
    sources=[HOSTILE],
    left=[HOSTILE],
    receipts=[ITEM, HOSTILE],
    entries=[ITEM],
    problems=[HOSTILE, ITEM],
    created=False,
    total=1,
)
COUNTED = EVERY | {"records": 1, "entries": 1}
COMMANDS = {
    "status": EVERY,
    "doctor": EVERY,
    "digest muse": COUNTED,
    "rebuild muse": EVERY,
    "sync": EVERY,
    "audit verify": COUNTED | {"erased": 1},
    "audit log muse": EVERY | {"log": [ITEM]},
    "peers": EVERY,
    "peers remove x": EVERY,
    "permissions muse": EVERY,
    "grant muse x read": EVERY,
    "revoke muse x": EVERY,
    "devices revoke x": EVERY,
    "pair list": EVERY,
    "pair join --address h:1 --code 1": EVERY,
    "agent create muse": EVERY,
    "agent list": EVERY,
    "agent show muse": EVERY,
    "agent accept muse": EVERY,
    "remember muse text": EVERY,
    "search muse bees --explain": EVERY,
    "list muse": EVERY,
    "show muse r": EVERY,
    "history muse r": EVERY,
    "revise muse r text --reason x": EVERY,
    "tag muse r t": EVERY,
    "move muse r --layer week": EVERY,
    "keep muse r": EVERY,
    "retire muse r --reason x": EVERY,
    "reinstate muse r --reason x": EVERY,
    "lift muse r --reason x": EVERY,
    "forget muse r --reason x": EVERY,
    "forget muse r --status": EVERY,
    "review list muse": EVERY,
    "review show muse r": EVERY,
    "review approve muse r --heads h": EVERY,
    "review reject muse r --reason x": EVERY,
    "conflicts list muse": EVERY,
    "conflicts resolve muse r": EVERY,
    "quarantine list muse": EVERY,
    "quarantine adopt muse e": EVERY,
    "quarantine drop muse e": EVERY,
    "quarantine settle muse e": EVERY,
    "agent policy muse": EVERY,
}


class AnyVerb(dict[str, Any]):
    """A script that answers every verb alike."""

    def __init__(self, reply: Any) -> None:
        super().__init__()
        self.reply = reply

    def __missing__(self, verb: str) -> Any:
        return self.reply


def scripted(roost: Roost, reply: Any) -> Script:
    roost.node.script = AnyVerb(reply)
    return roost.node.script


@pytest.mark.parametrize(("command", "reply"), COMMANDS.items())
def test_no_field_of_a_result_acts_on_the_terminal(
    roost: Roost, command: str, reply: dict[str, Any]
) -> None:
    """Not in text, and not in JSON, which is equal as a value."""
    scripted(roost, reply)
    said = roost(*command.split())
    assert said.out
    assert not UNSAFE.search(said.out + said.err)
    assert not re.search("^error: all is lost", said.out + said.err, re.MULTILINE)
    raw = roost(*command.split(), "--json")
    assert not UNSAFE.search(raw.out + raw.err)
    assert raw.json == reply


def test_the_fields_are_really_shown(roost: Roost) -> None:
    """Positive control: the hostile text is there, as escapes."""
    scripted(roost, EVERY)
    assert "\\x1b]52;c;b3duZWQ=" in roost("show", "muse", "r").out
    assert HOSTILE in json.loads(roost("show", "muse", "r", "--json").out).values()


def test_no_field_of_an_event_acts_on_the_terminal(roost: Roost) -> None:
    """The other side chose its name."""
    opened = {"event": "open", "code": HOSTILE, "device": HOSTILE, "addresses": [HOSTILE]}
    scripted(roost, [opened, {"event": "paired", "device": HOSTILE, "name": HOSTILE}])
    for arguments in (["pair", "open"], ["pair", "open", "--json"]):
        said = roost(*arguments)
        assert said.code == 0
        assert not UNSAFE.search(said.out + said.err)


@pytest.mark.parametrize("error", [RefusedError, AmbiguousError])
def test_no_field_of_an_error_acts_on_the_terminal(
    roost: Roost, error: type[RefusedError] | type[AmbiguousError]
) -> None:
    """An error may name what somebody else named."""
    scripted(roost, error(HOSTILE, hint=HOSTILE, candidates=[HOSTILE, {"name": HOSTILE}]))
    for arguments in (["show", "muse", "r"], ["show", "muse", "r", "--json"]):
        said = roost(*arguments)
        assert said.err
        assert not UNSAFE.search(said.out + said.err)
        assert "\nerror: all is lost" not in said.err


def test_an_argument_that_is_shown_again_does_not_act_on_the_terminal(roost: Roost) -> None:
    """It may have been pasted."""
    for arguments in (
        [HOSTILE],
        ["grant", "muse", "x", HOSTILE],
        ["list", "m", "--state", HOSTILE],
    ):
        said = roost(*arguments)
        assert said.code == 2
        assert not UNSAFE.search(said.err)
