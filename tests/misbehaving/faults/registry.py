"""Where the faults are kept by their names."""

from collections.abc import Callable

from plugin import Plugin

FAULTS: dict[str, type[Plugin]] = {}
Register = Callable[[type[Plugin]], type[Plugin]]


def fault(name: str) -> Register:
    """Registers a subclass of Plugin as the fault `name`. Its docstring tells what it does."""

    def register(plugin: type[Plugin]) -> type[Plugin]:
        assert name not in FAULTS, name
        FAULTS[name] = plugin
        return plugin

    return register
