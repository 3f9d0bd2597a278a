"""The specifications and the program say the same: limits, kinds, fields, numbers, reasons."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import crdt.entry
import crdt.payload
import keys.recovery
from crdt import fingerprint
from crdt.entry import PayloadKind, Via
from crdt.facts import Reason
from crdt.payload import TOMBSTONE_REASONS, Type, Verb
from keys import ids, limits, signing, statements
from keys.authority import ACT_RIGHTS
from keys.errors import BadInput
from keys.policy import DEFAULTS, KNOWN
from keys.statements import AGENTLESS_KINDS, BODIES, RIGHTS
from tests.support.vectors import FOLDER
from tests.vectors import headers

ROOT = Path(__file__).parents[2]
FORMAT, GRANTS = "crdt/FORMAT.md", "keys/GRANTS.md"
SPECIFICATIONS = (FORMAT, GRANTS, "keys/PAIRING.md", "sync/PROTOCOL.md")
LINE_MAX = 150


def text(name: str) -> str:
    """A specification."""
    return (ROOT / name).read_text()


def section(name: str, number: int) -> str:
    """One section of a specification."""
    parts = re.split(r"(?m)^## (\d+)\. ", text(name))
    return dict(zip(parts[1::2], parts[2::2], strict=True))[str(number)]


def tables(body: str) -> list[list[list[str]]]:
    """The tables of a text, each as rows of cells, head included."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", body, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in blocks
    ]


def table(name: str, number: int, *head: str) -> list[list[str]]:
    """The rows below the table of a section whose first head cells are these."""
    found = [t for t in tables(section(name, number)) if t[0][: len(head)] == list(head)]
    assert len(found) == 1, f"{name}, section {number}: {head}"
    return found[0][2:]


def bare(cell: str) -> str:
    """A cell without its quotes."""
    return cell.strip("`")


# -- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_every_limit_that_a_specification_states_is_the_programs(name: str) -> None:
    """Rows of a named constant and its value, and no name that the program does not have."""
    stated = {
        bare(row[0]): row[1]
        for found in tables(text(name))
        for row in found[2:]
        if len(row) == 3 and bare(row[0]) in vars(limits) and re.fullmatch(r"-?\d+", row[1])
    }
    assert stated == {key: str(getattr(limits, key)) for key in stated}
    quoted = set(re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", text(name)))
    assert quoted - vars(limits).keys() == set()
    if stated:
        assert quoted == stated.keys()


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_a_specification_can_be_read(name: str) -> None:
    """Numbered sections in order, short lines, no line numbers of code."""
    numbers = [int(n) for n in re.findall(r"(?m)^## (\d+)\. ", text(name))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(text(name).splitlines()) < 400
    prose = [line for line in text(name).splitlines() if not line.startswith("|")]
    assert [line for line in prose if len(line) > LINE_MAX] == []
    assert re.findall(r"\.py:\d+", text(name)) == []
    assert "MUST" in text(name)


def test_files_that_specifications_name_are_there() -> None:
    """Other pages, modules, vectors."""
    for name in SPECIFICATIONS:
        for path in re.findall(r"`((?:crdt|keys|sync|tests)/[\w./]+\.(?:md|py|json))`", text(name)):
            assert (ROOT / path).exists(), f"{name}: {path}"


def test_every_limit_of_entries_and_statements_is_stated() -> None:
    """What the modules that a page describes import from ``keys/limits.py`` stands on the page."""
    for name, modules in (
        (FORMAT, ("keys/codec", "keys/ids", "crdt/entry", "crdt/payload", "crdt/chain")),
        (FORMAT, ("crdt/fold", "crdt/vector", "crdt/fingerprint")),
        (GRANTS, ("keys/statements", "keys/statement_set", "keys/authority")),
    ):
        for module in modules:
            source = text(f"{module}.py")
            used = {n for n in vars(limits) if n.isupper() and re.search(rf"\b{n}\b", source)}
            assert used - set(re.findall(r"`([A-Z_0-9]+)`", text(name))) == set(), module


# -- FORMAT.md ------------------------------------------------------------------------------------


def test_ids_are_the_ones_of_the_program() -> None:
    """Kinds and sizes, and the alphabet."""
    kinds = [k for k in vars(ids).values() if inspect.isclass(k) and issubclass(k, ids.Id)]
    expected = {k.kind: str(k.size) for k in kinds if k is not ids.Id}
    assert {bare(r[0]): r[1] for r in table(FORMAT, 2, "kind", "bytes")} == expected
    assert f"`{ids.BASE32_ALPHABET}`" in section(FORMAT, 2)


def test_the_fields_of_a_header_are_the_ones_of_the_program() -> None:
    """In their order."""
    assert tuple(bare(row[0]) for row in table(FORMAT, 3, "field")) == headers.FIELDS
    made = inspect.signature(crdt.entry.Header).parameters
    assert set(headers.FIELDS) - set(made) == {"version"}
    via = next(row[1] for row in table(FORMAT, 3, "field") if bare(row[0]) == "via")
    assert all(f"{v.value} {v.name.lower()}" in via for v in Via)
    left = next(row[1] for row in table(FORMAT, 3, "field") if bare(row[0]) == "commit_left")
    assert left.endswith(f"0 to {limits.COMMIT_ENTRIES_MAX - 1}")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (("kind", "number"), {k.name.lower(): k.value for k in PayloadKind}),
        (("verb", "number"), {v.name: v.value for v in Verb}),
        (("type", "number"), {t.name: t.value for t in Type}),
        (("reason", "code"), {r: i for i, r in enumerate(TOMBSTONE_REASONS)}),
    ],
    ids=["kinds", "verbs", "types", "reasons"],
)
def test_the_numbers_in_payloads_are_the_ones_of_the_program(
    head: tuple[str, ...], expected: dict[str, int]
) -> None:
    """Each name with its number."""
    assert {bare(row[0]): int(row[1]) for row in table(FORMAT, 4, *head)} == expected


