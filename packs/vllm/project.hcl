# What a file about vLLM says again and again. A project that defines a value of the same name replaces it.

locals {
  # Where wheels are, in the order in which they are asked: the first is immutable for a commit, the second is newer.
  vllm_wheels = [
    "https://vllm-wheels.s3.us-west-2.amazonaws.com",
    "https://wheels.vllm.ai",
  ]
  vllm_wheel = "vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl"

  # Files that a build does not look at. Commits that change no other files share a build with their parents.
  vllm_overlay = [
    "vllm/**/*.py", "vllm/**/*.json", "vllm/**/*.jinja",
    "benchmarks/**", "docs/**", "examples/**", "tests/**",
    ".buildkite/**", ".github/**", "*.md",
  ]

  # Files that are compiled, or decide what is compiled against what.
  vllm_native = [
    "csrc/**", "cmake/**", "rust/**", "CMakeLists.txt", "setup.py", "pyproject.toml", "MANIFEST.in",
    "requirements*.txt", "requirements/**", "use_existing_torch.py",
  ]

  # /health answers since 0.2.4, and only while the engine lives. A line in the log proves nothing: up to 0.6.1 startup was
  # complete before the port was bound, and since 0.6.2 the port is bound before the engine starts.
  vllm_ready = { http = "/health", timeout = "20m" }

  # Of what every server and client gets: no reports to anyone, and no network once the weights are there.
  vllm_env = { VLLM_NO_USAGE_STATS = "1", DO_NOT_TRACK = "1" }

  # Versions in which a defect was seen, for a when of one's own.
  vllm_scope = {
    aimv2               = ">=0.8.5,<0.10.0"
    fa_utils            = ">=0.8.2"
    numpy1              = "<=0.5.0"
    outlines_airports   = ">=0.4.3,<0.7.0"
    port_8791           = ">=0.6.1,<0.6.4"
    rope_scaling        = "<0.5.3"
    transformers_tokens = "<0.12.0"
  }

  # Names of commits that get the fix "gpu_memory".
  vllm_gpu_memory = []
}

# Serving was refused for all of 0.6.3 and 0.6.4 for this issue. It needs pipeline parallelism and a tree with the port
# reservation that came with #8491 and went with #10012: the tree is asked, and only about commits with such a command.
known_issue "vllm_port_8791" {
  for_each = candidates
  when = anytrue([
    for text in values(try(each.commit.params, {})) : can(regex("\\.bind\\(\\(\"\", args\\.port\\)\\)", git_file(each.rev, "vllm/entrypoints/openai/api_server.py")))
    if can(regex("(--pipeline-parallel-size|-pp)[ =]+([2-9]|[1-9][0-9])", try(tostring(text), "")))
  ])
  reason = "the server reserves its port with a socket that pipeline parallelism cannot live with (#8791)"
}
