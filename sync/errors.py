"""Errors of synchronisation, below the tree of ``keys.errors``.

RoostError
├── StalledError        exit 1   rounds went by and nothing that is missing came
├── IncompatibleError   exit 1   two versions that share no protocol
└── BadInput
    └── BadStream       exit 1   frames that are no answer to what was asked
"""

from __future__ import annotations

from keys.errors import BadInput, RoostError


class StalledError(RoostError):
    """Rounds went by and nothing of what is missing came; another would change nothing."""

    code = "stalled"


class IncompatibleError(RoostError):
    """The other device speaks no version that this one speaks."""

    code = "needs_upgrade"


class BadStream(BadInput):
    """Frames out of order, or more of them than were asked for."""

    code = "bad_stream"