def test_the_keys_of_a_record_are_the_ones_of_the_program() -> None:
    """Every prefix that a key may have, and no other."""
    named = {bare(row[0]) for row in table(FORMAT, 6, "key")}
    for key in named:
        crdt.payload.check_key(key.replace("*", "x"))
    found = re.search(r"_KEY_FORM: Final = (.*)", inspect.getsource(crdt.payload))
    assert found
    assert set(re.findall(r"(?<=[(:|])[a-z]{3,}", found.group(1))) == {
        key.removesuffix(".*") for key in named
    }


def test_the_reasons_of_entries_are_the_ones_of_the_program() -> None:
    """In the order in which the first that holds is given."""
    assert [bare(row[0]) for row in table(FORMAT, 7, "reason")] == [str(r) for r in Reason]


def test_the_domains_of_signatures_are_the_ones_of_the_program() -> None:
    """Every constant, and no two alike or one the beginning of another with a zero byte."""
    domains = {value for name, value in vars(signing).items() if name.endswith("_DOMAIN")}
    assert {bare(row[0]).encode() for row in table(FORMAT, 8, "domain")} == domains
    assert len(domains) == 7
    assert all(b"\0" not in domain for domain in domains)


def test_labels_of_hashes_are_the_ones_of_the_program() -> None:
    """The words that keep one hash from being another."""
    sources = "".join(
        inspect.getsource(module)
        for module in (crdt.entry, fingerprint, keys.recovery, signing, statements)
    )
    labels = set(re.findall(r'b"(roost [a-z ]+(?: v1)?)"', sources))
    said = text(FORMAT) + text(GRANTS)
    unsaid = {"roost recovery code"}  # inside the printed form of a recovery code
    assert {label for label in labels if f"`{label}`" not in said} == unsaid


