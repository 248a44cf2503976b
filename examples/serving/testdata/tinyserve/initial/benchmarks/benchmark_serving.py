"""Benchmark online serving: many requests to a running server, at a rate or all at once.

    python3 -m tinyserve.entrypoints.openai.api_server --model NAME
    python3 benchmarks/benchmark_serving.py --backend vllm --model NAME --dataset conversations.json
"""

import argparse
import asyncio
import json
import random
import statistics
import time

from backend_request_func import ASYNC_REQUEST_FUNCS, RequestFuncInput


def percentile(values, p):
    values = sorted(values)
    at = (len(values) - 1) * p / 100
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def sample_requests(path, num_requests):
    """Prompts with the lengths of the answers that they got, from conversations of at least two turns."""
    with open(path) as file:
        conversations = [c["conversations"] for c in json.load(file) if len(c["conversations"]) >= 2]
    turns = [(c[0]["value"], c[1]["value"]) for c in conversations]
    random.shuffle(turns)
    return [(prompt, len(prompt.split()), len(answer.split())) for prompt, answer in turns[:num_requests]]


async def get_request(requests, request_rate):
    """The requests, one after the other, in the intervals of a Poisson process."""
    for request in requests:
        yield request
        if request_rate != float("inf"):
            await asyncio.sleep(random.expovariate(request_rate))


async def benchmark(args, api_url, requests):
    request_func = ASYNC_REQUEST_FUNCS[args.backend]
    print(f"Traffic request rate: {args.request_rate}")
    start = time.perf_counter()
    tasks = []
    async for prompt, prompt_len, output_len in get_request(requests, args.request_rate):
        request = RequestFuncInput(prompt, api_url, prompt_len, output_len, args.model)
        tasks.append(asyncio.create_task(request_func(request)))
    outputs = await asyncio.gather(*tasks)
    return outputs, time.perf_counter() - start


def report(outputs, duration):
    done = [o for o in outputs if o.success]
    total_input, total_output = sum(o.prompt_len for o in done), sum(o.output_tokens for o in done)
    ttfts = [o.ttft * 1000 for o in done]
    tpots = [(o.latency - o.ttft) / (o.output_tokens - 1) * 1000 for o in done if o.output_tokens > 1]
    print(f"Successful requests: {len(done)}")
    print(f"Benchmark duration: {duration:.6f} s")
    print(f"Total input tokens: {total_input}")
    print(f"Total generated tokens: {total_output}")
    print(f"Request throughput: {len(done) / duration:.2f} requests/s")
    print(f"Input token throughput: {total_input / duration:.2f} tokens/s")
    print(f"Output token throughput: {total_output / duration:.2f} tokens/s")
    for name, values in (("TTFT", ttfts), ("TPOT", tpots)):
        print(f"Mean {name}: {statistics.fmean(values):.2f} ms")
        print(f"Median {name}: {statistics.median(values):.2f} ms")
        print(f"P99 {name}: {percentile(values, 99):.2f} ms")


def main(args):
    random.seed(args.seed)
    api_url = (args.base_url or f"http://{args.host}:{args.port}") + args.endpoint
    requests = sample_requests(args.dataset, args.num_prompts)
    report(*asyncio.run(benchmark(args, api_url, requests)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="vllm", choices=list(ASYNC_REQUEST_FUNCS))
    parser.add_argument("--base-url")
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--endpoint", default="/v1/completions")
    parser.add_argument("--dataset", required=True, help="file of conversations, as ShareGPT's")
    parser.add_argument("--model", required=True)
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--request-rate", type=float, default=float("inf"), help="requests a second; inf: all at once")
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
