"""What generated code stands on: the types of a contract's fields, in JSON and back.

`gristmill generate --lang python` writes classes that use it; nothing of it needs to be
called by hand.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Callable, Generic, List, Mapping, Optional, TypeVar

from .errors import GristmillError

T = TypeVar("T")


class Misfit(GristmillError):
    """A payload is not of its queue's contract."""


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A type of the contract."""

    name: str
    read: Callable[[Any], T]
    write: Callable[[T], Any]


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number")
    return float(value)


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _bytes(value: Any) -> bytes:
    return base64.b64decode(_str(value), validate=True)


def _instant(value: Any) -> datetime:
    # Older Pythons want exactly six digits and no Z.
    text = re.sub(r"\.(\d{1,6})\d*", lambda m: "." + m.group(1).ljust(6, "0"), _str(value))
    read = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if read.tzinfo is None:
        raise ValueError("a time with its zone")
    return read


def _instant_text(value: datetime) -> str:
    if value.tzinfo is None:
        raise Misfit("a time needs its zone: datetime.now(timezone.utc)")
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


INT: Kind[int] = Kind("int", _int, _int)
FLOAT: Kind[float] = Kind("float64", _float, _float)
STRING: Kind[str] = Kind("string", _str, _str)
BOOL: Kind[bool] = Kind("bool", _bool, _bool)
BYTES: Kind[bytes] = Kind("bytes", _bytes, lambda value: base64.b64encode(value).decode())
TIMESTAMP: Kind[datetime] = Kind("timestamp", _instant, _instant_text)


def _read(name: str, kind: Kind[T], value: Any) -> T:
    try:
        return kind.read(value)
    except ValueError as error:
        raise Misfit(f"field {name!r} is not {kind.name}: {error}") from None


def one(payload: Mapping[str, Any], name: str, kind: Kind[T]) -> T:
    """A field that must be there."""
    if payload.get(name) is None:
        raise Misfit(f"field {name!r} is missing")
    return _read(name, kind, payload[name])


def maybe(payload: Mapping[str, Any], name: str, kind: Kind[T]) -> Optional[T]:
    """A field that may be missing."""
    value = payload.get(name)
    return None if value is None else _read(name, kind, value)


def many(payload: Mapping[str, Any], name: str, kind: Kind[T]) -> List[T]:
    """A list that must be there."""
    found = maybe_many(payload, name, kind)
    if found is None:
        raise Misfit(f"field {name!r} is missing")
    return found


def maybe_many(payload: Mapping[str, Any], name: str, kind: Kind[T]) -> Optional[List[T]]:
    """A list that may be missing."""
    value = payload.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise Misfit(f"field {name!r} is not a list of {kind.name}")
    return [_read(name, kind, each) for each in value]
