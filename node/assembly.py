"""Which parts a node consists of: the only place that puts them together."""

from __future__ import annotations

import socket

from node.core import NodeCore
from node.dispatch import Dispatcher
from node.network import Network
from node.options import UpOptions
from node.service import Dispatch, Parts


async def assemble_node(core: NodeCore, options: UpOptions, listener: socket.socket) -> Parts:
    """The parts of a node that serves."""
    network = Network(core, options, listener)
    return Parts(Dispatcher(core, network), services=(network,))


def command_dispatch(core: NodeCore) -> Dispatch:
    """The verbs for a command that holds the home for a moment: it calls peers, and serves none."""
    return Dispatcher(core, Network(core))
