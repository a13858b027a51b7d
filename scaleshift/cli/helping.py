"""How does --help teach?  Options by what they are for, defaults shown, examples at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from scaleshift.spelling import meant, suggestion

WIDTH = 100  # columns at most
REST = "Other options"


def in_section(title: str, *options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, under a heading of their own in --help."""

    def decorate(function: Any) -> Any:
        known = len(getattr(function, "__click_params__", ()))
        for option in reversed(options):
            function = option(function)
        for parameter in function.__click_params__[known:]:
            parameter.section = title
        return function

    return decorate


class Verb(click.Command):
    """A command whose help has its options in sections, and ends with examples.

    Parameters
    ----------
    examples : str
        One command a line; a line that begins with blanks goes on with the one before.
    """

    def __init__(self, *args: Any, examples: str = "", **named: Any) -> None:
        super().__init__(*args, **named)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the line apart; UsageError for an option that there is not, with the one that was meant."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = [name for parameter in self.get_params(ctx) for name in parameter.opts]
            told = f"there is no option {error.option_name}{meant(error.option_name, known)}"
            raise click.UsageError(told, ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section, as they stand in the code."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", REST), []).append(record)
        for title in sorted(sections, key=REST.__eq__):
            with formatter.section(title):
                formatter.write_dl(sections[title])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                write_lines(formatter, self.examples.strip().split("\n"))


class Group(click.Group):
    """A group that tells its verbs in the order of work, and suggests the one that was meant.

    Parameters
    ----------
    sections : mapping of str to mapping
        Heading -> {verb: the question that it answers}.
    first_steps : str
        Commands, one a line.
    closing : str
        What stands at the end of the help.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]] | None = None,
        first_steps: str = "",
        closing: str = "",
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self.sections, self.first_steps, self.closing = sections or {}, first_steps, closing

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs, in the order of work; those of no section come last."""
        ordered = [verb for verbs in self.sections.values() for verb in verbs]
        return [*ordered, *(verb for verb in super().list_commands(ctx) if verb not in ordered)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is called; UsageError where there is none of that name."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no verb {args[0]!r}{suggestion(args[0], known)}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write verbs, first steps and options. No verb is imported for it."""
        width = max(map(len, self.list_commands(ctx)))
        for title, verbs in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(verb.ljust(width), question) for verb, question in verbs.items()])
        if self.first_steps:
            with formatter.section("First steps"):
                write_lines(formatter, self.first_steps.strip().split("\n"))
        click.Command.format_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where more is to be found."""
        formatter.write_paragraph()
        for paragraph in self.closing.strip().split("\n"):
            formatter.write_text(paragraph)


class OneOf(click.Choice):
    """A choice that suggests the one that was meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The choice; BadParameter where it is none of them."""
        if str(value) not in self.choices:
            listed = ", ".join(map(str, self.choices))
            self.fail(f"{value!r}: expected one of {listed}{meant(value, self.choices)}", param, ctx)
        return super().convert(value, param, ctx)


def write_lines(formatter: click.HelpFormatter, lines: Sequence[str]) -> None:
    """Write commands as they stand: wrapped, nobody could copy them."""
    for line in lines:
        formatter.write((" " * formatter.current_indent + line).rstrip() + "\n")
