"""Messages in and out of the process, one JSON object a line, from any thread."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Id = int | str


def encode(message: Any, line_end: bytes = b"\n") -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + line_end


class Wire:
    """Stdin and stdout as a pair of message streams.

    It writes with os.write and no buffer of its own, so that a byte that was written has left the process, whatever
    becomes of the process next.
    """

    def __init__(self) -> None:
        self._writing = threading.Lock()

    def messages(self) -> Iterator[Json]:
        """Yields the messages from the host until it closes stdin; skips what is no object."""
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                yield message

    def write(self, *chunks: bytes) -> None:
        """Writes the chunks one after the other, with nothing of another thread between them."""
        with self._writing:
            for chunk in chunks:
                self._write_whole(chunk)

    @staticmethod
    def _write_whole(data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(1, rest) :]
        except BrokenPipeError:  # nobody is left to talk to
            os._exit(0)


def log(text: str) -> None:
    """Writes a line to stderr, the plugin's log."""
    log_bytes(text.encode() + b"\n")


def log_bytes(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(2, rest) :]
