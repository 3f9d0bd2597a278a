"""A disk as a power cut may leave it, made up from a trace of what a process did to it.

What was written to a file since its last sync may be there, or not, or torn; and so may what was
created, renamed or removed in a directory since the directory was synced.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
CALLS = (
    "openat,write,pwrite64,ftruncate,fdatasync,fsync,unlink,unlinkat,rename,renameat,renameat2,"
    "link,linkat,mkdir,mkdirat"
)
STRACE = ("strace", "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}")
_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)", re.DOTALL)
_BEGUN = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$", re.DOTALL)
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$", re.DOTALL)
_FD = re.compile(r"^(\d+)<([^>]*)>")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
Change = tuple[str, int, bytes]  # ("write", offset, data) or ("cut", size, b"")


@dataclass(frozen=True)
class Call:
    """One call of the trace that went well: its files by path, and the rest of its arguments."""

    name: str
    paths: tuple[Path, ...]
    fd: int
    arguments: str

    @property
    def data(self) -> bytes:
        """What it writes."""
        found = _STRING.search(self.arguments)
        assert found is not None, "strace shortened a string"
        return _bytes(found[1])

    @property
    def number(self) -> int:
        """Its last argument."""
        return int(self.arguments.rsplit(", ", 1)[1])


def calls(trace: Path) -> Iterator[Call]:
    """The calls of a trace, each where it ended."""
    begun: dict[str, str] = {}
    for line in trace.read_text().split("\n"):
        if half := _BEGUN.match(line):
            begun[half[1]] = half[2]
            continue
        if rest := _RESUMED.match(line):
            line = f"{rest[1]} {begun.pop(rest[1])}{rest[2]}"
        match = _LINE.match(line)
        if match is None or int(match[4]) < 0:
            continue
        name, arguments = match[2], match[3]
        fd = _FD.match(arguments)
        if fd is not None and not name.endswith("at") and name != "renameat2":
            path = _bytes(fd[2]).decode() if fd[2].startswith("\\x") else fd[2]
            yield Call(name, (Path(path),), int(fd[1]), arguments)
        else:
            paths = tuple(Path(_bytes(s).decode()) for s in _STRING.findall(arguments))
            yield Call(name, paths, -1, arguments)


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


@dataclass
class Drive:
    """One file: what is on the disk for certain, and what was written since the last sync."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)
    size: int = 0

    def change(self, what: str, at: int, data: bytes = b"") -> None:
        """Something is written at ``at``, or the file is cut there."""
        self.pending.append((what, at, data))
        self.size = at if what == "cut" else max(self.size, at + len(data))

    def sync(self) -> None:
        """All that was written is on the disk."""
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def after_a_cut(self, source: random.Random) -> bytes:
        """As it may be found: any of the pending writes, in any part of their sectors."""
        found = bytearray(self.durable)
        keeps = source.choice((0.0, 0.5, 0.9, 1.0))
        for what, at, data in self.pending:
            if what == "cut":
                if source.random() < keeps:
                    _apply(found, (what, at, data))
                continue
            for start in range(0, len(data), SECTOR):
                if source.random() < keeps:
                    _apply(found, (what, at + start, data[start : start + SECTOR]))
        return bytes(found)


@dataclass
class Folder:
    """A directory: the names that are on the disk for certain, and what was done since."""

    durable: dict[str, Drive | Folder] = field(default_factory=dict)
    names: dict[str, Drive | Folder] = field(default_factory=dict)
    pending: list[dict[str, Drive | Folder | None]] = field(default_factory=list)

    def change(self, **names: Drive | Folder | None) -> None:
        """One change, which is done as a whole or not: a name is given, or (None) goes."""
        self.pending.append(names)
        _enter(self.names, names)

    def sync(self) -> None:
        """Every name is on the disk."""
        for change in self.pending:
            _enter(self.durable, change)
        self.pending.clear()

    def after_a_cut(self, source: random.Random) -> dict[str, Drive | Folder]:
        """The names that may be found: of the changes since the sync the first few, or any."""
        found, keeps = dict(self.durable), source.choice((0.0, 0.5, 0.9, 1.0))
        is_in_order = source.random() < 0.5
        for change in self.pending:
            if source.random() < keeps:
                _enter(found, change)
            elif is_in_order:
                break
        return found


