"""A request of the host's, the tool that it is for, and the ways it can end."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wire import Id, Json


class RefusedError(Exception):
    """A JSON-RPC error, thrown here or received from the host."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    @property
    def kind(self) -> str:
        """The stable name of one of Lemon's errors, else the code."""
        named = isinstance(self.data, dict) and self.data.get("kind")
        return str(named or self.code)

    def as_json(self) -> Json:
        error: Json = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


@dataclass
class Request:
    """A request of the host's. For the answer to come out right it must be answered once, or be cancelled."""

    id: Id
    method: str
    params: Json
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def meta(self) -> Json:
        meta = self.params.get("_meta", {})
        return meta if isinstance(meta, dict) else {}

    @property
    def arguments(self) -> Json:
        arguments = self.params.get("arguments", {})
        return arguments if isinstance(arguments, dict) else {}


@dataclass
class Tool:
    """A tool's handler returns the result of `tools/call`, or raises a RefusedError."""

    name: str
    description: str
    properties: Json
    handler: Callable[[Request], Json]

    def as_json(self) -> Json:
        schema = {"type": "object", "properties": self.properties}
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": schema,
        }


def text_result(text: str, failed: bool = False) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": failed}
