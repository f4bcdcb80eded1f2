"""From the start of the process to the end of the handshake."""

import os
import signal
import time

from call import RefusedError, Request
from plugin import Plugin
from wire import Json, encode, log

from .registry import fault


@fault("none")
class NoFault(Plugin):
    """No fault at all, to compare with."""


@fault("plain-mcp")
class PlainMcp(Plugin):
    """No fault, but a plain MCP server: answers initialize without Lemon's part."""

    def initialize(self, params: Json) -> Json:
        result = super().initialize(params)
        result["capabilities"] = {"tools": {"listChanged": True}}
        return result


@fault("single-session")
class SingleSession(Plugin):
    """No fault, but serves one session only: leaves multiSession out."""

    def lemon_body(self) -> Json:
        return {"version": "1.0"}


@fault("exclusive-single")
class ExclusiveSingle(Plugin):
    """No fault, but serves one session only and must never run twice."""

    def lemon_body(self) -> Json:
        return {"version": "1.0", "exclusive": True}


@fault("exit-before-hello")
class ExitBeforeHello(Plugin):
    """Writes a line to stderr and exits with status 3 before it reads anything."""

    def start(self) -> None:
        log("cannot open the door: no key")
        os._exit(3)


@fault("exit-zero-before-hello")
class ExitZeroBeforeHello(Plugin):
    """Exits with status 0 before it reads anything."""

    def start(self) -> None:
        os._exit(0)


@fault("slow-start")
class SlowStart(Plugin):
    """Answers initialize after ARG ms (1000)."""

    def initialize(self, params: Json) -> Json:
        time.sleep(self.number(1000) / 1000)
        return super().initialize(params)


@fault("never-answers")
class NeverAnswers(Plugin):
    """Reads everything and answers nothing, not even ping."""

    def answer(self, request: Request, message: Json) -> None:
        pass


@fault("no-initialize-answer-but-alive")
class NoInitializeAnswer(Plugin):
    """Does not answer initialize, but ping and everything else."""

    def answer(self, request: Request, message: Json) -> None:
        if request.method != "initialize":
            super().answer(request, message)


@fault("initialize-error")
class InitializeError(Plugin):
    """Answers initialize with an internal error, -32603."""

    def initialize(self, params: Json) -> Json:
        raise RefusedError(-32603, "the database is locked")


@fault("bad-version")
class BadVersion(Plugin):
    """Has no Lemon version in common with the host: error 4012 with both lists."""

    def initialize(self, params: Json) -> Json:
        offer = params["capabilities"]["experimental"]["dev.lemon/plugin"]
        data = {"kind": "unsupported_version", "supported": ["2.0"]}
        data["requested"] = offer["versions"]
        raise RefusedError(4012, "this plugin speaks Lemon 2.0", data)


@fault("answers-other-version")
class AnswersOtherVersion(Plugin):
    """Picks the Lemon version 9.9, which the host did not offer."""

    def lemon_body(self) -> Json:
        return {**super().lemon_body(), "version": "9.9"}


@fault("bad-mcp-version")
class BadMcpVersion(Plugin):
    """Picks an MCP revision that never was, 1999-01-01."""

    def initialize(self, params: Json) -> Json:
        return {**super().initialize(params), "protocolVersion": "1999-01-01"}


@fault("hello-twice")
class HelloTwice(Plugin):
    """Answers initialize twice."""

    def answer(self, request: Request, message: Json) -> None:
        super().answer(request, message)
        if request.method == "initialize":
            super().answer(request, message)


@fault("request-first")
class RequestFirst(Plugin):
    """Sends a ping and a log message before it is asked anything."""

    def start(self) -> None:
        self.notify("notifications/message", {"level": "info", "data": "early"})
        self.send({"jsonrpc": "2.0", "id": "early", "method": "ping"})


@fault("banner")
class Banner(Plugin):
    """Writes three lines that are no messages to stdout, then does everything right."""

    def start(self) -> None:
        self.wire.write(b"Welcome to misbehave!\n", b"=====\n", b"Ready.\n")


@fault("bom")
class Bom(Plugin):
    """Writes a byte order mark before the first line."""

    def start(self) -> None:
        self.wire.write("\ufeff".encode())


@fault("closes-stdout")
class ClosesStdout(Plugin):
    """Closes stdout once the handshake is over and lives on."""

    def initialized(self) -> None:
        os.close(1)
        wait_for_signal()


@fault("closes-stdin")
class ClosesStdin(Plugin):
    """Closes stdin once the handshake is over and lives on."""

    def initialized(self) -> None:
        os.close(0)
        wait_for_signal()


@fault("stops-reading")
class StopsReading(Plugin):
    """Reads nothing more once it has answered ARG (tools/list), not even EOF. Calls that it had read are answered."""

    def answer(self, request: Request, message: Json) -> None:
        super().answer(request, message)
        if request.method == (self.arg or "tools/list"):
            wait_for_signal()


@fault("unterminated-hello")
class UnterminatedHello(Plugin):
    """Writes the answer to initialize without its line end and exits with status 0."""

    def answer(self, request: Request, message: Json) -> None:
        self.wire.write(encode(message, line_end=b""))
        os._exit(0)


def wait_for_signal() -> None:
    """Does nothing until SIGTERM ends the process. The main thread calls it, so that nothing is read meanwhile."""
    while True:
        signal.pause()
