"""What a process that holds keys does before it reads them."""

from __future__ import annotations

import os
import resource
from typing import Final

_OWNER_ONLY: Final = 0o077


def no_core_file() -> None:
    """A crash writes no image of our memory, which has keys in it (X-95)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def files_for_owner_only() -> None:
    """Whatever this process makes from now on is closed to other accounts."""
    os.umask(_OWNER_ONLY)
