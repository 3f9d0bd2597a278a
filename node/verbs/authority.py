"""Verbs of authority: found an agent, grant, revoke, lift. Each is a statement by the owner."""

from __future__ import annotations

import asyncio
from typing import Any

from crdt.fingerprint import FingerprintKey
from keys.errors import RefusedError, UsageError
from keys.ids import DeviceId, EntryHash, OwnerId, RecordId, StatementId
from keys.limits import CUTS_MAX, KEEPS_MAX, KEY_BYTES
from keys.signing import random_bytes, seal
from keys.statements import NONCE_BYTES, RIGHTS, agent_of
from memory.audit import count_records
from memory.cutting import cuts_of, statements_before, tombstones_past
from memory.lifting import LiftTarget, lift_targets, lift_targets_of, note_lift
from memory.notes import check_reason
from memory.shapes import folded_name
from memory.store import AgentStore
from memory.writing import NotLiveError
from node.core import NodeCore
from node.handle import AgentHandle
from node.params import Params
from node.times import iso_ms
from node.verbs.subjects import (
    check_name,
    device_of,
    rights_of,
    subject_of,
    subject_text,
)
from node.verbs.targets import record_in

Result = dict[str, Any]


async def create(core: NodeCore, params: Params) -> Result:
    """Found an agent: a new id, whatever agents had its name before (S-H7)."""
    name, passphrase = check_name(params.text("name")), params.optional_text("passphrase") or ""
    params.done()
    if any(folded_name(h.name) == folded_name(name) for h in await core.agents.living()):
        raise RefusedError(f"there is an agent called {name!r} already", hint="choose another name")
    key = await core.ownership.unlock(passphrase)
    certificates = await core.ownership.certify_own(key)
    values = FingerprintKey(random_bytes(KEY_BYTES))
    found = core.ownership.statement(
        key,
        "found",
        {
            "owner": key.public,
            "name": name,
            "nonce": random_bytes(NONCE_BYTES),
            "recovery": await core.ownership.recovery(),
            "key": values.commitment,
        },
        agent=b"",
        after=[],
    )
    handle = await core.agents.create(agent_of(found), [found, *certificates], [values])
    await core.accept(handle.agent)
    return {"agent": str(handle.agent), "name": name}


async def list_agents(core: NodeCore, params: Params) -> Result:
    """The agents here, and those offered by peers that nobody accepted yet."""
    params.done()
    out = [await _agent_row(core, handle) for handle in await core.agents.living()]
    out += [
        {"agent": str(known.agent), "name": known.name, "accepted": False}
        for known in await core.db.run(lambda db: db.agents())
        if core.agents.get(known.agent) is None and known.left_us is None
    ]
    return {"agents": out}


