"""PROTOCOL.md and the program say the same."""

import ast
import re
from pathlib import Path

import pytest

import sync
from keys import codec, limits
from keys.limits import REQUEST_BYTES_MAX
from sync import messages
from sync.advert import SERVICE, txt_of
from sync.frames import READERS
from sync.messages import (
    CONTENT_TYPE,
    REFUSALS,
    VERSIONS,
    Hello,
    PayloadsRequest,
    PullRequest,
    Start,
    StatementsReply,
    StatementsRequest,
    code_of_refusal,
)
from sync.pull import Phase
from sync.reasons import SENTENCES, Missing
from sync.recovery import RecoverReply, RecoverRequest
from tests.support.author import device_key

FOLDER = Path(sync.__path__[0])
TEXT = (FOLDER / "PROTOCOL.md").read_text()

# Limits of the program's own housekeeping, which no other node can notice.
OWN = {
    "ADVERT_NAME_BYTES",
    "INTERFACE_IDLE_S",
    "INTERFACE_POLL_S",
    "RESOLVES_MAX",
    "RESOLVE_S",
}
MACHINES = (
    "advert",
    "announce",
    "backoff",
    "catchup",
    "errors",
    "fields",
    "frames",
    "messages",
    "outcome",
    "plan",
    "pull",
    "reasons",
    "recovery",
    "serve",
)
NO_IO = {"aiohttp", "asyncio", "socket", "zeroconf", "time", "sqlite3", "memory", "node"}


def section(number: int) -> str:
    """One section of the specification."""
    parts = re.split(r"(?m)^## (\d+)\. ", TEXT)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[str(number)]


def table(number: int, columns: int, which: int = 0) -> list[list[str]]:
    """The rows of a table of a section: its ``which``-th with so many columns."""
    found: list[list[list[str]]] = []
    for block in re.findall(r"(?:^\|.*\|\n)+", section(number), re.MULTILINE):
        rows = [[c.strip() for c in line.strip("|").split("|")] for line in block.splitlines()]
        if len(rows[0]) == columns:
            found.append(rows[2:])
    return found[which]


def test_every_limit_is_the_programs() -> None:
    """Each named limit has the value of ``keys/limits.py``."""
    rows = table(11, 3)
    assert len(rows) > 40
    for name, value, _ in rows:
        assert getattr(limits, name.strip("`")) == int(value), name


def test_every_limit_that_the_program_keeps_is_named() -> None:
    """What ``sync/`` imports from ``keys/limits.py`` stands in the table."""
    named = {row[0].strip("`") for row in table(11, 3)}
    used: set[str] = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "keys.limits":
                used |= {alias.name for alias in node.names}
    assert used - OWN - named == set()
    quoted = set(re.findall(r"`([A-Z][A-Z_]{3,})`", TEXT)) - {"CODE"}
    assert quoted - named == set()


def test_every_endpoint_is_the_programs() -> None:
    """Methods and paths."""
    paths = {value for name, value in vars(messages).items() if name.endswith("_PATH")}
    named = {row[0].strip("`").split(" ")[1] for row in table(3, 3)}
    assert named == paths
    assert f"`{CONTENT_TYPE}`" in section(1)
    assert all(path.startswith(f"/v{VERSIONS[1]}/") for path in paths)
    assert TEXT.startswith(f"# The protocol between nodes, version {VERSIONS[1]}\n")


def test_every_field_is_the_programs() -> None:
    """Messages have exactly the fields of the second table of section 3."""
    fields: dict[str, set[str]] = {}
    message = ""
    for name, field, _ in table(3, 3, 1):
        message = name.strip("`") or message
        fields.setdefault(message, set()).add(field.strip("`"))
    start = Start(bytes(16), bytes(64), "")
    examples = {
        "Hello": Hello((1, 1), "", bytes(16), 0, (), (), bytes(64), (start,)).encode(),
        "StatementsRequest": StatementsRequest(()).encode(),
        "StatementsReply": StatementsReply((), (), False).encode(),
        "PullRequest": PullRequest({}).encode(),
        "PayloadsRequest": PayloadsRequest(()).encode(),
        "RecoverRequest": RecoverRequest(bytes(32), bytes(64)).encode(),
        "RecoverReply": RecoverReply(()).encode(),
    }
    assert fields == {
        name: set(codec.decode(data, REQUEST_BYTES_MAX)) for name, data in examples.items()
    }


def test_every_refusal_is_the_programs() -> None:
    """Statuses and codes."""
    named = {(int(status), code.strip("`")) for status, code, _ in table(4, 3)}
    assert named == {(r.status, code_of_refusal(r.body)) for r in REFUSALS}


def test_every_kind_of_frame_is_the_programs() -> None:
    """The kinds that a reader knows."""
    assert {row[0].strip("`") for row in table(5, 3)} == READERS.keys()


def test_the_phases_are_the_programs() -> None:
    """In the same order."""
    listed = re.search(r"phases of a receiver are ((?:`\w+`,?\s+)+`\w+`)", section(6))
    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == [phase.value for phase in Phase]


def test_the_reasons_are_the_programs() -> None:
    """Codes and sentences."""
    assert {code.strip("`"): meaning for code, meaning in table(6, 2)} == {
        reason.value: SENTENCES[reason] for reason in Missing
    }


def test_the_advert_is_the_programs() -> None:
    """The service, and the fields of TXT."""
    assert f"`{SERVICE}`" in section(10)
    txt = txt_of(bytes(8), device_key("a").device, 1)
    assert set(re.findall(r"`(\w)`", section(10).split("\n2. ")[0])) == txt.keys()


@pytest.mark.parametrize("name", MACHINES)
def test_protocol_machines_do_no_io(name: str) -> None:
    """Messages in, effects out: no network, no clock, no store."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
    assert imported & NO_IO == set()


def test_every_module_is_a_machine_or_a_door() -> None:
    """The two doors are the only modules that touch a network."""
    found = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert found == {*MACHINES, "discovery", "links"}
