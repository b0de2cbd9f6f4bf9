"""What can go wrong, by what the caller can do next; and what a handler may raise."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class GristmillError(Exception):
    """Everything that this package raises."""


class Problem(GristmillError):
    """The service refused a request: `code` is stable, `field` is what is at fault."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.said = said
        self.status = int(said.get("status", 0))
        self.code = str(said.get("code", "unknown"))
        self.field: Optional[str] = said.get("field")
        self.detail = str(said.get("detail", ""))
        self.advice = str(said.get("advice", ""))
        where = f" ({self.field})" if self.field else ""
        super().__init__(f"{self.code}{where}: {self.detail} {self.advice}".rstrip())


class Refused(Problem):
    """A task was not taken: the queue is full or unknown, the payload does not fit."""


class Unavailable(GristmillError):
    """The service or its store is away, and nothing was written. Try again later."""


class Unknown(GristmillError):
    """No answer came: it may or may not have happened. Repeat it only with the same id
    or token."""


class Retry(GristmillError):
    """Raised by a handler: run the task again after this time; counts as an attempt."""

    def __init__(self, after: str, reason: str = "") -> None:
        super().__init__(reason or f"again after {after}")
        self.after = after
        self.reason = reason


class Fail(GristmillError):
    """Raised by a handler: the task can never succeed, and fails now."""


class Release(GristmillError):
    """Raised by a handler: give the task back; the attempt does not count."""

    def __init__(self, after: Optional[str] = None) -> None:
        super().__init__("given back")
        self.after = after
