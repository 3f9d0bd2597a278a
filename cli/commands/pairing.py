"""Commands by which two nodes come to know each other: pair, peers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from cli.context import Cli, RoostCommand, RoostGroup, given, pass_cli, passphrase_option
from cli.local_http import NoAnswerError
from cli.output import Row, Span, bold, dim
from cli.text import local_time, short_ids, word
from keys.errors import PairingError, UnreachableError, UsageError
from keys.limits import PAIR_CODE_TTL_S

URI_SCHEME: Final = "roost://"
FIREWALL_HINT: Final = (
    "both must be on one network, with 7667/TCP and 5353/UDP open: "
    "sudo ufw allow 7667/tcp && sudo ufw allow 5353/udp"
)
_TIMED_OUT: Final = frozenset({"expired", "timeout"})

mine_option: Final = click.option(
    "--mine", is_flag=True, help="Both are yours: the joining home becomes a device of your owner."
)


@click.group(cls=RoostGroup)
def pair() -> None:
    """Make two nodes know each other.

    One side runs "roost pair open", which shows a code; the other "roost pair join" with it. With
    --mine on both sides the joining home becomes another device of the opener's owner, and gets
    that owner's agents. Without it nothing is shared yet: see "roost grant".
    """


@pair.command("open")
@mine_option
@click.option(
    "--ttl",
    type=click.IntRange(1, PAIR_CODE_TTL_S),
    metavar="SECONDS",
    help=f"How long the code is good for (at most {PAIR_CODE_TTL_S}).",
)
@click.option("--yes", is_flag=True, help="Do not ask about the device that joins with --mine.")
@passphrase_option
@pass_cli
def pair_open(cli: Cli, /, mine: bool, ttl: int | None, yes: bool, **options: object) -> None:
    """Show a code, and wait for the other side.

    With --mine on a terminal you are asked about the device before it becomes yours.
    """
    passphrase = cli.passphrase(options) if mine else None
    ask = (mine and not yes and cli.output.can_ask) or None
    params = given({"mine": mine, "ttl": ttl, "passphrase": passphrase, "ask": ask})
    paired = None
    with _firewall_hint():
        for event in cli.session.events("pair.open", params):
            if event.get("event") == "confirm":
                _confirm(cli, event)
                continue
            if event.get("event") == "paired":
                paired = event
            _show_event(cli, event, mine=mine, ttl=ttl or PAIR_CODE_TTL_S)
    if paired is None:
        raise NoAnswerError("the node stopped before the two were paired", hint="roost doctor")


def _confirm(cli: Cli, event: dict[str, Any]) -> None:
    """Ask whether the device that proved the code is the one meant (R39)."""
    device = str(event["device"])
    cli.output.note(f"{event.get('name')} typed the code; its device id is {device}")
    cli.output.note('"roost status" there shows the id; it would get your key, still encrypted')
    yes = cli.output.confirm("make it a device of yours?")
    cli.session.call_running("pair.confirm", {"device": device, "yes": yes})


@contextmanager
def _firewall_hint() -> Iterator[None]:
    """Add to the error of a side that nobody reached what usually is in the way."""
    try:
        yield
    except NoAnswerError:
        raise  # our own node, not the other side
    except (UnreachableError, PairingError) as exc:
        late = exc.details.get("reason") in _TIMED_OUT
        if (late or isinstance(exc, UnreachableError)) and "7667" not in (exc.hint or ""):
            exc.hint = f"{exc.hint}; {FIREWALL_HINT}" if exc.hint else FIREWALL_HINT
        raise


def _show_event(cli: Cli, event: dict[str, Any], *, mine: bool, ttl: int) -> None:
    if cli.output.json:
        cli.output.event(event)
    elif event.get("event") == "open":
        _show_open(cli, event, mine=mine, ttl=ttl)
    elif event.get("event") == "paired":
        cli.output.line("paired with ", bold(str(event.get("name"))), dim(f"  {event['device']}"))
        _next_after_pairing(cli, event, mine=mine)


def _show_open(cli: Cli, event: dict[str, Any], *, mine: bool, ttl: int) -> None:
    out = cli.output
    code = str(event["code"])
    flag = " --mine" if mine else ""
    addresses = [str(address) for address in event.get("addresses", [])]
    ttl = int(event.get("ttl", ttl))
    out.line("code ", bold(code), dim(f"   good for {ttl} s, and for one try"))
    out.line("On the other side run:" if len(addresses) < 2 else "On the other side run one of:")
    for address in addresses:
        out.line("  ", bold(f"roost pair join --address {word(address)} --code {code}{flag}"))
    if not addresses:
        join = f"roost pair join --device {word(event.get('device'))} --code {code}{flag}"
        out.line("  ", bold(join))
    if out.on_terminal and (link := _link(event, addresses, code)):
        out.qr(link)
    out.note("waiting (Ctrl-C stops pairing)")


def _link(event: dict[str, Any], addresses: list[str], code: str) -> str | None:
    """What the QR code holds, or None where no address is known."""
    if event.get("uri") or not addresses:
        return event.get("uri")
    from keys.address import Address
    from keys.ids import DeviceId
    from keys.pair_uri import pair_uri

    device = DeviceId.parse(str(event["device"]))
    return pair_uri(device, [Address.parse(address) for address in addresses], code)


def _next_after_pairing(cli: Cli, result: dict[str, Any], *, mine: bool) -> None:
    if mine:
        cli.output.next_steps(("roost status", "see the agents arrive"))
        return
    device = str(result.get("device"))
    cli.output.next_steps(
        (f"roost grant AGENT {word(device)} read", "share an agent with this device")
    )


@pair.command("join")
@click.argument("uri", required=False)
@click.option("--address", metavar="HOST:PORT", help="Where the other side waits.")
@click.option("--device", metavar="ID", help='A device that "roost pair list" shows.')
@click.option("--code", metavar="CODE", help="The code that the other side shows.")
@mine_option
@passphrase_option
@pass_cli
def pair_join(
    cli: Cli, /, uri: str | None, code: str | None, mine: bool, **options: object
) -> None:
    """Join the side that shows a code.

    URI is the roost://pair?… link of the other side's QR code, which carries address and code.
    """
    target = {key: options[key] for key in ("address", "device")} | {"uri": uri}
    if sum(value is not None for value in target.values()) != 1:
        raise UsageError("give one of --address, --device or a link", hint="roost pair join --help")
    if uri is not None and not uri.lower().startswith(URI_SCHEME):
        raise UsageError(f"a link begins with {URI_SCHEME}", hint="an address goes after --address")
    if uri is None and code is None:
        code = _ask_code(cli)
    passphrase = cli.passphrase_if_given(options)
    params = given({**target, "code": code, "mine": mine, "passphrase": passphrase})
    with _firewall_hint():
        result = cli.session.call_running("pair.join", params)

    def show() -> None:
        cli.output.line("paired with ", bold(str(result.get("name"))), dim(f"  {result['device']}"))
        _next_after_pairing(cli, result, mine=mine)

    cli.output.result(result, show)


def _ask_code(cli: Cli) -> str:
    if not cli.output.can_ask:
        raise UsageError("the code is missing", hint="give --code CODE")
    return cli.output.ask("code that the other side shows:")


@pair.command("list")
@pass_cli
def pair_list(cli: Cli) -> None:
    """List the devices on this network that wait to be paired."""
    with cli.output.progress("looking around"), _firewall_hint():
        result = cli.session.call_running("pair.list", {})
    found = result.get("found", [])

    def show() -> None:
        if not found:
            cli.output.line(dim("nobody in sight"))
            cli.output.note(FIREWALL_HINT)
            return
        rows: list[Row] = [
            [
                bold(str(item.get("name") or "-")),
                str(item["device"]),
                ", ".join(map(str, item.get("addresses", []))),
            ]
            for item in found
        ]
        cli.output.table(["name", "device", "addresses"], rows)
        step = f"roost pair join --device {word(found[0]['device'])} --code CODE"
        cli.output.next_steps((step, "with the code it shows"))

    cli.output.result(result, show)


@click.group(cls=RoostGroup, invoke_without_command=True)
@click.pass_context
def peers(context: click.Context) -> None:
    """List the devices this node knows."""
    if context.invoked_subcommand is None:
        _list_peers(context.ensure_object(Cli))


def _list_peers(cli: Cli) -> None:
    result = cli.call("peers")
    found = result.get("peers", [])

    def show() -> None:
        if not found:
            cli.output.line(dim("no peers"))
            cli.output.next_steps(("roost pair open --mine", "add another device of yours"))
            return
        ids = short_ids(str(item["device"]) for item in found)
        rows: list[Row] = [
            [
                bold(str(item.get("name") or "-")),
                ids[str(item["device"])],
                Span(str(item.get("state", "-")), _style(item)),
                local_time(item.get("last_seen")),
                ", ".join(map(str, item.get("addresses") or [])) or "-",
            ]
            for item in found
        ]
        cli.output.table(["name", "device", "state", "last seen", "addresses"], rows)

    cli.output.result(result, show)


def _style(item: dict[str, Any]) -> str:
    return "green" if item.get("state") == "connected" else "dim"


@peers.command("remove", cls=RoostCommand)
@click.argument("device")
@pass_cli
def peers_remove(cli: Cli, device: str) -> None:
    """Forget a device: no exchange with it any more.

    What it was granted stays granted: see "roost revoke", for a lost one "roost devices revoke".
    """
    result = cli.call("peers.remove", device=device)
    cli.output.result(result, lambda: cli.output.line(bold(device), " is no longer a peer"))
