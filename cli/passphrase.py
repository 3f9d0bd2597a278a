"""Where the owner's passphrase comes from: a file, or the terminal. Never the command line.

``--passphrase-file F``, else ``$ROOST_PASSPHRASE_FILE``, else the terminal is asked; one line end
after the passphrase is not part of it. Without any of the three the command ends with a hint.
"""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Final

from cli.output import Output
from keys.errors import UsageError
from keys.limits import PASSPHRASE_BYTES_MAX, PASSPHRASE_CHARS_MIN

VARIABLE: Final = "ROOST_PASSPHRASE_FILE"
_TRIES: Final = 3
_OTHERS: Final = 0o077
_HINT: Final = f"give --passphrase-file FILE, or name the file in ${VARIABLE}"


def read_passphrase(option: str | None, output: Output) -> str:
    """The passphrase of an owner that exists."""
    given = given_passphrase(option, output)
    if given is not None:
        return given
    _check_terminal()
    return _prompt("passphrase of the owner: ")


def given_passphrase(option: str | None, output: Output) -> str | None:
    """The passphrase from a file, or None where none was named: nobody is asked."""
    named = option or os.environ.get(VARIABLE)
    return _from_file(Path(named), output) if named else None


def new_passphrase(option: str | None, output: Output) -> str:
    """A passphrase for a new owner key; on the terminal it is asked for twice."""
    given = given_passphrase(option, output)
    if given is not None:
        return given
    _check_terminal()
    output.note("the passphrase protects the owner's key; nobody can reset it")
    for _ in range(_TRIES):
        chosen = _prompt(f"new passphrase (at least {PASSPHRASE_CHARS_MIN} characters): ")
        if len(chosen) < PASSPHRASE_CHARS_MIN:
            output.note("that is too short")
        elif _prompt("once more: ") == chosen:
            return chosen
        else:
            output.note("the two differ")
    raise UsageError("no passphrase was chosen")


def _from_file(path: Path, output: Output) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(PASSPHRASE_BYTES_MAX + len("\r\n") + 1)
    except OSError as exc:
        raise UsageError(f"cannot read the passphrase file: {exc.strerror}: {path}") from exc
    if mode & _OTHERS and path.is_file():
        output.note(f"others may read the passphrase file: chmod 600 {path}")
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    if len(data) > PASSPHRASE_BYTES_MAX:
        raise UsageError(f"the passphrase is longer than {PASSPHRASE_BYTES_MAX} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise UsageError(f"the passphrase file is not UTF-8: {path}") from exc
    if not text:
        raise UsageError(f"the passphrase file is empty: {path}")
    return text


def _check_terminal() -> None:
    if not sys.stdin.isatty():
        raise UsageError(
            "this needs the owner's passphrase, and no terminal can be asked", hint=_HINT
        )


def _prompt(question: str) -> str:
    try:
        return getpass.getpass(question)
    except EOFError as exc:
        raise UsageError("no passphrase was given", hint=_HINT) from exc
