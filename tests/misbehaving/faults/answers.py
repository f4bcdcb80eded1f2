"""Answers that are wrong in their form. Most are about the answers to one method, ARG, or to calls of echo."""

import json
import os
import time

from call import Request
from plugin import Plugin
from wire import Id, Json, encode

from .registry import fault

MIB = 1024 * 1024


class Spoiled(Plugin):
    """Sends `spoil` where it should send the answer to a request of the method, or to a call of echo."""

    def answer(self, request: Request, message: Json) -> None:
        name = request.params.get("name")
        if request.method == self.arg or (self.arg is None and name == "echo"):
            self.spoil(message)
        else:
            super().answer(request, message)

    def spoil(self, message: Json) -> None:
        raise NotImplementedError

    def send_line(self, line: str) -> None:
        self.wire.write(line.encode() + b"\n")


@fault("twice")
class Twice(Spoiled):
    """Sends each answer twice."""

    def spoil(self, message: Json) -> None:
        self.send(message)
        self.send(message)


@fault("string-id")
class StringId(Spoiled):
    """Answers with the id as a string: "5" for 5."""

    def spoil(self, message: Json) -> None:
        self.send({**message, "id": str(message["id"])})


@fault("unknown-id")
class UnknownId(Spoiled):
    """Before each answer, answers a request that nobody made."""

    def spoil(self, message: Json) -> None:
        self.send({**message, "id": 424242})
        self.send(message)


@fault("null-id-error")
class NullIdError(Spoiled):
    """Before each answer, sends a parse error, -32700, with the id null."""

    def spoil(self, message: Json) -> None:
        error = {"code": -32700, "message": "that was no JSON"}
        self.send({"jsonrpc": "2.0", "id": None, "error": error})
        self.send(message)


@fault("result-null")
class ResultNull(Spoiled):
    """Answers with the result null."""

    def spoil(self, message: Json) -> None:
        self.send({**message, "result": None})


@fault("result-and-error")
class ResultAndError(Spoiled):
    """Answers with a result and an error at once."""

    def spoil(self, message: Json) -> None:
        self.send({**message, "error": {"code": 1, "message": "it also failed"}})


@fault("neither")
class Neither(Spoiled):
    """Answers with neither a result nor an error."""

    def spoil(self, message: Json) -> None:
        self.send({"jsonrpc": "2.0", "id": message["id"]})


@fault("wrong-result")
class WrongResult(Spoiled):
    """Answers with a result of another shape: a list of words."""

    def spoil(self, message: Json) -> None:
        self.send({**message, "result": ["not", "an", "object"]})


@fault("batch")
class Batch(Spoiled):
    """Answers with a batch: an array of one answer."""

    def spoil(self, message: Json) -> None:
        self.send([message])


@fault("duplicate-keys")
class DuplicateKeys(Spoiled):
    """Answers with two ids and two results in one object, the right ones last."""

    def spoil(self, message: Json) -> None:
        wrong = '"id":424242,"result":{"content":[]},'
        self.send_line("{" + wrong + json.dumps(message)[1:])


@fault("deep-nesting")
class DeepNesting(Spoiled):
    """Answers with structuredContent that is 10,000 arrays deep."""

    def spoil(self, message: Json) -> None:
        deep = "[" * 10_000 + "]" * 10_000
        self.send_line(raw_answer(message["id"], f'"structuredContent":{{"a":{deep}}}'))


@fault("odd-numbers")
class OddNumbers(Spoiled):
    """Answers with numbers at the edge: 1e999, -0.0, 2^64 and one of 400 digits."""

    def spoil(self, message: Json) -> None:
        odd = f"[1e999,-0.0,18446744073709551616,{'9' * 400}]"
        self.send_line(raw_answer(message["id"], f'"structuredContent":{{"a":{odd}}}'))


@fault("nan")
class Nan(Spoiled):
    """Answers with NaN, which is no JSON."""

    def spoil(self, message: Json) -> None:
        self.send_line(raw_answer(message["id"], '"structuredContent":{"a":NaN}'))


@fault("lone-surrogate")
class LoneSurrogate(Spoiled):
    """Answers with a text that has half a surrogate pair in it."""

    def spoil(self, message: Json) -> None:
        content = '"content":[{"type":"text","text":"half \\ud83c of a lemon"}]'
        self.send_line(raw_answer(message["id"], content))


@fault("invalid-utf8")
class InvalidUtf8(Spoiled):
    """Answers with a text that has bytes in it that are no UTF-8."""

    def spoil(self, message: Json) -> None:
        line = raw_answer(message["id"], '"content":[{"type":"text","text":"caf@"}]')
        self.wire.write(line.encode().replace(b"@", b"\xe9\xff") + b"\n")


@fault("odd-answer-ids")
class OddAnswerIds(Spoiled):
    """Before each answer, answers with ids that no request can have: null, 1.5, true, a list, an object."""

    def spoil(self, message: Json) -> None:
        for odd in (None, 1.5, True, [1], {"id": 1}):
            self.send({**message, "id": odd})
        self.send(message)