def _enter(names: dict[str, Drive | Folder], change: dict[str, Drive | Folder | None]) -> None:
    for name, what in change.items():
        if what is None:
            names.pop(name, None)
        else:
            names[name] = what


def _apply(content: bytearray, change: Change) -> None:
    what, at, data = change
    if what == "cut":
        del content[at:]
        content.extend(bytes(at - len(content)))
    else:
        content.extend(bytes(max(0, at + len(data) - len(content))))
        content[at : at + len(data)] = data


class Disk:
    """All below one directory, which is on the disk; shared memory and the reserve are not kept."""

    def __init__(self, root: Path) -> None:
        self.root, self.top = root, Folder()

    def load(self) -> None:
        """What lies there now is on the disk."""
        for path in sorted(self.root.rglob("*")):
            if _is_kept(path):
                folder = self._folder(path.parent)
                found = Folder() if path.is_dir() else Drive(bytearray(path.read_bytes()))
                if isinstance(found, Drive):
                    found.size = len(found.durable)
                folder.change(**{path.name: found})
                folder.sync()

    def do(self, call: Call) -> bool:
        """Take a call; whether it changes anything here."""
        if not all(p.is_relative_to(self.root) and _is_kept(p) for p in call.paths):
            return False
        if not call.paths:
            return False
        match call.name:
            case "openat":
                return self._open(call)
            case "mkdir" | "mkdirat":
                self._enter(call.paths[0], Folder())
            case "unlink" | "unlinkat":
                self._enter(call.paths[0], None)
            case "link" | "linkat":
                self._enter(call.paths[1], self._at(call.paths[0]))
            case "rename" | "renameat" | "renameat2":
                old, new = call.paths
                assert old.parent == new.parent, "one change of one directory"
                self._folder(old.parent).change(**{old.name: None, new.name: self._at(old)})
            case _:
                return self._of_file(call)
        return True

    def _open(self, call: Call) -> bool:
        path = call.paths[0]
        found = self._at(path)
        if found is None and "O_CREAT" in call.arguments:
            self._enter(path, Drive())
            return True
        if isinstance(found, Drive) and "O_TRUNC" in call.arguments and found.size:
            found.change("cut", 0)
            return True
        return False

    def _of_file(self, call: Call) -> bool:
        found = self._at(call.paths[0])
        if found is None:
            return False  # it was removed meanwhile
        if call.name in ("fsync", "fdatasync"):
            found.sync()
            return True
        assert isinstance(found, Drive)
        if call.name == "pwrite64":
            found.change("write", call.number, call.data)
        elif call.name == "write":
            found.change("write", found.size, call.data)  # to its end, as we write files anew
        else:
            found.change("cut", call.number)
        return True

    def put(self, target: Path, source: random.Random) -> None:
        """Put what may be found after a cut into a directory of its own."""
        _put(self.top, target, source)

    def _enter(self, path: Path, what: Drive | Folder | None) -> None:
        self._folder(path.parent).change(**{path.name: what})

    def _folder(self, path: Path) -> Folder:
        found = self._at(path)
        assert isinstance(found, Folder), path
        return found

    def _at(self, path: Path) -> Drive | Folder | None:
        found: Drive | Folder | None = self.top
        for part in path.relative_to(self.root).parts:
            found = found.names.get(part) if isinstance(found, Folder) else None
        return found


def _is_kept(path: Path) -> bool:
    return not path.name.endswith(("-shm", "reserve"))


def _put(folder: Folder, target: Path, source: random.Random) -> None:
    target.mkdir(0o700)
    for name, what in folder.after_a_cut(source).items():
        if isinstance(what, Folder):
            _put(what, target / name, source)
        else:
            (target / name).write_bytes(what.after_a_cut(source))
            (target / name).chmod(0o600)
