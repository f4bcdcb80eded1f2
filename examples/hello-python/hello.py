#!/usr/bin/env python3
"""A whole Lemon plugin without an SDK: the wire is one JSON message a line.

Requests come in on stdin, answers go out on stdout, anything else goes to stderr.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

LEMON = "dev.lemon/plugin"  # under this id the two sides agree that they speak Lemon
MCP_VERSIONS = ["2025-11-25", "2025-06-18", "2024-11-05"]


def tool(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    tool("hello", "Greets someone.", {"name": {"type": "string"}}),
    tool("add", "Adds two numbers.", {name: {"type": "number"} for name in "ab"}),
]
HANDLERS: dict[str, Callable[..., str]] = {
    "hello": lambda name: f"Hello, {name}!",
    "add": lambda a, b: str(sum((a, b))),  # sum() refuses strings, + would join them
}


def error(code: int, message: str, **data: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "data": data}}


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    offer = params.get("capabilities", {}).get("experimental", {}).get(LEMON)
    if offer and "1.0" not in offer["versions"]:
        lists = {"supported": ["1.0"], "requested": offer["versions"]}
        return error(4012, "it speaks 1.0", kind="unsupported_version", **lists)
    asked = params.get("protocolVersion")
    capabilities: dict[str, Any] = {"tools": {}}
    if offer:  # else it is an MCP client, and this an MCP server
        body = {"version": "1.0", "multiSession": True}
        capabilities["experimental"] = {LEMON: body}
        capabilities["extensions"] = {LEMON: {}}  # the same news where MCP looks for it
    result = {
        "protocolVersion": asked if asked in MCP_VERSIONS else MCP_VERSIONS[0],
        "capabilities": capabilities,
        "serverInfo": {"name": "hello-python", "version": "1.0.0"},
    }
    return {"result": result}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name not in HANDLERS:
        return error(-32602, f"unknown tool: {name}")
    try:
        text, failed = HANDLERS[name](**arguments), False
    except TypeError as problem:  # a result and no error, so that the model reads it
        text, failed = str(problem), True
    content = [{"type": "text", "text": text}]
    return {"result": {"content": content, "isError": failed}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return initialize(params)
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return call(params.get("name", ""), params.get("arguments", {}))
    if method in ("ping", "lemon/shutdown"):  # after the latter the host closes stdin
        return {"result": {}}
    return error(-32601, f"unknown method: {method}")


for line in sys.stdin.buffer:  # ends at EOF, and the plugin with it
    try:
        message = json.loads(line)
    except ValueError:  # not for us
        continue
    # What has no id is a notification. None matters to a plugin that does one call at a
    # time: when it reads that a call is cancelled, it has already answered it.
    if "method" in message and "id" in message:
        reply = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
