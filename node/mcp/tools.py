"""The tools that agents are offered, by profile: plain data, without the SDK.

1. At most eight tools by default: what is not offered costs a model nothing to read.
2. A parameter may be called by its usual other names; any other name is an error.
3. Approve, grant, lift, pair and reinstate are on no profile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

Schema = dict[str, Any]
Result = dict[str, Any]
Call = Callable[[str, Result], Awaitable[Result]]
"""Calls a verb as the session's agent; raises ``RoostError``."""

TEXT: Final[Schema] = {"type": "string"}
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
NUMBER: Final[Schema] = {"type": "integer"}
FLAG: Final[Schema] = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    schema: Schema
    about: str
    required: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``verb`` is what it calls first, or all that it calls."""

    name: str
    verb: str
    about: str
    parameters: tuple[Parameter, ...]
    reads: bool = False
    destroys: bool = False
    repeats: bool = False

    @property
    def schema(self) -> Schema:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {p.name: p.schema | {"description": p.about} for p in self.parameters},
            "required": [p.name for p in self.parameters if p.required],
            "additionalProperties": False,
        }

    def names(self) -> dict[str, str]:
        """Every name that an argument may have, with the parameter it stands for."""
        own = {p.name: p.name for p in self.parameters}
        return {alias: p.name for p in self.parameters for alias in p.aliases} | own


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers: a value, and the texts that a model reads."""

    value: Result
    texts: tuple[str, ...]


def enum(*words: str) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": list(words)}


AGENT: Final = Parameter("agent", TEXT, "Leave out: it is the one this session belongs to.")
RECORD: Final = Parameter(
    "record",
    TEXT,
    "The id of a memory, or an unambiguous beginning of one.",
    required=True,
    aliases=("id", "memory_id", "record_id", "memory"),
)
REASON: Final = Parameter("reason", TEXT, "Why; it is kept.", required=True, aliases=("why",))
DRY_RUN: Final = Parameter("dry_run", FLAG, "Only say what would be done.")
LIMIT: Final = Parameter(
    "limit",
    NUMBER | {"minimum": 1, "maximum": 1000},
    "At most so many.",
    aliases=("k", "n", "top_k", "max_results", "n_results"),
)
QUERY: Final = Parameter(
    "query", TEXT, "Words to look for.", required=True, aliases=("q", "text", "search")
)
_LAYER: Final = Parameter(
    "layer", enum("day", "week", "month", "year", "decade", "century", "millennium"), "A layer."
)
_TAGS: Final = Parameter("tags", TEXTS, "Only with all these tags.", aliases=("tag",))
_KINDS: Final = Parameter("kinds", TEXTS, "Only these kinds.", aliases=("kind", "types"))
_SINCE: Final = Parameter("since", TEXT, "Recorded at or after (ISO 8601 with an offset).")
_UNTIL: Final = Parameter("until", TEXT, "Recorded before.")

STORE: Final = Tool(
    "memory_store",
    "remember",
    "Remember something for later sessions: one self-contained fact, preference, decision or"
    " lesson. What came from a tool, a file or a web page must say so in `provenance`; it then"
    " waits for a person. The result names live memories that are near: update one of those"
    " instead of storing a second version.",
    (
        Parameter("text", TEXT, "What to remember.", True, ("content", "memory", "observation")),
        Parameter("tags", TEXTS, "Words to find it by.", aliases=("tag",)),
        Parameter(
            "category",
            enum("fact", "preference", "event", "decision", "rule", "lesson", "episode"),
            "What it is.",
        ),
        Parameter("provenance", enum("agent", "tool", "file", "web"), "Where it came from."),
        Parameter("source", TEXT, "The file, page or tool it came from."),
        _LAYER,
        Parameter("valid_from", TEXT, "When it begins to hold (ISO 8601 with an offset)."),
        Parameter("valid_to", TEXT, "When it ceases to hold."),
        Parameter("expires", TEXT, "When to withhold it.", aliases=("expires_at",)),
        Parameter("derived_from", TEXTS, "Ids of the memories it was made of."),
        AGENT,
    ),
    repeats=True,
)
SEARCH: Final = Tool(
    "memory_search",
    "search",
    "Find memories by what they say. Only what is live is found.",
    (
        QUERY,
        LIMIT,
        _KINDS,
        _TAGS,
        _LAYER,
        _SINCE,
        _UNTIL,
        Parameter("at", TEXT, "What held in the world at this time.", aliases=("valid_at",)),
        Parameter("as_of", TEXT, "What was known at this time."),
        Parameter("explain", FLAG, "Say why each was found."),
        AGENT,
    ),
    reads=True,
)
GET: Final = Tool("memory_get", "show", "Read one memory in full.", (RECORD, AGENT), reads=True)
LIST: Final = Tool(
    "memory_list",
    "list",
    "List memories, the newest first, page by page.",
    (
        LIMIT,
        Parameter("cursor", TEXT, "Where the last page said the next one starts."),
        _KINDS,
        _TAGS,
        _LAYER,
        Parameter("source", TEXT, "Only from this source."),
        _SINCE,
        _UNTIL,
        AGENT,
    ),
    reads=True,
)
UPDATE: Final = Tool(
    "memory_update",
    "revise",
    "Correct a memory: give the whole new text, its tags or its layer. A new text makes a new"
    " memory that replaces the old one; the result has its id.",
    (
        RECORD,
        Parameter("text", TEXT, "The new text.", aliases=("content", "new_text")),
        Parameter("tags", TEXTS, "All the tags it is to have."),
        _LAYER,
        Parameter("reason", TEXT, "Why; needed for a new text.", aliases=("why",)),
        DRY_RUN,
        *(
            Parameter(name, TEXT, "Cannot be changed; sent as it is, it does no harm.")
            for name in ("kind", "provenance", "via", "state", "created_at", "recorded_at")
        ),
        AGENT,
    ),
    destroys=True,
)
RETIRE: Final = Tool(
    "memory_retire",
    "retire",
    "Withhold a memory that is wrong or out of date: nobody finds it any more, and a person can"
    " take it back.",
    (RECORD, REASON, DRY_RUN, AGENT),
    destroys=True,
    repeats=True,
)
FORGET: Final = Tool(
    "memory_forget",
    "forget",
    "Erase a memory for good, on every device. What this session stored itself is erased at once;"
    " anything else is withheld at once, and a person decides.",
    (RECORD, REASON, DRY_RUN, AGENT),
    destroys=True,
    repeats=True,
)
CONTEXT: Final = Tool(
    "memory_context",
    "context",
    "What this agent remembers that fits the task at hand, as one block of text. Call it when a"
    " session begins.",
    (
        Parameter("query", TEXT, "What it is for.", aliases=("q", "text", "task")),
        Parameter("budget", NUMBER | {"minimum": 1}, "Tokens at most.", aliases=("max_tokens",)),
        AGENT,
    ),
    reads=True,
)

DEFAULT: Final = (STORE, SEARCH, GET, LIST, UPDATE, RETIRE, FORGET, CONTEXT)
