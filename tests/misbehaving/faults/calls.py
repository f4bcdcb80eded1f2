"""What goes wrong while a call runs."""

import os
import signal
import threading
import time

from call import Request, text_result
from plugin import Plugin
from wire import Json, encode, log

from .handshake import PlainMcp
from .registry import fault


@fault("late")
class Late(Plugin):
    """Answers echo after ARG ms (500), even when the call was cancelled before."""

    def receive_request(self, request: Request) -> None:
        if request.params.get("name") == "echo":
            threading.Thread(target=self.answer_late, args=[request]).start()
        else:
            super().receive_request(request)

    def answer_late(self, request: Request) -> None:
        time.sleep(self.number(500) / 1000)
        message = {"jsonrpc": "2.0", "id": request.id, "result": text_result("late")}
        self.send(message)


@fault("hangs")
class Hangs(Plugin):
    """Never answers echo, and is deaf to its cancellation. Other calls go on."""

    def call(self, request: Request) -> Json:
        while request.params.get("name") == "echo":
            time.sleep(60)
        return super().call(request)


@fault("single-threaded")
class SingleThreaded(Plugin):
    """Works on its calls in the thread that reads: while a call runs or an answer is written, nothing is read."""

    def receive_request(self, request: Request) -> None:
        if request.method != "tools/call":
            return super().receive_request(request)
        self.answer_with(request, self.call)


@fault("out-of-order")
class OutOfOrder(Plugin):
    """Keeps the answers to echo until it has ARG (3), and sends the last one first."""

    def __init__(self, arg: str | None = None) -> None:
        super().__init__(arg)
        self.kept: list[Json] = []

    def answer(self, request: Request, message: Json) -> None:
        if request.params.get("name") != "echo":
            return super().answer(request, message)
        self.kept.append(message)
        if len(self.kept) >= self.number(3):
            while self.kept:
                self.send(self.kept.pop())


@fault("reads-slowly")
class ReadsSlowly(Plugin):
    """Reads one byte in ARG ms (1000), once it has answered tools/list."""

    def answer(self, request: Request, message: Json) -> None:
        super().answer(request, message)
        if request.method == "tools/list":
            while os.read(0, 1):
                time.sleep(self.number(1000) / 1000)
            self.end()


@fault("panic-in-call")
class PanicInCall(Plugin):
    """Comes to an end by an error that nobody catches when echo is called: a traceback on stderr and status 1."""

    def receive_request(self, request: Request) -> None:
        if request.params.get("name") == "echo":
            raise LookupError("no lemons left")
        super().receive_request(request)


@fault("deadlock")
class Deadlock(Plugin):
    """Hangs as a whole when echo is called: it reads and writes nothing more, not even EOF."""

    def receive_request(self, request: Request) -> None:
        while request.params.get("name") == "echo":
            signal.pause()
        super().receive_request(request)


@fault("unsettled")
class Unsettled(Plugin):
    """Ends a cancelled call without saying lemon/settled."""

    def settle(self, request: Request) -> None:
        pass


@fault("settles-and-answers")
class SettlesAndAnswers(Plugin):
    """Says lemon/settled for a cancelled call and answers it, too."""

    def settle(self, request: Request) -> None:
        super().settle(request)
        result = text_result("I finished it all the same")
        self.send({"jsonrpc": "2.0", "id": request.id, "result": result})


@fault("small-input")
class SmallInput(PlainMcp):
    """Is a plain MCP server that exits with status 1 when a line is above ARG bytes (10 MiB)."""

    def receive(self, message: Json) -> None:
        if len(encode(message)) > self.number(10 * 1024 * 1024):
            log("fatal: message too long")
            os._exit(1)
        super().receive(message)


@fault("die-in-call")
class DieInCall(Plugin):
    """Writes a line to stderr and exits with status 7 when echo is called."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            log("fatal: the echo chamber collapsed")
            os._exit(7)
        return super().call(request)


@fault("die-in-line")
class DieInLine(Plugin):
    """Exits with status 7 in the middle of the line that answers echo."""

    def answer(self, request: Request, message: Json) -> None:
        if request.params.get("name") == "echo":
            line = encode(message)
            self.wire.write(line[: len(line) // 2])
            os._exit(7)
        super().answer(request, message)


@fault("kill-self")
class KillSelf(Plugin):
    """Sends itself SIGKILL when echo is called."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().call(request)


@fault("stop-self")
class StopSelf(Plugin):
    """Sends itself SIGSTOP when echo is called."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            # To this thread, so that not even its next line runs.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return super().call(request)


@fault("progress-flood")
class ProgressFlood(Plugin):
    """Sends ARG (100,000) progress notifications before it answers echo."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            for step in range(1, self.number(100_000) + 1):
                self.progress(request, step)
        return super().call(request)


@fault("progress-after-result")
class ProgressAfterResult(Plugin):
    """Sends progress for a call after its answer."""

    def answer(self, request: Request, message: Json) -> None:
        super().answer(request, message)
        self.progress(request, 1)


@fault("unknown-progress")
class UnknownProgress(Plugin):
    """Sends progress with a token that no call carried before each answer."""

    def answer(self, request: Request, message: Json) -> None:
        params = {"progressToken": "nobody's", "progress": 1}
        self.notify("notifications/progress", params)
        super().answer(request, message)


@fault("progress-backwards")
class ProgressBackwards(Plugin):
    """Sends progress 3, 2, 1, -1 before it answers echo."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            for step in (3, 2, 1, -1):
                self.progress(request, step)
        return super().call(request)


@fault("log-flood")
class LogFlood(Plugin):
    """Sends ARG (100,000) log messages before it answers echo."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            for line in range(self.number(100_000)):
                data = {"level": "info", "data": f"line {line}"}
                self.notify("notifications/message", data)
        return super().call(request)
