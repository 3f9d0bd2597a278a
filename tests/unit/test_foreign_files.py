"""Files of other programs: told by what they begin with, read as rows, never trusted."""

import io
import json
import os
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.errors import UsageError
from keys.limits import SOURCE_BYTES_MAX
from node.importers import markdown
from node.importers.formats import FORMATS, READERS, detect
from node.importers.rows import Problem, Row, source_of

GRAPH = [
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea", ""]},
    {"type": "relation", "from": "Ada", "to": "Roost", "relationType": "works on"},
    {"type": "entity", "name": "Roost", "entityType": "project", "observations": []},
]
SERVICE = {
    "export_metadata": {"exporter_version": "5.0.1"},
    "memories": [
        {"content": "tea at five", "content_hash": "h1", "tags": ["tea"], "memory_type": "note",
         "created_at": 1_700_000_000.5},
        {"content": 7},
    ],
}  # fmt: skip
MEM0 = {
    "results": [
        {"id": "m1", "memory": "drinks tea", "user_id": "ada", "categories": ["food"],
         "created_at": "2025-01-02T03:04:05-07:00"},
        {"id": "m2", "memory": "naive", "created_at": "2025-01-02T03:04:05"},
    ]
}  # fmt: skip
NOTE = """---
title: Tea
type: guide
permalink: tea
tags:
- kitchen
---

# Tea

A long habit.

## Observations
- [method] steep four minutes #hot (always)

## Relations
- needs [[Kettle]]
"""
PLAIN = "# Rules\n\n- use tabs\n  and no spaces\n- [ ] later\n\nA paragraph\nof two lines. #style\n"


def written(path: Path, value: object) -> Path:
    text = value if isinstance(value, str) else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    return path


def graph(path: Path) -> Path:
    return written(path, "".join(json.dumps(line) + "\n" for line in GRAPH))


def database(path: Path, *extra: str) -> Path:
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash TEXT, content TEXT,"
            " tags TEXT, memory_type TEXT, created_at REAL, deleted_at REAL)"
        )
        rows = [("h1", "tea at five", "tea,hot", 1.7e9, None), ("h2", "old news", "", 1.6e9, 1.7e9)]
        db.executemany(
            "INSERT INTO memories (content_hash, content, tags, created_at, deleted_at)"
            " VALUES (?, ?, ?, ?, ?)",
            rows,
        )
        for statement in extra:
            db.execute(statement)
    db.close()
    return path


def read(path: Path) -> tuple[list[Row], list[Problem]]:
    found = list(READERS[detect(path)](path))
    return (
        [item for item in found if isinstance(item, dict)],
        [item for item in found if isinstance(item, Problem)],
    )


def test_the_graph_of_the_reference_server(tmp_path: Path) -> None:
    """Entities, what is said of them, relations; a bad observation is named."""
    rows, problems = read(graph(tmp_path / "memory.jsonl"))
    assert [(r["line"], r["kind"], r["text"]) for r in rows] == [
        (1, "entity", "Ada"),
        (1, "property", "likes tea"),
        (2, "relation", "works on"),
        (3, "entity", "Roost"),
    ]
    assert rows[0]["root"] == "persons"
    assert rows[1] | {"entity": "name:Ada", "source": "memory.jsonl#1/0"} == rows[1]
    assert (rows[2]["from"], rows[2]["to"]) == ("name:Ada", "name:Roost")
    assert {r["provenance"] for r in rows} == {"import"}
    assert [(p.line, p.item) for p in problems] == [(1, "observations[1]")]


def test_both_files_of_mcp_memory_service(tmp_path: Path) -> None:
    """Tags, type, time and its own id are kept; what was deleted is retired."""
    (row,), (problem,) = read(written(tmp_path / "e.json", SERVICE))
    assert row == {
        "line": 1,
        "text": "tea at five",
        "tags": ["tea", "note"],
        "source": "e.json#h1",
        "provenance": "import",
        "recorded_at": "2023-11-14T22:13:20.500000+00:00",
    }
    assert problem.item == "[1]"
    rows, problems = read(database(tmp_path / "memory.db"))
    assert [(r["text"], r.get("state"), r["tags"]) for r in rows] == [
        ("tea at five", None, ["tea", "hot"]),
        ("old news", "deprecated", []),
    ]
    assert not problems


@pytest.mark.parametrize("value", [MEM0, MEM0["results"]])
def test_both_shapes_of_mem0(tmp_path: Path, value: Any) -> None:
    """A time without an offset is left out and said, never guessed (M-E11)."""
    rows, (problem,) = read(written(tmp_path / "m.json", value))
    assert rows[0]["tags"] == ["food", "user:ada"]
    assert rows[0]["recorded_at"] == "2025-01-02T03:04:05-07:00"
    assert rows[0]["source"] == "m.json#m1"
    assert "recorded_at" not in rows[1]
    assert (problem.line, problem.code) == (2, "no_time")


