"""`kav corpora`: the corpora that can be fetched by name."""

import typer

from keras_attnvariants.cli.commands import command


@command
def corpora() -> None:
    """List the corpora that are fetched by name, with size and licence.

    [bold]Example:[/bold] kav train --data bible-de-en --source en --target de …
    """
    from rich.console import Console
    from rich.table import Table

    from keras_attnvariants.data import registry
    from keras_attnvariants.utils.caches import default_cache

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("name", "languages", "MB", "checked by", "licence", "from"):
        table.add_column(column, overflow="fold")
    for name in registry.names():
        corpus = registry.get(name)
        languages = ", ".join(corpus.languages)
        size = f"{corpus.megabytes:,}"
        digests = ", ".join(corpus.digests)
        table.add_row(name, languages, size, digests, corpus.licence, corpus.origin)
    Console(highlight=False).print(table)
    typer.echo(f"They are kept in {default_cache()} (environment: KAV_CACHE).")
