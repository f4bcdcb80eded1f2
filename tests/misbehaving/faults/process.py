"""How a process and its children can fail to end."""

import json
import os
import signal
import subprocess
import time

from call import Request, Tool, text_result
from plugin import Plugin
from wire import Json, log

from .registry import fault


class IgnoresTerm(Plugin):
    def start(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


class IgnoresEof(Plugin):
    def end(self) -> None:
        while True:
            signal.pause()


@fault("ignore-eof")
class IgnoreEof(IgnoresEof):
    """Lives on after EOF; SIGTERM ends it."""


@fault("ignore-eof-and-term")
class IgnoreEofAndTerm(IgnoresTerm, IgnoresEof):
    """Lives on after EOF and SIGTERM."""


@fault("stubborn-single")
class StubbornSingle(IgnoresTerm, IgnoresEof):
    """Lives on after EOF and SIGTERM, and serves one session only, so that there may be many of it."""

    def lemon_body(self) -> Json:
        return {"version": "1.0"}


@fault("shutdown-unanswered")
class ShutdownUnanswered(Plugin):
    """Never answers lemon/shutdown, but exits at EOF."""

    def answer(self, request: Request, message: Json) -> None:
        if request.method != "lemon/shutdown":
            super().answer(request, message)


@fault("exit-at-shutdown")
class ExitAtShutdown(Plugin):
    """Exits with status 0 when it reads lemon/shutdown, without an answer."""

    def answer(self, request: Request, message: Json) -> None:
        if request.method == "lemon/shutdown":
            os._exit(0)
        super().answer(request, message)


@fault("slow-exit")
class SlowExit(Plugin):
    """Exits ARG ms (1000) after EOF."""

    def end(self) -> None:
        time.sleep(self.number(1000) / 1000)
        super().end()


@fault("never-exits-cleanly")
class NeverExitsCleanly(Plugin):
    """Answers lemon/shutdown and then aborts at EOF, with a traceback on stderr."""

    def end(self) -> None:
        log("Traceback (most recent call last):\nAssertionError: not again")
        os.abort()


@fault("exit-between-calls")
class ExitBetweenCalls(Plugin):
    """Exits with status 5 as soon as it has answered echo."""

    def answer(self, request: Request, message: Json) -> None:
        super().answer(request, message)
        if request.params.get("name") == "echo":
            os._exit(5)


class HasGrandchild(Plugin):
    """Starts a process when the handshake is over; the tool `grandchild` tells its id."""

    def initialized(self) -> None:
        self.grandchild = self.spawn()
        tool = Tool("grandchild", "Tells the id of the child.", {}, self.tell)
        self.tools.append(tool)

    def spawn(self) -> int:
        raise NotImplementedError

    def tell(self, request: Request) -> Json:
        return text_result(str(self.grandchild))


@fault("grandchild")
class Grandchild(HasGrandchild):
    """Leaves a `sleep 1000` in its own process group, which holds stdout and stderr."""

    def spawn(self) -> int:
        command = ["sleep", "1000"]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL).pid


@fault("grandchild-setsid")
class GrandchildSetsid(HasGrandchild):
    """Leaves a `sleep 1000` in a session of its own, forked twice, which holds stderr."""

    script = "sleep 1000 </dev/null >&2 & echo $!"

    def spawn(self) -> int:
        done = subprocess.run(
            ["sh", "-c", self.script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
            check=True,
        )
        return int(done.stdout)


@fault("grandchild-stubborn")
class GrandchildStubborn(GrandchildSetsid):
    """Like grandchild-setsid, and the child ignores SIGTERM and SIGHUP."""

    script = "trap '' TERM HUP; sleep 1000 </dev/null >&2 & echo $!"


@fault("grandchild-holds-stdout")
class GrandchildHoldsStdout(Grandchild):
    """Like grandchild, and calling echo makes the plugin exit with status 7 while the child holds stdout open."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            os._exit(7)
        return super().call(request)


@fault("answer-and-exit")
class AnswerAndExit(Plugin):
    """Answers echo with a text of ARG letters (1 MiB) and exits with status 0 at once."""

    def answer(self, request: Request, message: Json) -> None:
        if request.params.get("name") != "echo":
            return super().answer(request, message)
        text = "x" * self.number(1024 * 1024)
        super().answer(request, {**message, "result": text_result(text)})
        os._exit(0)


@fault("fds")
class Fds(Plugin):
    """No fault, but its tool `fds` tells which file descriptors it was started with."""

    def start(self) -> None:
        self.inherited = [fd for fd in range(1024) if is_open(fd)]
        self.tools.append(Tool("fds", "Tells the descriptors.", {}, self.tell))

    def tell(self, request: Request) -> Json:
        return text_result(json.dumps(self.inherited))


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@fault("fork-bomb")
class ForkBomb(Plugin):
    """Calling echo forks until that is refused, ARG (100) times at the most; each child waits for a signal."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") != "echo":
            return super().call(request)
        for forked in range(self.number(100)):
            try:
                child = os.fork()
            except BlockingIOError:
                return text_result(f"refused after {forked}")
            while child == 0:
                signal.pause()
        return text_result("not refused")


@fault("behind-wrapper")
class BehindWrapper(Plugin):
    """No fault, but runs as the child of another program, as npx does it: that holds stdin and stdout open, passes on
    no signal, and lives as long as the child."""

    def start(self) -> None:
        child = os.fork()
        while child != 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.waitpid(child, 0)
            os._exit(0)


@fault("zombies")
class Zombies(Plugin):
    """Starts ARG (50) processes that end at once, and never waits for them."""

    def initialized(self) -> None:
        self.children = [subprocess.Popen(["true"]) for _ in range(self.number(50))]
