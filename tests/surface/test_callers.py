"""Who calls, and what it may: credentials, scope, tokens, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from crdt.entry import Via
from keys.errors import NotFoundError, RefusedError, UsageError
from memory.tokens import REFUSALS_MAX, Refusal
from node.caller import ACCOUNT, Credential
from node.callers import QuotaError, TokenError
from node.params import Params, UnknownParameterError
from node.rules import RULES, Does, NotForAgentsError, OtherAgentError, SessionKindError
from tests.support.attacks import ALL_VERBS, attack
from tests.support.peers import PASSPHRASE
from tests.support.surface import ERASED, LIVE, OTHER, PROPOSED, Surface, surface

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Surface]:
    """One node for all tests here, with what an agent must not see; they write beside it."""
    async with surface(tmp_path_factory.mktemp("surface") / "home") as made:
        yield made


async def fresh(at: Surface, text: str, **params: Any) -> str:
    """A record of a person's that a test may do with as it likes."""
    return str((await at.node("remember", agent="muse", text=text, **params))["record"])


async def test_every_verb_has_a_rule_and_every_rule_a_verb() -> None:
    """A verb that was added without saying for whom it is."""
    assert ALL_VERBS - RULES.keys() == set()
    assert RULES.keys() - ALL_VERBS == set()


@pytest.mark.parametrize("proven", [True, False])
async def test_X_87_no_verb_shows_or_changes_what_is_not_the_agents(
    at: Surface, proven: bool
) -> None:
    """Every verb, with a token and as an unproven session: nothing is read, granted or lifted."""
    agent = Credential(bearer=await at.token()) if proven else Credential(agent="muse", run="r")
    before = [await at.node(verb, agent=name) for name in ("muse", "other") for verb in _STANDING]
    noted = len(await at.refused())
    for verb in sorted(ALL_VERBS):
        for given in (attack(at, verb), attack(at, verb) | {"agent": "other"}):
            try:
                done = repr(await at.call(agent, verb, **given))
            except Exception as exc:  # noqa: BLE001 - whatever it says must not tell either
                done = repr(exc) + repr(getattr(exc, "details", ""))
            for secret in (PROPOSED, OTHER, ERASED, at.others):
                assert secret not in done, verb
    after = [await at.node(verb, agent=name) for name in ("muse", "other") for verb in _STANDING]
    assert after[1:] == before[1:]  # muse's own digest may differ, and nothing else
    shown = await at.node("show", agent="muse", record=at.proposed)
    assert (shown["state"], shown["text"]) == ("proposed", PROPOSED)  # and a person sees it
    with pytest.raises(RefusedError):
        await at.node("remember", agent="muse", text=ERASED)
    assert "third" not in repr(await at.node("agent.list"))
    found = await at.call(agent, "search", query="kettle")
    assert [r["record"] for r in found["results"]] == [at.live]  # the surface works
    refused = (await at.refused())[noted:]
    assert {code for code, _, _ in refused} >= {"not_for_agents", "other_agent"}
    assert len(refused) >= 2 * sum(RULES[v].does is Does.PERSON for v in ALL_VERBS)


_STANDING = ("digest", "permissions")


async def test_an_agent_reads_what_is_live_and_a_person_everything(at: Surface) -> None:
    """show, list, history and search of the same records, by both."""
    agent = Credential(bearer=await at.token())
    listed = await at.call(agent, "list")
    assert at.live in {r["record"] for r in listed["records"]}
    assert {r["state"] for r in listed["records"]} == {"new"}
    assert listed["total"] == len(listed["records"])
    everything = await at.node("list", agent="muse")
    assert {r["record"] for r in everything["records"]} >= {at.live, at.proposed, at.erased}
    for verb in ("show", "history"):
        for record in (at.proposed, at.erased, at.others, at.proposed[:12]):
            assert isinstance(await at.error(agent, verb, record=record), NotFoundError)
        assert await at.node(verb, agent="muse", record=at.proposed)
    shown = await at.call(agent, "show", record=at.live)
    assert shown["text"] == LIVE
    assert shown["device"] == at.node.device  # a reader can tell where it came from
    assert shown["via"] == "local"
    assert not shown.keys() & {"facts", "heads", "n", "detail"}
    old = await fresh(at, "the pot is blue")
    new = await at.call(agent, "revise", record=old, text="the pot is red", reason="so")
    told = await at.call(agent, "history", record=new["record"])
    assert [v["text"] for v in told["versions"]] == ["the pot is red"]
    person = await at.node("history", agent="muse", record=new["record"])
    assert len(person["versions"]) > 1


