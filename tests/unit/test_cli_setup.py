"""Commands that begin something: init, up, demo, owner recover."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli import backend
from cli.commands import setup
from keys.ids import DeviceId
from keys.pair_code import new_code as pairing_code
from keys.pair_uri import parse_pair_uri
from keys.recovery import challenge, new_code
from keys.vault import Cost
from node.options import UpOptions
from node.setup import init_home
from tests.support.roost import PASSPHRASE, Roost
from tests.support.terminal import Terminal, run_on_terminal

CODE = new_code()
MADE = {"device": "d1", "owner": "o1", "home": "/h", "recovery": CODE}
CHEAP = Cost(memory_bytes=8_192, ops=1)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What ``init`` asked for."""
    asked: list[dict[str, Any]] = []

    def make(home: Path, **wanted: Any) -> dict[str, Any]:
        asked.append({"home": home, **wanted})
        return MADE if wanted["recovery"] else {k: v for k, v in MADE.items() if k != "recovery"}

    monkeypatch.setattr(backend, "init_home", make)
    return asked


def test_init_makes_a_home(roost: Roost, made: list[dict[str, Any]]) -> None:
    """With --json the code is printed, and nobody is asked."""
    said = roost("--json", "init", "--name", "desk", "--owner", "Ann")
    assert (said.code, said.json, said.err) == (0, MADE, "")
    assert made == [
        {
            "home": roost.node.home,
            "name": "desk",
            "owner": "Ann",
            "recovery": True,
            "passphrase": PASSPHRASE,
        }
    ]


def test_init_shows_the_code_once_and_what_to_do_next(
    roost: Roost, made: list[dict[str, Any]]
) -> None:
    """Without a terminal it is just printed."""
    said = roost("init", "--name", "desk")
    assert said.out.count(CODE) == 1
    assert "next: roost agent create NAME" in said.out
    assert made[0]["owner"] is None


def test_init_without_recovery_shows_no_code(roost: Roost, made: list[dict[str, Any]]) -> None:
    """It is the person's choice."""
    said = roost("init", "--name", "desk", "--no-recovery")
    assert "Recovery code" not in said.out
    assert made[0]["recovery"] is False


def test_a_second_init_is_refused_before_anybody_is_asked(
    roost: Roost, made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is typed in vain."""
    monkeypatch.delenv("ROOST_PASSPHRASE_FILE")
    (roost.node.home / "node.db").write_text("")
    said = roost("--json", "init", "--name", "desk")
    assert (said.code, said.error["code"], made) == (3, "refused", [])


def test_init_really_makes_one(
    roost: Roost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result has what the contract names; the second one is refused."""
    monkeypatch.setattr(init_home, "__kwdefaults__", {"cost": CHEAP})
    home = str(tmp_path / "new")
    said = roost("--home", home, "--json", "init", "--name", "desk")
    assert said.code == 0
    assert list(said.json) == ["device", "owner", "home", "recovery"]
    assert said.json["home"] == home
    assert roost("--home", home, "--json", "init", "--name", "desk").code == 3


def test_two_groups_of_the_code_are_asked_back_on_a_terminal(
    roost: Roost, made: list[dict[str, Any]], terminal: Callable[..., Terminal]
) -> None:
    """A wrong answer is asked again."""
    seen = dict(enumerate(CODE.split("-"), 1))
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        number = int(question.split()[1])
        return "wrong" if len(asked) == 1 else seen[number].upper()

    screen = terminal(answer)
    assert roost("init", "--name", "desk").code == 0
    assert len(asked) == 3
    assert "written down right" in screen.out.getvalue()


def test_a_code_that_is_not_typed_back_is_not_confirmed(
    roost: Roost, made: list[dict[str, Any]], terminal: Callable[..., Terminal]
) -> None:
    """The home is made all the same."""
    screen = terminal(lambda _: "")
    assert roost("init", "--name", "desk").code == 0
    assert "written down right" not in screen.out.getvalue()
    assert "not confirmed" in screen.err.getvalue()


def test_the_groups_that_are_asked_are_of_the_code() -> None:
    """What the dialogue relies on."""
    groups = CODE.split("-")
    for number, expected in challenge(CODE, random.Random(1)):
        assert groups[number - 1] == expected


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {"no_discovery": False, "no_scheduler": False, "low_power": False}),
        (
            [
                "--listen",
                "127.0.0.1:0",
                "--api",
                "127.0.0.1:0",
                "--no-discovery",
                "--no-scheduler",
                "--low-power",
            ],
            {"listen": "127.0.0.1:0", "api": "127.0.0.1:0"}
            | {"no_discovery": True, "no_scheduler": True, "low_power": True},
        ),
        (
            ["--background", "--idle-stop", "3"],
            {"no_discovery": False, "no_scheduler": False, "low_power": False}
            | {"background": True, "idle_stop": 3.0},
        ),
    ],
)
def test_up_serves_and_says_when(
    roost: Roost,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    options: dict[str, Any],
) -> None:
    """One line when it is ready, and the exit code of the node."""
    ready = {"event": "ready", "device": "d1", "listen": "1.2.3.4:7667", "api": None, "pid": 7}
    served: list[object] = []

    def serve(
        home: Path, wanted: dict[str, Any], on_ready: Callable[[dict[str, Any]], None]
    ) -> int:
        served.append((home, wanted))
        on_ready(ready)
        return 4

    monkeypatch.setattr(backend, "serve_forever", serve)
    said = roost("--json", "up", *arguments)
    assert (said.code, said.json) == (4, ready)
    assert served == [(roost.node.home, {"background": False} | options)]
    assert roost("up").out == "ready: serving peers at 1.2.3.4:7667 (Ctrl-C stops it)\n"