async def show_agent(core: NodeCore, params: Params) -> Result:
    """One agent."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()
    permissions_of = await handle.read(_permissions)
    return await _agent_row(core, handle) | {"permissions": permissions_of}


async def _agent_row(core: NodeCore, handle: AgentHandle) -> Result:
    def read(store: AgentStore) -> Result:
        authority = store.authority
        device = core.device
        return {
            "agent": str(store.agent),
            "name": handle.name,
            "accepted": True,
            "owner": str(OwnerId(authority.founder)) if authority.founder else None,
            "rights": [r for r in RIGHTS if authority.holds_device(device, r).held],
            "records": count_records(store),
            "digest": store.digest_text(),
        }

    return await handle.read(read)


async def grant(core: NodeCore, params: Params) -> Result:
    """Give a device or an owner rights."""
    handle = await core.agents.resolve(params.text("agent"))
    rights = rights_of(params.texts("rights"))
    wanted, passphrase = params.text("subject"), params.optional_text("passphrase") or ""
    params.done()
    kind, subject, recovery = await subject_of(core, handle, wanted)
    key = await core.ownership.unlock(passphrase)
    secrets = await handle.read(lambda store: [k.secret for k in store.keys])
    sealed = [[subject, seal(subject, s)] for s in secrets][:16] if kind == "device" else []
    if kind == "owner":
        certificates = await core.ownership.certificates(OwnerId(subject))
        await handle.write(lambda store, _a, now: store.add_statements(certificates, now))
    made = await core.ownership.act(
        handle,
        key,
        "grant",
        {
            "subject_kind": kind,
            "subject": subject,
            "rights": rights,
            "recovery": recovery,
            "sealed": sealed,
            "until_ms": 0,
        },
    )
    return {"statement": str(made.id), "subject": subject_text(kind, subject), "rights": rights}


async def revoke(core: NodeCore, params: Params) -> Result:
    """Take all rights from a device or an owner; its entries so far stay, later ones do not."""
    handle = await core.agents.resolve(params.text("agent"))
    wanted, passphrase = params.text("subject"), params.optional_text("passphrase") or ""
    since_us = params.time("since")
    params.done()
    kind, subject, _ = await subject_of(core, handle, wanted)
    founder = await handle.read(lambda store: store.authority.founder)
    if subject == founder:
        raise RefusedError("the founding owner cannot be removed from an agent")
    every = founder in await core.ownership.identities()  # ``read`` takes all but ``admin`` along
    key = await core.ownership.unlock(passphrase)
    values = FingerprintKey(random_bytes(KEY_BYTES))
    await asyncio.to_thread(core.agents.save_keys, handle.agent, [values])
    await handle.door.run(lambda: handle.store.keys.append(values))

    def kept(store: AgentStore) -> dict[str, Any]:
        devices = [subject] if kind == "device" else store.authority.certified(subject)
        signed = statements_before(store, subject, since_us) if kind == "owner" else []
        if len(signed) > KEEPS_MAX:
            raise UsageError(f"a revocation keeps at most {KEEPS_MAX} statements")
        return {
            "cuts": cuts_of(store, devices, since_us)[:CUTS_MAX],
            "keep": tombstones_past(store, devices, since_us)[:CUTS_MAX],
            "keeps": signed,
        }

    body = await handle.read(kept)
    made = await core.ownership.act(
        handle,
        key,
        "revoke",
        body
        | {
            "subject_kind": kind,
            "subject": subject,
            "rights": list(RIGHTS) if every else ["read"],
            "replaces": [],
            "key": values.commitment,
        },
    )
    return {
        "statement": str(made.id),
        "subject": subject_text(kind, subject),
        "kept_tombstones": [str(EntryHash(h)) for h in body["keep"]],
    }


async def revoke_device(core: NodeCore, params: Params) -> Result:
    """A lost device: end its certificate, with a cut for every agent of the owner held here."""
    wanted, passphrase = params.text("device"), params.optional_text("passphrase") or ""
    since_us = params.time("since")
    params.done()
    owner = await core.ownership.owner()
    device = await device_of(core, wanted)
    if device == core.device:
        raise RefusedError("this is the device you are using", hint="do it from another device")
    key = await core.ownership.unlock(passphrase)
    rows: list[list[object]] = []
    identities = await core.ownership.identities()
    mine = [h for h in await core.agents.open_all() if h.store.authority.founder in identities]
    for handle in mine:
        found = await handle.read(lambda store: cuts_of(store, [device], since_us))
        rows += [[handle.agent, inc, seq, entry] for _, inc, seq, entry in found]
    held = await core.ownership.certificates(owner)
    covered = {before for s in held for before in s.after}
    made = core.ownership.statement(
        key,
        "decertify",
        {"owner": owner, "device": device, "cuts": rows[:CUTS_MAX]},
        agent=b"",
        after=[bytes(s.id) for s in held if s.id not in covered],
    )
    await core.db.run(lambda db: db.owner_statements.add([made]))
    for handle in await core.agents.open_all():
        await handle.write(lambda store, _a, now_us: store.add_statements([*held, made], now_us))
    return {
        "statement": str(made.id),
        "device": str(device),
        "agents": [str(h.agent) for h in mine],
        "note": "agents of this owner that are not on this device are cut at their start",
    }


async def permissions(core: NodeCore, params: Params) -> Result:
    """Who may do what with an agent."""
    handle = await core.agents.resolve(params.text("agent"))
    params.done()
    rows = await handle.read(_permissions)
    peers = {p.device: p for p in await core.db.run(lambda db: db.peers.all())}
    for row in rows:
        peer = peers.get(DeviceId.parse(row["subject"])) if row["kind"] == "device" else None
        if peer is not None:
            row["name"] = peer.shown_name
    return {"permissions": rows}


def _permissions(store: AgentStore) -> list[Result]:
    authority = store.authority
    if authority.founding is None:
        return []
    rows = [
        _row(
            "owner",
            authority.founder,
            list(RIGHTS),
            authority.founding.id,
            None,
            authority.times[authority.founding.id],
            None,
        )
    ]
    subjects = {(s.body["subject_kind"], s.body["subject"]): s for s in authority.valid("grant")}
    removed = {(s.body["subject_kind"], s.body["subject"]): s for s in authority.valid("revoke")}
    for kind, subject in sorted(subjects.keys() | removed.keys()):
        holds = (
            authority.holds_owner
            if kind == "owner"
            else (lambda who, right: authority.holds_device(who, right).held)
        )
        rights = [r for r in RIGHTS if holds(subject, r)]
        given, taken = subjects.get((kind, subject)), removed.get((kind, subject))
        since = authority.times[given.id] if given else authority.times[taken.id]  # type: ignore[union-attr]
        rows.append(
            _row(
                kind,
                subject,
                rights,
                given.id if given else None,
                None,
                since,
                authority.times[taken.id] if taken and not rights else None,
            )
        )
    names = {s.body["device"]: s.body["name"] for s in authority.valid("certify")}
    listed = {row["subject"] for row in rows}
    for certified in authority.valid("certify"):
        device = DeviceId(certified.body["device"])
        rights = [r for r in RIGHTS if authority.holds_device(device, r).held]
        if str(device) not in listed:
            listed.add(str(device))
            rows.append(
                _row(
                    "device",
                    device,
                    rights,
                    certified.id,
                    names[device],
                    authority.times[certified.id],
                    None if rights else 0,
                )
            )
    return rows


def _row(  # noqa: PLR0913 - the columns of a table
    kind: str,
    subject: bytes,
    rights: list[str],
    statement: StatementId | None,
    name: str | None,
    since_ms: int,
    revoked_ms: int | None,
) -> Result:
    return {
        "subject": subject_text(kind, subject),
        "kind": kind,
        "name": name,
        "rights": rights,
        "since": iso_ms(since_ms),
        "statement": str(statement) if statement else None,
        "revoked": iso_ms(revoked_ms) if revoked_ms else (revoked_ms == 0 or None),
    }


async def lift(core: NodeCore, params: Params) -> Result:
    """Let a value return: ends the facts or tombstones that refuse it (R11, R27)."""
    return await lift_record(core, *await _lift_params(core, params))


async def reinstate(core: NodeCore, params: Params) -> Result:
    """Take a retired record back. An erased one is dead, only its value may return (R31, R35)."""
    handle, wanted, passphrase, reason = await _lift_params(core, params)
    await handle.read(lambda store: _check_not_erased(store, record_in(store, wanted)))
    return await lift_record(core, handle, wanted, passphrase, reason)


async def _lift_params(core: NodeCore, params: Params) -> tuple[AgentHandle, str, str, str]:
    handle = await core.agents.resolve(params.text("agent"))
    wanted, passphrase = params.text("record"), params.optional_text("passphrase") or ""
    reason = check_reason(params.text("reason"))
    params.done()
    return handle, wanted, passphrase, reason


def _check_not_erased(store: AgentStore, record: RecordId) -> None:
    if store.folder.tables.is_erased(record):
        raise NotLiveError(
            "the record is erased and does not come back",
            hint=f"its value may be written again after: roost lift AGENT {record} --reason …",
            record=str(record),
        )


async def lift_record(
    core: NodeCore, handle: AgentHandle, wanted: str, passphrase: str, reason: str
) -> Result:
    """Sign the lifts that a record needs, and keep the reason on the record."""
    targets = await handle.read(lambda store: lift_targets(store, record_in(store, wanted)))
    if not targets:
        raise UsageError("nothing withholds this record", hint="roost show AGENT RECORD")
    await _sign_lifts(core, handle, targets, passphrase)
    record, state = await handle.write(
        lambda store, author, now_us: note_lift(
            store, author, record_in(store, wanted), reason, now_us
        )
    )
    return {
        "record": str(record),
        "state": state,
        "lifted": sum(len(t.facts) + len(t.tombstones) for t in targets),
    }


async def lift_value(core: NodeCore, handle: AgentHandle, text: str, passphrase: str) -> None:
    """Let a text be written again (``remember --lift``); nothing to lift is no error."""
    targets = await handle.read(lambda store: lift_targets_of(store, text))
    if targets:
        await _sign_lifts(core, handle, targets, passphrase)


async def _sign_lifts(
    core: NodeCore, handle: AgentHandle, targets: list[LiftTarget], passphrase: str
) -> None:
    key = await core.ownership.unlock(passphrase)
    for target in targets:
        await core.ownership.act(
            handle,
            key,
            "lift",
            {
                "record": target.record,
                "facts": [[e, k] for e, k in target.facts],
                "tombstones": list(target.tombstones),
            },
        )