def test_versions_are_the_ones_of_the_program() -> None:
    """Engine, protocol and normalisation."""
    assert (crdt.payload.ENGINE, crdt.payload.PROTOCOL, fingerprint.NORMALISATION) == (1, 1, 1)
    assert "`engine` is 1" in section(FORMAT, 4)
    assert "Normalisation 1, pinned to Unicode 14" in section(FORMAT, 9)
    marks = {f"U+{ord(char):04X}" for char in fingerprint._BECOME_MARKS}
    assert marks <= set(re.findall(r"U\+[0-9A-F]{4,5}", section(FORMAT, 9)))


def test_every_file_of_vectors_is_named() -> None:
    """And every class of error that they name is one of ours."""
    named = {bare(row[0]) for row in table(FORMAT, 12, "file")}
    assert named == {path.name for path in FOLDER.glob("*.json")}
    for error in BadInput.__subclasses__():
        assert f"`{error.__name__}`" in section(FORMAT, 12) or error.__module__ != "keys.errors"


# -- GRANTS.md ------------------------------------------------------------------------------------


def fields() -> dict[str, dict[str, str]]:
    """Per kind its fields and what GRANTS.md says of each."""
    out: dict[str, dict[str, str]] = {}
    kind = ""
    for name, field, value in table(GRANTS, 2, "kind", "field"):
        kind = bare(name) or kind
        out.setdefault(kind, {})[bare(field)] = value
    return out


def test_every_kind_of_statement_has_exactly_its_fields() -> None:
    """As ``keys.statements.BODIES`` has them, in its order."""
    assert {kind: list(named) for kind, named in fields().items()} == {
        kind: list(checks) for kind, checks in BODIES.items()
    }


def test_numbers_in_the_table_of_fields_are_the_programs() -> None:
    """Those that are local to statements."""
    said = fields()
    assert f"{statements.NONCE_BYTES} random bytes" in said["found"]["nonce"]
    assert f"at most {statements.SEALED_BYTES_MAX} bytes" in said["grant"]["sealed"]
    assert f"at most {statements.POLICY_KEYS_MAX} texts" in said["policy"]["settings"]
    assert [f"`{right}`" for right in RIGHTS] == re.findall(r"`\w+`", said["grant"]["rights"])


def test_who_may_sign_is_what_the_program_checks() -> None:
    """The right that each kind needs; owners' own statements need none."""
    signers = {bare(row[0]): row[1] for row in table(GRANTS, 2, "kind", "signed by")}
    assert signers.keys() == BODIES.keys()
    for kind, right in ACT_RIGHTS.items():
        assert signers[kind] == f"founder, `{right}`"
    assert signers.keys() - ACT_RIGHTS.keys() == AGENTLESS_KINDS
    agent = next(row[1] for row in table(GRANTS, 1, "field") if bare(row[0]) == "agent")
    assert set(re.findall(r"`(\w+)`", agent)) == AGENTLESS_KINDS


def test_kinds_without_effect_have_none() -> None:
    """What the page says is not in effect is asked for nowhere."""
    effects = {bare(row[0]): row[2] for row in table(GRANTS, 2, "kind", "signed by")}
    asked = {
        kind
        for package in ("keys", "memory", "sync", "crdt")
        for path in (ROOT / package).glob("*.py")
        for kind in re.findall(r"valid\(\"(\w+)\"\)|kind == \"(\w+)\"", path.read_text())
        for kind in kind
        if kind
    }
    idle = {kind for kind, effect in effects.items() if effect == "not in effect yet"}
    assert idle & asked == set()


def test_the_settings_of_a_policy_are_those_of_the_program() -> None:
    """With their words, the strictest last, and what holds unless one is set."""
    rows = {bare(row[0]): row for row in table(GRANTS, 11, "setting")}
    assert {key: tuple(re.findall(r"`(\w+)`", row[1])) for key, row in rows.items()} == KNOWN
    assert {key: bare(row[2]) for key, row in rows.items()} == DEFAULTS


def test_every_right_is_described_by_what_it_does_not_prevent() -> None:
    """One row each."""
    rows = {bare(row[0]): row for row in table(GRANTS, 3, "right")}
    assert sorted(rows) == list(RIGHTS)
    assert all(row[3] for row in rows.values())
