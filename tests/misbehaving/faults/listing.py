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


@fault("taken-names")
class TakenNames(Plugin):
    """Lists, besides its good tools, one of each name that is in ARG, apart by commas (told,mcp_witness_echo)."""

    def list_tools(self, cursor: str | None) -> Json:
        result = super().list_tools(cursor)
        for name in (self.arg or "told,mcp_witness_echo").split(","):
            result["tools"].append(Tool(name, "Is somebody else's.", {}, self.call).as_json())
        return result

    def call(self, request: Request) -> Json:
        known = [tool.name for tool in self.tools]
        name = request.params.get("name")
        return super().call(request) if name in known else text_result("taken")


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


@fault("list-silent")
class ListSilent(Plugin):
    """Never answers tools/list."""

    def answer(self, request: Request, message: Json) -> None:
        if request.method != "tools/list":
            super().answer(request, message)


@fault("duplicate-tool")
class DuplicateTool(Plugin):
    """Lists a second tool named echo, which takes no text."""

    def list_tools(self, cursor: str | None) -> Json:
        result = super().list_tools(cursor)
        result["tools"].append(Tool("echo", "Is not the first.", {}, self.call).as_json())
        return result


class Changes(Plugin):
    """Calling echo changes the list, once, and tells of it."""

    changed = False

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo" and not self.changed:
            self.changed = True
            self.change()
            self.notify("notifications/tools/list_changed", {})
        return super().call(request)

    def change(self) -> None:
        raise NotImplementedError


@fault("tool-removed")
class ToolRemoved(Changes):
    """Calling echo takes the tool `env` off the list, which can't be called from then on."""

    def change(self) -> None:
        self.tools = [tool for tool in self.tools if tool.name != "env"]


@fault("tool-changed")
class ToolChanged(Changes):
    """Calling echo makes the tool `env` another one: it needs a `key` from then on."""

    def list_tools(self, cursor: str | None) -> Json:
        result = super().list_tools(cursor)
        for tool in result["tools"]:
            if self.changed and tool["name"] == "env":
                tool["description"] = "Returns one variable."
                schema = {"type": "object", "properties": {"key": {"type": "string"}}}
                tool["inputSchema"] = {**schema, "required": ["key"]}
        return result

    def change(self) -> None:
        pass


@fault("list-breaks")
class ListBreaks(Changes):
    """Calling echo tells that the list has changed; it is answered with an internal error from then on."""

    def list_tools(self, cursor: str | None) -> Json:
        if self.changed:
            raise RefusedError(-32603, "the list of tools is lost")
        return super().list_tools(cursor)

    def change(self) -> None:
        pass


@fault("undeclared-change")
class UndeclaredChange(Changes):
    """Calling echo adds a tool `extra`, although the plugin never declared that its list may change."""

    def initialize(self, params: Json) -> Json:
        result = super().initialize(params)
        result["capabilities"]["tools"] = {}
        return result

    def change(self) -> None:
        echo = self.tools[0]
        self.tools.append(Tool("extra", "Is new.", echo.properties, echo.handler))


@fault("change-flood")
class ChangeFlood(Plugin):
    """Tells ARG (20,000) times that the list has changed before it answers echo."""

    def call(self, request: Request) -> Json:
        if request.params.get("name") == "echo":
            for _ in range(self.number(20_000)):
                self.notify("notifications/tools/list_changed", {})
        return super().call(request)
