"""Which parts a node consists of: the only place that puts them together."""

from __future__ import annotations

import socket
from functools import cache
from typing import TYPE_CHECKING

from node.core import NodeCore
from node.dispatch import Dispatcher
from node.options import UpOptions
from node.service import Dispatch, Parts

if TYPE_CHECKING:
    from node.network import Network


async def assemble_node(core: NodeCore, options: UpOptions, listener: socket.socket) -> Parts:
    """The parts of a node that serves."""
    from node.keeper import Keeper
    from node.mending import Scrub
    from node.network import Network

    network = Network(core, options, listener)
    keeper = [Keeper(core)] if options.scheduler else []
    return Parts(Dispatcher(core, lambda: network), services=(network, Scrub(core), *keeper))


def command_dispatch(core: NodeCore) -> Dispatch:
    """The verbs for a command that holds the home for a moment: it calls peers, and serves none."""

    @cache
    def network() -> Network:
        from node.network import Network

        return Network(core)

    return Dispatcher(core, network)
