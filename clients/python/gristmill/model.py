"""What goes to the service and what comes back."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Union


@dataclass(frozen=True)
class Put:
    """A task to be put. `payload` is anything that has a form in JSON, or bytes."""

    payload: Any
    key: Optional[str] = None
    delay: Optional[str] = None
    run_at: Optional[str] = None
    priority: Optional[int] = None
    group: Optional[str] = None
    source: Optional[str] = None
    id: Optional[str] = None
    headers: Optional[Mapping[str, str]] = None
    encoding: Optional[str] = None
    timeout: Optional[str] = None
    """How long its handler may take, like "30s"; else as its queue says."""
    max_attempts: Union[int, str, None] = None
    """Attempts before it fails, or "unlimited"; else as its queue says."""
    backoff: Optional[Mapping[str, Any]] = None
    """The wait after an error, like {"base": "1s", "cap": "1m"}; else as its queue says."""

    wanted: bool = False
    """Somebody waits for its end: what came of it is kept ten minutes."""

    def to_json(self) -> Dict[str, Any]:
        said: Dict[str, Any] = {}
        if isinstance(self.payload, (bytes, bytearray)):
            said["payload_base64"] = base64.b64encode(bytes(self.payload)).decode()
        else:
            said["payload"] = self.payload
        for name in (
            "key", "delay", "run_at", "priority", "group", "source", "id", "encoding", "timeout",
            "max_attempts",
        ):
            value = getattr(self, name)
            if value is not None:
                said[name] = value
        if self.wanted:
            said["wanted"] = True
        if self.headers is not None:
            said["headers"] = dict(self.headers)
        if self.backoff is not None:
            said["backoff"] = dict(self.backoff)
        return said


@dataclass(frozen=True)
class PutAnswer:
    """What became of a put: enqueued, duplicate, replaced, or (in bulk) refused."""

    outcome: str
    id: Optional[str] = None
    reason: Optional[str] = None
    detail: Optional[str] = None

    @property
    def enqueued(self) -> bool:
        return self.outcome == "enqueued"

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "PutAnswer":
        return cls(said["outcome"], said.get("id"), said.get("reason"), said.get("detail"))


def payload_of(said: Mapping[str, Any]) -> Any:
    """The payload of an answer: JSON as Python values, anything else as bytes."""
    if "payload_base64" in said:
        return base64.b64decode(said["payload_base64"])
    return said.get("payload")


@dataclass(frozen=True)
class ClaimedTask:
    """A task as a claim gives it."""

    id: str
    queue: str
    payload: Any
    encoding: str
    attempt: int
    claims: int
    key: Optional[str]
    group: Optional[str]
    source: Optional[str]
    priority: int
    headers: Mapping[str, str]
    created_at: str
    run_at: str
    said: Mapping[str, Any] = field(repr=False)

    @property
    def returns(self) -> int:
        return self.attempt - 1

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "ClaimedTask":
        return cls(
            id=said["id"],
            queue=said["queue"],
            payload=payload_of(said),
            encoding=said["encoding"],
            attempt=said["attempt"],
            claims=said["claims"],
            key=said.get("key"),
            group=said.get("group"),
            source=said.get("source"),
            priority=said.get("priority", 0),
            headers=said.get("headers") or {},
            created_at=said["created_at"],
            run_at=said["run_at"],
            said=said,
        )


@dataclass(frozen=True)
class Claim:
    """Tasks of one queue under one lease. Empty is a normal answer."""

    token: str
    queue: Optional[str]
    lease: float
    """How long the lease lasts from the moment the claim was asked for, in seconds."""
    tasks: List[ClaimedTask]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Claim":
        tasks = [ClaimedTask.of(task) for task in said["tasks"]]
        return cls(said["token"], said.get("queue"), said["lease_ms"] / 1000.0, tasks)


@dataclass(frozen=True)
class Settlement:
    """How one attempt ended."""

    id: str
    token: str
    outcome: str
    error: Optional[str] = None
    after: Optional[str] = None
    started: Optional[bool] = None
    follow_ups: List[Dict[str, Any]] = field(default_factory=list)
    result: Any = None
    """What the handler returns, of `done`: anything that has a form in JSON."""

    def to_json(self) -> Dict[str, Any]:
        said: Dict[str, Any] = {"id": self.id, "token": self.token, "outcome": self.outcome}
        for name in ("error", "after", "started"):
            value = getattr(self, name)
            if value is not None:
                said[name] = value
        if self.result is not None:
            said["result"] = self.result
        if self.follow_ups:
            said["follow_ups"] = self.follow_ups
        return said


@dataclass(frozen=True)
class Settled:
    """What became of a settlement: recorded, already_recorded, gone or lease_lost."""

    id: str
    outcome: str
    became: Optional[str] = None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Settled":
        return cls(said["id"], said["outcome"], said.get("became"))


@dataclass(frozen=True)
class Extended:
    """What became of an extension."""

    token: str
    outcome: str
    cancelled: List[str]
    lost: List[str]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Extended":
        return cls(said["token"], said["outcome"], list(said["cancelled"]), list(said["lost"]))


@dataclass(frozen=True)
class Result:
    """What came of a task: `done`, `failed`, `cancelled`, `discarded`, `open` while it has
    not ended, or `not_known` when nothing kept its end."""

    state: str
    value: Any = None
    """What its handler returned: JSON as Python values, anything else as bytes."""
    error: Optional[str] = None

    @property
    def is_done(self) -> bool:
        return self.state == "done"

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Result":
        state = said["state"]
        if state == "gone":
            state = said.get("outcome") or "not_known"
        elif state not in ("done", "failed"):
            return cls("open")
        value = said.get("result")
        if "result_base64" in said:
            value = base64.b64decode(said["result_base64"])
        return cls(state, value, said.get("error") if state == "failed" else None)
