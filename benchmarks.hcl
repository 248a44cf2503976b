# The vLLM campaign: 96 commits that were to make vLLM faster, each measured as its parent was, as its author made it and as
# each agent made it. Commits are blocks in examples/campaigns/vllm/commits.hcl; to add a commit is to add a block.
#
#   benchgraph plan                         what there is to do, what it costs and what cannot work
#   benchgraph plan -machine=h100x8.json    the same for another machine (benchgraph devices -json, run there)
#   benchgraph apply                        does all that this machine can do
#
# The rehearsal measures the stand-in engine of examples/serving with this same file, on a machine without a GPU:
#
#   benchgraph apply -var rehearsal=true

benchgraph {
  required_version = ">= 0.1.0"
  packs            = ["vllm"]
  include          = var.rehearsal ? ["examples/campaigns/rehearsal/*.hcl", "examples/serving/fixes.hcl"] : ["examples/campaigns/vllm/*.hcl"]
}

variable "rehearsal" {
  type        = bool
  default     = false
  description = "measure the stand-in engine instead of vLLM, without a GPU"
}

variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}

variant "human" {}

variant "claude_code" {
  rev      = each.commit.parent
  patch    = "${local.engine.patches.claude_code}/${each.commit.name}.diff"
  optional = true
}

variant "codex" {
  rev      = each.commit.parent
  patch    = "${local.engine.patches.codex}/${each.commit.name}.diff"
  optional = true
}

# Candidates that differ in Python alone share one build. A prebuilt wheel serves where there is one for the revision, or for
# an ancestor with the same native tree.
wheel "engine" {
  for_each = candidates
  source   = each.source
  prebuilt = [for index in local.engine.wheels : "${index}/${each.rev}/${local.engine.wheel}"]
  nearest  = 50
  overlay  = local.engine.python
  build {
    image    = image.devel[local.toolchain[each.commit.name]]
    command  = "pip wheel . --no-deps --no-build-isolation --wheel-dir $OUT"
    env      = local.engine.build.env
    cpus     = local.engine.build.cpus
    memory   = local.engine.build.memory
    timeout  = "90m"
    estimate = local.engine.build.estimate
  }
  outputs = ["*.whl"]
}

image "devel" {
  for_each = local.toolchains
  from     = each.value.devel
}

image "base" {
  for_each = local.toolchains
  from     = each.value.runtime
}

image "runtime" {
  for_each = candidates
  from     = image.base[local.toolchain[each.commit.name]]
  install  = [wheel.engine[each.key]]
  fixes    = local.engine.fixes
  verify   = local.engine.verify
  network  = local.engine.network
}

benchmark "serving" {
  for_each = { for key, c in candidates : key => c if local.work[c.commit.name].mode == "serving" }
  image    = image.runtime[each.key]
  data     = local.data[each.commit.name][local.dataset[each.commit.name]].files
  env      = merge(local.engine.env, local.work[each.commit.name].env)
  secrets  = local.engine.secrets
  mounts   = local.engine.mounts
  network  = local.engine.online
  client   = each.commit.parent # the parent's client measures all variants alike
  server {
    command = join(" ", compact([
      "python3 -m ${local.engine.package}.entrypoints.openai.api_server --port $PORT",
      "--model ${local.work[each.commit.name].model}",
      local.parallel[each.commit.name],
      local.work[each.commit.name].server,
    ]))
    ready {
      http    = "/health"
      timeout = local.engine.timeout
    }
  }
  command = join(" ", compact([
    "python3 benchmarks/benchmark_serving.py --backend vllm --port $PORT",
    "${local.model[each.commit.name]} ${local.work[each.commit.name].model}",
    local.data[each.commit.name][local.dataset[each.commit.name]].flags,
    local.work[each.commit.name].client,
    local.save[each.commit.name],
  ]))
  timeout  = "30m"
  estimate = local.engine.estimate
  quiet    = var.rehearsal
  design { looks = var.rehearsal ? [4, 6] : null } # the rehearsal shows that all of it works, and settles nothing
  gpus {
    count  = var.rehearsal ? 0 : local.work[each.commit.name].gpus
    model  = "H100"
    memory = "79GiB"
  }
  metrics {
    format  = "vllm"
    primary = "output_token_throughput"
    file    = local.result[each.commit.name]
  }
}

benchmark "offline" {
  for_each = { for key, c in candidates : key => c if contains(keys(local.primary), local.work[c.commit.name].mode) }
  image    = image.runtime[each.key]
  env      = merge(local.engine.env, local.work[each.commit.name].env)
  secrets  = local.engine.secrets
  mounts   = local.engine.mounts
  network  = local.engine.online
  client   = each.commit.parent
  command = join(" ", compact([
    "python3 benchmarks/benchmark_${local.work[each.commit.name].mode}.py",
    try("--model ${local.work[each.commit.name].model}", ""), # without: the model that the script has by itself
    local.parallel[each.commit.name],
    local.work[each.commit.name].server,
    local.work[each.commit.name].client,
  ]))
  timeout  = "30m"
  estimate = local.engine.estimate
  quiet    = var.rehearsal
  design { looks = var.rehearsal ? [4, 6] : null }
  gpus {
    count  = var.rehearsal ? 0 : local.work[each.commit.name].gpus
    model  = "H100"
    memory = "79GiB"
  }
  metrics {
    format  = "vllm"
    primary = local.primary[local.work[each.commit.name].mode]
  }
}

compare "three_way" { of = [benchmark.serving, benchmark.offline] }

report "campaign" {
  of      = [compare.three_way]
  formats = ["html", "markdown", "json", "csv", "junit"]
  dir     = "examples/campaigns/report"

  # What earlier pipelines reported of these commits: listed and drawn, never compared with what is measured here.
  recorded = var.rehearsal ? [] : [file("examples/campaigns/recorded.jsonl")]
}

cost { gpu_hour = { "NVIDIA H100 80GB HBM3" = 3.95 } }

# The machine that the campaign is planned for where there is no GPU: benchgraph plan -machine=h100x8
machine "h100x8" { devices = "examples/campaigns/machines/h100x8.json" }
