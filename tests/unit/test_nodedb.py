"""The node's own database: peers, addresses, agents, settings, pairing codes."""

import contextlib
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from keys.errors import NotFoundError, RefusedError, StoreError
from keys.ids import AgentId, DeviceId, OwnerId
from keys.limits import ADDRESSES_MAX, PAIR_CODES_PER_WINDOW, PAIR_WINDOW_S, PEERS_MAX
from memory.nodedb import SETTING_BYTES_MAX, NodeDb, NodeDbDoor, open_node_db
from memory.peers import NewPeer, Source

NOW = 1_700_000_000_000_000
MINUTE = 60_000_000


def device(number: int) -> DeviceId:
    return DeviceId(number.to_bytes(32, "big"))


def new_peer(number: int, name: str = "laptop") -> NewPeer:
    return NewPeer(device(number), name, b"certificate %d" % number)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[NodeDb]:
    with open_node_db(tmp_path / "node.db") as opened:
        yield opened


def test_a_peer_comes_back_as_it_was_entered(db: NodeDb) -> None:
    """Nothing is known of a peer but what pairing brought."""
    owner = OwnerId(bytes([7]) * 32)
    db.peers.add(NewPeer(device(1), "desk", b"der", owner, b"r" * 32), NOW)
    (peer,) = db.peers.all()
    assert (peer.device, peer.name, peer.certificate) == (device(1), "desk", b"der")
    assert (peer.owner, peer.recovery, peer.added_us) == (owner, b"r" * 32, NOW)
    assert (peer.last_seen_us, peer.clock_offset_ms, peer.removed_us) == (None, None, None)
    assert peer.addresses == ()


def test_a_peer_is_found_by_label_name_id_and_prefix(db: NodeDb) -> None:
    """What a person may type for a device finds it."""
    peer = db.peers.add(new_peer(2**255 + 77, "desk"), NOW)
    db.peers.set_label(peer.device, "the big one")
    for text in ("desk", "the big one", str(peer.device), str(peer.device)[:10].upper()):
        assert [p.device for p in db.peers.find(text)] == [peer.device]
    assert db.peers.find("") == db.peers.find("x") == []


def test_two_peers_of_one_name_are_both_found(db: NodeDb) -> None:
    """Equal names are no error; whoever asks sees both (S-C11)."""
    db.peers.add(new_peer(1, "raspberrypi"), NOW)
    db.peers.add(new_peer(2, "raspberrypi"), NOW + 1)
    assert [p.device for p in db.peers.find("raspberrypi")] == [device(1), device(2)]


def test_pairing_again_renews_and_keeps_the_label(db: NodeDb) -> None:
    """A peer that was removed and is paired again is the same peer."""
    db.peers.add(new_peer(1), NOW)
    db.peers.set_label(device(1), "mine")
    db.peers.remove(device(1), NOW + 1)
    assert db.peers.all() == []
    assert [p.told for p in db.peers.removed()] == [False]
    db.peers.told_removed(device(1))
    assert [p.told for p in db.peers.removed()] == [True]

    again = db.peers.add(NewPeer(device(1), "renamed", b"other"), NOW + 2)
    assert (again.name, again.label, again.certificate) == ("renamed", "mine", b"other")
    assert (again.removed_us, again.told) == (None, False)


def test_S_D5_a_peer_is_entered_together_with_its_addresses(db: NodeDb) -> None:
    """What it tells anew replaces what it told; where it tells nothing, that stays."""
    first = db.peers.add(new_peer(1), NOW, ["a:7667", "b:7667"])
    assert {a.address for a in first.addresses} == {"a:7667", "b:7667"}
    again = db.peers.add(new_peer(1), NOW + 1, ["c:7667"])
    assert {a.address for a in again.addresses} == {"c:7667"}
    assert db.peers.add(new_peer(1), NOW + 2).addresses == again.addresses


