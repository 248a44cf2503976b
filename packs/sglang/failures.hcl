# Signatures of SGLang. Every project knows them, whether it uses the pack or not.

failure "kernels_architecture" {
  match  = "\\[sgl_kernel\\] CRITICAL: Could not load any common_ops library|No module named '?sgl_kernel\\.common_ops|sgl_kernel/\\S*common_ops\\S*\\.so: cannot open"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "sgl-kernel has no code for this GPU: install the sgl-kernel that the commit pins, built for this architecture"
}

failure "cudnn_of_torch" {
  match  = "CuDNN Compatibility Issue Detected|cuDNN version incompatibility: PyTorch was compiled"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "install the cuDNN that belongs to this torch"
}

failure "sglang_memory_fraction" {
  match  = "Not enough memory\\. Please try to increase --mem-fraction-static"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "raise --mem-fraction-static, or a shorter context"
}

failure "sglang_too_large" {
  match  = "Please increase --mem-fraction-static|Loaded weights leave no memory for the KV cache"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "raise --mem-fraction-static, use a shorter context, or more devices"
}

failure "sglang_scheduler" {
  match   = "scheduler is dead\\. Please check if there are relevant logs|Received sigquit from a child process|Initialization failed\\. Please see the error messages above"
  stage   = ["start", "run"]
  class   = "permanent"
  remedy  = "the first error above it, in the log of the server, is the cause"
  wrapper = true
}
