"""A node process with verbs of its own, run as a program: ``python node_program.py up|once …``.

The lock, the takeover, the sockets and the signals are the product's; only the verbs are not.
"""

import argparse
import asyncio
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

from keys.errors import RefusedError, RoostError
from node.caller import ACCOUNT, Credential
from node.core import NodeCore
from node.moment import run_on_home
from node.options import UpOptions
from node.process import serve
from node.service import Emit, Parts


class TestVerbs:
    """Verbs that show what a process does."""

    def __init__(self, core: NodeCore) -> None:
        self._core = core

    async def call(
        self,
        verb: str,
        params: dict[str, Any],
        emit: Emit | None = None,
        credential: Credential = ACCOUNT,
    ) -> dict[str, Any]:
        match verb:
            case "echo":
                return params
            case "refuse":
                raise RefusedError("no")
            case "fail":
                raise ValueError("zanzibar umbrella")
            case "get":
                return {"value": await self._core.db.run(lambda db: db.setting(params["key"]))}
            case "slow":
                await asyncio.sleep(params["seconds"])
                await self._core.db.run(lambda db: db.set_settings(slow="done"))
                return {"slow": True}
            case "block":
                await asyncio.to_thread(time.sleep, params["seconds"])
                return {}
            case "stream" if emit is not None:
                for number in range(params["count"]):
                    await emit({"event": "tick", "number": number})
                if params.get("forever"):
                    await asyncio.Event().wait()
                return {"event": "end"} if params.get("end") else {}
        raise RefusedError(f"no verb {verb}")


async def assemble(core: NodeCore, options: UpOptions, listener: socket.socket) -> Parts:
    del options, listener
    return Parts(TestVerbs(core), services=())


def say(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["up", "once"])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--api")
    parser.add_argument("--background", action="store_true")
    parser.add_argument("--idle-stop", type=float, default=60.0)
    parser.add_argument("--verb", default="echo")
    parser.add_argument("--params", type=json.loads, default={})
    args = parser.parse_args()
    try:
        if args.what == "once":
            say(run_on_home(args.home, lambda c: TestVerbs(c).call(args.verb, args.params, None)))
            return 0
        options = UpOptions(
            listen=args.listen, api=args.api, background=args.background, idle_stop=args.idle_stop
        )
        return serve(args.home, options, say, assemble)
    except RoostError as exc:
        sys.stderr.write(json.dumps({"error": exc.as_dict()}) + "\n")
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
