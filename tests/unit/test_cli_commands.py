"""What each command asks of the node, and how its exit code follows from the result."""

import io
import sys
from typing import Any

import pytest

from keys.errors import RefusedError
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
    ("agent policy muse", "agent.policy", {"agent": "muse", "settings": []}),
    ("agent list", "agent.list", {}),
    ("token list", "token.list", {}),
    ("token revoke abc", "token.revoke", {"id": "abc"}),
    ("audit log --refused", "audit.refused", {}),
    ("audit log muse --refused --limit 5", "audit.refused", {"agent": "muse", "limit": 5}),
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
            " --as-of 2025-02-01 --since 2025-03-01 --until 2025-04-01 --channel c"
            " --misses --explain"
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
            "since": "2025-03-01",
            "until": "2025-04-01",
            "channel": "c",
            "misses": True,
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
    (
        "conflicts resolve muse r1 --keep r2",
        "conflicts.resolve",
        {"agent": "muse", "record": "r1", "keep": "r2"},
    ),
    ("quarantine list muse", "quarantine.list", {"agent": "muse"}),
    ("quarantine adopt muse e1 e2", "quarantine.adopt", {"agent": "muse", "entries": ["e1", "e2"]}),
    (
        "quarantine drop muse e1",
        "quarantine.drop",
        {"agent": "muse", "entries": ["e1"], "passphrase": PASSPHRASE},
    ),
    (
        "quarantine settle muse e1",
        "quarantine.settle",
        {"agent": "muse", "entry": "e1", "passphrase": PASSPHRASE},
    ),
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


def test_a_refusal_of_a_value_that_was_forgotten_is_3(roost: Roost) -> None:
    """What acceptance scripts look for."""
    roost.node.script["remember"] = RefusedError("forgotten", tombstone="t1")
    said = roost("--json", "remember", "muse", "text")
    assert (said.code, said.error["tombstone"]) == (3, "t1")
