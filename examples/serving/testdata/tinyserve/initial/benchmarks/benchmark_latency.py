"""Benchmark the latency of one batch."""

import argparse
import random
import statistics
import time

from tinyserve import LLM, SamplingParams


def main(args):
    rng = random.Random(0)
    prompts = [[rng.randrange(256, 1024) for _ in range(args.input_len)] for _ in range(args.batch_size)]
    llm = LLM(model=args.model)

    def run_to_completion():
        start = time.perf_counter()
        llm.generate(prompts, SamplingParams(max_tokens=args.output_len))
        return time.perf_counter() - start

    print("Warming up...")
    run_to_completion()
    latencies = [run_to_completion() for _ in range(args.num_iters)]
    print(f"Avg latency: {statistics.fmean(latencies)} seconds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--input-len", type=int, default=32)
    parser.add_argument("--output-len", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--num-iters", type=int, default=3, help="number of iterations to run")
    main(parser.parse_args())