def test_what_is_no_peer_is_not_changed(db: NodeDb) -> None:
    """A removed or unknown device is named as such."""
    db.peers.add(new_peer(1), NOW)
    db.peers.remove(device(1), NOW)
    for number in (1, 2):
        with pytest.raises(NotFoundError):
            db.peers.remove(device(number), NOW)
        with pytest.raises(NotFoundError):
            db.peers.set_label(device(number), "x")


def test_X_12_there_is_no_peer_beyond_the_bound(db: NodeDb) -> None:
    """The table takes PEERS_MAX peers; renewing one of them still works."""
    for number in range(PEERS_MAX):
        db.peers.add(new_peer(number), NOW)
    with pytest.raises(RefusedError):
        db.peers.add(new_peer(PEERS_MAX), NOW)
    db.peers.add(new_peer(0), NOW)
    db.peers.remove(device(0), NOW)
    db.peers.add(new_peer(PEERS_MAX), NOW)
    assert len(db.peers.all()) == PEERS_MAX


def test_an_advert_that_ends_takes_only_its_own_addresses(db: NodeDb) -> None:
    """What a person typed stays whatever mDNS says (X-11)."""
    db.peers.add(new_peer(1), NOW)
    db.peers.add_addresses(device(1), Source.TYPED, ["a:7667"], NOW)
    db.peers.replace_addresses(device(1), Source.MDNS, ["a:7667", "b:7667"], NOW)
    db.peers.replace_addresses(device(1), Source.MDNS, ["c:7667"], NOW + 1)
    peer = db.peers.get(device(1))
    assert peer is not None
    found = {(a.address, a.source) for a in peer.addresses}
    assert found == {("a:7667", Source.TYPED), ("c:7667", Source.MDNS)}


def test_an_address_that_answered_comes_first(db: NodeDb) -> None:
    """The last success decides the order in which a peer is dialled."""
    db.peers.add(new_peer(1), NOW)
    db.peers.add_addresses(device(1), Source.TYPED, ["a:1", "b:1"], NOW)
    db.peers.seen(device(1), "b:1", 250, NOW + 5)
    peer = db.peers.get(device(1))
    assert peer is not None
    assert peer.addresses[0].address == "b:1"
    assert (peer.last_seen_us, peer.clock_offset_ms) == (NOW + 5, 250)
    db.peers.seen(device(1), None, None, NOW + 6)
    peer = db.peers.get(device(1))
    assert peer is not None
    assert (peer.last_seen_us, peer.clock_offset_ms) == (NOW + 6, 250)


def test_addresses_are_bounded_and_the_best_stay(db: NodeDb) -> None:
    """Adverts crowd out neither a typed address nor one that worked."""
    db.peers.add(new_peer(1), NOW)
    db.peers.add_addresses(device(1), Source.TYPED, ["typed:1"], NOW)
    db.peers.seen(device(1), "worked:1", None, NOW)
    for round_ in range(5):
        flood = [f"h{round_}-{i}:1" for i in range(100)]
        db.peers.add_addresses(device(1), Source.MDNS, flood, NOW + round_)
    peer = db.peers.get(device(1))
    assert peer is not None
    found = {a.address for a in peer.addresses}
    assert len(found) == ADDRESSES_MAX
    assert {"typed:1", "worked:1"} <= found


def test_a_stranger_gets_no_address_row(db: NodeDb) -> None:
    """Addresses of a device that was never paired are not kept."""
    db.peers.add_addresses(device(9), Source.MDNS, ["a:1"], NOW)
    db.peers.seen(device(9), "a:1", None, NOW)
    assert db.peers.get(device(9)) is None
    db.peers.add(new_peer(9), NOW)
    peer = db.peers.get(device(9))
    assert peer is not None
    assert peer.addresses == ()


def test_the_sixth_code_in_ten_minutes_waits(db: NodeDb) -> None:
    """Five codes may be shown in a window; the wait is told in whole seconds."""
    for minute in range(PAIR_CODES_PER_WINDOW):
        assert db.count_code(NOW + minute * MINUTE) == 0
    late = NOW + 5 * MINUTE
    assert db.count_code(late) == PAIR_WINDOW_S - 5 * 60
    assert db.count_code(NOW + PAIR_WINDOW_S * 1_000_000 - 1) == 1
    assert db.count_code(NOW + PAIR_WINDOW_S * 1_000_000) == 0


