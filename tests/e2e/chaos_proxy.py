# SPDX-License-Identifier: Apache-2.0
"""A network that does what networks do: in front of one server or more, with faults at random points of its connections."""

import asyncio
import collections
import random
import socket
import struct

from balancer import Balancer

FAULTS = ("delay", "reset", "half-close", "truncate", "drip", "silence", "corrupt")
SOON, LATE = 3_000, 12_000  # within the handshake and a first request, or after some more


class ChaosProxy(Balancer):
    """While `share` is not 0, so large a part of the new connections meets one fault each, at a random byte of one of
    their two directions. `met` counts the faults that came to pass. The draws are those of `seed`; who is hit by them
    depends on the order in which connections come."""

    def __init__(self, ports, seed, longest_delay):
        self.random, self.longest_delay, self.share = random.Random(seed), longest_delay, 0.0
        self.met, self.connections, self.writers = collections.Counter(), 0, set()
        super().__init__(ports)

    async def serve(self, reader, writer):
        self.connections += 1
        there = await self.backend()
        if not there:
            writer.close()
            return
        ends = (writer, there[1])
        self.writers.update(ends)
        fault = self.random.choice(FAULTS) if self.random.random() < self.share else None
        at, upwards = self.random.randrange(self.random.choice((SOON, LATE))), self.random.random() < 0.5
        await asyncio.gather(self.flow(reader, there[1], fault if upwards else None, at, ends),
                             self.flow(there[0], writer, None if upwards else fault, at, ends))
        self.writers.difference_update(ends)
        for end in ends:
            end.close()

    async def flow(self, reader, writer, fault, at, ends):
        """One direction; its fault comes when `at` bytes have passed."""
        passed = 0
        try:
            while data := await reader.read(65536):
                if fault and passed + len(data) > at:
                    before, data = data[:at - passed], data[at - passed:]
                    writer.write(before)
                    await writer.drain()
                    self.met[fault] += 1
                    data = await self.suffer(fault, data, reader, writer, ends)
                    fault = None
                    if data is None:
                        break
                passed += len(data)
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            for end in ends:
                end.close()

    async def suffer(self, fault, data, reader, writer, ends):
        """What is to be sent on; None: this direction is over."""
        if fault == "delay":
            await asyncio.sleep(self.random.uniform(0.05, self.longest_delay))
        elif fault == "corrupt":
            return bytes([data[0] ^ 1 << self.random.randrange(8)]) + data[1:]
        elif fault == "drip":
            for byte in data:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(self.random.uniform(0, 0.02))
            return b""
        elif fault == "reset":
            for end in ends:
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.transport.abort()
            return None
        elif fault == "truncate":  # in the middle of a record, and without a close_notify
            for end in ends:
                end.close()
            return None
        elif fault == "half-close":  # the other direction goes on
            return None
        elif fault == "silence":
            while await reader.read(65536):
                pass
            return None
        return data

    def drop_all(self):
        """Ends all connections."""
        self.loop.call_soon_threadsafe(lambda: [writer.close() for writer in list(self.writers)])
