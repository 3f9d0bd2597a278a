"""How a command reaches its node: through the local socket, else by opening the home itself.

1. A socket that answers and belongs to the owner of the home is a running node; a call goes there.
2. Otherwise the verb runs in this process. Somebody may hold the home at that very moment (a node
   that starts or stops): both ways are tried again for a few seconds before ``InUseError`` stands.
3. A call that was sent is never sent again: whether it was done is not known.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from cli.backend import ensure_running, run_verb
from cli.local_http import Answer, NoAnswerError, connect, post
from keys.errors import InUseError, RoostError, UsageError, error_from
from keys.limits import CALL_BYTES_MAX
from node.paths import is_trusted_socket, socket_candidates

Result = dict[str, Any]

CALL_TARGET: Final = "/v1/call"
CALL_TIMEOUT_S: Final = 3_600.0
QUICK_TIMEOUT_S: Final = 60.0
HELD_PATIENCE_S: Final = 5.0
_RETRY_S: Final = 0.1


class Session:
    """Calls verbs on the node of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def call(
        self, verb: str, params: Mapping[str, object], timeout_s: float = CALL_TIMEOUT_S
    ) -> Result:
        """The result of one verb; raises ``RoostError``."""
        body = encode_call(verb, params)
        give_up = time.monotonic() + HELD_PATIENCE_S
        while True:
            answer = self._post(body, timeout_s)
            if answer is not None:
                return _result(answer.whole())
            try:
                return run_verb(self.home, verb, dict(params))
            except InUseError:
                if time.monotonic() > give_up:
                    raise
            time.sleep(_RETRY_S)

    def call_running(self, verb: str, params: Mapping[str, object]) -> Result:
        """The result of a verb that needs a running node; one is started where there is none."""
        return _result(self._post_running(encode_call(verb, params)).whole())

    def events(self, verb: str, params: Mapping[str, object]) -> Iterator[Result]:
        """What a verb of a running node reports, one by one; raises ``RoostError``."""
        for line in self._post_running(encode_call(verb, params)).lines():
            event = _object(line)
            _raise_error(event)
            yield event

    def is_running(self) -> bool:
        """Whether a node of this home answers."""
        connection = self._connect()
        if connection is None:
            return False
        connection.close()
        return True

    def _post_running(self, body: bytes) -> Answer:
        answer = self._post(body, CALL_TIMEOUT_S)
        if answer is None:
            ensure_running(self.home)
            answer = self._post(body, CALL_TIMEOUT_S)
        if answer is None:
            raise NoAnswerError("the node was started but does not answer", hint="roost doctor")
        return answer

    def _post(self, body: bytes, timeout_s: float) -> Answer | None:
        connection = self._connect()
        return None if connection is None else post(connection, CALL_TARGET, body, timeout_s)

    def _connect(self) -> socket.socket | None:
        for path in socket_candidates(self.home):
            if is_trusted_socket(path, self.home) and (connection := connect(path)) is not None:
                return connection
        return None


def encode_call(verb: str, params: Mapping[str, object]) -> bytes:
    """One call as the socket takes it; raises ``UsageError`` for what is no text or too large."""
    try:
        body = json.dumps({"verb": verb, "params": params}, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise UsageError("an argument is not UTF-8 text") from exc
    if len(body) > CALL_BYTES_MAX:
        raise UsageError(f"too much for one call: more than {CALL_BYTES_MAX} bytes")
    return body


def _result(body: bytes) -> Result:
    reply = _object(body)
    _raise_error(reply)
    result = reply.get("result")
    if not isinstance(result, dict):
        raise _nonsense()
    return cast("Result", result)


def _raise_error(reply: Result) -> None:
    error = reply.get("error")
    if isinstance(error, dict):
        raise error_from(error, reply.get("exit"))


def _object(data: bytes) -> Result:
    try:
        value = json.loads(data)
    except ValueError as exc:
        raise _nonsense() from exc
    if not isinstance(value, dict):
        raise _nonsense()
    return cast("Result", value)


def _nonsense() -> RoostError:
    return RoostError(
        "the node answered something that this command does not understand",
        hint="is the running node of another version? stop it and start it again: roost up",
    )
