# A campaign as one would run it on an inference engine, on any machine with Docker: five commits of one project, each
# measured as it was before, as its author made it, and as an agent would have made it. Wheels are compiled, images are
# made, what is broken is mended, servers answer over HTTP, and the report says who won.
#
# The engine is a stand-in: tinyserve (testdata/tinyserve) speaks OpenAI's API and prints what vLLM's benchmarks print, but
# its model is arithmetic. Its history is tinyserve.bundle, and every commit has a tag, by which it is called here.
#
#   benchgraph plan     what will be done
#   benchgraph apply    does it: some minutes, most of them the first time
#
# It needs a Docker engine, and root with debootstrap for the images' root file systems. The lock file is not committed
# here, so that everybody sees the fixes being learnt; in a project of one's own it is.

benchgraph {
  include = ["fixes.hcl"]
}

repo "tinyserve" {
  path = "tinyserve.bundle"
}

locals {
  model = "standin/syllables"
}

# An old client: a file of conversations, and results line by line.
commit "row-order" {
  title  = "kernels: matrices are read in the order in which they lie"
  params = { bench = "serving", load = "--dataset conversations.json --num-prompts 24" }
}

# Neither this commit nor its parent starts: see fix.quokka.
commit "incremental-text" {
  title  = "engine: a new token is turned into text by itself"
  params = { bench = "serving", load = "--dataset-name random --random-input-len 300 --random-output-len 24 --num-prompts 24" }
}

# Wheels of this commit and of its parent lack a file: see fix.scheduler.
commit "one-prompt" {
  title  = "api_server: the tokens of one prompt are not merged with anything"
  params = { bench = "serving", load = "--dataset-name random --random-input-len 16 --random-output-len 24 --num-prompts 30" }
}

# This commit and its parent need an old library: see fix.tinynum1.
commit "top-tokens" {
  title  = "kernels: the best tokens are kept, the others are not sorted"
  params = { bench = "throughput" }
}

commit "slots" {
  title  = "engine: sequences and outputs have slots"
  params = { bench = "latency" }
}

variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}

variant "human" {}

# What agents make of the same tasks: something that changes nothing, something faster, something that breaks under load,
# nothing at all, and something that does not even apply.
variant "agent" {
  rev      = each.commit.parent
  patch    = "patches/${each.commit.name}.diff"
  optional = true
}

# Root file systems, made of Debian's packages. Anything that makes a tar would do, as would the name of an image. Where another project
# keeps the same scripts elsewhere and shares the store, neither is made twice: their bytes are the same.
task "scripts" {
  inputs  = ["base/**"]
  command = "cp -R base/. $OUT"
}

task "system" {
  data    = { "scripts/" = task.scripts }
  command = "scripts/system $OUT/rootfs.tar"
  outputs = ["rootfs.tar"]
  network = true
  sandbox = "none" # root in a sandbox makes no root file system
  timeout = "20m"
}

task "compiler" {
  data    = { "scripts/" = task.scripts, "system.tar" = task.system }
  command = "scripts/compiler system.tar $OUT/rootfs.tar"
  outputs = ["rootfs.tar"]
  network = true
  sandbox = "none" # root in a sandbox makes no root file system
  timeout = "20m"
}

image "system" {
  from   = task.system
  verify = "python3 -c 'import tinyhub, tinynum'"
}

image "compiler" {
  from   = task.compiler
  verify = "cc --version"
}

# The extension is compiled once for all candidates that differ in nothing but Python. What lies in tinyserve/core is left as
# the build packs it, or forgets it.
wheel "tinyserve" {
  for_each = candidates
  source   = each.source
  overlay  = ["tinyserve/*.py", "tinyserve/entrypoints/**/*.py"]
  build {
    image   = image.compiler
    command = "pip wheel --no-deps --no-build-isolation --wheel-dir $OUT ."
    env     = { SOURCE_DATE_EPOCH = "1704067200" }
    timeout = "5m"
  }
  outputs = ["*.whl"]
}

image "runtime" {
  for_each = candidates
  from     = image.system
  install  = [wheel.tinyserve[each.key]]
  fixes    = [fix.quokka, fix.scheduler, fix.tinynum1]
}

task "conversations" {
  inputs  = ["prompts/conversations.py"]
  image   = image.system
  command = "python3 prompts/conversations.py > $OUT/conversations.json"
  outputs = ["conversations.json"]
}

benchmark "serving" {
  for_each = { for key, c in candidates : key => c if c.commit.params.bench == "serving" }
  image    = image.runtime[each.key]
  data     = { "conversations.json" = task.conversations }
  server {
    command = "python3 -m tinyserve.entrypoints.openai.api_server --model ${local.model} --port $PORT"
    ready {
      http    = "/health"
      timeout = "1m"
    }
  }
  client  = each.commit.rev # what measures is the same for all, and never the patch's
  command = "python3 benchmarks/benchmark_serving.py --backend vllm --model ${local.model} ${each.commit.params.load} --port $PORT"
  timeout = "2m"
  quiet   = true
  design { looks = [4, 6] } # the example ends in minutes; without this line, up to 15 blocks settle more
  metrics {
    format  = "vllm"
    primary = "output_token_throughput"
  }
}

benchmark "throughput" {
  for_each = { for key, c in candidates : key => c if c.commit.params.bench == "throughput" }
  image    = image.runtime[each.key]
  client   = each.commit.rev
  command  = "python3 benchmarks/benchmark_throughput.py --model ${local.model} --input-len 32 --output-len 64 --num-prompts 60"
  timeout  = "2m"
  quiet    = true
  design { looks = [4, 6] }
  metrics {
    format  = "vllm"
    primary = "output_token_throughput"
  }
}

benchmark "latency" {
  for_each = { for key, c in candidates : key => c if c.commit.params.bench == "latency" }
  image    = image.runtime[each.key]
  client   = each.commit.rev
  command  = "python3 benchmarks/benchmark_latency.py --model ${local.model} --input-len 32 --output-len 64 --batch-size 8 --num-iters-warmup 2 --num-iters 15"
  timeout  = "2m"
  quiet    = true
  design { looks = [4, 6] }
  metrics {
    format  = "vllm"
    primary = "latency_avg"
  }
}

compare "three_way" {
  of      = [benchmark.serving, benchmark.throughput, benchmark.latency]
  metrics = ["ttft_mean", "latency_p99"]
}

report "campaign" {
  of      = [compare.three_way]
  formats = ["markdown", "json", "csv", "junit"]
}
