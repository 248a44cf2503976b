# What makes an SGLang run that does not. As in the pack vllm, a fix waits until its line is found in a log.

fix "sglang_kernels" {
  description = "sgl-kernel is not there, or has no code for this GPU: that of the commit's pins is installed"
  detect      = "Could not load any common_ops library|No module named '?sgl_kernel\\.common_ops"
  pip         = try([regex("sgl-kernel==[0-9.]+(?:post[0-9]+)?", git_file(each.rev, "python/pyproject.toml"))], [])
  verify      = "python3 -c 'import importlib.metadata; importlib.metadata.version(\"sgl-kernel\")'"
  effect      = "unknown"
  caveat      = "another sgl-kernel than the image had"
}

fix "sglang_cudnn" {
  description = "cuDNN is older than this torch can use"
  detect      = "CuDNN Compatibility Issue Detected|cuDNN version incompatibility: PyTorch was compiled"
  pip         = ["nvidia-cudnn-cu12>=9.15"]
  verify      = "python3 -c 'import torch; assert torch.backends.cudnn.version() >= 91500'"
  effect      = "perf"
  caveat      = "another cuDNN than the image had"
}

fix "sglang_numpy1" {
  description = "a package of the image was made for NumPy 1"
  detect      = "RuntimeError: [Nn]um[Pp]y is not available"
  pip         = ["numpy<2"]
  verify      = "python3 -c 'import numpy, torch; assert int(numpy.__version__.split(\".\")[0]) < 2; torch.zeros(1).numpy()'"
  effect      = "unknown"
  caveat      = "another NumPy than the image had: precision and speed may differ"
  after       = [fix.sglang_kernels, fix.sglang_cudnn]
}

fix "sglang_airports" {
  description = "outlines imports pyairports, which left PyPI"
  detect      = "ModuleNotFoundError: No module named '?pyairports"
  run         = ["sed -i -E 's/^(from \\. import )airports, */\\1/; /^from \\.airports import /d' \"$SITE/outlines/types/__init__.py\""]
  verify      = "python3 -c 'import outlines.types'"
  effect      = "neutral"
  caveat      = "guided decoding without the type of airports"
  after       = [fix.sglang_numpy1]
}
