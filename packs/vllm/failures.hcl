# Signatures of vLLM. Every project knows them, whether it uses the pack or not.

# Dependencies that moved on.

failure "aimv2_duplicate" {
  match  = "'?[\\w-]+'? is already used by a Transformers (config|model)"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pin transformers to the time of the commit (vLLM up to 0.9.2)"
}

failure "logitswarper_import" {
  match  = "cannot import name '?LogitsWarper'? from '?transformers"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pin transformers below 4.49, or drop lm-format-enforcer"
}

failure "numpy_function_base" {
  match  = "No module named '?numpy\\.lib\\.function_base"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pip install 'numpy<2'"
}

failure "numpy_not_available" {
  match  = "RuntimeError: [Nn]um[Pp]y is not available"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pip install 'numpy<2': this torch was built for NumPy 1"
}

failure "numpy_missing" {
  match  = "Failed to initialize NumPy: No [mM]odule named 'numpy'"
  stage  = ["build", "verify", "start", "run"]
  class  = "fixable"
  remedy = "install numpy in the build environment"
}

failure "outlines_fsm" {
  match  = "No module named '?outlines\\.fsm"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "install the outlines that the commit requires"
}

failure "outlines_regex" {
  match  = "cannot import name '?build_regex_from_schema'? from '?outlines\\."
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pin outlines to the range of that version, as >=0.0.43,<0.1"
}

failure "outlines_caching" {
  match  = "No module named '?outlines\\.caching"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "install the outlines that the commit requires"
}

failure "pyairports_missing" {
  match  = "No module named '?pyairports|No matching distribution found for pyairports|outlines ?[=\\w.]* depends on pyairports|pyairports was not found in the package registry"
  stage  = ["build", "verify", "start", "run"]
  class  = "fixable"
  remedy = "pyairports left PyPI: install it from its repository first"
}

failure "fa_utils_missing" {
  match  = "No module named '?vllm\\.vllm_flash_attn|cannot import name '?\\w+'? from '?vllm\\.vllm_flash_attn"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "the tree lacks the built flash-attention files: rebuild, or inject them"
}

failure "flash_attn_broken" {
  match  = "No module named '?flash_attn\\.(flash_attn_interface|ops)"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "remove or rebuild the flash-attn that stands beside vLLM"
}

failure "special_tokens_extended" {
  match  = "has no attribute '?all_special_tokens_extended"
  stage  = ["start", "run"]
  class  = "fixable"
  remedy = "pin transformers below 5, or use vLLM 0.12 and later"
}

failure "rope_scaling_fields" {
  match  = "rope_scaling`? must be a dictionary with( with)? two fields"
  stage  = ["start", "run"]
  class  = "fixable"
  remedy = "transformers 4.43.1 and later"
}

failure "rope_type_key" {
  match  = "rope_scaling (must have a 'type' or 'rope_type' key|should have a 'rope_type' key)"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "correct rope_scaling in the config of the model"
}

failure "extension_abi" {
  match  = "ImportError: \\S+\\.so\\S*: undefined symbol"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "compiled against another torch: install the torch that the commit pins and rebuild"
}

failure "extension_missing" {
  match  = "No module named \\\\?[\"']vllm\\._C\\\\?[\"']"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "build the extension, or do not run inside the source tree"
}

failure "libcudart_missing" {
  match  = "lib(cudart|cublas|cublasLt|cusparse|cusparseLt|cusolver|cufft|curand|cudnn|nvrtc|nvJitLink|cupti)\\w*\\.so\\.\\d+: cannot open shared object file"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "install the CUDA runtime of that version"
}

failure "jit_no_compiler" {
  match  = "Failed to find C compiler\\. Please specify via CC"
  stage  = ["start", "run"]
  class  = "fixable"
  remedy = "install gcc in the image: triton compiles at run time"
}

failure "jit_no_libcuda" {
  match  = "cannot find -lcuda\\b|unable to find library -lcuda\\b"
  stage  = ["start", "run", "build"]
  class  = "fixable"
  remedy = "put the stub of libcuda on LIBRARY_PATH"
}

