"""Benchmark offline throughput: many prompts, no server."""

import argparse
import random
import time

from tinyserve import LLM, SamplingParams


def main(args):
    rng = random.Random(args.seed)
    prompts = [" ".join(f"word{rng.randrange(10**6)}" for _ in range(args.input_len)) for _ in range(args.num_prompts)]
    llm = LLM(model=args.model)
    start = time.perf_counter()
    _, output_tokens = llm.generate(prompts, SamplingParams(max_tokens=args.output_len))
    elapsed = time.perf_counter() - start
    total_tokens = args.num_prompts * args.input_len + output_tokens
    print(f"Throughput: {args.num_prompts / elapsed:.2f} requests/s, {total_tokens / elapsed:.2f} tokens/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--input-len", type=int, required=True)
    parser.add_argument("--output-len", type=int, required=True)
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