async def test_what_an_agent_writes_says_so_and_is_never_a_persons(at: Surface) -> None:
    """via and provenance come from the credential; revising does not launder them (M-D1, M-D3)."""
    agent = Credential(bearer=await at.token())
    made = await at.call(agent, "remember", text="plain words")
    shown = await at.node("show", agent="muse", record=made["record"])
    assert (shown["via"], shown["provenance"]) == ("agent", "agent")
    own = await at.node("remember", agent="muse", text="a person's words")
    shown = await at.node("show", agent="muse", record=own["record"])
    assert (shown["via"], shown["provenance"]) == ("local", "user")
    for word in ("user", "import"):
        error = await at.error(agent, "remember", text="x", provenance=word)
        assert isinstance(error, RefusedError)
    page = await at.call(agent, "remember", text="the page says so", provenance="web")
    assert page["state"] == "proposed"
    assert isinstance(await at.error(agent, "show", record=page["record"]), NotFoundError)
    proposed = await fresh(at, "a rule from the web", provenance="web")
    waiting = await at.node("review.show", agent="muse", record=proposed)
    await at.node(
        "review.approve",
        agent="muse",
        record=proposed,
        heads=waiting["heads"],
        passphrase=PASSPHRASE,
    )
    args: dict[str, Any] = {"record": proposed, "text": "a rule, twice", "reason": "so"}
    revised = await at.call(agent, "revise", **args)
    assert revised["state"] == "proposed"  # and what a person approved stays
    assert (await at.call(agent, "show", record=proposed))["text"] == "a rule from the web"


async def test_M_C9_the_agent_is_the_credentials(at: Surface) -> None:
    """Another agent in the parameters is refused, whether or not it exists, and counted."""
    agent = Credential(bearer=await at.token())
    for named in ("-", "muse", at.muse):
        assert (await at.call(agent, "list", agent=named))["total"]
    for other in ("other", "no-such-agent", "a", "", at.other, at.muse[:8], 5):
        error = await at.error(agent, "list", agent=other)
        assert isinstance(error, OtherAgentError)
        assert at.other not in repr(error.as_dict())
        assert (await at.refused())[-1] == ("other_agent", "list", "agent")


async def test_M_C8_hostile_names_stay_distinct(at: Surface) -> None:
    """Ids are never joined: a name with separators in it is one name."""
    for name in ("a&agent_id=muse", "../muse", "muse\u0000", "muse%00", "mu se"):
        for verb in ("list", "session.about"):
            await at.error(Credential(agent=name), verb)
    made = await at.node("agent.create", name="muse&x=1", passphrase=PASSPHRASE)
    about = await at.call(Credential(agent="muse&x=1"), "session.about")
    assert about["agent"] == made["agent"] != at.muse
    assert (await at.call(Credential(agent="muse&x=1"), "list"))["total"] == 0


async def test_M_C10_names_are_compared_folded(at: Surface) -> None:
    """Case, spacing and Unicode form make no other agent, for reading, writing and founding."""
    made = await at.node("agent.create", name="Zo\u00eb  Ray", passphrase=PASSPHRASE)
    for name in ("zo\u00eb ray", "ZOE\u0308 RAY", " Zo\u00eb Ray "):
        wrote = await at.node("diary.add", agent=name, text=f"as {name!r}")
        shown = await at.node("diary.show", agent=made["agent"], diary=wrote["record"])
        assert shown["record"] == wrote["record"]
        spoke = await at.call(Credential(agent=name), "list", agent=name, kinds=["diary"])
        assert spoke["total"]
        error = await at.error(ACCOUNT, "agent.create", name=name, passphrase=PASSPHRASE)
        assert isinstance(error, RefusedError)


async def test_M_C3_and_M_C4_the_same_words_in_two_agents_stay_apart(at: Surface) -> None:
    """One session's id, one fact, one source: nothing is linked, found or cited across agents."""
    for name in ("muse", "other"):
        turn = {"session": "same-id", "speaker": "bob", "text": f"a turn of {name}"}
        await at.node("session.append", agent=name, **turn)
        await at.node("remember", agent=name, text="the bridge opens at nine", source="same")
    agent = Credential(agent="muse")
    shown = await at.call(agent, "session.show", session="same-id")
    assert [t["text"] for t in shown["turns"]] == ["a turn of muse"]
    found = (await at.call(agent, "search", query="bridge opens"))["results"]
    assert len(found) == 1
    ours = {r["record"] for r in (await at.node("list", agent="muse", limit=1000))["records"]}
    theirs = {r["record"] for r in (await at.node("list", agent="other", limit=1000))["records"]}
    assert not ours & theirs
    for record in theirs:
        for verb, given in (("show", {}), ("remember", {"text": "x", "derived_from": [record]})):
            params = {"record": record} if verb == "show" else given
            assert isinstance(await at.error(agent, verb, **params), NotFoundError)


