"""The one door to Automerge. Its bytes never cross it from outside; changes are made here.

1. A change is made from operations: the record at ``deps``, the derived actor, one transaction.
2. Every call is inside ``_GUARDED``: a panic is a ``BaseException``; the document is dropped.
3. ``Document`` objects live for one fold of one record and are never kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, Final

from automerge import core

from crdt.payload import Op, Scalar, Verb
from keys.errors import RoostError

_ROOT: Final = core.ROOT
_TYPES: Final = (  # by the number of ``Type``
    core.ScalarType.Null,
    core.ScalarType.Boolean,
    core.ScalarType.Int,
    core.ScalarType.Uint,
    core.ScalarType.F64,
    core.ScalarType.Str,
    core.ScalarType.Bytes,
)


# Transactions that failed, with their documents; not even the end of the process frees it.
_BROKEN: Final[list[tuple[Any, Any]]] = []
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_BROKEN))


class DocumentError(RoostError):
    """Automerge refused or panicked; the document must be dropped and rebuilt from the log."""

    code = "document"


class _Guarded:
    """Turns whatever Automerge throws into ``DocumentError``."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, _: object
    ) -> None:
        if kind is not None and not issubclass(kind, _NOT_ITS_FAULT):
            raise DocumentError(f"automerge failed: {kind.__name__}") from exc


_NOT_ITS_FAULT: Final = (
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    MemoryError,
    DocumentError,
)
_GUARDED: Final = _Guarded()


class RecordDocument:
    """One record's Automerge document, grown one entry at a time."""

    __slots__ = ("_doc", "_heads")

    def __init__(self) -> None:
        self._doc: Any = None
        self._heads: frozenset[bytes] = frozenset()

    def apply(self, deps: frozenset[bytes], actor: bytes, ops: Iterable[Op]) -> bytes | None:
        """Make the change of ``ops`` at the change hashes ``deps``; return its hash.

        None means that the operations had no effect there (R6: malformed). Applied in place when
        ``deps`` are the heads, on a fork that is merged back otherwise (R40). Raises
        ``DocumentError`` when Automerge fails; the object must then be dropped.
        """
        with _GUARDED:
            if self._doc is None:
                self._doc = core.Document(actor_id=actor)
            elif deps != self._heads:
                return self._apply_on_fork(deps, actor, ops)
            else:
                self._doc.set_actor(actor)
            _transact(self._doc, ops)
            heads = frozenset(self._doc.get_heads())
        new = heads - self._heads
        self._heads = heads
        return next(iter(new), None)

    def _apply_on_fork(
        self, deps: frozenset[bytes], actor: bytes, ops: Iterable[Op]
    ) -> bytes | None:
        fork = core.Document(actor_id=actor) if not deps else self._doc.fork(list(deps))
        fork.set_actor(actor)
        _transact(fork, ops)
        new = frozenset(fork.get_heads()) - deps
        if new:
            self._doc.merge(fork)
            self._heads = frozenset(self._doc.get_heads())
        return next(iter(new), None)

    def copy(self) -> RecordDocument:
        """A second document with the same content, for trying a change that may be refused."""
        other = RecordDocument()
        if self._doc is not None:
            with _GUARDED:
                other._doc = self._doc.fork()
                other._heads = self._heads
        return other

    def values(self) -> dict[str, Scalar]:
        """The flat map as it reads now, concurrent puts resolved by Automerge."""
        if self._doc is None:
            return {}
        with _GUARDED:
            names = self._doc.keys(_ROOT)
            read = self._doc.values(_ROOT)
        return {
            name: _scalar(value) for name, value in zip(names, (v[0] for v in read), strict=True)
        }


def _transact(doc: Any, ops: Iterable[Op]) -> None:
    """One transaction; when it fails, it and its document are kept for ever.

    After a panic the engine frees what is freed already when one of the two is deallocated
    (measured: a segmentation fault in a later garbage collection). No input reaches a panic, since
    operations are typed and bounded; a leak of a document is the price where one does.
    """
    tx = None
    try:
        with doc.transaction() as tx:
            put = tx.put
            for key, verb, kind, value in ops:
                if verb is Verb.PUT:
                    put(_ROOT, key, _TYPES[kind], value)
                else:
                    tx.delete(_ROOT, key)
    except BaseException:
        _BROKEN.append((doc, tx))
        raise


def _scalar(value: Any) -> Scalar:
    """The Python value of ``(type, value)``; byte strings come back as lists of numbers."""
    inner = value[1]
    return bytes(inner) if isinstance(inner, list) else inner


def change_of_creation(actor: bytes, ops: Iterable[Op]) -> bytes | None:
    """The change hash of a record's first entry."""
    return RecordDocument().apply(frozenset(), actor, ops)
