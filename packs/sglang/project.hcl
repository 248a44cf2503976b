# What a file about SGLang says again and again. A project that defines a value of the same name replaces it.

locals {
  # Files that a build does not look at. sgl-kernel is a package of its own: its sources are not here.
  sglang_overlay = [
    "python/sglang/**/*.py", "python/sglang/**/*.json",
    "benchmark/**", "docs/**", "examples/**", "scripts/**", "test/**", ".github/**", "*.md",
  ]

  # Files that are compiled, or decide what is compiled against what.
  sglang_native = ["sgl-kernel/**", "sgl-router/**", "rust/**", "3rdparty/**", "python/pyproject.toml", "python/setup.py"]

  # /health_generate answers since 0.3.0, once the model has generated a token; /health answers before.
  sglang_ready = { http = "/health_generate", timeout = "20m" }

  # Versions in which a defect was seen, for a when of one's own.
  sglang_scope = {
    client_exits_0_without_success = ">=0.1.23,<0.4.1.post5"
    misspelt_max_concurrency       = ">=0.3.6.post1,<0.4.6.post4"
    no_tpot_section                = ">=0.4.3.post3,<0.5.5.post2"
  }
}

# A package for CPUs, or for other GPUs, lies about this one. It is asked before a GPU is spent.
known_issue "sglang_kernels" {
  for_each = candidates
  when     = try(each.commit.params.sgl_kernel, false)
  probe    = "python3 -c 'import importlib.util, pathlib, sys; spec = importlib.util.find_spec(\"sgl_kernel\"); root = spec and pathlib.Path(spec.origin).parent; sys.exit(not root or not any(root.rglob(\"common_ops*.so\")))'"
  reason   = "the image has no compiled sgl-kernel"
}
