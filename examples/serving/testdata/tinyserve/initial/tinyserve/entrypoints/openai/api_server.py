"""An OpenAI-compatible server: /health, /v1/models and /v1/completions, whole or streamed."""

import argparse
import asyncio
import dataclasses
import json
import time
import uuid

from tinyserve import SamplingParams, __version__, http
from tinyserve.async_engine import AsyncEngine
from tinyserve.entrypoints.openai.protocol import Choice, Completion, Usage


async def merge(*iterators):
    """What several iterators yield, with the number of the iterator, as it comes."""
    pending = {asyncio.ensure_future(it.__anext__()): (i, it) for i, it in enumerate(iterators)}
    while pending:
        done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            i, it = pending.pop(task)
            try:
                yield i, task.result()
            except StopAsyncIteration:
                continue
            pending[asyncio.ensure_future(it.__anext__())] = i, it


class Server:
    def __init__(self, model):
        self.model = model
        self.engine = AsyncEngine(model)

    async def handle(self, request, writer):
        if request.path == "/health":
            writer.write(http.whole(200, None))
        elif request.path == "/v1/models":
            writer.write(http.whole(200, {"object": "list", "data": [{"id": self.model, "object": "model"}]}))
        elif request.path == "/v1/completions" and request.method == "POST":
            await self.completions(request.json(), writer)
        else:
            raise http.Refused(404, f"{request.method} {request.path} is not served")

    async def completions(self, body, writer):
        if body.get("model") != self.model:
            raise http.Refused(404, f"the model {body.get('model')} is not served")
        prompts = body.get("prompt", "")
        if isinstance(prompts, str):
            prompts = [prompts]
        params = SamplingParams(max_tokens=int(body.get("max_tokens", 16)), seed=int(body.get("seed") or 0))
        if params.max_tokens < 1:
            raise http.Refused(400, "max_tokens must be at least 1")
        outputs = merge(*(self.engine.generate(prompt, params) for prompt in prompts))
        answer = Completion(id=f"cmpl-{uuid.uuid4().hex}", created=int(time.time()), model=self.model)
        if body.get("stream"):
            await self.stream(answer, outputs, writer, (body.get("stream_options") or {}).get("include_usage"))
        else:
            await self.whole(answer, len(prompts), outputs, writer)

    async def whole(self, answer, n, outputs, writer):
        texts, last = [""] * n, [None] * n
        async for i, output in outputs:
            texts[i] += output.delta
            last[i] = output
        answer.choices = [Choice(i, text, "length") for i, text in enumerate(texts)]
        answer.usage = usage(last)
        writer.write(http.whole(200, dataclasses.asdict(answer)))

    async def stream(self, answer, outputs, writer, include_usage):
        writer.write(http.head(200, "text/event-stream", "Transfer-Encoding: chunked"))
        last = {}
        async for i, output in outputs:
            last[i] = output
            part = dataclasses.replace(answer, choices=[Choice(i, output.delta, "length" if output.finished else None)])
            writer.write(event(json.dumps(dataclasses.asdict(part))))
            await writer.drain()
        if include_usage:
            part = dataclasses.replace(answer, usage=usage(last.values()))
            writer.write(event(json.dumps(dataclasses.asdict(part))))
        writer.write(event("[DONE]") + http.chunk(b""))
        await writer.drain()


def event(data):
    return http.chunk(b"data: %s\n\n" % data.encode())


def usage(outputs):
    prompt, completion = sum(o.num_prompt_tokens for o in outputs), sum(o.num_output_tokens for o in outputs)
    return Usage(prompt, completion, prompt + completion)


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    args = parser.parse_args()

    print(f"tinyserve API server version {__version__}", flush=True)
    server = Server(args.model)
    await http.serve(args.host, args.port, server.handle)
    print(f"Serving {args.model} on http://{args.host}:{args.port}", flush=True)
    await server.engine.run()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
