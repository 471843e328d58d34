# SPDX-License-Identifier: Apache-2.0
"""What a Service in front of two replicas is in a cluster: each new connection goes to the next one that takes it."""

import asyncio
import threading


class Balancer:
    """Listens at .port, passes bytes on to `ports`; none of its own, so TLS is between the two ends."""

    def __init__(self, ports):
        self.ports, self.next = list(ports), 0
        self.out = ()
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    def leave_out(self, *ports):
        """No new connections to these, as for an endpoint that is not ready."""
        self.out = ports

    async def backend(self):
        for _ in self.ports:
            self.next += 1
            port = self.ports[self.next % len(self.ports)]
            if port in self.out:
                continue
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                pass
        return None

    async def serve(self, reader, writer):
        there = await self.backend()
        if there:
            await asyncio.gather(self.pump(reader, there[1]), self.pump(there[0], writer))
        writer.close()

    @staticmethod
    async def pump(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
