"""A published MCP client in Python uses two Rust plugins and prints what it saw, as JSON.

    client.py ERA HELLO SLOW

ERA is legacy (a handshake), 2026-07-28 (none) or auto (the client finds out); HELLO
and SLOW are the programs.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import TextContent


def text(result: Any) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


async def use_hello(client: Client, saw: dict[str, Any]) -> None:
    saw["version"] = client.protocol_version
    saw["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    saw["greeting"] = text(await client.call_tool("greet", {"name": "Ann"}))
    wrong = await client.call_tool("greet", {"name": 5})
    saw["wrong"] = [wrong.is_error, text(wrong)]
    try:
        await client.call_tool("gone", {})
    except MCPError as error:
        saw["unknown"] = error.code
    if client.protocol_version == "2026-07-28":
        async with client.listen(tools_list_changed=True):
            await client.list_tools(cache_mode="bypass")
    else:
        await client.send_ping()


async def use_slow(client: Client, saw: dict[str, Any]) -> None:
    steps: list[Any] = []
    started = asyncio.Event()

    async def saw_progress(
        progress: float, total: float | None, message: str | None
    ) -> None:
        steps.append([progress, total, message])
        started.set()

    short = {"to": 3, "pause_ms": 1}
    result = await client.call_tool("count", short, progress_callback=saw_progress)
    saw["counted"] = text(result)
    saw["progress"] = steps[:]

    started.clear()
    forever = {"to": 1_000_000, "pause_ms": 1}
    call = asyncio.create_task(
        client.call_tool("count", forever, progress_callback=saw_progress)
    )
    await started.wait()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    saw["cancelled"] = call.cancelled()
    saw["after"] = text(await client.call_tool("count", {"to": 1, "pause_ms": 1}))


async def main(era: str, hello: str, slow: str) -> None:
    saw: dict[str, Any] = {}
    async with Client(StdioServerParameters(command=hello), mode=era) as client:
        await use_hello(client, saw)
    async with Client(StdioServerParameters(command=slow), mode=era) as client:
        await use_slow(client, saw)
    print(json.dumps(saw))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
