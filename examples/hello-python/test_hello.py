"""Drives the plugin as a host does: a real process, one message a line."""

import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

PLUGIN = [sys.executable, str(Path(__file__).with_name("hello.py"))]
LEMON = "dev.lemon/plugin"


def request(method: str, request_id: int | str = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", name=tool, arguments=arguments)


def initialize(versions: list[str]) -> dict[str, Any]:
    capabilities = {"experimental": {LEMON: {"versions": versions}}}
    return request(
        "initialize", protocolVersion="2025-11-25", capabilities=capabilities
    )


def talk(*messages: Any) -> list[dict[str, Any]]:
    """Sends the messages, closes stdin, and returns the answers once the plugin ended."""
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run(
        PLUGIN, input=lines, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == "", done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Handshake(unittest.TestCase):
    def test_it_introduces_itself_as_a_lemon_plugin(self) -> None:
        [answer] = talk(initialize(["1.0"]))
        result = answer["result"]
        self.assertEqual(result["protocolVersion"], "2025-11-25")
        self.assertEqual(
            result["capabilities"]["experimental"][LEMON]["version"], "1.0"
        )
        self.assertEqual(result["serverInfo"]["name"], "hello-python")

    def test_any_mcp_client_can_start_it(self) -> None:
        [answer] = talk(request("initialize", protocolVersion="2024-11-05"))
        self.assertEqual(answer["result"]["protocolVersion"], "2024-11-05")

    def test_without_a_common_version_it_names_both_lists(self) -> None:
        [answer] = talk(initialize(["2.0", "3.0"]))
        self.assertEqual(answer["error"]["code"], 4012)
        data = answer["error"]["data"]
        self.assertEqual(data["kind"], "unsupported_version")
        self.assertEqual(
            (data["supported"], data["requested"]), (["1.0"], ["2.0", "3.0"])
        )


class Tools(unittest.TestCase):
    def text(self, message: dict[str, Any], failed: bool = False) -> str:
        [answer] = talk(message)
        self.assertEqual(answer["result"]["isError"], failed)
        [block] = answer["result"]["content"]
        return str(block["text"])

    def test_they_are_listed(self) -> None:
        [answer] = talk(request("tools/list"))
        names = [tool["name"] for tool in answer["result"]["tools"]]
        self.assertEqual(names, ["hello", "add"])

    def test_hello_greets(self) -> None:
        self.assertEqual(self.text(call("hello", name="漢 🍋")), "Hello, 漢 🍋!")

    def test_add_adds(self) -> None:
        self.assertEqual(self.text(call("add", a=40, b=2.5)), "42.5")

    def test_wrong_arguments_are_told_to_the_model(self) -> None:
        self.assertIn("name", self.text(call("hello"), failed=True))
        self.assertIn("str", self.text(call("add", a="4", b="2"), failed=True))

    def test_an_unknown_tool_is_an_error(self) -> None:
        [answer] = talk(call("nonsense"))
        self.assertEqual(answer["error"]["code"], -32602)


class Wire(unittest.TestCase):
    def test_an_answer_comes_at_once_and_not_when_a_buffer_is_full(self) -> None:
        with subprocess.Popen(
            PLUGIN, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as plugin:
            assert plugin.stdin and plugin.stdout
            plugin.stdin.write(json.dumps(request("ping", "a")).encode() + b"\n")
            plugin.stdin.flush()
            answer = json.loads(plugin.stdout.readline())
            plugin.stdin.close()
            self.assertEqual(plugin.wait(timeout=10), 0)
        self.assertEqual(answer, {"jsonrpc": "2.0", "id": "a", "result": {}})

    def test_notifications_and_stray_answers_get_no_answer(self) -> None:
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        stray = {"jsonrpc": "2.0", "id": 7, "result": {}}
        answers = talk(
            cancelled, stray, request("lemon/shutdown", "end", reason="exit")
        )
        self.assertEqual(answers, [{"jsonrpc": "2.0", "id": "end", "result": {}}])

    def test_an_unknown_request_is_refused(self) -> None:
        [answer] = talk(request("resources/list"))
        self.assertEqual(answer["error"]["code"], -32601)


if __name__ == "__main__":
    unittest.main()