def test_setting_the_clock_does_not_reset_or_extend_the_window(db: NodeDb) -> None:
    """Codes shown in the future count as shown now, and pass like others."""
    for _ in range(PAIR_CODES_PER_WINDOW):
        assert db.count_code(NOW) == 0
    back = NOW - 1000 * MINUTE
    assert db.count_code(back) == PAIR_WINDOW_S
    assert db.count_code(back + PAIR_WINDOW_S * 1_000_000) == 0


def test_codes_are_counted_across_restarts(tmp_path: Path) -> None:
    """Restarting the node grants no further guesses."""
    for _ in range(PAIR_CODES_PER_WINDOW):
        with open_node_db(tmp_path / "node.db") as db:
            assert db.count_code(NOW) == 0
    with open_node_db(tmp_path / "node.db") as db:
        assert db.count_code(NOW) > 0


def test_an_agent_that_was_left_stays_left_until_it_is_accepted(db: NodeDb) -> None:
    """Nothing but a person's accepting brings a left agent back."""
    agent = AgentId(bytes([5]) * 32)
    db.set_agent(agent, accepted=True, now_us=NOW)
    db.name_agent(agent, "muse")
    db.leave_agent(agent, NOW + 1)
    db.set_agent(agent, accepted=False, now_us=NOW + 2)
    (known,) = db.agents()
    assert (known.name, known.accepted, known.left_us) == ("muse", False, NOW + 1)
    db.set_agent(agent, accepted=True, now_us=NOW + 3)
    (known,) = db.agents()
    assert (known.accepted, known.left_us, known.added_us) == (True, None, NOW)
    with pytest.raises(NotFoundError):
        db.leave_agent(AgentId(bytes(32)), NOW)


def test_settings_are_set_together_and_removed_by_none(db: NodeDb) -> None:
    """A setting is what it was last set to."""
    db.set_settings(name="desk", port="7667")
    db.set_settings(port=None, long="x" * SETTING_BYTES_MAX)
    assert (db.setting("name"), db.setting("port")) == ("desk", None)
    with pytest.raises(AssertionError):
        db.set_settings(name="other", long="x" * (SETTING_BYTES_MAX + 1))
    assert db.setting("name") == "desk"


def test_the_file_is_closed_to_others(tmp_path: Path) -> None:
    """node.db and what SQLite puts beside it are readable by the account alone."""
    with open_node_db(tmp_path / "node.db") as db:
        db.set_settings(name="desk")
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 3
    assert set(modes.values()) == {0o600}


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A file that a later version made."""
    path = tmp_path / "node.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=99")
    return path


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A file that holds something else."""
    path = tmp_path / "node.db"
    path.write_bytes(b"not a database" * 1000)
    return path


async def test_a_newer_schema_is_not_touched(newer: Path) -> None:
    """An older version says what it found, and leaves no thread behind."""
    with pytest.raises(StoreError, match="schema 99"):
        await NodeDbDoor.open(newer)


async def test_a_file_that_is_no_database_is_named(damaged: Path) -> None:
    """Damage is an error with a hint, not a traceback."""
    with pytest.raises(StoreError, match=r"node\.db"):
        await NodeDbDoor.open(damaged)


async def test_the_door_runs_work_and_passes_errors_on(tmp_path: Path) -> None:
    """One hop per piece of work, whatever it raises."""
    door = await NodeDbDoor.open(tmp_path / "node.db")
    try:
        await door.run(lambda db: db.set_settings(name="desk"))
        assert await door.run(lambda db: db.setting("name")) == "desk"
        with pytest.raises(NotFoundError):
            await door.run(lambda db: db.peers.remove(device(1), NOW))
    finally:
        await door.close()
