"""Commands for entities and relations."""

from __future__ import annotations

from typing import Final

import click

from cli.commands.kinds import (
    add_listing,
    add_removal,
    shared_options,
    show_done,
    show_retired,
    soft_reason,
)
from cli.context import Cli, RoostGroup, agent_argument, given, pass_cli, reason_option

ROOTS: Final = (
    "persons", "concepts", "procedures", "events", "locations", "organizations", "projects"
)  # fmt: skip


@click.group(cls=RoostGroup)
def entity() -> None:
    """Keep persons, places, projects and what is known of them."""


@entity.command("add")
@agent_argument
@click.argument("name")
@click.option("--root", type=click.Choice(ROOTS), help="Which of the seven it belongs to.")
@click.option("--parent", metavar="ENTITY", help="The entity that it hangs on.")
@shared_options
@pass_cli
def entity_add(cli: Cli, /, **options: object) -> None:
    """Add an entity below a root or below another entity."""
    show_done(cli, cli.call("entity.add", **given(options)))


add_listing(entity, "entity", "entities", ("root", "name"))


@entity.command("set")
@agent_argument
@click.argument("entity")
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--rename", metavar="NAME", help="Call it something else.")
@click.option("--evidence", multiple=True, metavar="RECORD", help="A memory that says so.")
@soft_reason
@shared_options
@pass_cli
def entity_set(cli: Cli, /, **options: object) -> None:
    """Give an entity's property NAME a VALUE; the value before it is superseded."""
    show_done(cli, cli.call("entity.set", **given(options)))


@entity.command("move")
@agent_argument
@click.argument("entity")
@click.option("--parent", metavar="ENTITY", help="Where to; without, to its root.")
@pass_cli
def entity_move(cli: Cli, /, **options: object) -> None:
    """Hang an entity on another one, or on its root."""
    show_done(cli, cli.call("entity.move", **given(options)))


@entity.command("remove")
@agent_argument
@click.argument("entity")
@click.option("--property", metavar="NAME", help="Only this property.")
@reason_option
@pass_cli
def entity_remove(cli: Cli, /, **options: object) -> None:
    """Retire an entity that nothing hangs on, or one of its properties."""
    show_retired(cli, cli.call("entity.remove", **given(options)))


@click.group(cls=RoostGroup)
def relation() -> None:
    """Relate entities."""


@relation.command("add")
@agent_argument
@click.argument("start", metavar="FROM")
@click.argument("relation_type", metavar="TYPE")
@click.argument("end", metavar="TO")
@shared_options
@pass_cli
def relation_add(cli: Cli, /, start: str, relation_type: str, end: str, **options: object) -> None:
    """Say how one entity relates to another: FROM TYPE TO."""
    ends = {"from": start, "type": relation_type, "to": end}
    show_done(cli, cli.call("relation.add", **ends, **given(options)))


add_listing(relation, "relation", "relations", ("from", "name", "to"))
add_removal(relation, "relation")
