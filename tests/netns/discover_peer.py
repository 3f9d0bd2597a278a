"""One node's discovery in a process of its own, told what to do on stdin, telling what it sees.

``discover_peer.py NAME PORT KNOWN…``: NAME and the KNOWN are names of test device keys. Lines on
stdin: ``pair PORT``, ``refresh``, ``quit``. Each line on stdout is one JSON object.
``discover_peer.py --sniff``: every packet on the multicast group in hex, until stdin ends.
"""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from sync.advert import Found
from sync.discovery import Discovery, Surroundings
from tests.support.author import device_key

GROUP, PORT = "224.0.0.251", 5353


def tell(**values: object) -> None:
    """One line."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


async def lines() -> asyncio.StreamReader:
    """Stdin, without blocking."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def take_part(name: str, port: int, known: list[str]) -> None:
    """Advertise, listen, obey."""
    devices = {other: device_key(other).device for other in known}

    def seen(found: Found) -> None:
        tell(
            event="seen",
            who=[other for other, device in devices.items() if found.is_of(device)],
            hosts=found.hosts,
            port=found.port,
            pairing=found.pairing_port,
            salt=found.salt.hex(),
        )

    discovery = Discovery(device_key(name).device, port, seen, Surroundings(os.urandom))
    reader = await lines()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(discovery.run())
        tell(event="started", name=name)
        while (line := (await reader.readline()).decode().split()) and line != ["quit"]:
            if line[0] == "pair":
                discovery.update(port, int(line[1]))
            elif line[0] == "refresh":
                discovery.refresh()
        running.cancel()
    tell(event="stopped", kept=len(discovery.found))


async def sniff() -> None:
    """Every packet of the group that reaches this namespace."""
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    heard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    heard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    heard.bind((GROUP, PORT))
    member = socket.inet_aton(GROUP) + socket.inet_aton("10.77.0.2")
    heard.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    loop = asyncio.get_running_loop()
    loop.add_reader(heard, lambda: tell(event="packet", hex=heard.recv(9_000).hex()))
    tell(event="started", name="sniffer")
    await (await lines()).read()
    loop.remove_reader(heard)
    heard.close()


if sys.argv[1] == "--sniff":
    asyncio.run(sniff())
else:
    asyncio.run(take_part(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
