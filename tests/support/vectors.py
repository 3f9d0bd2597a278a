"""Reading the published vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keys import errors

FOLDER = Path(__file__).parents[1] / "vectors"


def load(suite: str) -> dict[str, Any]:
    """One file of vectors."""
    found = json.loads((FOLDER / f"{suite}.json").read_text())
    assert isinstance(found, dict)
    return found


def valid(suite: str, **wanted: str) -> list[Any]:
    """Parameters of the cases that are taken; ``wanted`` picks by a field's value."""
    return _params(suite, wanted, bad=False)


def invalid(suite: str, **wanted: str) -> list[Any]:
    """Parameters of the cases that are refused."""
    return _params(suite, wanted, bad=True)


def refused(case: dict[str, Any]) -> pytest.RaisesExc[errors.RoostError]:
    """Expects exactly the class that a case names, no other and none below it."""
    wanted = getattr(errors, case["error"])
    return pytest.RaisesExc(wanted, check=lambda error: type(error) is wanted)


def _params(suite: str, wanted: dict[str, str], *, bad: bool) -> list[Any]:
    cases = load(suite)["cases"]
    return [
        pytest.param(case, id=f"{i}, {case.get('why') or case.get('name') or ''}".strip(", "))
        for i, case in enumerate(cases)
        if ("error" in case) == bad and all(case.get(k) == v for k, v in wanted.items())
    ]
