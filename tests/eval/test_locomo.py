"""The evaluation itself: its measures worked out by hand, its repairs, and its refusal."""

import json
from pathlib import Path

import pytest

from tests.eval import locomo

SAMPLE = {
    "conversation": {
        "speaker_a": "A",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "A", "dia_id": "D1:1", "text": "where does the sextant hang"},
            {"speaker": "B", "dia_id": "D1:2", "text": "in the hall"},
        ],
        "session_2_date_time": "1:14 pm on 25 May, 2023",
        "session_2": [{"speaker": "A", "dia_id": "D2:1", "text": "quite another matter"}],
    },
    "qa": [
        {"question": "where is the sextant", "evidence": ["D1:2"], "category": 1},
        {"question": "matter", "evidence": ["D2:01; D9:9"], "category": 4},
        {"question": "matter", "evidence": ["D9:9"], "category": 4},
        {"question": "matter", "evidence": ["D2:1"], "category": 5},
    ],
}


def test_evidence_is_repaired_as_documented() -> None:
    written = ["D1:2", "D8:6; D9:17", "D:11:26", "D30:05", "D9:1 D4:4", "D", ""]
    wanted = {"D1:2", "D8:6", "D9:17", "D11:26", "D30:5", "D9:1", "D4:4"}
    assert locomo.repaired(written) == wanted


def test_the_measures_of_a_ranking() -> None:
    ids = ["D3:1", "D1:1", "D1:2", "D2:1", "D2:2", "D4:1"]
    ranked = [locomo.Turn(i, int(i[1]), "", "", 0) for i in ids]
    found = locomo.measures_of(ranked, frozenset({"D1:2", "D4:1", "D5:1"}))
    assert found["recall@1"] == 0
    assert found["recall@5"] == pytest.approx(1 / 3)
    assert found["recall@10"] == pytest.approx(2 / 3)
    assert found["hit@10"] == 1
    assert found["mrr"] == pytest.approx(1 / 3)
    assert found["session_recall@5"] == pytest.approx(2 / 3)
    assert locomo.measures_of(ranked, frozenset({"D5:1"}))["mrr"] == 0


def test_a_small_data_set_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a real store: the answer is found by the question before it."""
    data = tmp_path / "data.json"
    data.write_text(json.dumps([SAMPLE, SAMPLE]), encoding="utf-8")
    assert locomo.main(["--data", str(data), "--choose", "0", "--report", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["all"]["questions"] == 4
    assert found["reported"]["multi-hop"]["recall@1"] == 0
    assert found["reported"]["multi-hop"]["recall@5"] == 1
    assert found["reported"]["single-hop"]["recall@1"] == 1
    assert len(found["parameters_hash"]) == 16


def test_without_the_data_set_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert locomo.main(["--data", "nowhere.json"]) == 2
    assert "LOCOMO=" in capsys.readouterr().err
