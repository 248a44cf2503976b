# The SGLang campaign: 80 commits that were to make SGLang faster, measured as the vLLM campaign measures its own. The data set
# has a command for 15 of them.
#
#   benchgraph -chdir=examples/campaigns/sglang plan -machine=examples/campaigns/machines/h100x8.json

benchgraph {
  required_version = ">= 0.1.0"
  packs            = ["sglang"]
  include          = ["commits.hcl"]
}

variable "sglang" {
  default     = "https://github.com/sgl-project/sglang.git"
  description = "where SGLang's history comes from: a URL, or the path of a clone"
}

repo "sglang" {
  url = var.sglang
}

variant "baseline" {
  baseline = true
  rev      = each.commit.parent
}

variant "human" {}

variant "claude_code" {
  rev      = each.commit.parent
  patch    = "patches/claude_code/${each.commit.name}.diff"
  optional = true
}

variant "codex" {
  rev      = each.commit.parent
  patch    = "patches/codex/${each.commit.name}.diff"
  optional = true
}

locals {
  # All parameters that a commit may have.
  parameters = { mode = true, model = true, gpus = true, dataset = true, server = true, client = true }

  # What is run for each commit: a commit says how it differs from the defaults.
  work     = { for name, c in commit : name => merge({ dataset = "", server = "", client = "" }, local.defaults, c.params) }
  parallel = { for name, w in local.work : name => try(w.gpus > 1, false) ? "--tp ${w.gpus}" : "" }
  program  = { one_batch = "python3 -m sglang.bench_one_batch" }
  primary  = { one_batch = "total_token_throughput" }
}

skip "no_command" {
  for_each = commit
  when     = local.work[each.key].mode == "none"
  reason   = "the data set gives no command that can be run"
}

# Where params have a mistake, the condition has one: plan tells of it, and leaves that commit out.
skip "unknown_parameter" {
  for_each = commit
  when     = anytrue([for name, value in each.value.params : !local.parameters[name] if value != null])
  reason   = "it has a parameter that nothing reads"
}

skip "no_model" {
  for_each = commit
  when     = local.work[each.key].mode == "none" ? false : local.work[each.key].model == ""
  reason   = "it names no model"
}

# SGLang's own package is Python; what is compiled (sgl-kernel, flashinfer) comes with the image.
wheel "sglang" {
  for_each = candidates
  source   = each.source
  build {
    image    = image.base
    command  = "pip wheel ./python --no-deps --no-build-isolation --wheel-dir $OUT"
    estimate = "20s"
  }
  outputs = ["*.whl"]
}

image "base" {
  from = "lmsysorg/sglang:v0.4.9.post2-cu126"
}

image "runtime" {
  for_each = candidates
  from     = image.base
  install  = [wheel.sglang[each.key]]
  verify   = "python3 -c 'import sglang.srt.server_args'"
  network  = true
}

benchmark "serving" {
  for_each = { for key, c in candidates : key => c if local.work[c.commit.name].mode == "serving" }
  image    = image.runtime[each.key]
  secrets  = ["HF_TOKEN"]
  client   = each.commit.parent
  server {
    command = join(" ", compact([
      "python3 -m sglang.launch_server --host 127.0.0.1 --port $PORT",
      "--model-path ${local.work[each.commit.name].model}",
      local.parallel[each.commit.name],
      local.work[each.commit.name].server,
    ]))
    ready {
      http    = "/health"
      timeout = "20m"
    }
  }
  command = join(" ", compact([
    "python3 -m sglang.bench_serving --backend sglang --port $PORT --output-file $OUT/result.jsonl",
    "--model ${local.work[each.commit.name].model}",
    local.work[each.commit.name].dataset == "" ? "" : "--dataset-name ${local.work[each.commit.name].dataset}",
    local.work[each.commit.name].client,
  ]))
  timeout  = "30m"
  estimate = "5m"
  gpus {
    count  = local.work[each.commit.name].gpus
    model  = "H100"
    memory = "79GiB"
  }
  metrics {
    format  = "sglang"
    primary = "output_token_throughput"
  }
}

benchmark "offline" {
  for_each = { for key, c in candidates : key => c if contains(keys(local.primary), local.work[c.commit.name].mode) }
  image    = image.runtime[each.key]
  secrets  = ["HF_TOKEN"]
  client   = each.commit.parent
  command = join(" ", compact([
    local.program[local.work[each.commit.name].mode],
    "--model-path ${local.work[each.commit.name].model}",
    local.parallel[each.commit.name],
    local.work[each.commit.name].client,
  ]))
  timeout  = "30m"
  estimate = "5m"
  gpus {
    count  = local.work[each.commit.name].gpus
    model  = "H100"
    memory = "79GiB"
  }
  metrics {
    format  = "sglang"
    primary = local.primary[local.work[each.commit.name].mode]
  }
}

compare "three_way" { of = [benchmark.serving, benchmark.offline] }

report "campaign" {
  of      = [compare.three_way]
  formats = ["html", "markdown", "json", "csv", "junit"]
}

cost { gpu_hour = { "NVIDIA H100 80GB HBM3" = 3.95 } }
