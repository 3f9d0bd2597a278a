"""Writes the published vectors; the same bytes at every run. ``python -m tests.vectors.make``."""

from __future__ import annotations

from pathlib import Path

from tests.vectors.changes import changes_suite
from tests.vectors.forms import rendered
from tests.vectors.headers import headers_suite
from tests.vectors.payloads import payloads_suite
from tests.vectors.runs import runs_suite
from tests.vectors.statements import signatures_suite, statements_suite
from tests.vectors.values import (
    codec_suite,
    digests_suite,
    fingerprints_suite,
    ids_suite,
    records_suite,
    recovery_suite,
)

FOLDER = Path(__file__).parent
SUITES = (
    codec_suite,
    ids_suite,
    records_suite,
    fingerprints_suite,
    recovery_suite,
    digests_suite,
    headers_suite,
    payloads_suite,
    changes_suite,
    runs_suite,
    statements_suite,
    signatures_suite,
)


def files() -> dict[str, str]:
    """The name and text of every file of vectors."""
    made = [build() for build in SUITES]
    return {f"{suite['suite']}.json": rendered(suite) for suite in made}


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="ascii")
