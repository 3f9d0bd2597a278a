"""Near-returns are listed, never refused: forty pairs, and what must not be listed."""

import pytest

from keys.ids import RecordId
from memory.near import NEAR_MAX, Near, near_records
from memory.writing import RetiredError
from tests.support.memory_world import Node, World
from tests.support.near_pairs import OTHERS, RETURNS


def _near(node: Node, text: str, but: RecordId) -> list[Near]:
    return near_records(node.store, text, but=but, kind="observation", now_us=node.now_us)


def _listed(node: Node, pairs: tuple[tuple[str, str], ...]) -> list[bool]:
    """Of each pair, whether the retired text is listed for the new one."""
    out = []
    for old, new in pairs:
        retired = node.remember(old)
        node.retire(retired)
        record = node.remember(new)
        assert node.state(record) == "new"  # nothing is refused
        out.append(Near(retired, "deprecated") in _near(node, new, record))
    return out


def test_near_returns_are_listed_and_other_statements_are_not(a: Node, b: Node) -> None:
    """Of twenty texts that return in other words at least 16 are listed, of twenty others 4."""
    returns, others = _listed(a, RETURNS), _listed(b, OTHERS)
    assert len(returns) == len(others) == 20
    assert sum(returns) >= 16, [p for p, hit in zip(RETURNS, returns, strict=True) if not hit]
    assert sum(others) <= 4, [p for p, hit in zip(OTHERS, others, strict=True) if hit]


def test_a_near_text_names_states_and_at_most_three(world: World, a: Node) -> None:
    """Retired and replaced ones come first; what is erased or waits is never named."""
    text = "the blue kettle stands on the kitchen shelf"
    records = [a.remember(f"{text}{end}") for end in ("", " there", " today", " still", " indeed")]
    a.retire(records[0])
    successor = a.revise(records[1], "there is a red pan")
    a.forget(records[2])
    waiting = a.remember(f"{text}, says the page", provenance="web")
    assert a.state(waiting) == "proposed"
    found = _near(a, f"{text} again", successor)
    assert len(found) == NEAR_MAX
    assert {n.record for n in found[:2]} == {records[0], records[1]}
    assert [n.state for n in found[2:]] == ["new"]
    assert {n.record for n in found} <= {*records, successor} - {records[2]}
    for node in world.everywhere():
        assert _near(node, f"{text} again", successor) == found


def test_the_very_value_is_still_refused(a: Node) -> None:
    """The positive control of "never refused": the fingerprint decides."""
    old = a.remember("the kettle is blue")
    a.retire(old)
    with pytest.raises(RetiredError):
        a.remember("The kettle is blue")
    assert a.state(a.remember("the kettle is very blue")) == "new"