def test_the_options_of_up_are_those_of_the_node() -> None:
    """What the command passes on, the node takes."""
    taken = set(UpOptions.__dataclass_fields__)
    passed = {param.name for param in setup.up.params if param.expose_value}
    assert passed == taken


def test_roost_runs_as_a_module() -> None:
    """A node in the background is started so, from a directory that does not matter."""
    command = [sys.executable, "-P", "-m", "cli.main", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=True)
    assert done.stdout.startswith("roost ")


def test_the_demo_says_what_happens(roost: Roost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines in text, the result alone in JSON."""

    def run(say: Callable[[str], None]) -> dict[str, Any]:
        say("\n1. Pairing: \x1b[31mshown\n   both proved it")
        return {"equal": True}

    monkeypatch.setattr(backend, "run_demo", run)
    assert roost("demo").out == "\n1. Pairing: \\x1b[31mshown\n   both proved it\n"
    assert roost("demo", "--json").json == {"equal": True}


def test_recovering_shows_the_new_code(roost: Roost, tmp_path: Path) -> None:
    """The old one is used up."""
    file = tmp_path / "code"
    file.write_text(f"  {CODE}\n\n")
    result = {"owner": "o1", "recovery": "new-code", "agents": ["a1"]}
    roost.node.script["owner.recover"] = result
    said = roost("owner", "recover", "--code-file", str(file))
    assert said.code == 0
    assert "new-code" in said.out
    assert "1 agent taken back" in said.out
    assert roost.node.params("owner.recover") == {"code": CODE, "passphrase": PASSPHRASE}


def test_a_code_is_typed_on_a_terminal(roost: Roost, terminal: Callable[..., Terminal]) -> None:
    """It is on paper."""
    terminal(lambda _: CODE)
    roost.node.script["owner.recover"] = {"owner": "o1", "agents": []}
    assert roost("owner", "recover").code == 0
    assert roost.node.params("owner.recover")["code"] == CODE


def test_a_code_file_that_is_no_text_is_wrong_usage(roost: Roost, tmp_path: Path) -> None:
    """As one that is not there."""
    file = tmp_path / "code"
    file.write_bytes(b"\xff")
    assert roost("owner", "recover", "--code-file", str(file)).code == 2


PROPOSAL = {"record": "r1", "text": "rm -rf /\u202e", "heads": "h7", "reason": "web rule"}


@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("yes", 0), ("", 1), ("n", 1)])
def test_approving_on_a_terminal_shows_the_bytes_and_asks(
    roost: Roost, terminal: Callable[..., Terminal], typed: str, code: int
) -> None:
    """Exactly what was shown is approved, or nothing."""
    screen = terminal(lambda _: typed)
    roost.node.script |= {"review.show": PROPOSAL, "review.approve": {"record": "r1"}}
    assert roost("review", "approve", "muse", "r1").code == code
    assert "rm -rf /\\u202e" in screen.out.getvalue()
    approvals = [params for verb, params in roost.node.calls if verb == "review.approve"]
    assert [params["heads"] for params in approvals] == (["h7"] if code == 0 else [])


def test_approving_a_run_says_how_many(roost: Roost) -> None:
    """A whole import."""
    roost.node.script["review.approve"] = {"run": "run1", "approved": 12}
    assert roost("review", "approve", "muse", "--run", "run1").out == "approved: 12 memories\n"


@pytest.mark.parametrize(("typed", "yes"), [("y", True), ("no", False), ("", False)])
def test_a_person_is_asked_which_device_becomes_theirs(
    roost: Roost, terminal: Callable[..., Terminal], typed: str, yes: bool
) -> None:
    """R39: on a terminal; with --yes, or where nobody can be asked, the passphrase says it."""
    events: list[dict[str, Any]] = [
        {"event": "open", "code": "1", "device": "d", "addresses": ["h:1"], "uri": "roost://x"},
        {"event": "confirm", "device": "d2", "name": "phone"},
        {"event": "paired", "device": "d2", "name": "phone"},
    ]
    roost.node.script["pair.open"] = [events[0], events[2]]
    assert roost("pair", "open", "--mine").code == 0, "no terminal yet"
    screen = terminal(lambda _: typed)
    assert roost("pair", "open", "--mine", "--yes").code == 0
    roost.node.script["pair.open"] = events
    roost.node.script["pair.confirm"] = {}
    assert roost("pair", "open", "--mine").code == 0, screen.err.getvalue()
    asked = [params.get("ask") for verb, params in roost.node.calls if verb == "pair.open"]
    assert asked == [None, None, True]
    assert roost.node.params("pair.confirm") == {"device": "d2", "yes": yes}
    assert "d2" in screen.err.getvalue()


def test_a_pairing_code_is_asked_on_a_terminal(
    roost: Roost, terminal: Callable[..., Terminal]
) -> None:
    """And shown with a QR code on the other side."""
    screen = terminal(lambda _: "123 456")
    roost.node.script["pair.join"] = {"device": "d1", "name": "desk"}
    assert roost("pair", "join", "--address", "h:1").code == 0
    assert roost.node.params("pair.join")["code"] == "123 456"
    opened = {"event": "open", "code": "1", "device": "d", "addresses": ["h:1"]}
    link = {"uri": "roost://pair?d=d&a=h:1&c=1"}
    paired = {"event": "paired", "device": "d2", "name": "phone"}
    roost.node.script["pair.open"] = [opened | link, paired]
    assert roost("pair", "open").code == 0
    assert "\u2588" in screen.out.getvalue()


def test_the_qr_code_holds_the_link_of_the_pairing(
    roost: Roost, terminal: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made here where the node gives none."""
    shown: list[str] = []
    monkeypatch.setattr("cli.output.Output.qr", lambda _self, text: shown.append(text))
    terminal(lambda _: "")
    device = DeviceId(bytes(32))
    code = pairing_code(device)
    opened = {"event": "open", "code": code, "device": str(device), "addresses": ["10.0.0.2:7668"]}
    roost.node.script["pair.open"] = [opened, {"event": "paired", "device": "d", "name": "n"}]
    assert roost("pair", "open").code == 0
    (link,) = shown
    assert (parse_pair_uri(link).code, parse_pair_uri(link).device) == (code, device)


RECORD = {"record": "r1", "state": "current", "kind": "turn", "text": "long " * 20}


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("list muse", "\x1b[32mcurrent\x1b[0m"),
        ("list muse", "long lo…"),
        ("remember muse --jsonl {rows}", "1 remembered"),
        ("audit verify", "\x1b[32mok\x1b[0m"),
    ],
)
def test_a_real_terminal_gets_colours_columns_and_bars(
    tmp_path: Path, roost: Roost, command: str, shown: str
) -> None:
    """Sixty columns wide; none of the lines is longer."""
    rows = tmp_path / "rows"
    rows.write_text('{"text": "a"}\n')
    roost.node.script |= {
        "list": {"records": [RECORD], "total": 1},
        "remember.batch": {"written": 1, "reinforced": 0, "refused": []},
        "audit.verify": {"ok": True},
    }
    words = ["--home", str(roost.node.home), *command.format(rows=rows).split()]
    code, said = run_on_terminal(words, columns=60)
    assert code == 0
    assert shown in said
    lines = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", said).replace("\r", "\n").split("\n")
    assert max(len(line) for line in lines) <= 60


def test_no_color_is_heeded(roost: Roost) -> None:
    """As no-color.org asks."""
    roost.node.script["list"] = {"records": [RECORD], "total": 1}
    words = ["--home", str(roost.node.home), "list", "muse"]
    assert "\x1b" not in run_on_terminal(words, columns=60, NO_COLOR="1")[1]


def test_nothing_is_coloured_for_a_program(roost: Roost) -> None:
    """Standard output is a pipe."""
    roost.node.script["list"] = {"records": [{"record": "r1", "state": "current"}], "total": 1}
    assert "\x1b" not in roost("list", "muse").out
    assert json.loads(roost("--json", "list", "muse").out)["total"] == 1
