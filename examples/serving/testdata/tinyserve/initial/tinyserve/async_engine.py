"""The engine inside an event loop: one task steps it, and every request has a queue."""

import asyncio
import itertools

from tinyserve.engine import Engine


class AsyncEngine:
    def __init__(self, model):
        self.engine = Engine(model)
        self.queues = {}
        self.work = asyncio.Event()
        self.numbers = itertools.count()

    async def run(self):
        """Steps for as long as the server lives. Whatever it raises is the end of the server."""
        while True:
            if not self.engine.has_unfinished_requests():
                self.work.clear()
                await self.work.wait()
            for output in self.engine.step():
                self.queues[output.request_id].put_nowait(output)
            await asyncio.sleep(0)

    async def generate(self, prompt, params):
        request_id = f"cmpl-{next(self.numbers)}"
        queue = self.queues[request_id] = asyncio.Queue()
        self.engine.add_request(request_id, prompt, params)
        self.work.set()
        try:
            while True:
                output = await queue.get()
                yield output
                if output.finished:
                    return
        finally:
            del self.queues[request_id]
