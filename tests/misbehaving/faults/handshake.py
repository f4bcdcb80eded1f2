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


@fault("strict-mcp")
class StrictMcp(PlainMcp):
    """Is a plain MCP server that exits with status 1 when it reads a method that its MCP revision does not have."""

    known = (
        "initialize",
        "notifications/initialized",
        "notifications/cancelled",
        "ping",
        "tools/list",
        "tools/call",
    )

    def receive(self, message: Json) -> None:
        if message.get("method") not in self.known:
            log(f"fatal: unknown message: {message}")
            os._exit(1)
        super().receive(message)


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
    """Picks the Lemon version ARG (9.9), which the host did not offer."""

    def lemon_body(self) -> Json:
        return {**super().lemon_body(), "version": self.arg or "9.9"}


@fault("bad-mcp-version")
class BadMcpVersion(Plugin):
    """Picks an MCP revision that never was, 1999-01-01."""

    def initialize(self, params: Json) -> Json:
        return {**super().initialize(params), "protocolVersion": "1999-01-01"}


@fault("refuses-mcp-version")
class RefusesMcpVersion(Plugin):
    """Refuses the MCP revision that it is offered, error -32602, where it ought to name one of its own."""

    def initialize(self, params: Json) -> Json:
        data = {"supported": ["1999-01-01"], "requested": params["protocolVersion"]}
        raise RefusedError(-32602, "Unsupported protocol version", data)


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


@fault("no-version")
class NoVersion(Plugin):
    """Names no version in Lemon's part of its answer."""

    def lemon_body(self) -> Json:
        return {"multiSession": True}


@fault("unknown-capabilities")
class UnknownCapabilities(Plugin):
    """Declares capabilities that nobody has heard of, in MCP's part, in Lemon's and beside both."""

    def initialize(self, params: Json) -> Json:
        result = super().initialize(params)
        result["capabilities"].update(teleport={"range": 1e9}, dreams=[None, "a"], prompts=7)
        result["capabilities"]["experimental"]["com.example/other"] = {"version": [1, 2]}
        result["weather"] = "fair"
        return result

    def lemon_body(self) -> Json:
        return {**super().lemon_body(), "shoeSize": 43, "hooks": []}


@fault("huge-hello")
class HugeHello(Plugin):
    """Answers initialize with ARG bytes (20 MiB) of instructions."""

    def initialize(self, params: Json) -> Json:
        size = self.number(20 * 1024 * 1024)
        return {**super().initialize(params), "instructions": "x" * size}


@fault("hello-in-two")
class HelloInTwo(Plugin):
    """Answers initialize in two writes, ARG ms (50) apart: the first one ends within a letter of the server's name."""

    def initialize(self, params: Json) -> Json:
        result = super().initialize(params)
        result["serverInfo"]["name"] = "misbehave 🍋"
        return result

    def answer(self, request: Request, message: Json) -> None:
        if request.method != "initialize":
            return super().answer(request, message)
        line = encode(message)
        within = line.index("🍋".encode()) + 2
        self.wire.write(line[:within])
        time.sleep(self.number(50) / 1000)
        self.wire.write(line[within:])


@fault("exit-after-hello")
class ExitAfterHello(Plugin):
    """Exits with status 4 as soon as it has answered initialize."""

    def answer(self, request: Request, message: Json) -> None:
        super().answer(request, message)
        if request.method == "initialize":
            os._exit(4)


@fault("content-length")
class ContentLength(Plugin):
    """Frames its messages as the language server protocol does: a Content-Length header, and no line end."""

    def send(self, message: Json) -> None:
        body = encode(message, line_end=b"")
        self.wire.write(f"Content-Length: {len(body)}\r\n\r\n".encode(), body)


def wait_for_signal() -> None:
    """Does nothing until SIGTERM ends the process. The main thread calls it, so that nothing is read meanwhile."""
    while True:
        signal.pause()