def test_a_folder_of_markdown(tmp_path: Path) -> None:
    """Notes of basic-memory are entities; plain files give their bullets and paragraphs."""
    (tmp_path / "sub").mkdir()
    written(tmp_path / "tea.md", NOTE)
    written(tmp_path / "sub" / "RULES.md", PLAIN)
    rows, problems = read(tmp_path)
    assert not problems
    assert [(r.get("kind", "observation"), r["text"]) for r in rows] == [
        ("entity", "Tea"),
        ("observation", "A long habit."),
        ("property", "steep four minutes #hot (always)"),
        ("entity", "Kettle"),
        ("relation", "needs"),
        ("observation", "use tabs\n  and no spaces"),
        ("observation", "[ ] later"),
        ("observation", "A paragraph\nof two lines. #style"),
    ]
    assert rows[0]["root"] == "procedures"
    assert rows[0]["tags"] == ["kitchen", "guide"]
    assert rows[5]["source"] == "sub/RULES.md#Rules:3"
    assert rows[7]["tags"] == ["style"]
    assert (rows[2]["name"], rows[2]["tags"]) == ("method", ["hot"])


@pytest.mark.parametrize("text", ["[]", '{"a": 1}', "", "hello"])
def test_a_file_whose_format_is_not_clear_is_refused_with_the_formats(
    tmp_path: Path, text: str
) -> None:
    """A guess would be imported."""
    with pytest.raises(UsageError) as caught:
        detect(written(tmp_path / "f.json", text))
    candidates: Any = caught.value.details["candidates"]
    assert set(candidates) <= set(FORMATS)
    assert len(candidates) > 1


def test_X_96_archives_links_and_devices_are_refused_and_nothing_appears(tmp_path: Path) -> None:
    """Nothing is ever unpacked; the control beside them is read."""
    inside = tmp_path / "in"
    inside.mkdir()
    with zipfile.ZipFile(inside / "z.md", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../x", b"0" * 1_000_000)
    with tarfile.open(inside / "t.md", "w") as tar:
        member = tarfile.TarInfo("../../x")
        tar.addfile(member, io.BytesIO())
    secret = written(tmp_path / "secret.md", "- outside")
    (inside / "l.md").symlink_to(secret)
    (inside / "d").symlink_to(tmp_path)
    os.mkfifo(inside / "p.md")
    written(inside / "ok.md", "- inside")
    before = sorted(tmp_path.rglob("*"))
    rows, problems = read(inside)
    assert [r["text"] for r in rows] == ["inside"]
    assert sorted(p.item or "" for p in problems) == ["d", "l.md", "p.md", "t.md", "z.md"]
    assert {p.code for p in problems} == {"refused"}
    assert sorted(tmp_path.rglob("*")) == before
    for name in ("z.md", "t.md", "l.md", "p.md", "d"):
        with pytest.raises(UsageError):
            detect(inside / name)


def test_X_96_a_folder_of_too_many_names_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the bound it is read."""
    for n in range(3):
        written(tmp_path / f"{n}.md", "- a")
    monkeypatch.setattr(markdown, "FILES_MAX", 3)
    assert len(read(tmp_path)[0]) == 3
    monkeypatch.setattr(markdown, "FILES_MAX", 2)
    with pytest.raises(UsageError, match="more than 2 names"):
        read(tmp_path)


def test_X_96_a_file_has_a_bound_before_it_is_read(tmp_path: Path) -> None:
    """A sparse file of a terabyte costs nothing."""
    path = written(tmp_path / "m.json", MEM0)
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match="larger than"):
        READERS["mem0"](path).__next__()


def test_X_97_nothing_a_database_says_is_run(tmp_path: Path) -> None:
    """No view, no virtual table, no damaged file; the file stays as it was, no journal appears."""
    view = tmp_path / "view.db"
    with sqlite3.connect(view) as db:
        db.execute("CREATE TABLE t (content TEXT)")
        db.execute("CREATE VIEW memories AS SELECT content FROM t")
    db.close()
    with pytest.raises(UsageError, match="no table"):
        read(view)
    good = database(tmp_path / "good.db", "CREATE TABLE other (x)")
    data = good.read_bytes()
    assert len(read(good)[0]) == 2
    assert good.read_bytes() == data
    bad = tmp_path / "bad.db"
    bad.write_bytes(data[:4096] + bytes(len(data) - 4096))
    with pytest.raises(UsageError, match="damaged"):
        read(bad)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.db", "good.db", "view.db"]


@pytest.mark.parametrize("name", ["mcp-memory", "mcp-memory-service", "mem0", "markdown"])
@settings(max_examples=25)
@given(data=st.binary() | st.text().map(str.encode))
def test_any_bytes_give_rows_problems_or_wrong_usage(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes
) -> None:
    """And no other exception."""
    path = tmp_path_factory.getbasetemp() / f"any-{name}.md"
    path.write_bytes(data)
    try:
        found = list(READERS[name](path))
    except UsageError:
        return
    assert all(isinstance(item, (dict, Problem)) for item in found)


@given(st.text(), st.text(), st.integers(0, 3000))
def test_a_source_fits(file: str, place: str, times: int) -> None:
    """Whatever the name of the file."""
    assert len(source_of(file + "ü" * times, place).encode()) <= SOURCE_BYTES_MAX


def test_a_problem_quotes_no_memory(tmp_path: Path) -> None:
    """It is shown, and may be kept in a journal."""
    path = written(
        tmp_path / "m.jsonl", '{"type": "entity", "name": 7, "observations": ["sesame"]}'
    )
    _, problems = read(path)
    assert problems
    assert "sesame" not in str([p.as_dict() for p in problems])
