"""What a hostile agent would ask of each verb."""

from __future__ import annotations

from typing import Any

from node.dispatch import _NETWORK_MODULES, VERBS
from node.rules import RULES, Does
from tests.support.peers import PASSPHRASE
from tests.support.surface import ERASED, Surface

ALL_VERBS = {*VERBS, *_NETWORK_MODULES}


def attacks(at: Surface) -> dict[str, dict[str, Any]]:
    """What a hostile agent would ask of each verb."""
    record, text = {"record": at.proposed}, {"text": ERASED}
    signed = {"passphrase": PASSPHRASE}
    return {
        "session.about": {},
        "session.changes": {"since": "0.0", "wait_s": 1.0},
        "remember": text,
        "remember.batch": {"rows": [text, {"text": "fine", "derived_from": [at.proposed]}]},
        "revise": record | {"text": "approve this", "reason": "so"},
        "tag": record | {"tags": ["seen"]},
        "untag": record | {"tags": ["seen"]},
        "move": record | {"layer": "week"},
        "retire": record | {"reason": "so"},
        "forget": record | {"reason": "so"},
        "search": {"query": "zanzibar umbrella xylophone", "states": ["proposed"], "explain": True},
        "list": {"states": ["proposed", "erased"]},
        "show": record,
        "history": record,
        "keep": record,
        "supersede": {"record": at.live, "by": at.proposed, "reason": "so"},
        "merge": {"records": [at.live, at.proposed], "text": "obey", "reason": "so"},
        "pin": record,
        "unpin": record,
        "review.show": record,
        "review.approve": record | {"heads": "x"} | signed,
        "review.reject": record | {"reason": "so"} | signed,
        "agent.create": {"name": "third"} | signed,
        "agent.show": {"agent": "other"},
        "agent.accept": {"agent": at.other} | signed,
        "agent.forget": {"reason": "so"} | signed,
        "grant": {"subject": at.node.device, "rights": ["admin"]} | signed,
        "revoke": {"subject": at.node.device} | signed,
        "devices.revoke": {"device": at.node.device} | signed,
        "devices.renew": {"keep": True},
        "reinstate": record | {"reason": "so"} | signed,
        "lift": {"record": at.erased, "reason": "so"} | signed,
        "import.begin": {},
        "import.lines": {"rows": [text], "run": "00" * 16},
        "pair.join": {"address": "127.0.0.1:1", "code": "1"},
        "pair.confirm": {"code": "1"},
        "peers.remove": {"device": at.node.device},
        "forget.status": {"record": at.erased},
        "owner.recover": {"code": "x"} | signed,
        "token.create": {"agent": "other"} | signed,
        "token.revoke": {"id": "a"},
        "agent.policy.set": {"settings": ["provenance.web=open"]} | signed,
        "context": {"query": "zanzibar umbrella xylophone"},
        "diary.add": {"text": "a day", "derived_from": [at.proposed]},
        "diary.list": {"all": True},
        "diary.show": {"diary": at.proposed},
        "entity.add": {"name": "Zed", "root": "persons", "parent": at.proposed},
        "entity.list": {"all": True},
        "entity.show": {"entity": at.proposed},
        "entity.move": {"entity": at.proposed},
        "entity.set": {"entity": at.proposed, "name": "x", "value": "y"},
        "entity.remove": {"entity": at.proposed, "reason": "so"},
        "file.add": {"name": "f", "text": "x", "provenance": "user"},
        "file.list": {"all": True},
        "file.show": {"file": at.proposed},
        "file.set": {"file": at.proposed, "text": "x"},
        "file.remove": {"file": at.proposed, "reason": "so"},
        "identity.list": {"all": True},
        "identity.show": {"identity": at.proposed},
        "layer.list": {},
        "perspective.list": {"all": True},
        "perspective.show": {"perspective": at.proposed},
        "relation.add": {"from": at.proposed, "type": "knows", "to": at.others},
        "relation.list": {"all": True},
        "relation.show": {"relation": at.proposed},
        "relation.remove": {"relation": at.proposed, "reason": "so"},
        "session.add": {"session": "s", "provenance": "user"},
        "session.append": {"session": "s", "text": "x", "speaker": "b", "provenance": "user"},
        "session.end": {"session": at.proposed},
        "session.list": {"all": True},
        "session.show": {"session": at.proposed},
        "session.summarise": {"session": "s", "text": "x", "derived_from": [at.proposed]},
        "skill.add": {"name": "run", "text": "rm", "provenance": "user"},
        "skill.list": {"all": True},
        "skill.show": {"skill": at.proposed},
    }


def attack(at: Surface, verb: str) -> dict[str, Any]:
    """Parameters for a verb: those written down, or none where it only reads."""
    found = attacks(at)
    if verb in found:
        return found[verb]
    assert RULES[verb].does is Does.PERSON, f"{verb} is on an agent's surface: write its case"
    return {}
