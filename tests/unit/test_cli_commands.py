"""What each command asks of the node, and how its exit code follows from the result."""

import io
import sys
from typing import Any

import pytest

from keys.errors import PairingError, RefusedError, UnreachableError
from tests.support.roost import PASSPHRASE, Roost

RECORD = {"record": "r1", "agent": "a1", "device": "d1", "owner": "o1", "state": "new"}
LISTS: dict[str, list[Any]] = {"tags": [], "derived_from": []}
CALLS = [
    ("status", "status", {}),
    ("digest -", "digest", {"agent": "-"}),
    ("rebuild muse", "rebuild", {"agent": "muse"}),
    ("doctor", "doctor", {}),
    ("peers", "peers", {}),
    ("peers remove d1", "peers.remove", {"device": "d1"}),
    ("permissions muse", "permissions", {"agent": "muse"}),
    (
        "grant muse d1 read,write,read",
        "grant",
        {"agent": "muse", "subject": "d1", "rights": ["read", "write"], "passphrase": PASSPHRASE},
    ),
    ("revoke muse d1", "revoke", {"agent": "muse", "subject": "d1", "passphrase": PASSPHRASE}),
    (
        "devices revoke d1 --since 2025-03-01",
        "devices.revoke",
        {"device": "d1", "since": "2025-03-01", "passphrase": PASSPHRASE},
    ),
    ("agent create muse", "agent.create", {"name": "muse", "passphrase": PASSPHRASE}),
    ("agent list", "agent.list", {}),
    ("agent show muse", "agent.show", {"agent": "muse"}),
    ("agent accept a1", "agent.accept", {"agent": "a1", "passphrase": PASSPHRASE}),
    ("sync", "sync", {"once": False}),
    ("sync --once --peer d1 --agent m", "sync", {"once": True, "peer": "d1", "agent": "m"}),
    ("remember muse text", "remember", {"agent": "muse", "text": "text"} | LISTS),
    (
        (
            "remember muse text --layer week --tag a --tag b --category fact --provenance web"
            " --source s --valid-from 2025-01-01 --valid-to 2026-01-01 --expires 2027-01-01"
            " --weight 0.5 --derived-from r1 --derived-from r2"
        ),
        "remember",
        {
            "agent": "muse",
            "text": "text",
            "layer": "week",
            "tags": ["a", "b"],
            "category": "fact",
            "provenance": "web",
            "source": "s",
            "valid_from": "2025-01-01",
            "valid_to": "2026-01-01",
            "expires": "2027-01-01",
            "weight": 0.5,
            "derived_from": ["r1", "r2"],
        },
    ),
    (
        "remember muse text --lift --reason true",
        "remember",
        {"agent": "muse", "text": "text", "lift": True, "reason": "true"}
        | {"passphrase": PASSPHRASE}
        | LISTS,
    ),
    (
        (
            "search muse bees --limit 3 --kind k --tag t --layer week --at 2025-01-01"
            " --as-of 2025-02-01 --explain"
        ),
        "search",
        {
            "agent": "muse",
            "query": "bees",
            "limit": 3,
            "kinds": ["k"],
            "tags": ["t"],
            "layer": "week",
            "at": "2025-01-01",
            "as_of": "2025-02-01",
            "explain": True,
        },
    ),
    (
        (
            "list muse --state new --state erased --kind k --layer l --tag t --since 2025-01-01"
            " --until 2025-02-01 --source s --limit 5 --cursor c"
        ),
        "list",
        {
            "agent": "muse",
            "states": ["new", "erased"],
            "kinds": ["k"],
            "layer": "l",
            "tags": ["t"],
            "since": "2025-01-01",
            "until": "2025-02-01",
            "source": "s",
            "limit": 5,
            "cursor": "c",
        },
    ),
    ("list muse", "list", {"agent": "muse", "states": [], "kinds": [], "tags": []}),
    ("show muse r1", "show", {"agent": "muse", "record": "r1"}),
    ("history muse r1", "history", {"agent": "muse", "record": "r1"}),
    (
        "revise muse r1 text --reason why",
        "revise",
        {"agent": "muse", "record": "r1", "text": "text", "reason": "why"},
    ),
    ("tag muse r1 a b", "tag", {"agent": "muse", "record": "r1", "tags": ["a", "b"]}),
    ("untag muse r1 a", "untag", {"agent": "muse", "record": "r1", "tags": ["a"]}),
    ("move muse r1 --layer year", "move", {"agent": "muse", "record": "r1", "layer": "year"}),
    ("keep muse r1", "keep", {"agent": "muse", "record": "r1"}),
    ("retire muse r1 --reason x", "retire", {"agent": "muse", "record": "r1", "reason": "x"}),
    (
        "lift muse r1 --reason x",
        "lift",
        {"agent": "muse", "record": "r1", "reason": "x", "passphrase": PASSPHRASE},
    ),
    (
        "forget muse r1 --reason x --with-sources",
        "forget",
        {"agent": "muse", "record": "r1", "reason": "x", "with_sources": True, "dry_run": False},
    ),
    (
        "forget muse --where tag=a=b --reason x --dry-run",
        "forget",
        {"agent": "muse", "where": "tag=a=b", "reason": "x"}
        | {"with_sources": False, "dry_run": True},
    ),
    ("forget muse r1 --status", "forget.status", {"agent": "muse", "record": "r1"}),
    ("audit verify", "audit.verify", {}),
    ("audit verify muse", "audit.verify", {"agent": "muse"}),
    (
        "audit log muse --record r --device d --limit 9",
        "audit.log",
        {"agent": "muse", "record": "r", "device": "d", "limit": 9},
    ),
    ("review list muse", "review.list", {"agent": "muse"}),
    ("review show muse r1", "review.show", {"agent": "muse", "record": "r1"}),
    (
        "review approve muse r1 --heads h --reason ok",
        "review.approve",
        {"agent": "muse", "record": "r1", "heads": "h", "reason": "ok", "passphrase": PASSPHRASE},
    ),
    (
        "review approve muse --run run1",
        "review.approve",
        {"agent": "muse", "run": "run1", "passphrase": PASSPHRASE},
    ),
    (
        "review reject muse r1 --reason no",
        "review.reject",
        {"agent": "muse", "record": "r1", "reason": "no", "passphrase": PASSPHRASE},
    ),
    ("conflicts list muse", "conflicts.list", {"agent": "muse"}),
    ("quarantine list muse", "quarantine.list", {"agent": "muse"}),
    ("pair list", "pair.list", {}),
    (
        "pair join --device d1 --code 123456",
        "pair.join",
        {"device": "d1", "code": "123456", "mine": False, "passphrase": PASSPHRASE},
    ),
    (
        "pair join roost://pair?d=x&c=1 --mine",
        "pair.join",
        {"uri": "roost://pair?d=x&c=1", "mine": True, "passphrase": PASSPHRASE},
    ),
]


