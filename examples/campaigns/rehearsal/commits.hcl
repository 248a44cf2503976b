# Five commits of the stand-in engine. Its whole history is examples/serving/tinyserve.bundle.

# An old client: a file of conversations, and results line by line.
commit "row-order" {
  rev    = "b8347c2ac953ceb441db5702d9f5c06a76446931"
  title  = "kernels: matrices are read in the order in which they lie"
  params = { dataset = "conversations", client = "--num-prompts 24" }
}

# Neither this commit nor its parent starts: see fix.quokka.
commit "incremental-text" {
  rev    = "724f8b4270e6155937502b0513f05cdcc87110ee"
  title  = "engine: a new token is turned into text by itself"
  params = { client = "--random-input-len 300 --random-output-len 24 --num-prompts 24" }
}

# Wheels of this commit and of its parent lack a file: see fix.scheduler.
commit "one-prompt" {
  rev    = "d0783d8f04de38751f45087a19c6c62fa5632859"
  title  = "api_server: the tokens of one prompt are not merged with anything"
  params = { client = "--random-input-len 16 --random-output-len 24 --num-prompts 30" }
}

# This commit and its parent need an old library: see fix.tinynum1.
commit "top-tokens" {
  rev    = "51f9c1af6f7c9ca30e07569d5e2c92082e5726fe"
  title  = "kernels: the best tokens are kept, the others are not sorted"
  params = { mode = "throughput", client = "--input-len 32 --output-len 64 --num-prompts 60" }
}

commit "slots" {
  rev    = "d6ae407da1aab51ea3f374a551b1e6b2a6eb0471"
  title  = "engine: sequences and outputs have slots"
  params = { mode = "latency", client = "--input-len 32 --output-len 64 --batch-size 8 --num-iters-warmup 2 --num-iters 15" }
}
