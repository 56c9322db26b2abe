"""What there is to choose from: list."""

from lengthwise.cli.streams import Output


def list_members() -> int:
    """List tasks, models, constructions, experiments and presets, with settings and the defaults of preset fast."""
    from lengthwise.report.pages.terminal import print_catalogue

    print_catalogue(Output())
    return 0


COMMANDS = {"list": list_members}
