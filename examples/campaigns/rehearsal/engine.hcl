# The stand-in engine: tinyserve speaks OpenAI's API and prints what vLLM's benchmarks print; its model is arithmetic. It needs
# a Docker engine, and root with debootstrap for the root file systems of its images.

repo "tinyserve" {
  path = "examples/serving/tinyserve.bundle"
}

locals {
  engine = {
    package  = "tinyserve"
    patches  = { claude_code = "examples/serving/patches", codex = "examples/serving/patches/codex" }
    wheels   = []
    wheel    = ""
    python   = ["tinyserve/*.py", "tinyserve/entrypoints/**/*.py"]
    build    = { env = { SOURCE_DATE_EPOCH = "1704067200" }, cpus = 1, memory = "1GiB", estimate = "20s" }
    fixes    = [fix.quokka, fix.scheduler, fix.tinynum1]
    verify   = null
    network  = false
    online   = false
    mounts   = []
    env      = {}
    secrets  = []
    timeout  = "1m"
    estimate = "10s"
  }

  toolchains = {
    standin = { devel = task.compiler, runtime = task.system }
  }
  toolchain = { for name, c in commit : name => "standin" }

  defaults = { mode = "serving", model = "standin/syllables", gpus = 1, dataset = "random", server = "", client = "", env = {} }
  work     = { for name, c in commit : name => merge(local.defaults, c.params) }
  parallel = { for name, c in commit : name => "" }

  dataset = { for name, w in local.work : name => w.dataset }
  data = { for name, w in local.work : name => {
    random        = { flags = "--dataset-name random", files = null }
    conversations = { flags = "--dataset conversations.json", files = { "conversations.json" = task.conversations } }
  } }
  model  = { for name, w in local.work : name => "--model" }
  save   = { for name, w in local.work : name => w.dataset == "random" ? "--save-result --result-dir $OUT --result-filename result.json" : "" }
  result = { for name, w in local.work : name => null }

  primary = { latency = "latency_avg", throughput = "output_token_throughput" }
}

# Root file systems, made of Debian's packages, as in examples/serving: where the store is shared, neither is made twice.
task "scripts" {
  inputs  = ["examples/serving/base/**"]
  command = "cp -R examples/serving/base/. $OUT"
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

task "conversations" {
  inputs  = ["examples/serving/prompts/conversations.py"]
  image   = image.base["standin"]
  command = "python3 examples/serving/prompts/conversations.py > $OUT/conversations.json"
  outputs = ["conversations.json"]
}
