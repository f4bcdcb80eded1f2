"""What goes wrong with `lemon/configure`."""

from call import RefusedError, Request
from plugin import Plugin
from wire import Json

from .registry import fault

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "api_key": {"type": "string", "secret": True},
        "timeout": {"type": "integer", "default": 5000},
    },
    "required": ["api_key"],
}


@fault("config-schema")
class ConfigSchema(Plugin):
    """No fault, but needs a configuration: api_key, a required secret, and timeout, 5000 by default."""

    def lemon_body(self) -> Json:
        return {**super().lemon_body(), "configSchema": SCHEMA}


@fault("config-refused")
class ConfigRefused(ConfigSchema):
    """Refuses every configuration: error 4011 that points to /api_key."""

    def configure(self, params: Json) -> Json:
        data = {"kind": "config", "pointer": "/api_key"}
        raise RefusedError(4011, "the key was revoked", data)


@fault("config-silent")
class ConfigSilent(ConfigSchema):
    """Never answers lemon/configure."""

    def answer(self, request: Request, message: Json) -> None:
        if request.method != "lemon/configure":
            super().answer(request, message)


@fault("config-exits")
class ConfigExits(ConfigSchema):
    """Exits with status 78 when it is configured."""

    def configure(self, params: Json) -> Json:
        raise SystemExit(78)


@fault("config-bad-schema")
class ConfigBadSchema(Plugin):
    """Declares a configSchema that is no JSON Schema."""

    def lemon_body(self) -> Json:
        return {**super().lemon_body(), "configSchema": {"type": "no such type"}}
