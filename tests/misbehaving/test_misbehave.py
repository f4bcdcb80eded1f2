"""The zoo's own tests: the plugin is right where it should be, and the faults are what they say."""

import json
import os
import re
import signal
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from faults import FAULTS
from host import Host
from misbehave import describe
from wire import Json

NO_HANDSHAKE = {
    "bad-version",
    "content-length",
    "exit-before-hello",
    "exit-zero-before-hello",
    "initialize-error",
    "never-answers",
    "no-initialize-answer-but-alive",
    "refuses-mcp-version",
    "reverse-first",
    "stderr-only",
    "stderr-then-success",
    "unterminated-hello",
}


class WithoutFault(unittest.TestCase):
    def setUp(self) -> None:
        self.host = Host("none")
        self.addCleanup(self.host.close)
        self.host.handshake()

    def test_calls_run_side_by_side(self) -> None:
        slow = self.host.call("sleep", seconds=60)
        self.assertEqual(self.host.text_of(self.host.call("echo", text="é")), "é")
        self.host.send("notifications/cancelled", {"requestId": slow})
        settled = self.host.read()
        self.assertEqual(settled["method"], "lemon/settled")
        self.assertEqual(settled["params"], {"requestId": slow})

    def test_sessions_are_mirrored(self) -> None:
        opened = {"handle": 1, "id": "s", "cwd": "/", "scope": "main"}
        state = {"a": 1, "b": 2}
        self.host.send("lemon/session", {**opened, "state": state, "version": 0})
        changes = {"a": None, "c": 3}
        delta = {"handle": 1, "version": 1, "changes": changes}
        self.host.send("lemon/session", delta)
        told = json.loads(self.host.text_of(self.host.call("session")))
        expected = {**opened, "state": {"b": 2, "c": 3}, "version": 1}
        self.assertEqual(told["sessions"], {"1": expected})
        self.assertEqual(told["meta"], {"progressToken": "token"})
        self.host.send("lemon/session_closed", {"handle": 1})
        told = json.loads(self.host.text_of(self.host.call("session")))
        self.assertEqual(told["sessions"], {})

    def test_relay_names_its_parent_and_returns_what_comes_back(self) -> None:
        call = self.host.call("relay", tool="other", arguments={"x": 1})
        asked = self.host.read()
        self.assertEqual(asked["method"], "host/tools/call")
        meta = {"dev.lemon/parent": call}
        expected = {"name": "other", "arguments": {"x": 1}, "_meta": meta}
        self.assertEqual(asked["params"], expected)
        error = {"code": 4013, "message": "no", "data": {"kind": "unknown_tool"}}
        self.reply(asked, error=error)
        self.assertEqual(self.host.text_of(call), "unknown_tool: no")

    def reply(self, asked: Any, **member: Any) -> None:
        reply = {"jsonrpc": "2.0", "id": asked["id"], **member}
        self.host.stdin.write(json.dumps(reply).encode() + b"\n")
        self.host.stdin.flush()

    def test_progress_and_logs_are_told(self) -> None:
        self.host.call("progress", steps=2)
        steps = [self.host.read()["params"]["progress"] for _ in range(2)]
        self.assertEqual(steps, [1, 2])
        self.host.read()
        self.host.call("log", text="hi", level="error")
        params = self.host.read()["params"]
        self.assertEqual(params, {"level": "error", "data": "hi"})

    def test_it_ends_at_eof(self) -> None:
        self.host.answer_to(self.host.request("lemon/shutdown", reason="exit"))
        self.host.stdin.close()
        self.assertEqual(self.host.exit_status(), 0)


class AllFaults(unittest.TestCase):
    def test_all_but_those_about_the_start_answer_initialize(self) -> None:
        names = sorted(set(FAULTS) - NO_HANDSHAKE)
        with ThreadPoolExecutor(4) as pool:
            for name, answer in zip(names, pool.map(self.hello, names), strict=True):
                self.assertIn("protocolVersion", answer["result"], name)

    def hello(self, name: str) -> Json:
        arg = ["0"] if name.startswith("stderr-") else []  # nobody reads stderr here
        with closing(Host(name, *arg)) as host:
            return host.initialize()

    def test_the_readme_has_a_row_for_each(self) -> None:
        readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
        rows = dict(
            re.findall(r"^\| `([a-z0-9-]+)` \| (.*?) \| .* \|$", readme, re.MULTILINE)
        )
        for name, fault in FAULTS.items():
            self.assertEqual(rows.get(name), describe(fault), name)


    def test_the_readme_maps_what_goes_wrong_to_all_of_them(self) -> None:
        readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
        mapping = readme.split("## What goes wrong elsewhere", 1)[1]
        self.assertEqual(set(re.findall(r"`([a-z0-9-]+)`", mapping)), set(FAULTS))
        root = Path(__file__).parents[2]
        for path in re.findall(r"`((?:lemon-host|tests)/[\w/.-]+)`", mapping):
            self.assertTrue((root / path).exists(), path)