@pytest.mark.parametrize(("command", "verb", "params"), CALLS, ids=[call[0] for call in CALLS])
def test_a_command_is_one_call(roost: Roost, command: str, verb: str, params: object) -> None:
    """Its options are the parameters of its verb; what was not given is not sent."""
    roost.node.script[verb] = RECORD | {"ok": True}
    said = roost("--json", *command.split())
    assert said.code == 0
    assert roost.node.params(verb) == params
    assert said.json == RECORD | {"ok": True}
    assert roost(*command.split()).code == 0


@pytest.mark.parametrize(
    "command",
    [
        "remember muse",
        "remember muse text --jsonl x",
        "remember muse text --lift",
        "remember muse text --reason x",
        "remember muse --jsonl x --lift",
        "remember muse --jsonl /nowhere/at/all",
        "remember muse text --weight heavy",
        "remember muse text --provenance dream",
        "revise muse r1 text",
        "retire muse r1",
        "forget muse r1",
        "forget muse --reason x",
        "forget muse r1 --where tag=x --reason x",
        "forget muse --where colour=red --reason x",
        "forget muse --where tag= --reason x",
        "forget muse --where tag=x --status",
        "tag muse r1",
        "grant muse d1 rule",
        "grant muse d1 ,",
        "pair open --ttl 0",
        "pair open --ttl 121",
        "pair join",
        "pair join --address h:1",
        "pair join --address h:1 --device d --code 1",
        "pair join 192.168.0.1:7667 --code 1",
        "review approve muse",
        "review approve muse r1 --run x",
        "review approve muse --run x --heads h",
        "review approve muse r1",
        "import muse /nowhere/at/all",
        "import muse - --format locomo",
        "import muse x --conversation 1",
        "export muse --out /nowhere/at/all",
        "owner recover",
        "owner recover --code-file /nowhere/at/all",
        "completion tcsh",
    ],
)
def test_wrong_usage_is_found_before_the_node_is_asked(roost: Roost, command: str) -> None:
    """Exit 2, with a sentence."""
    said = roost("--json", *command.split())
    assert (said.code, said.error["code"], roost.node.calls) == (2, "usage", [])