@fault("noise-before-message")
class NoiseBeforeMessage(Spoiled):
    """Writes a word without a line end directly before each answer, so that both are one line."""

    def spoil(self, message: Json) -> None:
        self.wire.write(b"done. ", encode(message))


@fault("noise-inside")
class NoiseInside(Spoiled):
    """Writes a word without a line end into the middle of each answer."""

    def spoil(self, message: Json) -> None:
        line = encode(message)
        middle = line.index(b'"result"')
        self.wire.write(line[:middle], b"debug: half way ", line[middle:])


@fault("interleaved")
class Interleaved(Spoiled):
    """Writes two answers at once, as threads without a lock do: a half of each in turn."""

    first: bytes | None = None

    def spoil(self, message: Json) -> None:
        line = encode(message)
        if self.first is None:
            self.first = line
            return
        one, half = self.first, len(line) // 2
        self.first = None
        self.wire.write(one[:half], line[:half], one[half:], line[half:])


@fault("unterminated-answer")
class UnterminatedAnswer(Spoiled):
    """Writes an answer without its line end and exits with status 0."""

    def spoil(self, message: Json) -> None:
        self.wire.write(encode(message, line_end=b""))
        os._exit(0)


@fault("structured-mismatch")
class StructuredMismatch(Spoiled):
    """Answers with structuredContent that does not fit the outputSchema of echo."""

    def list_tools(self, cursor: str | None) -> Json:
        result = super().list_tools(cursor)
        number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        result["tools"][0]["outputSchema"] = number
        return result

    def spoil(self, message: Json) -> None:
        message["result"]["structuredContent"] = {"n": "seven"}
        self.send(message)


@fault("unflushed")
class Unflushed(Spoiled):
    """Keeps its answers in a buffer of its own, which is written at EOF."""

    kept: bytes = b""

    def spoil(self, message: Json) -> None:
        self.kept += encode(message)

    def end(self) -> None:
        self.wire.write(self.kept)
        super().end()


@fault("huge-line")
class HugeLine(Plugin):
    """Answers echo with a line of ARG bytes (20 MiB), its end not counted. The id stands after the result."""

    def answer(self, request: Request, message: Json) -> None:
        if request.params.get("name") != "echo":
            return super().answer(request, message)
        rest = f'"}}]}},"id":{json.dumps(request.id)}}}'
        start = '{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"'
        filling = self.number(20 * MIB) - len(start) - len(rest)
        self.wire.write(start.encode(), b"x" * filling, rest.encode(), b"\n")


@fault("split-utf8")
class SplitUtf8(Plugin):
    """Writes everything one byte at a time; echo adds é, 漢 and 🍋 to the text."""

    def send(self, message: Json) -> None:
        if content := message.get("result", {}).get("content"):
            content[0]["text"] += " é漢🍋"
        self.wire.write(*(bytes([byte]) for byte in encode(message)))


@fault("two-writes")
class TwoWrites(Plugin):
    """Writes everything in two halves, ARG ms (50) apart."""

    def send(self, message: Json) -> None:
        line = encode(message)
        half = len(line) // 2
        self.wire.write(line[:half])
        time.sleep(self.number(50) / 1000)
        self.wire.write(line[half:])


@fault("crlf")
class Crlf(Plugin):
    """Ends its lines with CR LF and writes blank lines between them."""

    def send(self, message: Json) -> None:
        self.wire.write(b"\r\n", encode(message, line_end=b"\r\n"), b"\n \r\n")


@fault("escaped-method")
class EscapedMethod(Plugin):
    """Writes the method names of its notifications with \\u escapes."""

    def notify(self, method: str, params: Json) -> None:
        escaped = "".join(f"\\u{ord(letter):04x}" for letter in method)
        start = f'{{"jsonrpc":"2.0","method":"{escaped}","params":'
        self.wire.write(start.encode(), encode(params, line_end=b"}\n"))


@fault("stdout-noise")
class StdoutNoise(Plugin):
    """Writes a line that is no message before and after every message."""

    def send(self, message: Json) -> None:
        noise = b"debug: [1, 2, 3\n"
        self.wire.write(noise, encode(message), b'"a string"\n', noise)


@fault("noise-flood")
class NoiseFlood(Plugin):
    """Writes ARG (2000) lines that are no messages at once when echo is called, then answers."""

    def answer(self, request: Request, message: Json) -> None:
        if request.params.get("name") == "echo":
            self.wire.write(b"this is no message\n" * self.number(2000))
        super().answer(request, message)


@fault("endless-line")
class EndlessLine(Plugin):
    """Answers echo with a line that never ends: ARG MiB (64) and no line end, then nothing."""

    def answer(self, request: Request, message: Json) -> None:
        if request.params.get("name") != "echo":
            return super().answer(request, message)
        head = raw_answer(request.id, '"text":"').removesuffix("}}")
        self.wire.write(head.encode())
        for _ in range(self.number(64)):
            self.wire.write(b"x" * MIB)


def raw_answer(request_id: Id, member: str) -> str:
    """An answer whose result has an empty content and the member, which is written as it is."""
    content = "" if member.startswith('"content"') else '"content":[],'
    start = f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"result":'
    return f"{start}{{{content}{member}}}}}"
