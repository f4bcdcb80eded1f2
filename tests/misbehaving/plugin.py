"""A Lemon plugin that does everything right, made so that a fault can change one thing of it.

Each tool call runs in a thread of its own; the main thread reads. A fault is a subclass that overrides a method, see
the package `faults`. The tools stand in tools.py.
"""

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from call import RefusedError, Request
from tools import all_tools
from wire import Id, Json, Wire, encode, log

LEMON = "dev.lemon/plugin"
PARENT = "dev.lemon/parent"


class Plugin:
    """Right in all things. `arg` is the word that stood after the fault's name on the command line."""

    def __init__(self, arg: str | None = None) -> None:
        self.arg = arg
        self.wire = Wire()
        self.running: dict[Id, Request] = {}
        self.replies: dict[Id, queue.Queue[Json]] = {}
        self.asked = 0
        self.sessions: dict[int, Json] = {}
        self.config: Json | None = None
        self.tools = all_tools(self)

    def number(self, default: int) -> int:
        """The argument as a number."""
        return default if self.arg is None else int(self.arg)

    # The life of the process.

    def run(self) -> None:
        self.start()
        for message in self.wire.messages():
            self.receive(message)
        self.end()

    def start(self) -> None:
        """Runs before the first message is read."""

    def initialized(self) -> None:
        """Runs when the handshake is over."""

    def end(self) -> None:
        """Runs when the host has closed stdin. The threads that still work on a call end with the process."""
        os._exit(0)

    # What comes in.

    def receive(self, message: Json) -> None:
        if "method" not in message:
            self.receive_reply(message)
        elif "id" in message:
            params = message.get("params") or {}
            self.receive_request(Request(message["id"], message["method"], params))
        else:
            self.receive_notification(message["method"], message.get("params") or {})

    def receive_request(self, request: Request) -> None:
        if request.method != "tools/call":
            return self.answer_with(request, self.handle)
        self.running[request.id] = request
        threading.Thread(target=self.run_call, args=[request], daemon=True).start()

    def run_call(self, request: Request) -> None:
        self.answer_with(request, self.call)
        self.running.pop(request.id, None)

    def receive_reply(self, message: Json) -> None:
        if waiting := self.replies.pop(message["id"], None):
            waiting.put(message)

    def receive_notification(self, method: str, params: Json) -> None:
        if method == "notifications/initialized":
            self.initialized()
        elif method == "notifications/cancelled":
            if request := self.running.get(params["requestId"]):
                request.cancelled.set()
        elif method == "lemon/session":
            self.mirror_session(params)
        elif method == "lemon/session_closed":
            self.sessions.pop(params["handle"], None)

    def mirror_session(self, params: Json) -> None:
        if "changes" not in params:
            self.sessions[params["handle"]] = params
            return
        session = self.sessions[params["handle"]]
        if params["version"] != session["version"] + 1:
            log(f"session {params['handle']} skips to version {params['version']}")
        session["version"] = params["version"]
        merged = {**session["state"], **params["changes"]}
        session["state"] = {k: v for k, v in merged.items() if v is not None}

    # What is answered.

    def handle(self, request: Request) -> Json:
        """The result of any request but `tools/call`."""
        match request.method:
            case "initialize":
                return self.initialize(request.params)
            case "tools/list":
                return self.list_tools(request.params.get("cursor"))
            case "lemon/configure":
                return self.configure(request.params)
            case "ping" | "lemon/shutdown":
                return {}
        raise RefusedError(-32601, f"unknown method: {request.method}")

    def initialize(self, params: Json) -> Json:
        capabilities = {
            "tools": {"listChanged": True},
            "experimental": {LEMON: self.lemon_body()},
            "extensions": {LEMON: {}},
        }
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": {"name": "misbehave", "version": "1.0.0"},
        }

    def lemon_body(self) -> Json:
        return {"version": "1.0", "multiSession": True}

    def list_tools(self, cursor: str | None) -> Json:
        return {"tools": [tool.as_json() for tool in self.tools]}

    def configure(self, params: Json) -> Json:
        self.config = params
        return {}

    def call(self, request: Request) -> Json:
        """The result of `tools/call`."""
        name = request.params.get("name")
        for tool in self.tools:
            if tool.name == name:
                return tool.handler(request)
        raise RefusedError(-32602, f"unknown tool: {name}")

    # What goes out.

    def answer_with(self, request: Request, handler: Callable[[Request], Json]) -> None:
        message: Json = {"jsonrpc": "2.0", "id": request.id}
        try:
            message["result"] = handler(request)
        except RefusedError as refused:
            message["error"] = refused.as_json()
        except Exception as error:  # noqa: BLE001 - a plain bug must not look like one of the faults
            message["error"] = {"code": -32603, "message": repr(error)}
        if request.cancelled.is_set():
            self.settle(request)
        else:
            self.answer(request, message)

    def answer(self, request: Request, message: Json) -> None:
        self.send(message)

    def settle(self, request: Request) -> None:
        """Says that a cancelled call has really ended."""
        self.notify("lemon/settled", {"requestId": request.id})

    def notify(self, method: str, params: Json) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def progress(self, request: Request, done: int, total: int | None = None) -> None:
        """Tells how far a call is, if the host asked for that."""
        token = request.meta.get("progressToken")
        if token is None:
            return
        params: Json = {"progressToken": token, "progress": done}
        params["message"] = f"step {done}"
        if total is not None:
            params["total"] = total
        self.notify("notifications/progress", params)

    def ask(self, method: str, params: Json, parent: Id | None) -> Json:
        """Makes a request of the host and waits for its result. `parent` is the request that it is made for."""
        self.asked += 1
        request_id = f"ask-{self.asked}"
        if parent is not None:
            params = {**params, "_meta": {PARENT: parent}}
        waiting = self.replies[request_id] = queue.Queue()
        self.send(
            {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        )
        reply = waiting.get()
        if error := reply.get("error"):
            raise RefusedError(error["code"], error["message"], error.get("data"))
        result: Json = reply["result"]
        return result

    def send(self, message: Any) -> None:
        self.wire.write(encode(message))
