"""A proxy that adds a bearer token, for tools that cannot send one. Nothing else is changed.

``python -m tests.support.token_proxy HOST:PORT TOKEN`` prints its own port.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
from aiohttp import web

HOP_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})


async def main(target: str, token: str) -> None:
    """Serve until killed."""
    ports: dict[str, str] = {}

    async def handle(request: web.Request) -> web.StreamResponse:
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in HOP_HEADERS]
        headers = [(k, v.replace(ports["own"], ports["target"])) for k, v in headers]
        headers.append(("Authorization", f"Bearer {token}"))
        url, body = f"http://{target}{request.path_qs}", await request.read()
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, url, headers=headers, data=body) as answer,
        ):
            out = web.StreamResponse(status=answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_HEADERS:
                    out.headers.add(name, value)
            await out.prepare(request)
            async for part in answer.content.iter_any():
                await out.write(part)
            await out.write_eof()
            return out

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ports |= {"own": str(runner.addresses[0][1]), "target": target.rpartition(":")[2]}
    sys.stdout.write(ports["own"] + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
