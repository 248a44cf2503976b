# How vLLM is built, started and measured. All defaults of the commits stand here, once.

variable "vllm" {
  default     = "https://github.com/vllm-project/vllm.git"
  description = "where vLLM's history comes from: a URL, or the path of a clone"
}

variable "wheels" {
  type        = list(string)
  default     = null
  description = "where prebuilt wheels are looked for, in this order; null: where the pack says"
}

variable "models" {
  type        = string
  default     = null
  description = "directory with the weights, as HF_HOME has them; null: each server downloads its own"
}

variable "models_are" {
  type        = string
  default     = "2026-01"
  description = "stands for the content of that directory in keys, such as the date of its last change"
}

repo "vllm" {
  url = var.vllm
}

fetch "sharegpt" {
  url    = "https://huggingface.co/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered/resolve/main/ShareGPT_V3_unfiltered_cleaned_split.json"
  sha256 = "35f0e213ce091ed9b9af2a1f0755e9d39f9ccec34ab281cd4ca60d70f6479ba4"
}

# Weights are seen where they are. They are never copied.
mount "models" {
  for_each = var.models == null ? {} : { weights = var.models }
  source   = each.value
  target   = "/models"
  identity = var.models_are
}

locals {
  engine = {
    package = "vllm"
    patches = { claude_code = "patches/claude_code", codex = "patches/codex" }
    wheels  = var.wheels == null ? local.vllm_wheels : var.wheels
    wheel   = local.vllm_wheel
    python  = local.vllm_overlay
    build = {
      env      = { MAX_JOBS = "32", NVCC_THREADS = "2", TORCH_CUDA_ARCH_LIST = "9.0" }
      cpus     = 32
      memory   = "128GiB"
      estimate = "30m"
    }
    fixes    = null # all of the pack, where their line is seen
    verify   = "python3 -c 'import vllm, torch; torch.zeros(1).numpy()'"
    network  = true               # images: pip
    online   = var.models == null # servers: to download weights
    mounts   = var.models == null ? [] : [mount.models["weights"]]
    env      = merge(local.vllm_env, { VLLM_WORKER_MULTIPROC_METHOD = "spawn" }, var.models == null ? {} : { HF_HOME = "/models", HF_HUB_OFFLINE = "1" })
    secrets  = ["HF_TOKEN"]
    timeout  = local.vllm_ready.timeout
    estimate = "5m"
  }

  # All parameters that a commit may have.
  parameters = { mode = true, model = true, gpus = true, dataset = true, server = true, client = true, env = true }

  # What is run for each commit: a commit says how it differs from the defaults. Only serving needs a model.
  work     = { for name, c in commit : name => merge({ server = "", client = "", env = {} }, local.defaults, c.params) }
  parallel = { for name, w in local.work : name => try(w.gpus > 1, false) ? "--tensor-parallel-size ${w.gpus}" : "" }

  # Images by what the CUDA of the time was.
  toolchains = {
    cu118 = { devel = "nvidia/cuda:11.8.0-devel-ubuntu22.04", runtime = "vllm/vllm-openai:v0.4.3" }
    cu121 = { devel = "nvidia/cuda:12.1.1-devel-ubuntu22.04", runtime = "vllm/vllm-openai:v0.6.6" }
    cu124 = { devel = "nvidia/cuda:12.4.1-devel-ubuntu22.04", runtime = "vllm/vllm-openai:v0.8.5" }
    cu128 = { devel = "nvidia/cuda:12.8.1-devel-ubuntu22.04", runtime = "vllm/vllm-openai:v0.10.0" }
  }
  version = { for name, c in commit : name => try(pep440_version(git_describe(c.parent)), "0") }
  toolchain = { for name, v in local.version : name =>
    pep440_match(v, ">=0.9") ? "cu128" : pep440_match(v, ">=0.7") ? "cu124" : pep440_match(v, ">=0.4.1") ? "cu121" : "cu118"
  }

  # What the client of each parent understands, by its own text.
  script = "benchmarks/benchmark_serving.py"
  knows = { for name, c in commit : name => {
    for flag in ["--model", "--dataset-name", "--random-input-len", "--result-filename"] :
    flag => try(strcontains(git_file(c.parent, local.script), "\"${flag}\""), false)
  } }
  # A client that knows no random prompts gets the conversations of ShareGPT.
  dataset = { for name, w in local.work : name => w.dataset == "random" && !local.knows[name]["--random-input-len"] ? "sharegpt" : w.dataset }
  data = { for name, k in local.knows : name => {
    random   = { flags = "--dataset-name random --random-input-len 512 --random-output-len 128", files = null }
    hf       = { flags = "--dataset-name hf", files = null }
    sharegpt = { flags = k["--dataset-name"] ? "--dataset-name sharegpt --dataset-path sharegpt.json" : "--dataset sharegpt.json", files = { "sharegpt.json" = fetch.sharegpt } }
  } }
  model  = { for name, k in local.knows : name => k["--model"] ? "--model" : "--tokenizer" }
  save   = { for name, k in local.knows : name => k["--result-filename"] ? "--save-result --result-dir $OUT --result-filename result.json" : "" }
  result = { for name, k in local.knows : name => k["--result-filename"] ? "result.json" : null }

  primary = {
    latency          = "latency_avg"
    throughput       = "output_token_throughput"
    prefix_caching   = "benchmark_duration"
    guided           = "output_token_throughput"
    throughput_cache = "output_token_throughput"
  }
}
