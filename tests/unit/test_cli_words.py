"""What commands say to a person: the line for the other side, the next step, completions."""

import time
from typing import Any

import pytest

from cli.main import main
from keys.errors import PairingError, UnreachableError
from tests.support.roost import PASSPHRASE, Roost

RECORD = {"record": "r1", "state": "new"}


def test_pair_open_prints_the_exact_line_for_the_other_side(roost: Roost) -> None:
    """One for each address, to be copied."""
    roost.node.script["pair.open"] = [
        {
            "event": "open",
            "code": "123456",
            "device": "d1",
            "addresses": ["10.0.0.2:7668", "[fd00::1]:1"],
        },
        {"event": "paired", "device": "d2", "name": "phone"},
    ]
    said = roost("pair", "open", "--mine", "--ttl", "60")
    assert said.code == 0
    assert "  roost pair join --address 10.0.0.2:7668 --code 123456 --mine\n" in said.out
    assert "  roost pair join --address '[fd00::1]:1' --code 123456 --mine\n" in said.out
    assert "good for 60 s" in said.out
    assert "paired with phone" in said.out
    assert roost.node.params("pair.open") == {"mine": True, "ttl": 60, "passphrase": PASSPHRASE}


def test_pair_open_with_json_prints_each_event_on_a_line(roost: Roost) -> None:
    """A script reads the code from the first."""
    events = [{"event": "open", "code": "1", "device": "d", "addresses": []}]
    events.append({"event": "paired", "device": "d2", "name": "phone"})
    roost.node.script["pair.open"] = events
    said = roost("pair", "open", "--json")
    assert said.out.splitlines() == [
        '{"event": "open", "code": "1", "device": "d", "addresses": []}',
        '{"event": "paired", "device": "d2", "name": "phone"}',
    ]
    assert roost.node.params("pair.open") == {"mine": False}


def test_pair_open_that_ends_without_the_other_side_has_failed(roost: Roost) -> None:
    """The node stopped meanwhile."""
    roost.node.script["pair.open"] = [{"event": "open", "code": "1", "device": "d"}]
    said = roost("pair", "open")
    assert said.code == 4
    assert "roost pair join --device d --code 1" in said.out


@pytest.mark.parametrize(
    ("command", "verb", "error"),
    [
        ("pair open", "pair.open", PairingError("too old", hint="anew", reason="expired")),
        ("pair join --address h:1 --code 1", "pair.join", UnreachableError("nobody at h:1")),
        ("pair list", "pair.list", UnreachableError("nobody")),
    ],
)
def test_pairing_that_nobody_answered_names_the_ports(
    roost: Roost, command: str, verb: str, error: Any
) -> None:
    """And the line that opens the firewall."""
    roost.node.script[verb] = error
    said = roost(*command.split())
    assert said.code == error.exit_code
    assert "7667/TCP and 5353/UDP" in said.err
    assert "ufw allow 7667/tcp" in said.err


def test_another_failure_of_pairing_does_not_blame_the_firewall(roost: Roost) -> None:
    """A wrong code is a wrong code."""
    roost.node.script["pair.join"] = PairingError("wrong code", hint="anew", reason="wrong_code")
    said = roost("pair", "join", "--address", "h:1", "--code", "1")
    assert said.err == "error: wrong code\nhint: anew\n"


@pytest.mark.parametrize(
    ("command", "verb", "result", "step"),
    [
        ("agent create muse", "agent.create", {"agent": "a1"}, "roost remember muse TEXT"),
        ("agent create a$b", "agent.create", {"agent": "a1"}, "roost remember 'a$b' TEXT"),
        ("agent list", "agent.list", {"agents": []}, "roost agent create NAME"),
        ("peers", "peers", {"peers": []}, "roost pair open --mine"),
        ("grant m d read", "grant", {}, "roost agent accept m"),
        ("status", "status", {"agents": []}, "roost agent create NAME"),
        ("status", "status", {"agents": [{"agent": "a"}], "running": False}, "roost up"),
        (
            "remember m t",
            "remember",
            {"record": "r", "state": "proposed", "created": True},
            "roost review list m",
        ),
        (
            "pair join --address h:1 --code 1",
            "pair.join",
            {"device": "d1", "name": "n"},
            "roost grant AGENT d1 read",
        ),
        (
            "review list m",
            "review.list",
            {"review": [{"record": "r1", "text": "t"}]},
            "roost review approve m r1",
        ),
    ],
)
def test_a_newcomer_is_told_what_to_do_next(
    roost: Roost, command: str, verb: str, result: dict[str, Any], step: str
) -> None:
    """In text, and not in JSON."""
    roost.node.script[verb] = result
    assert f"next: {step}" in roost(*command.split()).out
    assert "next:" not in roost(*command.split(), "--json").out


def test_times_are_local_in_text_and_as_they_are_in_json(
    roost: Roost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People live in a zone, programs in UTC."""
    moment = "2025-03-04T16:12:03+00:00"
    roost.node.script["show"] = RECORD | {"recorded_at": moment}
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert "2025-03-05 01:12:03" in roost("show", "m", "r").out
    assert roost("show", "m", "r", "--json").json["recorded_at"] == moment


def test_a_list_shows_every_state_and_where_to_go_on(roost: Roost) -> None:
    """Erased ones without text, superseded ones with their successor."""
    records = [
        {"record": "0123456789abcdefA", "state": "current", "kind": "observation", "text": "a\nb"},
        {"record": "0123456789abcdefB", "state": "superseded", "text": "c", "successor": "r9"},
        {"record": "0123456789abcdefC", "state": "erased"},
    ]
    roost.node.script["list"] = {"records": records, "total": 7, "next": "c2"}
    lines = roost("list", "muse").out.splitlines()
    assert lines[0].split() == ["RECORD", "STATE", "KIND", "WRITTEN", "TEXT"]
    assert lines[1].startswith("0123456789abcdefA  current ")
    assert lines[1].endswith("a\\nb")
    assert lines[2].endswith("c (now r9)")
    assert lines[4:] == ["3 of 7 records", "more: --cursor c2"]


def test_completion_scripts_call_roost(roost: Roost) -> None:
    """For each of the three shells."""
    for shell in ("bash", "zsh", "fish"):
        assert "_ROOST_COMPLETE" in roost("completion", shell).out
        assert roost("completion", shell, "--json").json["shell"] == shell


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "roost re",
            [
                "relation",
                "remember",
                "revise",
                "retire",
                "reinstate",
                "review",
                "revoke",
                "rebuild",
            ],
        ),
        ("roost agent ", ["create", "list", "show", "accept", "forget", "policy", "token"]),
        ("roost show m", ["muse", "moss"]),
    ],
)
def test_a_shell_completes_commands_and_names_of_agents(
    roost: Roost, monkeypatch: pytest.MonkeyPatch, words: str, expected: list[str]
) -> None:
    """Names come from the running node."""
    agents = [{"name": name} for name in ("muse", "moss", "other")]
    roost.node.script["agent.list"] = {"agents": agents}
    monkeypatch.setenv("ROOST_HOME", str(roost.node.home))
    monkeypatch.setenv("_ROOST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    roost.capture.readouterr()
    with pytest.raises(SystemExit):
        main([])
    found = [line.split(",")[1] for line in roost.capture.readouterr().out.splitlines()]
    assert sorted(found) == sorted(expected)
