"""The grader's end of the channel to a process that runs a student's code: one request, one reply, in time.

Which process that is, and how it is ended, a subclass says: a sandbox (see `sandbox`), or a plain process for one's
own code (see `mha_grader.learn.process`). Nothing here needs Linux.
"""

from __future__ import annotations

import abc
import select
import socket
from collections.abc import Callable
from typing import Any

from mha_grader.sandbox import clock, wire

Serve = Callable[[dict[str, Any]], dict[str, Any]]
CHUNK = 2**16  # bytes that are read at once, if they are there


class SandboxTimeout(Exception):  # noqa: N818 - it is a verdict
    """The process did not answer in time and was killed."""


class SandboxMemory(Exception):  # noqa: N818 - it is a verdict
    """The process used more memory than allowed and was killed."""


class SandboxDied(Exception):  # noqa: N818 - it is a verdict
    """The process ended, or sent something that is not an answer, and was killed."""


class Asked(abc.ABC):
    """A process that answers requests over `channel`."""

    channel: socket.socket
    number = 0  # of the last request
    _more = b""  # what was read with what came before it

    @abc.abstractmethod
    def close(self) -> None:
        """Kill what is left. Closing twice is fine."""

    @abc.abstractmethod
    def _ended(self) -> Exception:
        """Close it, and say why it ended."""

    def ask(self, seconds: float, serve: Serve | None = None, **request: Any) -> dict[str, Any]:
        """Send one request and return the reply to it.

        Args:
            seconds: time until the reply has arrived.
            serve: answers what the process asks in between; without it, it may ask nothing.
            request: see `requests`.

        Raises:
            SandboxTimeout, SandboxMemory, SandboxDied: the process has been killed.
            ServerGone: it ended because its parent did.
        """
        deadline = clock.seconds() + seconds
        self.number += 1
        self._send(deadline, **request)
        reply = self._receive(deadline)
        while reply["status"] == "candidate" and serve is not None:
            self._send(deadline, **serve(reply))
            reply = self._receive(deadline)
        return reply

    def _send(self, deadline: float, **message: Any) -> None:
        try:
            self.channel.settimeout(max(deadline - clock.seconds(), 0.01))
            wire.send(self.channel, {"number": self.number, **message})
        except TimeoutError:
            self.close()
            raise SandboxTimeout("it did not read the request") from None
        except OSError:
            raise self._ended() from None

    def _receive(self, deadline: float) -> dict[str, Any]:
        try:
            frame = wire.read_frame(lambda size: self._read(size, deadline))
            reply = wire.parse(frame)
            number = reply.get("number")
            if type(number) is not int or number != self.number or not isinstance(reply.get("status"), str):
                raise wire.ProtocolError("it answered something else")
        except wire.ProtocolError as error:
            self.close()
            raise SandboxDied(str(error)) from None
        return reply

    def _read(self, size: int, deadline: float) -> bytearray:
        """Exactly `size` bytes from the process, while its time and memory are watched."""
        data = bytearray(size)
        begun = min(size, len(self._more))
        data[:begun], self._more = self._more[:begun], self._more[begun:]
        view = memoryview(data)[begun:]
        while view:
            left = deadline - clock.seconds()
            if left <= 0:
                self.close()
                raise SandboxTimeout("it did not answer in time")
            if not select.select([self.channel], [], [], left)[0]:
                continue
            try:
                if len(view) >= CHUNK:
                    count = self.channel.recv_into(view)
                else:  # what follows as well, since a small reply comes whole
                    arrived = self.channel.recv(CHUNK)
                    count = min(len(view), len(arrived))
                    view[:count], self._more = arrived[:count], arrived[count:]
            except OSError:
                count = 0
            if not count:
                raise self._ended()
            view = view[count:]
        return data
