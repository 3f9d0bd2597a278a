"""An agent's policy: what waits for a person, and what its agents may do alone (R17, R21).

1. A policy is what the valid ``policy`` statements say, setting by setting: of those that set one,
   the ones that no later one has seen; of several the stricter counts.
2. A word that is not known reads as the strictest. A setting that is not known has no effect here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keys.errors import UsageError
from keys.statements import Statement

OPEN: Final = "open"
REVIEW: Final = "review"
APPLY: Final = "apply"
PROPOSE: Final = "propose"
_GATE: Final = (OPEN, REVIEW)

ALWAYS_REVIEWED: Final = frozenset({"verdict"})  # kinds that no policy lets through

# Kinds that say something by themselves: where their text comes from decides whether they wait.
SAYING_KINDS: Final = frozenset(
    {"observation", "entity", "property", "relation", "perspective", "summary"}
)

# Every setting with its words, the strictest last.
KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "provenance.agent": _GATE,
    "provenance.tool": _GATE,
    "provenance.file": _GATE,
    "provenance.web": _GATE,
    "provenance.import": _GATE,
    "category.rule": _GATE,
    "kind.identity": _GATE,
    "kind.skill": _GATE,
    "agent_forget": (APPLY, PROPOSE),
}
DEFAULTS: Final[Mapping[str, str]] = {
    key: OPEN if key == "provenance.agent" else words[-1] for key, words in KNOWN.items()
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Every known setting of one agent with the word in force."""

    settings: Mapping[str, str]

    def gates(self, kind: str, category: object, provenance: object, *, imported: bool) -> bool:
        """R21: whether such a record waits for a person.

        A provenance that nobody knows is trusted as an import is: the least.
        """
        if kind in ALWAYS_REVIEWED or self.settings.get(f"kind.{kind}") == REVIEW:
            return True
        if imported and self.settings["provenance.import"] == REVIEW:
            return True  # of every kind: what is said of an entity as well as an observation
        if kind not in SAYING_KINDS:
            return False
        if (
            kind == "observation"
            and category == "rule"
            and self.settings["category.rule"] == REVIEW
        ):
            return True
        if provenance is None or provenance == "user":
            return False
        word = self.settings.get(f"provenance.{provenance}")
        return (self.settings["provenance.import"] if word is None else word) == REVIEW

    def but(self, settings: Mapping[str, str]) -> Policy:
        """The same with other words for some settings."""
        return Policy({**self.settings, **settings})

    @property
    def agents_erase(self) -> bool:
        """Whether an agent may erase what others wrote (R37)."""
        return self.settings["agent_forget"] == APPLY


DEFAULT: Final = Policy(DEFAULTS)


def in_force(policies: Sequence[Statement], seen: Callable[[Statement, Statement], bool]) -> Policy:
    """What valid policies say together; ``seen(p, q)``: whether ``q`` has ``p`` in its past."""
    settings = dict(DEFAULTS)
    for key in KNOWN:
        about = [p for p in policies if key in p.body["settings"]]
        last = [p for p in about if not any(q is not p and seen(p, q) for q in about)]
        if last:
            settings[key] = _strictest(key, (p.body["settings"][key] for p in last))
    return Policy(settings)


def _strictest(key: str, words: Iterable[Any]) -> str:
    known = KNOWN[key]
    return known[max(known.index(w) if w in known else len(known) - 1 for w in words)]


def read_settings(pairs: Iterable[str]) -> dict[str, str]:
    """Settings from texts ``KEY=WORD``; raises ``UsageError`` that names what is known."""
    out: dict[str, str] = {}
    for pair in pairs:
        key, equals, word = pair.partition("=")
        if not equals:
            raise UsageError(f"not KEY=VALUE: {pair[:64]!r}", hint="as in provenance.web=review")
        if key not in KNOWN:
            raise UsageError(
                f"there is no setting {key[:64]!r}", hint=f"the settings are {', '.join(KNOWN)}"
            )
        if word not in KNOWN[key]:
            raise UsageError(
                f"{key} cannot be {word[:64]!r}", hint=f"it is one of {', '.join(KNOWN[key])}"
            )
        if out.setdefault(key, word) != word:
            raise UsageError(f"{key} is given two values")
    if not out:
        raise UsageError("no setting is given", hint=f"the settings are {', '.join(KNOWN)}")
    return out