class SomeFaults(unittest.TestCase):
    def start(self, *fault_and_arg: str, **env: str) -> Host:
        host = Host(*fault_and_arg, **env)
        self.addCleanup(host.close)
        host.handshake()
        return host

    def test_exit_before_hello(self) -> None:
        with closing(Host("exit-before-hello")) as host:
            self.assertEqual(host.exit_status(), 3)
            self.assertIn(b"no key", host.stderr.read())

    def test_bad_version(self) -> None:
        with closing(Host("bad-version")) as host:
            error = host.initialize()["error"]
        self.assertEqual(error["code"], 4012)
        self.assertEqual(error["data"]["requested"], ["1.0"])

    def test_twice(self) -> None:
        host = self.start("twice")
        host.call("echo", text="a")
        self.assertEqual(host.read(), host.read())

    def test_the_spoiled_method_can_be_named(self) -> None:
        host = self.start("string-id", "ping")
        ping = host.request("ping")
        self.assertEqual(host.read()["id"], str(ping))

    def test_huge_line_has_the_length_asked_for(self) -> None:
        host = self.start("huge-line", "100000")
        host.call("echo", text="a")
        line = host.line()
        self.assertEqual(len(line), 100_001)
        self.assertEqual(json.loads(line)["id"], host.last_id)

    def test_split_utf8(self) -> None:
        host = self.start("split-utf8")
        self.assertEqual(host.text_of(host.call("echo", text="a")), "a é漢🍋")

    def test_escaped_method(self) -> None:
        host = self.start("escaped-method")
        host.call("progress", steps=1)
        line = host.line()
        self.assertNotIn(b"notifications", line)
        self.assertEqual(json.loads(line)["method"], "notifications/progress")

    def test_late_answers_although_cancelled(self) -> None:
        host = self.start("late", "50")
        call = host.call("echo", text="a")
        host.send("notifications/cancelled", {"requestId": call})
        self.assertEqual(host.text_of(call), "late")

    def test_die_in_call_and_kill_self(self) -> None:
        for name, status in (("die-in-call", 7), ("die-in-line", 7), ("kill-self", -9)):
            host = self.start(name)
            host.call("echo", text="a")
            self.assertEqual(host.exit_status(), status)

    def test_paged(self) -> None:
        host = self.start("paged")
        names: list[str] = []
        params: dict[str, str] = {}
        for _ in range(3):
            page = host.answer_to(host.request("tools/list", **params))["result"]
            names += [tool["name"] for tool in page["tools"]]
            params = {"cursor": page.get("nextCursor", "none")}
        self.assertEqual(len(set(names)), 5)
        self.assertEqual(params, {"cursor": "none"})

    def test_list_changes(self) -> None:
        host = self.start("list-changes")
        host.call("echo", text="a")
        notes = [host.read()["method"] for _ in range(5)]
        self.assertEqual(set(notes), {"notifications/tools/list_changed"})
        page = host.answer_to(host.request("tools/list"))["result"]
        self.assertEqual(page["tools"][-1]["name"], "extra")

    def test_leak_secret(self) -> None:
        host = self.start("leak-secret", "TOKEN", TOKEN="s3cret")
        answer = host.answer_to(host.call("leak"))
        self.assertIn("s3cret", answer["error"]["message"])

    def test_cycle_asks_for_itself(self) -> None:
        host = self.start("cycle")
        host.call("relay", tool="echo")
        asked = host.wait_for(lambda message: message.get("method", "") != "")
        self.assertEqual(asked["params"]["name"], "relay")

    def test_roots_are_asked_for_after_the_handshake(self) -> None:
        self.assertEqual(self.start("roots").read()["method"], "roots/list")

    def test_grandchildren_are_in_or_outside_of_the_session(self) -> None:
        for name, inside in (("grandchild", True), ("grandchild-setsid", False)):
            host = self.start(name)
            child = int(host.text_of(host.call("grandchild")))
            self.addCleanup(os.kill, child, signal.SIGKILL)
            stat = Path(f"/proc/{child}/stat")
            if not stat.exists():
                self.skipTest("there is no /proc here")
            session = int(stat.read_text().rsplit(")", 1)[1].split()[3])
            self.assertEqual(session == host.process.pid, inside)


if __name__ == "__main__":
    unittest.main()
