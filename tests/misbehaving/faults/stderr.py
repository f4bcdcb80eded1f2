"""What can come on stderr."""

import os

from call import Request
from plugin import Plugin
from wire import Json, encode, log, log_bytes

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


@fault("stderr-only")
class StderrOnly(Plugin):
    """Writes its messages to stderr, and nothing to stdout."""

    def send(self, message: Json) -> None:
        log_bytes(encode(message))


@fault("stderr-then-success")
class StderrThenSuccess(Plugin):
    """Writes to stderr how it is to be used and exits with status 0 before it reads anything."""

    def start(self) -> None:
        log("usage: misbehave [--stdio]")
        os._exit(0)


@fault("stderr-chatter")
class StderrChatter(Plugin):
    """Writes lines to stderr that sound like errors with every answer."""

    def answer(self, request: Request, message: Json) -> None:
        log("ERROR: failed to panic: Traceback (most recent call last)")
        super().answer(request, message)


@fault("stderr-ansi")
class StderrAnsi(Plugin):
    """Writes coloured lines to stderr, and ones that clear the screen and set the terminal's title."""

    def start(self) -> None:
        log("\x1b[31mred\x1b[0m and \x1b[2J\x1b]0;owned\x07cleared")


@fault("stderr-formats")
class StderrFormats(Plugin):
    """Writes lines to stderr as log libraries do: with levels in front, and as JSON."""

    def start(self) -> None:
        log("[WARN] cache: cold")
        log("2026-01-01T00:00:00Z ERROR db: locked")
        log('{"level":"error","msg":"a line of JSON","jsonrpc":"2.0","id":1,"result":{}}')


@fault("stderr-closed")
class StderrClosed(Plugin):
    """Closes stderr at the start and goes on."""

    def start(self) -> None:
        os.close(2)
