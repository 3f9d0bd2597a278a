"""Memories from and to files: ``remember --jsonl``, ``import``, ``export``."""

import io
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import batches
from keys.errors import NotFoundError, RefusedError, StoreError
from tests.support.roost import PASSPHRASE, Roost


def lines(path: Path, *rows: object) -> str:
    """A file with these rows; a text is written as it is."""
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


def accept(params: dict[str, Any]) -> dict[str, Any]:
    return {"written": len(params["rows"]), "reinforced": 0, "refused": []}


def test_lines_are_written_in_calls_of_500(roost: Roost, tmp_path: Path) -> None:
    """One commit each; the numbers are added up."""
    roost.node.script["remember.batch"] = accept
    file = lines(tmp_path / "in", *({"text": f"memory {n}"} for n in range(1_001)))
    said = roost("--json", "remember", "muse", "--jsonl", file)
    assert said.json == {"written": 1_001, "reinforced": 0, "refused": []}
    assert [len(params["rows"]) for _, params in roost.node.calls] == [500, 500, 1]
    assert roost.node.calls[1][1]["rows"][0] == {"text": "memory 500", "line": 501}
    assert said.code == 0


def test_a_call_is_no_larger_than_it_may_be(
    roost: Roost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long texts go in smaller batches; one that is longer goes alone."""
    monkeypatch.setattr(batches, "BATCH_BYTES_MAX", 100)
    roost.node.script["remember.batch"] = accept
    texts = ["x" * size for size in (20, 20, 200, 20)]
    file = lines(tmp_path / "in", *({"text": text} for text in texts))
    assert roost("remember", "muse", "--jsonl", file).code == 0
    sizes = [[len(row["text"]) for row in params["rows"]] for _, params in roost.node.calls]
    assert sizes == [[20, 20], [200], [20]]


def test_keys_are_those_of_the_options_and_options_are_defaults(
    roost: Roost, tmp_path: Path
) -> None:
    """One tag may be written as a text."""
    roost.node.script["remember.batch"] = accept
    file = lines(
        tmp_path / "in",
        {"text": "a", "tag": "one", "layer": "year", "weight": 2, "valid_from": "2025-01-01"},
        "",
        {"text": "b", "tags": ["one", "two"], "derived_from": "r1", "source": None},
        {"text": "c"},
    )
    arguments = ["--jsonl", file, "--layer", "week", "--tag", "t", "--source", "s"]
    assert roost("remember", "muse", *arguments).code == 0
    assert roost.node.params("remember.batch")["rows"] == [
        {"text": "a", "tags": ["one"], "layer": "year", "weight": 2, "valid_from": "2025-01-01"}
        | {"source": "s", "line": 1},
        {"text": "b", "tags": ["one", "two"], "derived_from": ["r1"], "layer": "week"}
        | {"source": "s", "line": 3},
        {"text": "c", "tags": ["t"], "layer": "week", "source": "s", "line": 4},
    ]


def test_refused_lines_are_listed_and_the_exit_code_is_3(roost: Roost, tmp_path: Path) -> None:
    """The others are written."""
    refused = {"line": 2, "code": "refused", "message": "forgotten"}
    roost.node.script["remember.batch"] = {"written": 1, "reinforced": 1, "refused": [refused]}
    file = lines(tmp_path / "in", *({"text": f"m {n}"} for n in range(3)))
    said = roost("remember", "muse", "--jsonl", file)
    assert said.code == 3
    assert said.out == "1 remembered, 1 already known\n  line 2: forgotten (refused)\n"
    assert roost("--json", "remember", "muse", "--jsonl", file).json["refused"] == [refused]


BAD_LINES = [
    ("{", "not JSON"),
    ("[1]", "not a JSON object"),
    ('{"text": NaN}', "NaN is not JSON"),
    ('{"text": "a", "text": "b"}', "twice"),
    ('{"text": "\\ud800"}', "surrogate"),
    ('{"text": "a"} {"text": "b"}', "not JSON"),
    ('{"text": "a", "colour": "red"}', "unknown key 'colour'"),
    ('{"tags": ["a"]}', "'text' is missing"),
    ('{"text": "a", "tag": "x", "tags": ["y"]}', "both"),
    ("[" * 50_000, "nested too deeply"),
    ("[{" * 50_000, "more than 67098 values"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES, ids=[line[:20] for line, _ in BAD_LINES])
def test_a_malformed_line_is_reported_and_the_rest_is_written(
    roost: Roost, tmp_path: Path, line: str, message: str
) -> None:
    """Exit 1, whatever else happened."""
    roost.node.script["remember.batch"] = accept
    file = lines(tmp_path / "in", {"text": "a"}, line, {"text": "b"})
    said = roost("--json", "remember", "muse", "--jsonl", file)
    assert (said.code, said.json["written"]) == (1, 2)
    (problem,) = said.json["refused"]
    assert (problem["line"], problem["code"]) == (2, "malformed")
    assert message in problem["message"]


def test_standard_input_is_read_line_by_line(roost: Roost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hyphen in the place of a file."""
    roost.node.script["remember.batch"] = accept
    data = io.BytesIO('\ufeff{"text": "ü"}\r\n{"text": "last, without a line end"}'.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    assert roost("--json", "remember", "muse", "--jsonl", "-").json["written"] == 2


def test_nothing_to_write_is_no_failure(roost: Roost, tmp_path: Path) -> None:
    """An empty file."""
    said = roost("--json", "remember", "muse", "--jsonl", lines(tmp_path / "in"))
    assert (said.code, said.json["written"], roost.node.calls) == (0, 0, [])


def test_a_call_that_fails_says_what_was_written_before_it(roost: Roost, tmp_path: Path) -> None:
    """So that the rest can be given again."""
    replies = [{"written": 500, "reinforced": 0, "refused": []}]
    roost.node.script["remember.batch"] = lambda _: (
        replies.pop() if replies else StoreError("the disk is full")
    )
    file = lines(tmp_path / "in", *({"text": f"memory {n}"} for n in range(501)))
    said = roost("--json", "remember", "muse", "--jsonl", file)
    assert (said.code, said.error["code"]) == (1, "store")
    assert (said.error["written"], said.error["done_to_line"]) == (500, 500)
    assert "line 500" in said.error["hint"]


def test_a_first_call_that_fails_is_just_that(roost: Roost, tmp_path: Path) -> None:
    """Nothing was written."""
    roost.node.script["remember.batch"] = NotFoundError("no such agent")
    said = roost("--json", "remember", "nobody", "--jsonl", lines(tmp_path / "in", {"text": "a"}))
    assert said.error == {"code": "not_found", "message": "no such agent"}


MANIFEST = {"roost": 1, "agent": "a1", "name": "muse", "exported_at": "2025-03-04T00:00:00+00:00"}


def importing(roost: Roost, **result: Any) -> None:
    done = {"imported": 0, "skipped": 0, "waiting": 0, "problems": []} | result
    roost.node.script |= {"import.begin": {"run": "run1"}, "import.lines": done}


def test_an_export_is_imported_line_by_line(roost: Roost, tmp_path: Path) -> None:
    """The manifest is not a record; the run names the whole import."""
    importing(roost, imported=2, waiting=2)
    records = [{"record": "r1", "text": "a"}, {"record": "r2", "text": "b"}]
    file = lines(tmp_path / "in", MANIFEST | {"records": 2}, *records)
    said = roost("import", "muse", file)
    assert said.code == 0
    assert roost.node.params("import.begin") == {"agent": "muse", "format": "roost"}
    assert roost.node.params("import.lines") == {
        "agent": "muse",
        "rows": [records[0] | {"line": 2}, records[1] | {"line": 3}],
        "run": "run1",
        "approve": False,
        "last": False,
    }
    assert said.out.startswith("2 imported, 0 already here\n")
    assert "roost review approve muse --run run1" in said.out


def test_approving_an_import_takes_the_passphrase(roost: Roost, tmp_path: Path) -> None:
    """A person vouches for the whole list."""
    importing(roost, imported=1)
    file = lines(tmp_path / "in", MANIFEST | {"records": 1}, {"record": "r1"})
    said = roost("--json", "import", "muse", file, "--approve")
    params = roost.node.params("import.lines")
    assert (params["approve"], params["passphrase"]) == (True, PASSPHRASE)
    assert said.json == {"imported": 1, "skipped": 0, "waiting": 0, "run": "run1", "problems": []}


def test_problems_of_both_sides_are_listed_in_order_and_the_exit_code_is_1(
    roost: Roost, tmp_path: Path
) -> None:
    """Partial failure is never 0."""
    importing(roost, imported=1, problems=[{"line": 4, "code": "refused", "message": "no"}])
    file = lines(tmp_path / "in", MANIFEST | {"records": 9}, "{", {"record": "r1"}, {"record": "r"})
    said = roost("--json", "import", "muse", file)
    assert said.code == 1
    assert [problem["line"] for problem in said.json["problems"]] == [2, 4, 5]
    assert "  line 2: not JSON" in roost("import", "muse", file).out


@pytest.mark.parametrize("first", ["", "{", '{"text": "a"}', '{"roost": 2}', '{"roost": true}'])
def test_a_file_that_is_no_export_is_wrong_usage(roost: Roost, tmp_path: Path, first: str) -> None:
    """Nothing is begun."""
    said = roost("import", "muse", lines(tmp_path / "in", *([first] if first else [])))
    assert (said.code, roost.node.calls) == (2, [])


def locomo(tmp_path: Path) -> str:
    turns = [{"speaker": "Ann", "dia_id": f"D1:{n}", "text": f"line {n}"} for n in (1, 2)]
    turns.append({"speaker": "Ann", "dia_id": "D1:3"})
    session = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    samples = [{"sample_id": f"conv-{n}", "conversation": session} for n in (1, 2)]
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(samples))
    return str(path)


def test_a_locomo_file_becomes_turns(roost: Roost, tmp_path: Path) -> None:
    """One conversation of it, or all."""
    importing(roost, imported=2)
    arguments = ["import", "muse", locomo(tmp_path), "--format", "locomo", "--conversation"]
    said = roost("--json", *arguments, "conv-2")
    assert said.code == 1
    assert said.json["problems"] == [
        {
            "line": 6,
            "item": "conv-2/session_1[2]",
            "code": "malformed",
            "message": "text is missing or no text",
        }
    ]
    rows = roost.node.params("import.lines")["rows"]
    assert [row["session"] for row in rows] == ["conv-2/session_1"] * 2
    assert roost("import", "muse", *arguments[2:5]).code == 1
    assert len(roost.node.calls[-1][1]["rows"]) == 4
    wrong = roost("--json", *arguments, "7")
    assert wrong.code == 2
    assert wrong.error["candidates"] == ["conv-1", "conv-2"]


PAGES: list[dict[str, Any]] = [
    {"lines": ['{"record": "r1", "text": "ü"}', '{"record":"r2"}'], "next": "c1"},
    {"lines": ['{"record": "r3", "text": "\\ud800 \u202e"}'], "next": None},
]


def exporting(roost: Roost, pages: list[Any]) -> None:
    left = list(pages)
    roost.node.script |= {
        "agent.show": {"agent": "a1", "name": "muse"},
        "export.page": lambda _: left.pop(0),
    }


def test_an_export_is_a_manifest_and_every_line_as_it_came(roost: Roost, tmp_path: Path) -> None:
    """Bytes are kept, so that two exports of one memory are equal."""
    exporting(roost, PAGES)
    out = tmp_path / "muse.jsonl"
    said = roost("--json", "export", "muse", "--out", str(out))
    first, *rest = out.read_text().splitlines()
    manifest = json.loads(first)
    assert list(manifest) == ["roost", "agent", "name", "exported_at", "records"]
    assert manifest["records"] == 3
    assert manifest["exported_at"].endswith("Z")
    assert rest == [*PAGES[0]["lines"], *PAGES[1]["lines"]]
    assert said.json == manifest | {"out": str(out)}
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [params.get("cursor") for verb, params in roost.node.calls if "page" in verb] == [
        None,
        "c1",
    ]


@pytest.mark.parametrize("arguments", [[], ["--out", "-"]])
def test_an_export_without_a_file_goes_to_standard_output(
    roost: Roost, arguments: list[str]
) -> None:
    """To be read by another program."""
    exporting(roost, PAGES)
    said = roost("export", "muse", *arguments)
    assert said.out.splitlines()[1:] == [*PAGES[0]["lines"], *PAGES[1]["lines"]]
    assert json.loads(said.out.splitlines()[0])["records"] == 3


def test_an_export_that_fails_leaves_the_old_file(roost: Roost, tmp_path: Path) -> None:
    """And no part of a new one."""
    out = tmp_path / "muse.jsonl"
    out.write_text("old")
    exporting(roost, [PAGES[0], RefusedError("no")])
    assert roost("export", "muse", "--out", str(out)).code == 3
    assert out.read_text() == "old"
    exporting(roost, PAGES)
    (tmp_path / "folder").mkdir()
    assert roost("export", "muse", "--out", str(tmp_path / "folder")).code == 1
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_what_was_exported_can_be_imported(roost: Roost, tmp_path: Path) -> None:
    """The reader takes what the writer made."""
    exporting(roost, [*PAGES[:1], {"lines": [], "next": None}])
    out = str(tmp_path / "muse.jsonl")
    assert roost("export", "muse", "--out", out).code == 0
    importing(roost, imported=2)
    assert roost("import", "other", out).code == 0
