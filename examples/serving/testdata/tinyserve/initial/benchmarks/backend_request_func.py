"""One request to a server, with the times at which its tokens came. Needs nothing but the standard library."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class RequestFuncInput:
    prompt: str
    api_url: str
    prompt_len: int
    output_len: int
    model: str


@dataclass
class RequestFuncOutput:
    success: bool = False
    generated_text: str = ""
    error: str = ""
    prompt_len: int = 0
    output_tokens: int = 0
    latency: float = 0.0
    ttft: float = 0.0  # time to the first token
    itl: list = field(default_factory=list)  # times between tokens


async def read_chunks(reader):
    while size := int(await reader.readline(), 16):
        yield (await reader.readexactly(size + 2))[:-2]


async def async_request_openai_completions(request):
    url = urlsplit(request.api_url)
    body = json.dumps(
        {
            "model": request.model,
            "prompt": request.prompt,
            "max_tokens": request.output_len,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    output = RequestFuncOutput(prompt_len=request.prompt_len)
    writer = None
    start = last = time.perf_counter()
    try:
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(head.encode() + body)
        status = (await reader.readline()).decode().split(" ", 2)
        while (await reader.readline()).strip():
            pass
        if len(status) < 3 or status[1] != "200":
            raise ConnectionError(f"the server answered {' '.join(status).strip() or 'nothing'}")
        async for chunk in read_chunks(reader):
            data = chunk.removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                output.success = True
                break
            part = json.loads(data)
            if part["choices"]:
                now = time.perf_counter()
                if output.output_tokens == 0:
                    output.ttft = now - start
                else:
                    output.itl.append(now - last)
                last = now
                output.output_tokens += 1
                output.generated_text += part["choices"][0]["text"]
        output.latency = last - start
        if not output.success:
            output.error = "the answer broke off"
    except (OSError, EOFError, ValueError) as error:
        output.error = f"{type(error).__name__}: {error}"
    finally:
        if writer:
            writer.close()
    return output


ASYNC_REQUEST_FUNCS = {
    "openai": async_request_openai_completions,
    "vllm": async_request_openai_completions,
}
