"""The agents of this node: one file, one door and one author each.

A damaged file is set aside and made anew of what can be read (S-G1), whenever it is noticed; the
others are not touched. Where that fails the agent is ``broken``, and the rest is served.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Container, Iterable
from pathlib import Path
from typing import TypeVar

from crdt.fingerprint import FingerprintKey
from keys.errors import (
    AmbiguousError,
    BadInput,
    DamageError,
    NotFoundError,
    RefusedError,
    StoreError,
    UsageError,
)
from keys.ids import AgentId, prefix_range
from keys.keyfile import (
    create_secret,
    read_secret,
    remove_secret,
    replace_secret,
    secure_directory,
)
from keys.limits import KEY_BYTES
from keys.signing import DeviceKey
from keys.statements import Statement
from memory.audit import note_unclean
from memory.authoring import Author
from memory.door import AioDoor, make_file
from memory.faults import opened
from memory.salvage import rebuild_agent
from memory.shapes import folded_name
from memory.store import AgentStore
from node.aside import Aside, all_aside, set_aside, take_along
from node.changes import Changes
from node.clock import Clock
from node.handle import AgentHandle, Place
from node.home import Home
from node.marker import DoubtKind, Marker
from node.room import Room

T = TypeVar("T")
KEYS_PER_AGENT_MAX = 64
ASIDE_MAX = 4  # of one agent: after that it is the disk, or a fault of ours


class Agents:
    """All agents of one home, opened when they are first needed."""

    def __init__(self, home: Home, key: DeviceKey, marker: Marker, clock: Clock) -> None:
        self.room = Room(home)
        self.changes = Changes()
        self._home, self._key, self._marker = home, key, marker
        self._at = Place(home, clock, self.room)
        self._handles: dict[AgentId, AgentHandle] = {}
        self._lock = asyncio.Lock()
        self.broken: dict[AgentId, StoreError] = {}
        self.stopped: RefusedError | None = None
        self.changed: Callable[[AgentHandle], None] | None = None
        self.kept: Callable[[AgentHandle], None] | None = None  # the same, for the keeper
        self.on_end: Callable[[AgentId], Awaitable[None]] | None = None
        self.on_aside: Callable[[AgentId, Aside], None] | None = None

    def stop_writing(self, why: RefusedError | None) -> None:
        """Refuse every local write with ``why`` from now on (S-A7)."""
        self.stopped = why
        for handle in self._handles.values():
            handle.author.stopped = why

    async def open_all(self) -> list[AgentHandle]:
        """Open every agent's file of this home, but for the broken ones; sorted by name."""
        for name in await asyncio.to_thread(self._files):
            try:
                agent = AgentId.parse(name)
            except UsageError:
                continue  # not a file of ours
            if agent not in self._handles:
                with contextlib.suppress(StoreError):
                    await self.open(agent)
        return self.all()

    async def drop_unfounded(self, known: Container[AgentId]) -> None:
        """Take away what is left of agents whose making was cut off before its first commit.

        Such a file holds no statement and no entry, nothing was set aside of it, and the agent is
        not among the ``known`` of ``node.db``, where it is entered last.
        """
        for handle in self.all():
            path = self.path_of(handle.agent)
            if handle.agent in known or not await handle.read(_is_empty):
                continue
            if await asyncio.to_thread(all_aside, path.parent, path.name):
                continue
            del self._handles[handle.agent]
            await handle.door.close()
            await asyncio.to_thread(path.unlink)
            await asyncio.to_thread(remove_secret, self._key_path(handle.agent))

    def _files(self) -> list[str]:
        """The names of the agents whose file is here, or was set aside."""
        folder = self._home.agents_dir
        aside = {Path(a.name).stem for a in all_aside(folder)}
        return sorted({path.stem for path in folder.glob("*.db")} | aside)

    async def living(self) -> list[AgentHandle]:
        """Every agent of this home that was not forgotten; the others only still tell peers so."""
        return [h for h in await self.open_all() if not h.ended]

    async def resolve_any(self, text: str) -> AgentHandle:
        """As ``resolve``, and a forgotten agent by its id."""
        ended = self._by_id([h for h in await self.open_all() if h.ended], text)
        return ended[0] if len(ended) == 1 else await self.resolve(text)

    def all(self) -> list[AgentHandle]:
        """The open agents, by name and id."""
        return sorted(self._handles.values(), key=lambda h: (h.name, h.agent))

    def get(self, agent: AgentId) -> AgentHandle | None:
        """An open agent by its id."""
        return self._handles.get(agent)

    async def open(self, agent: AgentId) -> AgentHandle:
        """The handle of an agent whose file is here; opens it, and mends it where it is damaged.

        Raises ``StoreError``; the agent is then ``broken``.
        """
        async with self._lock:
            if agent in self._handles:
                return self._handles[agent]
            try:
                await self._finish_mending(agent)
                try:
                    handle = await self._open(agent)
                    await self._check_not_empty(handle)
                except DamageError:
                    await self._mend(agent, "unreadable")
                    handle = await self._open(agent)
            except StoreError as exc:
                self.broken[agent] = exc
                raise
            self.broken.pop(agent, None)
            self._handles[agent] = handle
        with contextlib.suppress(StoreError):  # no room, or read-only: a write tries again
            await handle.clean()  # what a process erased that was killed before it could clean
        return self._handles.get(agent, handle)

    def _tell(self, handle: AgentHandle) -> None:
        self.changes.note(handle.agent)
        for listener in (self.changed, self.kept):
            if listener is not None:
                listener(handle)

    async def _open(self, agent: AgentId) -> AgentHandle:
        path = self.path_of(agent)
        await asyncio.to_thread(make_file, path)
        unclean = await asyncio.to_thread(_was_left_open, path)
        door, connection = await AioDoor.open(path)

        def prepare() -> AgentHandle:
            store = AgentStore(connection, agent, self.load_keys(agent), self._key.device)
            author = Author(store, self._key)
            author.stopped = self.stopped
            author.on_opening = lambda fresh: self._marker.opening(agent, fresh)
            handle = AgentHandle(door, store, author, self._marker, self._at)
            handle.check_continuity()
            if unclean:
                note_unclean(store, unclean=True)
            return handle

        try:
            handle = await door.run(lambda: opened(path, prepare))
        except BaseException:
            await door.close()
            raise
        handle.changed = self._tell
        handle.damaged = self._damaged
        handle.on_end = self._end
        return handle

    async def _check_not_empty(self, handle: AgentHandle) -> None:
        """A file that we wrote to and that holds nothing was cut off, however well it opens."""
        if handle.store.authority.founding is None and self._marker.knows(handle.agent):
            path = self.path_of(handle.agent)
            if not await asyncio.to_thread(all_aside, path.parent, path.name):
                await handle.door.close()
                raise DamageError(f"{path.name} is empty", hint="roost doctor tells more")

    # -- damage ----------------------------------------------------------------------------------

    async def _damaged(self, handle: AgentHandle, _exc: DamageError) -> None:
        await self.replace(handle, "unreadable")

    async def replace(self, handle: AgentHandle, reason: str) -> AgentHandle | None:
        """Set a damaged file aside and put a new one in its place; None when that fails.

        Who still has the old handle gets ``StoreError``. ``reason`` is one word.
        """
        agent = handle.agent
        async with self._lock:
            if self._handles.get(agent) is not handle:
                return self._handles.get(agent)
            del self._handles[agent]
            try:
                await handle.door.close()
                await self._mend(agent, reason)
                fresh = self._handles[agent] = await self._open(agent)
            except StoreError as exc:
                self.broken[agent] = exc
                return None
            if self.changed is not None:
                self.changed(fresh)
            return fresh

    async def _finish_mending(self, agent: AgentId) -> None:
        """A start in between left the file aside and none in its place."""
        path = self.path_of(agent)
        found = await asyncio.to_thread(all_aside, path.parent, path.name)
        if found and not await asyncio.to_thread(path.exists):
            await asyncio.to_thread(take_along, path, found[-1].path)
            await self._rebuild(agent, found[-1])

    async def _mend(self, agent: AgentId, reason: str) -> None:
        now_us = self._at.clock.now_us()
        path = self.path_of(agent)
        if len(await asyncio.to_thread(all_aside, path.parent, path.name)) >= ASIDE_MAX:
            raise DamageError(
                f"the file of {agent.short()} is damaged, and was {ASIDE_MAX} times before",
                hint=f"check the disk; remove the files {path.name}.damaged-… to have it mended",
            )
        try:
            aside = await asyncio.to_thread(set_aside, path, reason, now_us)
        except OSError as exc:
            raise DamageError(
                f"the file of {agent.short()} is damaged and cannot be set aside: {exc.strerror}",
                hint="check the disk of the home",
            ) from exc
        if self.on_aside is not None:
            self.on_aside(agent, aside)
        await self._rebuild(agent, aside)

    async def _rebuild(self, agent: AgentId, aside: Aside) -> None:
        def work() -> None:
            done = rebuild_agent(
                aside.path,
                self.path_of(agent),
                agent,
                self.load_keys(agent),
                self._key.device,
                self._at.clock.now_us(),
            )
            aside.write_report(done.as_dict())
            self._marker.renew(agent, DoubtKind.DAMAGED)

        await asyncio.to_thread(work)

    async def create(
        self, agent: AgentId, statements: Iterable[Statement], keys: Iterable[FingerprintKey]
    ) -> AgentHandle:
        """Make an agent's file from its statements (a founding, or one shared with us)."""
        await asyncio.to_thread(secure_directory, self._home.agents_dir)
        await asyncio.to_thread(self.save_keys, agent, list(keys))
        handle = await self.open(agent)
        found = list(statements)
        await handle.receive(lambda store, now_us: store.add_statements(found, now_us))
        return handle

    async def resolve(self, text: str) -> AgentHandle:
        """The agent that a name, an id, an unambiguous prefix or ``-`` (the only one) names."""
        everybody = await self.living()
        if text == "-":
            found = everybody
        else:
            found = _by_name(everybody, text) or self._by_id(everybody, text)
        if not found:
            self._raise_broken(text)
            raise NotFoundError(
                "there is no such agent here" if text != "-" else "there is no agent here yet",
                hint="roost agent list, or make one: roost agent create NAME",
            )
        if len(found) > 1:
            raise AmbiguousError(
                "more than one agent fits", candidates=[f"{h.name} {h.agent}" for h in found]
            )
        return found[0]

    def _raise_broken(self, text: str) -> None:
        """Raise why the agent that ``text`` may name cannot be opened."""
        for agent, exc in self.broken.items():
            if text == "-" or str(agent).startswith(text.strip().lower()):
                raise exc
        if self.broken:
            raise next(iter(self.broken.values()))

    @staticmethod
    def _by_id(handles: list[AgentHandle], text: str) -> list[AgentHandle]:
        try:
            if len(text.strip()) == AgentId.text_length():
                low = high = bytes(AgentId.parse(text))
            else:
                low, high = prefix_range(AgentId, text)
        except UsageError:
            return []
        return [h for h in handles if low <= h.agent <= high]

    def path_of(self, agent: AgentId) -> Path:
        """The file of an agent."""
        return self._at.path_of(agent)

    # -- fingerprint keys ------------------------------------------------------------------------

    def _key_path(self, agent: AgentId) -> Path:
        return self._home.keys_dir / f"{agent}.values"

    def load_keys(self, agent: AgentId) -> list[FingerprintKey]:
        """The fingerprint keys of an agent; none when they have not arrived (R25)."""
        path = self._key_path(agent)
        if not path.exists():
            return []
        data = read_secret(path, KEY_BYTES * KEYS_PER_AGENT_MAX)
        return [FingerprintKey(data[i : i + KEY_BYTES]) for i in range(0, len(data), KEY_BYTES)]

    def save_keys(self, agent: AgentId, keys: Iterable[FingerprintKey]) -> None:
        """Add fingerprint keys of an agent; known ones stay."""
        held = self.load_keys(agent)
        fresh = [k for k in dict.fromkeys(keys) if k not in held]
        if not fresh:
            return
        if len(held) + len(fresh) > KEYS_PER_AGENT_MAX:
            raise BadInput(f"an agent has at most {KEYS_PER_AGENT_MAX} fingerprint keys")
        data = b"".join(k.secret for k in [*held, *fresh])
        write = replace_secret if held else create_secret
        write(self._key_path(agent), data)

    async def _end(self, handle: AgentHandle) -> None:
        if self.on_end is not None:
            await self.on_end(handle.agent)

    def drop_keys(self, agent: AgentId) -> None:
        """Delete the fingerprint keys of an agent that was forgotten."""
        self._key_path(agent).unlink(missing_ok=True)

    async def close(self) -> None:
        """Close every file."""
        for handle in self._handles.values():
            await handle.door.close()
        self._handles.clear()


def _is_empty(store: AgentStore) -> bool:
    """Whether nothing was ever committed to a file but its tables."""
    return not store.statements() and not store.logs.rows()


def _by_name(handles: list[AgentHandle], text: str) -> list[AgentHandle]:
    """Who is called so exactly; else, as names are compared (M-C10)."""
    exact = [h for h in handles if h.name == text]
    return exact or [h for h in handles if folded_name(h.name) == folded_name(text)]


def _was_left_open(path: Path) -> bool:
    """Whether a process ended without closing the file: SQLite takes its log away when it does."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False
