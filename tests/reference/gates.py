"""R17, R21 written out: which policies are in force, and what they make wait for a person.

What RULES.md leaves open is decided as follows.

1. Policies count setting by setting; one that a later valid policy on the same setting has seen is
   no longer in force. A word or a provenance that nobody knows is the strictest, the least trusted.
2. A policy holds for a record from its beginning: no version of it is from another policy.
"""

from __future__ import annotations

from crdt.payload import Scalar
from tests.reference.rights import Rights

STRICT = {
    **{f"provenance.{name}": "review" for name in ("agent", "tool", "file", "web", "import")},
    "category.rule": "review",
    "kind.identity": "review",
    "kind.skill": "review",
}
LOOSE = "open"
UNSET = {**STRICT, "provenance.agent": LOOSE}


def waits(rights: Rights, key: str) -> bool:
    """Whether what a setting is about waits for a person."""
    said = [s for s in rights.of("policy") if rights.valid(s) and key in s.body["settings"]]
    held = [s for s in said if not any(s.id in rights.before(t) for t in said)]
    words = [s.body["settings"][key] for s in held] or [UNSET[key]]
    return any(word != LOOSE for word in words)


def is_gated(rights: Rights, first: dict[str, Scalar]) -> bool:
    """R21: whether kind, category, provenance or an import makes a record wait."""
    kind, provenance = first["kind"], first.get("body.provenance")
    if kind == "verdict":
        return True
    if isinstance(first.get("body.imported"), bytes) and waits(rights, "provenance.import"):
        return True
    if kind in ("identity", "skill"):
        return waits(rights, f"kind.{kind}")
    if kind not in ("observation", "entity", "property", "relation", "perspective", "summary"):
        return False
    is_rule = kind == "observation" and first.get("body.category") == "rule"
    keys = ["category.rule"] if is_rule else []
    named = f"provenance.{provenance}" if isinstance(provenance, str) else ""
    if named in STRICT:
        keys.append(named)
    elif provenance not in ("user", None):
        keys.append("provenance.import")
    return any(waits(rights, key) for key in keys)
