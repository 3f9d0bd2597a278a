"""Where the passphrase comes from, and what happens without one."""

import getpass
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.output import Output
from cli.passphrase import given_passphrase, new_passphrase, read_passphrase
from keys.errors import UsageError
from keys.limits import PASSPHRASE_BYTES_MAX
from tests.support.roost import PASSPHRASE, Roost

Typing = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROOST_PASSPHRASE_FILE", raising=False)


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Typing:
    """A terminal where somebody types these answers; gives the questions."""

    def start(*answers: str) -> list[str]:
        left, asked = list(answers), []

        def prompt(question: str) -> str:
            asked.append(question)
            if not left:
                raise EOFError
            return left.pop(0)

        monkeypatch.setattr(getpass, "getpass", prompt)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        return asked

    return start


def written(tmp_path: Path, data: bytes, mode: int = 0o600) -> str:
    path = tmp_path / "secret"
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"one two", "one two"),
        (b"one two\n", "one two"),
        (b"one two\r\n", "one two"),
        (b" one two \n\n", " one two \n"),
        ("müde 🐝\n".encode(), "müde 🐝"),
    ],
)
def test_one_line_end_is_not_part_of_it(tmp_path: Path, data: bytes, read: str) -> None:
    """An editor adds one; a space may be meant."""
    assert given_passphrase(written(tmp_path, data), Output()) == read


@pytest.mark.parametrize("data", [b"", b"\n", b"\xff\n", b"x" * (PASSPHRASE_BYTES_MAX + 1)])
def test_a_file_that_holds_no_passphrase_is_wrong_usage(tmp_path: Path, data: bytes) -> None:
    """Empty, no text, or over the bound."""
    with pytest.raises(UsageError):
        given_passphrase(written(tmp_path, data), Output())


def test_a_passphrase_at_the_bound_is_read(tmp_path: Path) -> None:
    """One byte more is too much."""
    data = b"x" * PASSPHRASE_BYTES_MAX
    assert given_passphrase(written(tmp_path, data + b"\r\n"), Output()) == data.decode()


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    """The message names it."""
    with pytest.raises(UsageError, match="nowhere"):
        given_passphrase(str(tmp_path / "nowhere"), Output())


def test_the_option_comes_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is nearer to the command wins."""
    other = tmp_path / "other"
    other.write_text("of the variable")
    monkeypatch.setenv("ROOST_PASSPHRASE_FILE", str(other))
    assert given_passphrase(None, Output()) == "of the variable"
    assert given_passphrase(written(tmp_path, b"of the option"), Output()) == "of the option"


def test_a_file_that_others_may_read_is_remarked_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And used: it is not ours to refuse."""
    given_passphrase(written(tmp_path, b"one two", 0o644), Output())
    assert "chmod 600" in capsys.readouterr().err


def test_without_a_file_and_a_terminal_there_is_a_hint(
    roost: Roost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2, and the node is not asked."""
    monkeypatch.delenv("ROOST_PASSPHRASE_FILE")
    said = roost("agent", "create", "muse", "--json")
    assert (said.code, said.error["code"]) == (2, "usage")
    assert "--passphrase-file" in said.error["hint"]
    assert roost.node.calls == []


def test_the_terminal_is_asked_once_for_a_passphrase_that_exists(typing: Typing) -> None:
    """What is typed is taken as it is."""
    asked = typing(" one two ")
    assert read_passphrase(None, Output()) == " one two "
    assert len(asked) == 1


def test_the_end_of_the_input_is_no_passphrase(typing: Typing) -> None:
    """Ctrl-D."""
    typing()
    with pytest.raises(UsageError):
        read_passphrase(None, Output())


def test_a_new_passphrase_is_asked_twice(typing: Typing) -> None:
    """Until both agree and it is long enough."""
    asked = typing("short", PASSPHRASE, "something else", PASSPHRASE, PASSPHRASE)
    assert new_passphrase(None, Output()) == PASSPHRASE
    assert len(asked) == 5


def test_nobody_is_asked_for_ever(typing: Typing) -> None:
    """Three tries."""
    typing("a", "b", "c", "d")
    with pytest.raises(UsageError, match="no passphrase was chosen"):
        new_passphrase(None, Output())


def test_a_new_passphrase_may_come_from_a_file(tmp_path: Path) -> None:
    """For headless use."""
    assert new_passphrase(written(tmp_path, b"one two three\n"), Output()) == "one two three"


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        ("agent create muse", "agent.create"),
        ("agent accept muse", "agent.accept"),
        ("grant muse d1 read,write,read", "grant"),
        ("revoke muse d1 --since 2025-03-01", "revoke"),
        ("devices revoke d1", "devices.revoke"),
        ("reinstate muse r1 --reason x", "reinstate"),
        ("lift muse r1 --reason x", "lift"),
        ("remember muse text --lift --reason x", "remember"),
        ("review approve muse r1 --heads h", "review.approve"),
        ("review reject muse r1 --reason x", "review.reject"),
        ("owner recover --code-file {code}", "owner.recover"),
        ("pair join --address h:1 --code 123456 --mine", "pair.join"),
    ],
)
def test_what_only_a_person_may_do_carries_the_passphrase(
    roost: Roost, tmp_path: Path, command: str, verb: str
) -> None:
    """From the option, on every such command."""
    code = tmp_path / "code"
    code.write_text("abcde-fghjk\n")
    roost.node.script[verb] = {"record": "r1", "agent": "a1", "device": "d1", "owner": "o1"}
    words = [word.format(code=code) for word in command.split()]
    said = roost(*words, "--passphrase-file", str(roost.passphrase_file))
    assert (said.code, said.err) == (0, "")
    assert roost.node.params(verb)["passphrase"] == PASSPHRASE
    assert "passphrase_file" not in roost.node.params(verb)


def test_joining_asks_nobody_for_a_passphrase(
    roost: Roost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The opener's person gives it, on the other side."""
    monkeypatch.delenv("ROOST_PASSPHRASE_FILE")
    roost.node.script["pair.join"] = {"device": "d1", "name": "desk"}
    assert roost("pair", "join", "--address", "h:1", "--code", "1", "--mine").code == 0
    assert "passphrase" not in roost.node.params("pair.join")
