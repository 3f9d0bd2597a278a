"""What the SDK calls for resources: listing, reading, and telling subscribers.

Two eras of the protocol subscribe differently. In the newer one a request stays open and carries
what it asked for. In the older one a session subscribes; only ``roost mcp``, where the process is
the session, serves that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from keys.errors import RoostError
from node.mcp.resources import CONTEXT_URI, RECORD_URI, Watched, read
from node.mcp.tools import Call

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Call]
"""The verbs as the agent of one request may call them."""

LISTENERS_MAX: Final = 64
LISTENERS_OF_PROCESS_MAX: Final = 4  # each holds one of the node's calls open


class Resources:
    """The resources of the agents that a server serves."""

    def __init__(self, call_of: CallerOf, listeners_max: int) -> None:
        self._call_of, self._listeners_max = call_of, listeners_max
        self._listening = 0

    async def list(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The block; single memories come by their template."""
        block = types.Resource(
            name="context",
            uri=CONTEXT_URI,
            description="What this agent remembers, as one block of text.",
            mime_type="text/plain",
        )
        return types.ListResourcesResult(resources=[block])

    async def templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """One memory by its id."""
        record = types.ResourceTemplate(
            name="record",
            uri_template=RECORD_URI + "{record}",
            description="One memory in full.",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[record])

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """One resource."""
        try:
            text, kind = await read(self._call_of(context), params.uri)
        except RoostError as exc:
            raise MCPError(types.INVALID_PARAMS, exc.message, {"uri": params.uri}) from exc
        contents = types.TextResourceContents(uri=params.uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell of changes for as long as the request is open."""
        if self._listening >= self._listeners_max:
            raise MCPError(types.INTERNAL_ERROR, "too many listen already")
        bus, watched = InMemorySubscriptionBus(), Watched(self._call_of(context))

        async def tell() -> None:
            async for uri in watched.changes():
                await bus.publish(ResourceUpdated(uri))

        self._listening += 1
        try:
            await watched.add(params.notifications.resource_subscriptions or ())
            async with asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(tell(), name="tell a listener")
                try:
                    return await ListenHandler(bus)(context, params)
                finally:
                    telling.cancel()
        except RoostError as exc:
            raise MCPError(types.INVALID_PARAMS, exc.message) from exc
        finally:
            self._listening -= 1


class Subscribed:
    """What the one session of a process subscribed to, in the older era."""

    def __init__(self, call: Call) -> None:
        self._watched = Watched(call)
        self._session: Any = None
        self._some = asyncio.Event()

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Watch a resource."""
        try:
            await self._watched.add([params.uri])
        except RoostError as exc:
            raise MCPError(types.INVALID_PARAMS, exc.message) from exc
        self._session = context.session
        self._some.set()
        return types.EmptyResult()

    async def unsubscribe(
        self, _context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Watch it no more."""
        self._watched.remove(params.uri)
        return types.EmptyResult()

    async def run(self) -> None:
        """Tell the session of changes, until cancelled; nothing is asked before it subscribes."""
        await self._some.wait()
        async for uri in self._watched.changes():
            with contextlib.suppress(OSError, RuntimeError):
                await self._session.send_resource_updated(uri)
