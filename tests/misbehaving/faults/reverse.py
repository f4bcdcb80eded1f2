"""What a plugin may ask of the host, and how it can go wrong."""

import json
import queue
import threading
from collections.abc import Callable

from call import RefusedError, Request, Tool, text_result
from plugin import Plugin
from wire import Json, encode

from .registry import fault


def told(ask: Callable[[], Json]) -> Json:
    """What came back of a request to the host, as a text: the result, or the error's kind and message."""
    try:
        return text_result(json.dumps(ask()))
    except RefusedError as refused:
        return text_result(f"{refused.kind}: {refused.message}", failed=True)


@fault("roots")
class Roots(Plugin):
    """Sends MCP's roots/list right after the handshake; its tool `roots` tells what came back."""

    def initialized(self) -> None:
        self.answered = threading.Event()
        self.roots: Json = {}
        self.tools.append(Tool("roots", "Tells the roots.", {}, self.tell_roots))
        threading.Thread(target=self.ask_roots, daemon=True).start()

    def ask_roots(self) -> None:
        self.roots = told(lambda: self.ask("roots/list", {}, parent=None))
        self.answered.set()

    def tell_roots(self, request: Request) -> Json:
        self.answered.wait()
        return self.roots


@fault("unknown-reverse")
class UnknownReverse(Plugin):
    """Its tool `nonsense` calls host/nonsense, which there isn't, and tells the error code."""

    def initialized(self) -> None:
        self.tools.append(Tool("nonsense", "Asks nonsense.", {}, self.nonsense))

    def nonsense(self, request: Request) -> Json:
        return told(lambda: self.ask("host/nonsense", {}, request.id))


class OtherParent(Plugin):
    """Its reverse calls name another parent than the request that they are made for."""

    def ask(self, method: str, params: Json, parent: object) -> Json:
        return super().ask(method, params, self.other_parent())

    def other_parent(self) -> int | None:
        raise NotImplementedError


@fault("stale-parent")
class StaleParent(OtherParent):
    """Its relay names a parent that is not in flight."""

    def other_parent(self) -> int | None:
        return 424242


@fault("no-parent")
class NoParent(OtherParent):
    """Its relay names neither a parent nor a session."""

    def other_parent(self) -> int | None:
        return None


@fault("cycle")
class Cycle(Plugin):
    """Its relay calls relay again, until the host refuses."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "relay":
            request.params["arguments"] = {"tool": "relay"}
        return super().call(request)


@fault("reverse-flood")
class ReverseFlood(Plugin):
    """Its relay makes ARG (200) reverse calls at once and tells how they ended."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") != "relay":
            return super().call(request)
        ends: dict[str, int] = {}
        counting = threading.Lock()

        def relay() -> None:
            result = super(ReverseFlood, self).call(request)
            kind = "ok"
            if result.get("isError"):
                kind = result["content"][0]["text"].split(":")[0]
            with counting:
                ends[kind] = ends.get(kind, 0) + 1

        threads = [threading.Thread(target=relay) for _ in range(self.number(200))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return text_result(json.dumps(ends))


@fault("reverse-and-answer")
class ReverseAndAnswer(Plugin):
    """Its relay makes the reverse call and answers at once, without waiting for it."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") != "relay":
            return super().call(request)
        relay = super().call
        threading.Thread(target=relay, args=[request], daemon=True).start()
        return text_result("did not wait")


@fault("reverse-after-shutdown")
class ReverseAfterShutdown(Plugin):
    """Lists the host's tools after it was told to shut down."""

    def answer(self, request: Request, message: Json) -> None:
        if request.method == "lemon/shutdown":
            # Before the answer, after which its input may end at any moment.
            self.replies["late"] = queue.Queue()
            params = {"_meta": {"dev.lemon/parent": request.id}}
            self.send({"jsonrpc": "2.0", "id": "late", "method": "host/tools/list", "params": params})
        super().answer(request, message)


@fault("reverse-first")
class ReverseFirst(Plugin):
    """Lists the host's tools before it answers initialize; its tool `early` tells what came back."""

    def receive_request(self, request: Request) -> None:
        if request.method != "initialize":
            return super().receive_request(request)
        self.tools.append(Tool("early", "Tells the reply.", {}, self.tell))
        threading.Thread(target=self.ask_first, args=[request], daemon=True).start()

    def ask_first(self, request: Request) -> None:
        self.early = told(lambda: self.ask("host/tools/list", {}, request.id))
        super().receive_request(request)

    def tell(self, request: Request) -> Json:
        return self.early


@fault("deep-chain")
class DeepChain(Plugin):
    """Has twenty tools, `link_1` and so on: each calls the next one through the host."""

    def initialized(self) -> None:
        for link in range(1, 21):
            self.tools.append(Tool(f"link_{link}", "Calls the next.", {}, self.call_next))

    def call_next(self, request: Request) -> Json:
        link = int(request.params["name"].split("_")[1])
        params = {"name": f"link_{link + 1}", "arguments": {}}
        try:
            return self.ask("host/tools/call", params, request.id)
        except RefusedError as refused:
            return text_result(f"{refused.kind}: {refused.message}", failed=True)


@fault("reply-ignored")
class ReplyIgnored(Plugin):
    """Its relay makes the reverse call and takes no notice of the reply, so it never answers."""

    def receive_reply(self, message: Json) -> None:
        pass


@fault("odd-reverse-ids")
class OddReverseIds(Plugin):
    """Before it answers echo, lists the host's tools under ids that no request may have: null, 1.5, true, a list, an
    object, 2^64; and under the empty text, which one may."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") != "echo":
            return super().call(request)
        params = {"_meta": {"dev.lemon/parent": request.id}}
        asked = {"jsonrpc": "2.0", "method": "host/tools/list", "params": params}
        for odd in (None, 1.5, True, [1], {"id": 1}, 2**64):
            self.send({**asked, "id": odd})
        waiting = self.replies[""] = queue.Queue()
        self.send({**asked, "id": ""})
        return text_result(json.dumps(sorted(waiting.get())))


@fault("reverse-same-id")
class ReverseSameId(Plugin):
    """Its relay makes the reverse call twice under one id and tells both replies, the first one first."""

    def receive_reply(self, message: Json) -> None:
        self.replies[message["id"]].put(message)

    def call(self, request: Request) -> Json:
        if request.params.get("name") != "relay":
            return super().call(request)
        waiting: queue.Queue[Json] = queue.Queue()
        params = {"name": request.arguments["tool"], "arguments": request.arguments["arguments"]}
        params["_meta"] = {"dev.lemon/parent": request.id}
        twice = {"jsonrpc": "2.0", "id": "one", "method": "host/tools/call", "params": params}
        self.replies["one"] = waiting
        self.wire.write(encode(twice), encode(twice))
        return text_result(json.dumps([waiting.get(), waiting.get()]))
