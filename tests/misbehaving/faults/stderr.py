"""What can come on stderr."""

from plugin import Plugin
from wire import log_bytes

from .registry import fault

MIB = 1024 * 1024


@fault("stderr-flood")
class StderrFlood(Plugin):
    """Writes ARG (10) MiB without a line end to stderr at the start."""

    def start(self) -> None:
        for _ in range(self.number(10)):
            log_bytes(b"x" * MIB)


@fault("stderr-lines")
class StderrLines(Plugin):
    """Writes ARG (100,000) lines to stderr at the start."""

    def start(self) -> None:
        lines = (f"line {line}\n" for line in range(self.number(100_000)))
        log_bytes("".join(lines).encode())


@fault("stderr-invalid-utf8")
class StderrInvalidUtf8(Plugin):
    """Writes bytes that are no UTF-8 to stderr at the start."""

    def start(self) -> None:
        log_bytes(b"caf\xe9 \xff\xfe \xf0\x9f\x8d\n")
