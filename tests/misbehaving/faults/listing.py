"""What goes wrong with the list of tools."""

from call import RefusedError, Request, Tool, text_result
from plugin import Plugin
from wire import Json

from .registry import fault


@fault("paged")
class Paged(Plugin):
    """No fault, but lists its first five tools in pages of two; the second cursor is the empty string."""

    def list_tools(self, cursor: str | None) -> Json:
        tools = [tool.as_json() for tool in self.tools[:5]]
        match cursor:
            case None:
                return {"tools": tools[:2], "nextCursor": "two"}
            case "two":
                return {"tools": tools[2:4], "nextCursor": ""}
            case "":
                return {"tools": tools[4:]}
        raise RefusedError(-32602, f"unknown cursor: {cursor}")


@fault("page-loop")
class PageLoop(Plugin):
    """Lists the same page with the same next cursor for ever."""

    def list_tools(self, cursor: str | None) -> Json:
        return {**super().list_tools(cursor), "nextCursor": "again"}


@fault("page-endless")
class PageEndless(Plugin):
    """Lists one more tool on each page, with a new cursor each time, for ever."""

    def list_tools(self, cursor: str | None) -> Json:
        page = int(cursor or 0)
        tool = Tool(f"tool_{page}", "One of many.", {}, self.call)
        return {"tools": [tool.as_json()], "nextCursor": str(page + 1)}


@fault("list-error")
class ListError(Plugin):
    """Answers tools/list with an internal error, -32603."""

    def list_tools(self, cursor: str | None) -> Json:
        raise RefusedError(-32603, "the list of tools is lost")


@fault("many-tools")
class ManyTools(Plugin):
    """Lists ARG (5000) tools on one page."""

    def list_tools(self, cursor: str | None) -> Json:
        count = self.number(5000)
        tools = [Tool(f"tool_{i}", "", {}, self.call).as_json() for i in range(count)]
        return {"tools": tools}


@fault("bad-tools")
class BadTools(Plugin):
    """Lists, besides its good tools, some that can't be read: no name, no schema, a number, schemas of a wrong type."""

    def list_tools(self, cursor: str | None) -> Json:
        result = super().list_tools(cursor)
        result["tools"][1:1] = [
            {"description": "has no name", "inputSchema": {"type": "object"}},
            {"name": "no_schema"},
            42,
            {"name": "schema_is_a_text", "inputSchema": "object"},
            {"name": "schema_of_a_list", "inputSchema": {"type": "array"}},
            {"name": "schema_of_no_type", "inputSchema": {"type": "no such type"}},
            {"name": "", "inputSchema": {"type": "object"}},
        ]
        return result


@fault("odd-names")
class OddNames(Plugin):
    """Lists, besides its good tools, names that differ by case, dots or spaces only, long ones, empty ones and a number."""

    def list_tools(self, cursor: str | None) -> Json:
        result = super().list_tools(cursor)
        names: list[str | int] = ["Echo", "read.file", "read_file", "read file", "x" * 100, "", "  ", 7, "mcp_x", "\u00e9"]
        schema = {"type": "object"}
        result["tools"] += [{"name": name, "inputSchema": schema} for name in names]
        return result

    def call(self, request: Request) -> Json:
        name = request.params.get("name")
        known = [tool.name for tool in self.tools]
        return super().call(request) if name in known else text_result(f"this is {name}")


@fault("hostile-schemas")
class HostileSchemas(Plugin):
    """Lists, besides its good tools, schemas that are too deep, too large, loop, grow or name a remote document."""

    def list_tools(self, cursor: str | None) -> Json:
        result = super().list_tools(cursor)
        deep: Json = {"type": "object"}
        for _ in range(100):
            deep = {"type": "object", "properties": {"a": deep}}
        twice = {
            f"x{i}": {"allOf": [{"$ref": f"#/$defs/x{i + 1}"}] * 2} for i in range(40)
        }
        schemas: dict[str, Json] = {
            "too_deep": deep,
            "too_large": {"type": "object", "description": "x" * 300_000},
            "loops": {"type": "object", "$ref": "#"},
            "doubles": {"$ref": "#/$defs/x0", "$defs": {**twice, "x40": {}}},
            "remote": {"type": "object", "$ref": "http://localhost:9/schema.json"},
            "slow_pattern": {
                "type": "object",
                "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}},
            },
        }
        for name, schema in schemas.items():
            schema.setdefault("type", "object")
            result["tools"].append({"name": name, "inputSchema": schema})
        return result


@fault("list-changes")
class ListChanges(Plugin):
    """Calling echo adds a tool `extra` and tells five times that the list has changed."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            echo = self.tools[0]
            if self.tools[-1].name != "extra":
                extra = Tool("extra", "Is new.", echo.properties, echo.handler)
                self.tools.append(extra)
            for _ in range(5):
                self.notify("notifications/tools/list_changed", {})
        return super().call(request)


@fault("list-flood")
class ListFlood(Plugin):
    """Answers every tools/list with the news that the list has changed."""

    def answer(self, request: Request, message: Json) -> None:
        super().answer(request, message)
        if request.method == "tools/list":
            self.notify("notifications/tools/list_changed", {})