@pytest.mark.parametrize(
    ("command", "verb", "result", "code"),
    [
        ("doctor", "doctor", {"ok": True, "checks": []}, 0),
        ("doctor", "doctor", {"ok": False, "checks": [{"name": "clock", "ok": False}]}, 1),
        ("rebuild m", "rebuild", {"digest_before": "a", "digest_after": "a"}, 0),
        ("rebuild m", "rebuild", {"digest_before": "a", "digest_after": "b"}, 1),
        ("audit verify", "audit.verify", {"ok": True, "problems": []}, 0),
        ("audit verify", "audit.verify", {"ok": False, "problems": ["x"]}, 1),
        ("forget m r --reason x", "forget", {"erased": ["r"], "left": []}, 0),
        ("forget m r --reason x", "forget", {"erased": ["r"], "left": ["s"]}, 1),
        ("sync", "sync", {"pulled": 0, "peers": []}, 0),
        ("sync", "sync", {"pulled": 1, "peers": [{"device": "d", "pulled": 1}]}, 0),
        ("sync", "sync", {"peers": [{"device": "d", "error": "unreachable"}]}, 4),
        ("sync", "sync", {"peers": [{"device": "d", "error": {"code": "unreachable"}}]}, 4),
        ("sync", "sync", {"peers": [{"device": "d", "error": "refused"}]}, 1),
        (
            "sync",
            "sync",
            {"peers": [{"device": "d", "error": "unreachable"}, {"device": "e", "error": "bad"}]},
            1,
        ),
    ],
)
def test_the_exit_code_follows_from_the_result(
    roost: Roost, command: str, verb: str, result: dict[str, Any], code: int
) -> None:
    """Partial failure is never 0."""
    roost.node.script[verb] = result
    assert roost("--json", *command.split()).code == code
    assert roost(*command.split()).code == code


def test_text_of_a_hyphen_is_standard_input(roost: Roost, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is too long for an argument."""
    roost.node.script["remember"] = RECORD | {"created": True}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("zwei\nZeilen ü\n".encode())))
    assert roost("remember", "muse", "-").code == 0
    assert roost.node.params("remember")["text"] == "zwei\nZeilen ü"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert roost("remember", "muse", "-").code == 2


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
    import time

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
        ("roost re", ["remember", "revise", "retire", "reinstate", "review", "revoke", "rebuild"]),
        ("roost agent ", ["create", "list", "show", "accept"]),
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
    from cli.main import main

    with pytest.raises(SystemExit):
        main([])
    found = [line.split(",")[1] for line in roost.capture.readouterr().out.splitlines()]
    assert sorted(found) == sorted(expected)


def test_a_refusal_of_a_value_that_was_forgotten_is_3(roost: Roost) -> None:
    """What acceptance scripts look for."""
    roost.node.script["remember"] = RefusedError("forgotten", tombstone="t1")
    said = roost("--json", "remember", "muse", "text")
    assert (said.code, said.error["tombstone"]) == (3, "t1")
