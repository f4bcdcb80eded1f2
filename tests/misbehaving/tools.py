"""The tools that the well-behaved plugin offers, and nearly every faulty one too."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from call import RefusedError, Request, Tool, text_result
from wire import Json

if TYPE_CHECKING:
    from plugin import Plugin


def all_tools(plugin: Plugin) -> list[Tool]:
    text = {"text": {"type": "string"}}
    relayed = {"tool": {"type": "string"}, "arguments": {"type": "object"}}
    logged = {"level": {"type": "string"}, **text}
    tools = Tools(plugin)
    return [
        Tool("echo", "Returns the text.", text, tools.echo),
        Tool("sleep", "Waits.", {"seconds": {"type": "number"}}, tools.sleep),
        Tool("env", "Returns the environment.", {}, tools.env),
        Tool("pids", "Returns the ids of this process.", {}, tools.pids),
        Tool("session", "Returns what is known of sessions.", {}, tools.session),
        Tool("whose", "Asks the host whose work it does.", {}, tools.whose),
        Tool("config", "Returns the configuration.", {}, tools.config),
        Tool("relay", "Calls a tool of the host's.", relayed, tools.relay),
        Tool("progress", "Works.", {"steps": {"type": "integer"}}, tools.progress),
        Tool("log", "Sends a log message.", logged, tools.log),
    ]


class Tools:
    """The handlers. What is no text is returned as JSON in a text."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin

    def echo(self, request: Request) -> Json:
        return text_result(request.arguments["text"])

    def sleep(self, request: Request) -> Json:
        seconds = request.arguments["seconds"]
        request.cancelled.wait(seconds)
        return text_result(f"slept for {seconds} s")

    def env(self, request: Request) -> Json:
        return text_result(json.dumps(dict(os.environ)))

    def pids(self, request: Request) -> Json:
        ids = {"pid": os.getpid(), "group": os.getpgid(0), "session": os.getsid(0)}
        return text_result(json.dumps(ids))

    def session(self, request: Request) -> Json:
        """All open sessions by handle, and what the call itself carried."""
        known = {"sessions": self.plugin.sessions, "meta": request.meta}
        return text_result(json.dumps(known))

    def whose(self, request: Request) -> Json:
        """The host's answer to `host/session/get` for the call's session, asked as background work does."""
        session = {"dev.lemon/session": request.meta["dev.lemon/session"]}
        return text_result(json.dumps(self.plugin.ask("host/session/get", {"_meta": session}, None)))

    def config(self, request: Request) -> Json:
        """The params of the last `lemon/configure`, or null."""
        return text_result(json.dumps(self.plugin.config))

    def relay(self, request: Request) -> Json:
        params = {
            "name": request.arguments["tool"],
            "arguments": request.arguments.get("arguments", {}),
        }
        try:
            return self.plugin.ask("host/tools/call", params, request.id)
        except RefusedError as refused:
            return text_result(f"{refused.kind}: {refused.message}", failed=True)

    def progress(self, request: Request) -> Json:
        steps = request.arguments["steps"]
        for step in range(1, steps + 1):
            self.plugin.progress(request, step, steps)
        return text_result(f"{steps} steps done")

    def log(self, request: Request) -> Json:
        params = {
            "level": request.arguments.get("level", "info"),
            "data": request.arguments["text"],
        }
        self.plugin.notify("notifications/message", params)
        return text_result("logged")