async def test_M_C7_and_M_C13_unknown_parameters_are_errors(at: Surface) -> None:
    """Nothing is ignored, least of all what looks like a scope."""
    agent = Credential(bearer=await at.token())
    for name in ("agent_id", "user_id", "scope", "tagss", "metadata"):
        error = await at.error(agent, "list", **{name: "other"})
        assert isinstance(error, UnknownParameterError)
        assert (name == "tagss") == (error.hint == "did you mean tags?")
        assert (await at.refused())[-1][0] == "unknown_parameter"


async def test_M_C7_the_caller_is_no_parameter() -> None:
    """A parameter of that name is an unknown one, and changes nothing."""
    params = Params({"caller": "person"})
    assert not params.caller.bound
    with pytest.raises(UnknownParameterError):
        params.done()


async def test_a_sessions_kind_says_what_it_may(at: Surface) -> None:
    """intake creates only, review retires only, an unknown one may do nothing."""
    await kind_allows(at, "perspectives!", set())
    await kind_allows(at, "intake", {"remember", "list"})
    await kind_allows(at, "default", {"remember", "retire", "list", "tag"})
    await kind_allows(at, "review", {"retire", "list"})
    with pytest.raises(UsageError):
        await at.token(session="perspectives!")


async def kind_allows(at: Surface, kind: str, may: set[str]) -> None:
    """Assert that a session of this kind may do exactly so much."""
    session = Credential(agent="muse", session=kind)
    record = (await at.node("remember", agent="muse", text=f"for {kind}"))["record"]
    calls: dict[str, dict[str, Any]] = {
        "remember": {"text": f"new words of {kind}"},
        "list": {},
        "tag": {"record": record, "tags": ["x"]},
        "retire": {"record": record, "reason": "old"},
    }
    for verb, params in calls.items():
        if verb in may:
            await at.call(session, verb, **params)
        else:
            assert isinstance(await at.error(session, verb, **params), SessionKindError)


async def test_a_token_is_hashed_shown_once_and_ends(at: Surface) -> None:
    """Wrong, revoked, expired and foreign ones get one answer; no byte of a secret is kept."""
    token = await at.token()
    about = await at.call(Credential(bearer=token), "session.about")
    assert (about["agent"], about["principal"]) == (at.muse, "agent")
    secret = token.rpartition("_")[2]
    assert await asyncio.to_thread(files_with, at.node.path, secret.encode()) == []
    row = (await at.node("token.list"))["tokens"][-1]
    assert row["in_force"]
    assert secret not in repr(row)
    flipped = token[:-1] + ("a" if token[-1] != "a" else "q")
    answers = []
    for bad in ("", "roost", "roost_x_y", "Bearer", flipped, token.upper(), token + "a"):
        error = await at.error(Credential(bearer=bad), "list")
        assert isinstance(error, TokenError)
        answers.append(error.as_dict())
    await at.node("token.revoke", id=row["id"])
    answers.append((await at.error(Credential(bearer=token), "list")).as_dict())
    short = await at.token(expires="2999-01-01")
    assert await at.call(Credential(bearer=short), "list")
    at.node.clock.offset_us = 1_000 * 365 * 86_400 * 1_000_000
    answers.append((await at.error(Credential(bearer=short), "list")).as_dict())
    at.node.clock.offset_us = 0
    assert all(answer == answers[0] for answer in answers)
    assert ("token", "list", "?") in await at.refused()


def files_with(folder: Path, words: bytes) -> list[Path]:
    """The files below a folder that hold these bytes."""
    return [p for p in folder.rglob("*") if p.is_file() and words in p.read_bytes()]


async def test_a_token_needs_the_passphrase(at: Surface) -> None:
    """Without it none is made."""
    held = await at.node("token.list")
    for given in ({}, {"passphrase": "wrong"}):
        await at.error(ACCOUNT, "token.create", agent="muse", **given)
    assert await at.node("token.list") == held


