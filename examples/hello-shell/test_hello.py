"""Drives the plugin as a host does: a real process, one message a line."""

import json
import subprocess
import unittest
from pathlib import Path
from typing import Any

PLUGIN = ["sh", str(Path(__file__).with_name("hello.sh"))]
LEMON = "dev.lemon/plugin"


def request(method: str, request_id: int | str = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def shout(**arguments: Any) -> dict[str, Any]:
    return request("tools/call", name="shout", arguments=arguments)


def initialize(versions: list[str]) -> dict[str, Any]:
    capabilities = {"experimental": {LEMON: {"versions": versions}}}
    return request("initialize", capabilities=capabilities)


def talk_raw(lines: str) -> list[dict[str, Any]]:
    """Sends the lines, closes stdin, and returns the answers once the plugin ended."""
    done = subprocess.run(
        PLUGIN, input=lines, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == "", done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def talk(*messages: Any) -> list[dict[str, Any]]:
    return talk_raw("".join(json.dumps(message) + "\n" for message in messages))


class Handshake(unittest.TestCase):
    def test_it_introduces_itself_as_a_lemon_plugin(self) -> None:
        [answer] = talk(initialize(["1.0"]))
        result = answer["result"]
        self.assertEqual(result["protocolVersion"], "2025-11-25")
        body = result["capabilities"]["experimental"][LEMON]
        self.assertEqual(body["version"], "1.0")
        self.assertEqual(result["serverInfo"]["name"], "hello-shell")

    def test_without_a_common_version_it_names_both_lists(self) -> None:
        [answer] = talk(initialize(["2.0", "3.0"]))
        self.assertEqual(answer["error"]["code"], 4012)
        data = answer["error"]["data"]
        self.assertEqual(data["supported"], ["1.0"])
        self.assertEqual(data["requested"], ["2.0", "3.0"])


class Shout(unittest.TestCase):
    def shouted(self, text: str) -> str:
        [answer] = talk(shout(text=text))
        return str(answer["result"]["content"][0]["text"])

    def test_it_is_listed(self) -> None:
        [answer] = talk(request("tools/list"))
        [tool] = answer["result"]["tools"]
        self.assertEqual(tool["name"], "shout")

    def test_letters_become_upper_case(self) -> None:
        self.assertEqual(self.shouted("good morning"), "GOOD MORNING")

    def test_escapes_and_other_scripts_pass_unharmed(self) -> None:
        for text in ("a\nb\tc\r\b\f", 'say "hi"', r"c:\new\table\u00e9", "\u2028", ""):
            self.assertEqual(self.shouted(text), text.upper())
        self.assertEqual(self.shouted("é漢🍋 x"), "é漢🍋 X")
        [raw] = talk_raw(json.dumps(shout(text="é漢🍋 x"), ensure_ascii=False) + "\n")
        self.assertEqual(raw["result"]["content"][0]["text"], "é漢🍋 X")

    def test_a_text_that_looks_like_json_or_shell_is_only_a_text(self) -> None:
        for text in ('","id":9,"method":"ping', "}]{[:,", "$(exit 3) `exit 3` *", "%s"):
            self.assertEqual(self.shouted(text), text.upper())

    def test_a_missing_text_is_told_to_the_model(self) -> None:
        wrong: list[dict[str, Any]] = [{}, {"text": 5}, {"text": {"text": "nested"}}]
        for arguments in wrong:
            [answer] = talk(shout(**arguments))
            self.assertTrue(answer["result"]["isError"])

    def test_an_unknown_tool_is_an_error(self) -> None:
        [answer] = talk(request("tools/call", name="nonsense", arguments={}))
        self.assertEqual(answer["error"]["code"], -32602)


class Wire(unittest.TestCase):
    def test_ids_come_back_as_they_were(self) -> None:
        ids: list[int | str] = [0, -7, "7", 'a "quoted" id', "ü"]
        answers = talk(*(request("ping", request_id) for request_id in ids))
        self.assertEqual([answer["id"] for answer in answers], ids)

    def test_members_are_found_wherever_they_stand(self) -> None:
        inner = '{"id": 5, "method": "ping", "arguments": {"text": "no"}}'
        call = f'{{"_meta": {inner}, "arguments": {{"text": "yes"}}, "name": "shout"}}'
        line = f'{{ "params": {call}, "method": "tools/call", "id": "x" }}\n'
        [answer] = talk_raw(line)
        self.assertEqual(answer["id"], "x")
        self.assertEqual(answer["result"]["content"][0]["text"], "YES")

    def test_notifications_blank_lines_and_junk_get_no_answer(self) -> None:
        ping = json.dumps(request("lemon/shutdown"))
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled"})
        [answer] = talk_raw(f'\n]}}\n"x"\n{note}\n{ping}\r\n')
        self.assertEqual(answer, {"jsonrpc": "2.0", "id": 1, "result": {}})

    def test_an_unknown_request_is_refused(self) -> None:
        [answer] = talk(request("resources/list"))
        self.assertEqual(answer["error"]["code"], -32601)


if __name__ == "__main__":
    unittest.main()
