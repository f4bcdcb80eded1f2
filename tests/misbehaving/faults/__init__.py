"""All faults, a module for each place where a plugin can go wrong."""

from . import answers, calls, config, handshake, listing, process, reverse, stderr
from . import text as hostile_text
from .registry import FAULTS

__all__ = [
    "FAULTS",
    "answers",
    "calls",
    "config",
    "handshake",
    "hostile_text",
    "listing",
    "process",
    "reverse",
    "stderr",
]
