"""Put work on a queue now, have it done later, lose nothing.

    from gristmill import Client, Worker

    Client().put("emails", {"to": "ada@example.org"})

    worker = Worker()

    @worker.task("emails")
    def send(task):
        print("to", task.payload["to"])

    worker.run()
"""

from . import contract
from .client import Client
from .errors import (
    Fail,
    GristmillError,
    Problem,
    Refused,
    Release,
    Retry,
    Unavailable,
    Unknown,
)
from .model import Claim, ClaimedTask, Extended, Put, PutAnswer, Result, Settled, Settlement
from .worker import Task, Worker

__all__ = [
    "Claim",
    "ClaimedTask",
    "Client",
    "Extended",
    "Fail",
    "GristmillError",
    "Problem",
    "Put",
    "PutAnswer",
    "Refused",
    "Release",
    "Result",
    "Retry",
    "Settled",
    "Settlement",
    "Task",
    "Unavailable",
    "Unknown",
    "Worker",
    "contract",
]
