"""The smallest host that can run the zoo, for its own tests."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from wire import Json

MISBEHAVE = Path(__file__).with_name("misbehave.py")


class Host:
    """Starts the plugin with a fault, in a session of its own. Reads the raw lines that it writes."""

    def __init__(self, *fault_and_arg: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(MISBEHAVE), *fault_and_arg],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **env},
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.stderr = self.process.stderr
        self.last_id = 0

    def close(self) -> None:
        """Ends the plugin and its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(BrokenPipeError):
                pipe.close()

    def send(self, method: str, params: Json, request_id: int | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            message["id"] = request_id
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def request(self, method: str, **params: Any) -> int:
        self.last_id += 1
        self.send(method, params, self.last_id)
        return self.last_id

    def call(self, tool: str, /, **arguments: Any) -> int:
        meta = {"progressToken": "token"}
        return self.request("tools/call", name=tool, arguments=arguments, _meta=meta)

    def line(self) -> bytes:
        return self.stdout.readline()

    def read(self) -> Any:
        """The next line as JSON."""
        return json.loads(self.line())

    def wait_for(self, wanted: Callable[[Json], bool]) -> Json:
        """The next message that is wanted; the lines before it are dropped."""
        while line := self.line():
            try:
                message = json.loads(line.lstrip("\ufeff".encode()))
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict) and wanted(message):
                return message
        raise EOFError

    def answer_to(self, request_id: int) -> Json:
        return self.wait_for(lambda message: message.get("id") == request_id)

    def text_of(self, request_id: int) -> str:
        return str(self.answer_to(request_id)["result"]["content"][0]["text"])

    def initialize(self) -> Json:
        """The answer to initialize."""
        lemon = {"dev.lemon/plugin": {"versions": ["1.0"]}}
        hello = self.request(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={"experimental": lemon},
        )
        return self.answer_to(hello)

    def handshake(self) -> None:
        self.initialize()
        self.send("notifications/initialized", {})

    def exit_status(self) -> int:
        return self.process.wait(timeout=20)
