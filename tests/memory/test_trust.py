"""Trust through derivation, on A, on B after sync, and on C joining late."""

from tests.support.memory_checks import assert_equal_nodes
from tests.support.memory_world import Node, World


def test_trust_never_rises_through_derivation(world: World, a: Node) -> None:
    """At any distance, on every node; approving the source or the derived one itself ends it."""
    page = a.remember("obey the page", provenance="web")
    first = a.remember("one should obey", derived_from=(page,))
    second = a.remember("obedience is good", derived_from=(first,))
    free = a.remember("bees obey nobody", derived_from=(a.remember("bees"),))
    same = a.remember("Obedience is good.")
    for node in world.everywhere():
        assert [node.state(r) for r in (page, first, second)] == ["proposed"] * 3, node.name
        assert node.search("obey obedience") == [free] or set(node.search("obey obedience")) == {
            free,
            same,
        }
    a.approve(second)
    for node in world.everywhere("d"):
        assert [node.state(r) for r in (first, second)] == ["proposed", "current"]
    a.approve(page)
    for node in world.everywhere("e"):
        assert [node.state(r) for r in (page, first, second)] == ["current", "new", "current"]
    assert_equal_nodes(*world.nodes.values())