async def test_tokens_go_with_their_agent(at: Surface) -> None:
    """An agent that was left opens nothing any more; another's token stays."""
    await at.node("agent.create", name="gone", passphrase=PASSPHRASE)
    made = await at.node("token.create", agent="gone", passphrase=PASSPHRASE)
    stays = await at.token()
    gone = at.node.handle("gone").agent
    await at.node.core.db.run(lambda db: db.leave_agent(gone, 1))
    assert isinstance(await at.error(Credential(bearer=made["token"]), "list"), TokenError)
    assert await at.call(Credential(bearer=stays), "list")


async def test_a_looping_agent_uses_up_its_own_quota(at: Surface) -> None:
    """Calls, bytes and records are counted per token; another token is not touched."""
    loops = Credential(bearer=await at.token(calls_per_minute=3))
    for _ in range(3):
        await at.call(loops, "list")
    assert isinstance(await at.error(loops, "list"), QuotaError)
    wordy = Credential(bearer=await at.token(bytes_per_minute=500))
    assert isinstance(await at.error(wordy, "search", query="x " * 400), QuotaError)
    writes = Credential(bearer=await at.token(records_per_hour=2))
    await at.call(writes, "remember.batch", rows=[{"text": "one"}, {"text": "two"}])
    assert isinstance(await at.error(writes, "remember", text="three"), QuotaError)
    assert not (await at.call(writes, "search", query="three"))["results"]
    assert (await at.call(writes, "search", query="two"))["results"]
    assert await at.call(Credential(bearer=await at.token()), "list")
    assert [code for code, _, _ in await at.refused()][-3:] == ["quota"] * 3


async def test_R37_an_agent_erases_what_its_session_made_and_asks_for_the_rest(at: Surface) -> None:
    """Its own is gone for good; anything else is retired at once, and waits for a person."""
    bearer = await at.token()
    first, second = (Credential(bearer=bearer, run=run) for run in ("one", "two"))
    mine = (await at.call(first, "remember", text="my own slip"))["record"]
    tried = await at.call(second, "forget", record=mine, reason="not mine", dry_run=True)
    assert tried["would_propose"]
    assert not tried["would_erase"]
    gone = await at.call(first, "forget", record=mine, reason="a slip")
    assert gone["erased"]
    assert not gone["proposed"]
    assert (await at.node("show", agent="muse", record=mine))["state"] == "erased"
    theirs = await fresh(at, "somebody else's slip")
    asked = await at.call(first, "forget", record=theirs, reason="wrong")
    assert asked["proposed"]
    assert not asked["erased"]
    assert (await at.node("show", agent="muse", record=theirs))["state"] == "deprecated"
    assert isinstance(await at.error(first, "show", record=theirs), NotFoundError)
    (wish,) = (await at.node("review.list", agent="muse"))["erasures"]
    assert wish["record"] == theirs
    await at.node("forget", agent="muse", record=theirs, reason="agreed")
    assert "erasures" not in await at.node("review.list", agent="muse")
    for only in ({"where": "tag=a"}, {"with_sources": True}):
        error = await at.error(first, "forget", reason="so", **only)
        assert isinstance(error, NotForAgentsError)


async def test_refusals_are_bounded_and_hold_no_text(at: Surface) -> None:
    """Ten thousand rows; an unknown verb's name is not kept."""
    await at.error(ACCOUNT, "zanzibar.verb")
    await at.error(ACCOUNT, "remember", agent="muse", text=ERASED)
    await at.error(Credential(agent="muse"), "grant", subject="umbrella")
    found = await at.node("audit.refused", agent="muse")
    assert next((r["code"], r["verb"]) for r in found["refused"]) == ("not_for_agents", "grant")
    assert "zanzibar" not in repr(found)
    assert "umbrella" not in repr(found)
    row = Refusal(1, "x", "list", "local", None, None)

    def fill(db: Any) -> int:
        for _ in range(50):
            db.refusals.add(row)
        db.refusals._db.execute("UPDATE refusal SET id = id + ?", (REFUSALS_MAX,))
        db.refusals.add(row)
        return len(db.refusals.newest(2 * REFUSALS_MAX, None))

    assert await at.node.core.db.run(fill) <= REFUSALS_MAX


async def test_M_C9_every_principal_has_its_via() -> None:
    """What an entry says of its writer follows from who called."""
    from node.caller import Caller, Principal

    assert {Caller(p).via for p in Principal} == {
        Via.LOCAL,
        Via.PERSON,
        Via.AGENT,
        Via.CONSOLIDATOR,
        Via.IMPORTER,
    }
