# What makes a vLLM run that does not. A fix waits until its line is found in a log of a variant without a patch, and is
# then applied to all variants of that commit. The order is: pins of packages, NumPy last among them, files in the
# installed package, the environment. No fix changes the model, and no fix installs pyairports, whose name on PyPI belongs
# to an empty package of somebody else.

fix "transformers_logits" {
  description = "lm-format-enforcer imports LogitsWarper, which transformers removed"
  detect      = "cannot import name '?LogitsWarper"
  pip         = ["transformers<4.46"]
  verify      = "python3 -c 'from transformers.generation.logits_process import LogitsWarper'"
  effect      = "unknown"
  caveat      = "another transformers than the image had"
}

fix "transformers_tokens" {
  description = "transformers 5 has no all_special_tokens_extended, which vLLM up to 0.11 reads"
  detect      = "has no attribute '?all_special_tokens_extended"
  pip         = ["transformers<5"]
  verify      = "python3 -c 'import transformers; assert int(transformers.__version__.split(\".\")[0]) < 5'"
  effect      = "unknown"
  caveat      = "another transformers than the image had"
}

fix "numpy1" {
  description = "a package of the image was made for NumPy 1"
  detect      = "No module named '?numpy\\.lib\\.function_base|RuntimeError: [Nn]um[Pp]y is not available|_ARRAY_API not found"
  pip         = ["numpy<2"]
  verify      = "python3 -c 'import numpy, torch; assert int(numpy.__version__.split(\".\")[0]) < 2; torch.zeros(1).numpy()'"
  effect      = "unknown"
  caveat      = "another NumPy than the image had: precision and speed may differ"
  after       = [fix.transformers_logits, fix.transformers_tokens]
}

fix "outlines_airports" {
  description = "outlines imports pyairports, which left PyPI"
  detect      = "ModuleNotFoundError: No module named '?pyairports"
  run         = ["sed -i -E 's/^(from \\. import )airports, */\\1/; /^from \\.airports import /d' \"$SITE/outlines/types/__init__.py\""]
  verify      = "python3 -c 'import outlines.types'"
  effect      = "neutral"
  caveat      = "guided decoding without the type of airports"
  after       = [fix.numpy1]
}

fix "flash_attn" {
  description = "a broken flash-attn stands beside the one of vLLM"
  detect      = "No module named '?flash_attn\\.(flash_attn_interface|ops)"
  run         = ["python3 -m pip uninstall -y flash-attn"]
  verify      = "python3 -c 'import vllm'"
  effect      = "unknown"
  caveat      = "without the flash-attn of the image"
  after       = [fix.numpy1]
}

fix "fa_utils" {
  description = "fa_utils.py of the same revision is not in the package"
  detect      = "No module named '?vllm\\.vllm_flash_attn\\.fa_utils"
  verify      = "python3 -c 'import vllm.vllm_flash_attn.fa_utils'"
  effect      = "neutral"
  caveat      = "one file from the source of the same revision"
  after       = [fix.numpy1]
  file {
    from = try("${each.source}/vllm/vllm_flash_attn/fa_utils.py", "vllm/vllm_flash_attn/fa_utils.py") # a commit may have no repo
    to   = "$SITE/vllm/vllm_flash_attn/fa_utils.py"
  }
}

fix "aimv2" {
  description = "transformers has a config of this name, too (vLLM 0.8.5 to 0.9.2)"
  detect      = "'?aimv2'? is already used by a Transformers config"
  run         = ["sed -i 's/AutoConfig.register(\"aimv2\", AIMv2Config)/AutoConfig.register(\"aimv2\", AIMv2Config, exist_ok=True)/' \"$SITE\"/vllm/transformers_utils/configs/ovis*.py"]
  verify      = "python3 -c 'import vllm.transformers_utils.configs'"
  effect      = "neutral"
  caveat      = "edits the registration of one config"
  after       = [fix.numpy1, fix.fa_utils]
}

fix "spawn" {
  description = "a worker is forked after CUDA was used"
  detect      = "Cannot re-initialize CUDA in forked subprocess"
  env         = { VLLM_WORKER_MULTIPROC_METHOD = "spawn" }
  effect      = "neutral"
  caveat      = "workers are started by spawn"
}

fix "libcuda_stub" {
  description = "triton links against libcuda, which no directory of the linker has"
  detect      = "cannot find -lcuda\\b|unable to find library -lcuda\\b"
  env         = { LIBRARY_PATH = "/usr/local/cuda/compat:/usr/local/cuda/lib64/stubs" }
  effect      = "neutral"
  caveat      = "links against the stub of libcuda"
}

# More memory for the cache changes figures, so nothing learns this: the project names the commits that need it.
fix "gpu_memory" {
  description = "the engine and its CUDA graphs do not fit into nine tenths of the memory"
  when        = contains(local.vllm_gpu_memory, each.commit.name)
  run         = ["sed -i -E 's/(gpu_memory_utilization: float = )0\\.90?$/\\10.95/' $(grep -lE 'gpu_memory_utilization: float = 0\\.90?$' \"$SITE\"/vllm/engine/arg_utils.py \"$SITE\"/vllm/config.py \"$SITE\"/vllm/config/*.py \"$SITE\"/vllm/entrypoints/llm.py)"]
  verify      = "python3 -c 'import vllm.engine.arg_utils'"
  effect      = "perf"
  caveat      = "gpu_memory_utilization is 0.95 where the command does not say otherwise"
  after       = [fix.fa_utils, fix.aimv2]
}