failure "jit_build" {
  match  = "CalledProcessError: Command '\\['ninja'|Ninja build failed"
  stage  = ["start", "run", "build"]
  class  = "fixable"
  remedy = "the JIT build failed: install the matching nvcc, or wheels built ahead of time"
}

failure "nvcc_missing" {
  match  = "No such file or directory: '[^']*/nvcc'|\\bnvcc: (command )?not found|Could not find nvcc|CUDA_HOME environment variable is not set"
  stage  = ["build", "start", "run", "verify"]
  class  = "fixable"
  remedy = "build in an image with the CUDA toolkit (devel), not in one for running"
}

failure "torch_without_cuda" {
  match  = "Torch not compiled with CUDA enabled"
  stage  = ["start", "run", "verify", "build"]
  class  = "fixable"
  remedy = "install the torch for CUDA that the commit pins"
}

failure "tensor_map" {
  match  = "cuTensorMapEncodeTiled"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "the driver is older than the kernels: a newer driver"
}

# A configuration that cannot work.

failure "kv_cache_too_small" {
  match  = "larger than the maximum number of tokens that can be stored in KV cache|To serve at least one request with the models?'?s max seq len"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "more memory utilisation, or a shorter model length"
}

failure "kv_cache_no_blocks" {
  match  = "No available memory for the cache blocks"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "more memory utilisation; memory of other processes on the device counts"
}

failure "tensor_parallel_heads" {
  match  = "attention heads \\(\\d+\\) must be divisible by tensor parallel size"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "a tensor-parallel size that divides the heads"
}

failure "model_length" {
  match  = "User-specified max_model_len \\(\\d+\\) is greater\\s+than the derived max_model_len"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "lower --max-model-len"
}

failure "speculative_ngram" {
  match  = "ngram_prompt_lookup_m(ax|in)(=\\S+ must be| must be|=None)"
  stage  = ["run", "start"]
  class  = "permanent"
  remedy = "give --ngram-prompt-lookup-max with --speculative-model [ngram]"
}

failure "architecture_unsupported" {
  match  = "Model architectures \\[[^\\]]*\\] are not supported"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "the model is newer than this commit: skip the commit for this model"
}

failure "architecture_unknown" {
  match  = "Transformers does not recognize this architecture|Unrecognized configuration class|Unrecognized model in \\S+ Should have a `model_type` key"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "the model is newer than the installed transformers"
}

failure "port_8791" {
  match  = "known port binding bug \\(issue #8791\\)"
  stage  = ["run", "start"]
  class  = "permanent"
  remedy = "refused for a version alone: the issue needs pipeline parallelism, so try the commit"
}

failure "bench_script_moved" {
  match  = "This script has been moved to the vLLM CLI"
  stage  = ["run"]
  class  = "permanent"
  remedy = "use vllm bench serve, throughput or latency"
}

# Wrappers.

failure "numpy_abi" {
  match   = "A module that was compiled using NumPy 1\\.x cannot be run in"
  stage   = ["verify", "start", "run", "build"]
  class   = "fixable"
  remedy  = "pip install 'numpy<2'"
  wrapper = true
}

failure "extension_import" {
  match   = "Failed to import from vllm\\._\\w*C with"
  stage   = ["verify", "start", "run", "build"]
  class   = "fixable"
  remedy  = "on CUDA: another ABI, or no libcudart: rebuild"
  wrapper = true
}

failure "architecture_inspection" {
  match   = "Error in inspecting model architecture"
  stage   = ["start", "run"]
  class   = "fixable"
  remedy  = "the traceback that follows has the cause, often a broken dependency"
  wrapper = true
}

failure "engine_start" {
  match   = "Engine core initialization failed|EngineCore (failed to start|hit an exception|encountered a fatal error)|[\"']EngineCore encountered an issue|Engine process failed to start|Engine loop is not running|Background loop has errored already"
  stage   = ["start", "run"]
  class   = "permanent"
  remedy  = "the first error above it, in the log of the server, is the cause"
  wrapper = true
}

failure "all_requests_failed" {
  match   = "All requests failed\\. This is likely due to a misconfiguration"
  stage   = ["run"]
  class   = "invalid"
  remedy  = "no request succeeded although the exit status may be 0: look at the server"
  wrapper = true
}
