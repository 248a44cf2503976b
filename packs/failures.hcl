# What a failure means: the rules that every project has, after its own. The first rule that matches a line decides, so
# the specific ones stand before the general ones; a wrapper only says that something failed, and counts when nothing else
# matched. Transient and infra failures are tried again, the others are outcomes.

# The input itself is wrong: what follows in the log is a consequence.

failure "patch_rejected" {
  match  = "Hunk #\\d+ FAILED|\\d+ out of \\d+ hunks? FAILED|^error: patch failed: |: patch does not apply$|error: corrupt patch at line"
  stage  = ["fetch", "build", "start", "run"]
  class  = "permanent"
  remedy = "the patch was made for another revision: make it anew against this parent"
}

# The machine is short of something.

failure "disk_full" {
  match  = "(?i)no space left on device|ENOSPC|disk quota exceeded"
  class  = "infra"
  remedy = "free some space (benchgraph cache gc); for /dev/shm give the container more shared memory"
}

failure "host_out_of_memory" {
  match  = "(?i)oom-kill|oomkilled|out of memory: killed|killed by SIGKILL by OOM|exited with code 137|exit status 137|killed signal terminated program|cannot allocate memory|std::bad_alloc|\\bMemoryError\\b|runtime: out of memory|fatal error: out of memory|^Killed$|signal: killed"
  class  = "transient"
  remedy = "the host ran out of memory: fewer jobs at once, or a larger machine"
  retry {
    attempts = 2
    backoff  = "30s"
  }
}

failure "worker_out_of_memory" {
  match  = "Task was killed due to the node running low on memory"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "Ray ended the worker because memory ran low: fewer jobs at once, or a larger machine"
}

failure "too_many_open_files" {
  match  = "(?i)too many open files|EMFILE"
  class  = "infra"
  remedy = "raise the limit on open files (ulimit -n)"
}

failure "too_many_processes" {
  match  = "can't start new thread|pthread_create failed|fork: (retry: )?Resource temporarily unavailable|failed to create new OS thread"
  class  = "infra"
  remedy = "raise the limit on processes (ulimit -u, pids cgroup), or run fewer jobs at once"
}

failure "read_only" {
  match  = "(?i)read-only file system"
  class  = "infra"
  remedy = "the file system is mounted read-only: write below $OUT"
}

# GPU and driver.

failure "gpu_unavailable" {
  match  = "no CUDA-capable device is detected|No CUDA GPUs are available|CUDA driver version is insufficient|Found no NVIDIA driver on your system|NVIDIA-SMI has failed|Failed to initialize NVML|uncorrectable ECC error|CUDA unknown error|could not select device driver .* with capabilities: \\[\\[gpu\\]\\]|nvidia-container-cli: "
  stage  = ["start", "run", "build", "verify"]
  class  = "infra"
  remedy = "the driver or the container runtime offers no usable GPU: see benchgraph devices and doctor"
}

failure "gpu_free_memory" {
  match  = "Free memory on device .*on startup( is less than desired GPU memory utilization|\\. Desired GPU memory utilization)"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "another process, often the previous server, still holds the GPU: it must leave first"
  retry {
    attempts = 3
    backoff  = "60s"
  }
}

failure "gpu_memory_changed" {
  match  = "Error in memory profiling\\. Initial free memory"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "GPU memory changed while it was measured, since another process was leaving"
  retry {
    attempts = 3
    backoff  = "60s"
  }
}

failure "gpu_occupied" {
  match  = "non_torch_memory takes ([2-9]\\d|\\d{3,})\\.\\d+ ?GiB"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "another process holds the GPU: memory that is not the model's is too large"
  retry {
    attempts = 3
    backoff  = "60s"
  }
}

failure "cuda_out_of_memory" {
  match  = "OutOfMemoryError: CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "lower the memory utilisation, the model length or the number of sequences, or use more devices"
}

failure "cuda_no_kernel" {
  match  = "no kernel image is available for execution on the device"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "the wheel has no code for this GPU: rebuild it with TORCH_CUDA_ARCH_LIST"
}

failure "cuda_fork" {
  match  = "Cannot re-initialize CUDA in forked subprocess"
  stage  = ["start", "run"]
  class  = "fixable"
  remedy = "VLLM_WORKER_MULTIPROC_METHOD=spawn"
}

failure "cuda_compute_capability" {
  match  = "GPUs with compute capability below 7\\.0 are not supported"
  stage  = ["build", "start", "run"]
  class  = "permanent"
  remedy = "this GPU is too old for the engine"
}

failure "cuda_bfloat16" {
  match  = "Bfloat16 is only supported on GPUs\\s+with compute capability"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "--dtype=half, or a newer GPU"
}

failure "cuda_no_device_type" {
  match  = "RuntimeError: Failed to infer device type"
  stage  = ["start", "run"]
  class  = "infra"
  remedy = "give the container the GPU (the nvidia runtime, libcuda.so.1)"
}

failure "cuda_crash" {
  match  = "CUDA error: (an illegal memory access|device-side assert|misaligned address|unspecified launch failure)"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "a kernel is wrong: run with CUDA_LAUNCH_BLOCKING=1 to see which"
}

failure "nccl" {
  match  = "ncclSystemError|ncclUnhandledCudaError|NCCL error( in)?:? .*unhandled (cuda|system) error|NCCL error: (unhandled|internal|invalid)"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "more shared memory or the IPC namespace of the host; NCCL_DEBUG=INFO shows the cause"
}

# vLLM and SGLang: dependencies that moved on.

failure "aimv2_duplicate" {
  match  = "'?aimv2'? is already used by a Transformers config"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pin transformers to the time of the commit (vLLM up to 0.9.2)"
}

failure "logitswarper_import" {
  match  = "cannot import name 'LogitsWarper' from 'transformers"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pin transformers below 4.49, or drop lm-format-enforcer"
}

failure "numpy_function_base" {
  match  = "No module named 'numpy\\.lib\\.function_base'"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pip install 'numpy<2'"
}

failure "numpy_not_available" {
  match  = "RuntimeError: Numpy is not available"
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
  match  = "No module named 'outlines\\.fsm"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "install the outlines that the commit requires"
}

failure "outlines_regex" {
  match  = "cannot import name 'build_regex_from_schema' from 'outlines\\.fsm\\.json_schema'"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pin outlines to the range of that version, as >=0.0.43,<0.1"
}

failure "outlines_caching" {
  match  = "No module named 'outlines\\.caching'"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "install the outlines that the commit requires"
}

failure "pyairports_missing" {
  match  = "No module named 'pyairports|No matching distribution found for pyairports|outlines [0-9.]+ depends on pyairports|pyairports was not found in the package registry"
  stage  = ["build", "verify", "start", "run"]
  class  = "fixable"
  remedy = "pyairports left PyPI: install it from its repository first"
}

failure "fa_utils_missing" {
  match  = "No module named 'vllm\\.vllm_flash_attn(\\.(fa_utils|layers))?'"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "the tree lacks the built flash-attention files: rebuild, or inject them"
}

failure "flash_attn_broken" {
  match  = "No module named 'flash_attn\\.(flash_attn_interface|ops)"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "remove or rebuild the flash-attn that stands beside vLLM"
}

failure "special_tokens_extended" {
  match  = "has no attribute all_special_tokens_extended"
  stage  = ["start", "run"]
  class  = "fixable"
  remedy = "pin transformers below 5, or use vLLM 0.12 and later"
}

failure "rope_scaling_fields" {
  match  = "`rope_scaling` must be a dictionary with( with)? two fields"
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
  match  = "ImportError: \\S*_(C|moe_C|flashmla_C|vllm_fa\\w*_C)\\S*\\.so: undefined symbol"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "compiled against another torch: install the torch that the commit pins and rebuild"
}

failure "extension_missing" {
  match  = "No module named [\"']vllm\\._C[\"']"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "build the extension, or do not run inside the source tree"
}

failure "libcudart_missing" {
  match  = "libcudart\\.so\\.\\d+: cannot open shared object file"
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
  match  = "cannot find -lcuda\\b"
  stage  = ["start", "run", "build"]
  class  = "fixable"
  remedy = "put the stub of libcuda on LIBRARY_PATH"
}

failure "jit_build" {
  match  = "CalledProcessError: Command '\\['ninja'"
  stage  = ["start", "run", "build"]
  class  = "fixable"
  remedy = "the JIT build failed: install the matching nvcc, or wheels built ahead of time"
}

# vLLM and SGLang: a configuration that cannot work.

failure "kv_cache_too_small" {
  match  = "The model's max seq len \\(\\d+\\) is larger than the maximum number of tokens that can be stored in KV cache|To serve at least one request with the models?'?s max seq len"
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

failure "sglang_memory_fraction" {
  match  = "RuntimeError: Not enough memory\\. Please try to increase --mem-fraction-static"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "raise --mem-fraction-static, or a shorter context"
}

failure "tensor_parallel_heads" {
  match  = "Total number of attention heads \\(\\d+\\) must be divisible by tensor parallel size"
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

failure "architecture_unsupported" {
  match  = "Model architectures \\[.*\\] (are not supported for now|failed to be inspected)"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "the model is newer than this commit: skip the commit for this model"
}

failure "architecture_unknown" {
  match  = "Transformers does not recognize this architecture|Unrecognized configuration class"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "the model is newer than the installed transformers"
}

failure "model_not_found" {
  match  = "Repository Not Found for url|Invalid repository ID or local directory specified|RepositoryNotFoundError|is not a local folder and is not a valid model identifier"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "no such model: correct its name, or give the token that may see it"
}

failure "model_gated" {
  match  = "GatedRepoError|Cannot access gated repo for url|is gated\\. You must be authenticated|Access to model \\S+ is restricted"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "a token whose owner accepted the licence, or a local copy of the model"
}

failure "bench_script_moved" {
  match  = "DEPRECATED: This script has been moved to the vLLM CLI"
  stage  = ["run"]
  class  = "permanent"
  remedy = "use vllm bench serve, throughput or latency"
}

failure "bench_first_request" {
  match  = "Initial test run failed - Please make sure benchmark arguments"
  stage  = ["run"]
  class  = "permanent"
  remedy = "wrong model, endpoint or URL, or an error of the server: see the text after Error:"
}

failure "bench_no_success" {
  match  = "IndexError: (index -1 is out of bounds|cannot do a non-empty take from an empty axes)"
  stage  = ["run"]
  class  = "permanent"
  remedy = "no request succeeded, and the statistics failed on that: look at the server"
}

# Options and revisions that do not exist.

failure "unknown_option" {
  match  = "error: unrecognized arguments: |flag provided but not defined: |unknown (shorthand )?flag: |unrecognized option |(invalid|illegal|unknown) option |error: unexpected argument "
  stage  = ["run", "start", "build"]
  class  = "permanent"
  remedy = "the program does not know this option at this revision: drop or rename it"
}

failure "git_no_revision" {
  match  = "couldn't find remote ref|unknown revision or path not in the working tree|fatal: bad (revision|object)|reference is not a tree|not our ref |pathspec '.*' did not match any file"
  stage  = ["fetch"]
  class  = "permanent"
  remedy = "no such revision in this repository"
}

failure "git_no_repository" {
  match  = "fatal: repository '.*' (not found|does not exist)|does not appear to be a git repository|ERROR: Repository not found"
  stage  = ["fetch"]
  class  = "permanent"
  remedy = "no such repository: correct its URL or path"
}

failure "git_authentication" {
  match  = "fatal: Authentication failed for|could not read (Username|Password) for|Permission denied \\(publickey|Host key verification failed|terminal prompts disabled"
  stage  = ["fetch"]
  class  = "permanent"
  remedy = "git has no right to read the repository: set up its credentials"
}

failure "git_lock" {
  match  = "Unable to create '.*\\.lock': File exists|Another git process seems to be running|could not lock config file|cannot lock ref"
  stage  = ["fetch", "build"]
  class  = "transient"
  remedy = "another git process works in this repository; if there is none, remove its lock file"
  retry {
    attempts = 5
    backoff  = "2s"
  }
}

failure "package_lock" {
  match  = "Could not get lock /var/lib/(dpkg|apt)|Unable to acquire the dpkg frontend lock"
  stage  = ["build", "start"]
  class  = "transient"
  remedy = "another package manager is at work"
  retry {
    attempts = 5
    backoff  = "10s"
  }
}

# Containers.

failure "image_missing" {
  match  = "manifest unknown|manifest for \\S+ not found|pull access denied for|repository does not exist or may require"
  stage  = ["start", "fetch", "build", "run"]
  class  = "infra"
  remedy = "there is no such image, or no right to pull it"
}

failure "docker_daemon" {
  match  = "Cannot connect to the Docker daemon|Is the docker daemon running"
  stage  = ["build", "start", "run", "fetch"]
  class  = "infra"
  remedy = "start the docker daemon, or give this user access to its socket"
}

# Building.

failure "wheel_missing" {
  match  = "No wheel available and no ancestor wheel found|is not a supported wheel on this platform"
  stage  = ["build"]
  class  = "permanent"
  remedy = "no prebuilt wheel fits: declare a build block"
}

failure "pip_resolution" {
  match  = "ResolutionImpossible|Could not find a version that satisfies the requirement|No matching distribution found for|No solution found when resolving dependencies"
  stage  = ["build"]
  class  = "fixable"
  remedy = "pin the dependencies to the date of the commit (uv --exclude-newer)"
}

failure "go_module" {
  match  = "no required module provides package|cannot find module providing package|missing go\\.sum entry|module .* found .*, but does not contain package"
  stage  = ["build", "run"]
  class  = "permanent"
  remedy = "correct go.mod and go.sum (go mod tidy)"
}

failure "go_toolchain" {
  match  = "go: go\\.mod requires go >= |go: (download|toolchain) .*toolchain not available|invalid go version"
  stage  = ["build", "run"]
  class  = "infra"
  remedy = "install the Go version that go.mod asks for"
}

failure "go_compile" {
  match  = "(^|vet: |\\s)\\S*\\.go:\\d+:\\d+: |^# \\S+ \\[\\S+\\.test\\]$|\\[build failed\\]|\\[setup failed\\]"
  stage  = ["build", "run"]
  class  = "permanent"
  remedy = "the source does not compile: see the lines after this one"
}

failure "missing_header" {
  match  = "fatal error: \\S+\\.(h|hh|hpp|hxx|cuh): No such file or directory"
  stage  = ["build"]
  class  = "infra"
  remedy = "install the development package that has this header"
}

failure "cpp_compile" {
  match  = "\\.(c|cc|cpp|cxx|h|hh|hpp|cu|cuh|m|mm|f90)[:(]\\d+(:\\d+|\\))?:? (fatal )?error: |^nvcc fatal"
  stage  = ["build", "start"]
  class  = "permanent"
  remedy = "the source does not compile: see the lines after this one"
}

failure "rust_compile" {
  match  = "^error\\[E\\d{4}\\]"
  stage  = ["build"]
  class  = "permanent"
  remedy = "the source does not compile: see the lines after this one"
}

failure "link" {
  match  = "undefined reference to |ld: cannot find -l|undefined symbols? for architecture|ld: symbol\\(s\\) not found|multiple definition of "
  stage  = ["build"]
  class  = "permanent"
  remedy = "the linker lacks a library or a symbol"
}

failure "cmake" {
  match  = "^CMake Error"
  stage  = ["build"]
  class  = "permanent"
  remedy = "cmake could not configure: see the lines after this one"
}

# What is run is missing, or does not fit the machine.

failure "exec_format" {
  match  = "(?i)exec format error|cannot execute binary file"
  stage  = ["run", "start", "build", "verify"]
  class  = "infra"
  remedy = "the program was built for another architecture"
}

failure "command_not_found" {
  match  = "command not found|sh: \\d+: \\S+: not found|executable file not found in \\$PATH|exec: .*: not found|No such file or directory: \\'[^/\\']+\\'$"
  stage  = ["run", "start", "build", "verify"]
  class  = "infra"
  remedy = "install the program, or name it with its path"
}

failure "library_missing" {
  match  = "error while loading shared libraries: |cannot open shared object file|version `?'?(GLIBC|GLIBCXX|CXXABI)_[\\d.]+'? not found"
  stage  = ["run", "start", "verify", "build"]
  class  = "infra"
  remedy = "install the library, or build where it is run"
}

failure "permission_denied" {
  match  = "(?i)permission denied|EACCES|operation not permitted"
  class  = "permanent"
  remedy = "a file lacks the right to be read, written or executed"
}

# Crashes.

failure "address_sanitizer" {
  match  = "ERROR: (Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|WARNING: DATA RACE"
  stage  = ["run", "start"]
  class  = "permanent"
  remedy = "a sanitizer found an error in the program"
}

failure "go_panic" {
  match  = "^panic: |^fatal error: (all goroutines are asleep|concurrent map|stack overflow|unexpected signal)"
  stage  = ["run", "start"]
  class  = "permanent"
  remedy = "the program panicked: its stack follows in the log"
}

failure "rust_panic" {
  match  = "^thread '.*' (\\(\\d+\\) )?panicked at "
  stage  = ["run", "start"]
  class  = "permanent"
  remedy = "the program panicked"
}

failure "segmentation_fault" {
  match  = "(?i)segmentation fault|SIGSEGV|segfault at |signal 11\\b"
  stage  = ["run", "start", "build"]
  class  = "permanent"
  remedy = "the program crashed: a core dump or a debugger shows where"
}

failure "illegal_instruction" {
  match  = "(?i)illegal instruction|SIGILL"
  stage  = ["run", "start", "build"]
  class  = "permanent"
  remedy = "built for another processor: -march=native of another machine?"
}

failure "bus_error" {
  match  = "\\bBus error\\b|SIGBUS"
  stage  = ["run", "start"]
  class  = "infra"
  remedy = "often too little shared memory: enlarge /dev/shm"
}

failure "assertion" {
  match  = "(?i)\\bassert(ion)? .*fail|Assertion failed|^(\\S+: )?AssertionError\\b"
  stage  = ["run", "start"]
  class  = "permanent"
  remedy = "the program found its own state wrong"
}

failure "aborted" {
  match  = "Aborted \\(core dumped\\)|SIGABRT|terminate called (after|without)|double free or corruption|free\\(\\): invalid|malloc\\(\\): |corrupted size vs\\. prev_size|stack smashing detected"
  stage  = ["run", "start", "build"]
  class  = "permanent"
  remedy = "the program ended itself: the lines before say why"
}

failure "go_test_failed" {
  match  = "^\\s*--- FAIL: |^FAIL(\\s|$)"
  stage  = ["run"]
  class  = "permanent"
  remedy = "a test or benchmark failed: its messages follow"
}

failure "redis_server_error" {
  match  = "OOM command not allowed when used memory|NOAUTH Authentication required|MISCONF Redis is configured"
  stage  = ["run"]
  class  = "permanent"
  remedy = "the server refuses the commands: correct its configuration"
}

# Python.

failure "python_syntax" {
  match  = "\\b(SyntaxError|IndentationError|TabError): "
  stage  = ["run", "start", "build", "verify"]
  class  = "permanent"
  remedy = "the source does not compile"
}

failure "python_import" {
  match  = "ModuleNotFoundError: |ImportError: |: No module named "
  stage  = ["verify", "start", "run", "build"]
  class  = "permanent"
  remedy = "install the module, or declare a fix that does"
}

failure "python_name" {
  match  = "\\b(NameError|UnboundLocalError|AttributeError): "
  stage  = ["run", "start", "build", "verify"]
  class  = "permanent"
  remedy = "the source and what it uses do not fit each other"
}

# The network, and servers that are not there. After the crashes: a server that died is why it cannot be reached.

failure "rate_limited" {
  match  = "(?i)429 Client Error|too many requests|toomanyrequests|rate limit exceeded|\\bHTTP error 429\\b|returned error: (HTTP/[\\d.]+ )?429\\b"
  stage  = ["fetch", "build", "start", "run"]
  class  = "transient"
  remedy = "the server asks for patience: a token, a mirror or a cache helps"
  retry {
    attempts = 4
    backoff  = "60s"
  }
}

failure "http_forbidden" {
  match  = "(?i)\\b40[13] Client Error\\b|\\bHTTP error (code )?40[13]\\b|returned error: (HTTP/[\\d.]+ )?40[13]\\b|\\bERROR 40[13]: |unexpected status( code)?:? 40[13]\\b"
  stage  = ["fetch", "build", "start", "run"]
  class  = "permanent"
  remedy = "the server wants credentials"
}

failure "http_not_found" {
  match  = "(?i)\\b(404|410) Client Error\\b|\\bHTTP error (code )?(404|410)\\b|returned error: (HTTP/[\\d.]+ )?(404|410)\\b|\\bERROR (404|410): |unexpected status( code)?:? (404|410)\\b"
  stage  = ["fetch", "build", "start", "run"]
  class  = "permanent"
  remedy = "nothing is there: correct the URL"
}

failure "http_server_error" {
  match  = "(?i)\\b50[0234] Server Error\\b|\\bHTTP error (code )?50[0234]\\b|returned error: (HTTP/[\\d.]+ )?50[0234]\\b|\\bERROR 50[0234]: |unexpected status( code)?:? 50[0234]\\b"
  stage  = ["fetch", "build", "start", "run"]
  class  = "transient"
  remedy = "the other side failed: try again later"
  retry {
    attempts = 3
    backoff  = "10s"
  }
}

failure "certificate" {
  match  = "(?i)certificate verify failed|x509: |SSL certificate problem|certificate has expired|unable to get local issuer"
  stage  = ["fetch", "build", "start", "run"]
  class  = "infra"
  remedy = "the certificate is not trusted: set the clock, or install the CA"
}

failure "checksum" {
  match  = "(?i)(checksum|hash|digest|sha256)( sum)? mismatch|DO NOT MATCH THE HASHES|checksums? did NOT match"
  stage  = ["fetch", "build"]
  class  = "permanent"
  remedy = "the content is not what was pinned: check what changed before pinning it anew"
}

failure "hub_unreachable" {
  match  = "We couldn't connect to 'https://huggingface\\.co/?'|HTTPSConnectionPool\\(host='huggingface\\.co'.*(Max retries exceeded|timed out)"
  stage  = ["start", "run", "fetch"]
  class  = "transient"
  remedy = "try again, use a mirror, or a downloaded model with HF_HUB_OFFLINE=1"
  retry {
    attempts = 3
    backoff  = "30s"
  }
}

failure "dns" {
  match  = "(?i)could not resolve host|temporary failure in name resolution|no such host|name or service not known|nodename nor servname|NameResolutionError|getaddrinfo (failed|ENOTFOUND|EAI_AGAIN)"
  stage  = ["fetch", "build", "start", "run"]
  class  = "transient"
  remedy = "the name does not resolve: check it, and the network"
  retry {
    attempts = 3
    backoff  = "10s"
  }
}

failure "unreachable" {
  match  = "(?i)network is unreachable|no route to host|ENETUNREACH|EHOSTUNREACH"
  stage  = ["fetch", "build", "start", "run"]
  class  = "transient"
  remedy = "there is no way to that host: check the network"
  retry {
    attempts = 3
    backoff  = "10s"
  }
}

failure "address_in_use" {
  match  = "(?i)address already in use|EADDRINUSE|\\[Errno 98\\]|The server socket has failed to listen on any local network address"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "another server is alive on this port: use $PORT, and end what is left over"
  retry {
    attempts = 3
    backoff  = "10s"
  }
}

failure "broken_pipe" {
  match  = "(?i)\\[Errno 32\\]|broken pipe|\\bEPIPE\\b"
  stage  = ["start", "run", "fetch", "build"]
  class  = "transient"
  remedy = "the other end went away: see why it did"
  retry {
    attempts = 3
    backoff  = "30s"
  }
}

failure "connection_reset" {
  match  = "(?i)connection reset by peer|ConnectionResetError|ECONNRESET|remote end (hung up|closed connection)|early EOF|RemoteDisconnected|ServerDisconnectedError|TransferEncodingError|Response payload is not completed|connection closed by server|incomplete chunked read"
  stage  = ["fetch", "build", "start", "run"]
  class  = "transient"
  remedy = "the other end closed the connection: see why it did"
  retry {
    attempts = 3
    backoff  = "10s"
  }
}

failure "connection_refused" {
  match  = "(?i)connection refused|ECONNREFUSED|ConnectionRefusedError|Cannot connect to host"
  stage  = ["run", "start", "fetch", "build"]
  class  = "transient"
  remedy = "nothing listens there: the server is dead or not up yet, see its log"
  retry {
    attempts = 3
    backoff  = "5s"
  }
}

failure "timeout" {
  match  = "(?i)timed out after [\\d.]+ ?s|connection timed out|operation timed out|read timed out|i/o timeout|context deadline exceeded|ETIMEDOUT|\\b(Connect|Read)?TimeoutError\\b|\\b(Connect|Read)Timeout\\b|panic: test timed out|request timed out"
  class  = "transient"
  remedy = "nothing answered in time: raise the timeout if the work needs it"
  retry {
    attempts = 2
    backoff  = "10s"
  }
}

# What any Python program raises.

failure "python_exception" {
  match  = "\\b(TypeError|KeyError|IndexError|ValueError|ZeroDivisionError|NotImplementedError|FileNotFoundError|RecursionError|UnicodeDecodeError|ValidationError|StopIteration|OverflowError): "
  stage  = ["run", "start", "build", "verify"]
  class  = "permanent"
  remedy = "an exception that no rule knows: its traceback is in the log"
}

# Wrappers: they say that something failed, not what.

failure "numpy_abi" {
  match   = "A module that was compiled using NumPy 1\\.x cannot be run in"
  stage   = ["verify", "start", "run", "build"]
  class   = "fixable"
  remedy  = "pip install 'numpy<2'"
  wrapper = true
}

failure "extension_import" {
  match   = "Failed to import from vllm\\._C with"
  stage   = ["verify", "start", "run", "build"]
  class   = "fixable"
  remedy  = "on CUDA: another ABI, or no libcudart: rebuild"
  wrapper = true
}

failure "architecture_inspection" {
  match   = "Error in inspecting model architecture"
  stage   = ["start", "run"]
  class   = "permanent"
  remedy  = "the traceback that follows has the cause, often a broken dependency"
  wrapper = true
}

failure "engine_start" {
  match   = "Engine core initialization failed\\. See root cause above|EngineCore failed to start\\.|Engine process failed to start"
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

failure "python_error" {
  match   = "(^|\\s)[A-Za-z_][\\w.]*(Error|Exception): "
  class   = "permanent"
  remedy  = "an exception that no rule knows: its traceback is in the log"
  wrapper = true
}

failure "build_step" {
  match   = "^g?make(\\[\\d+\\])?: \\*\\*\\* |^ninja: build stopped|subprocess-exited-with-error|Failed building wheel for|metadata-generation-failed"
  stage   = ["build"]
  class   = "permanent"
  remedy  = "a step of the build failed: its message stands above"
  wrapper = true
}

failure "file_missing" {
  match   = "No such file or directory|no such file or directory|ENOENT"
  class   = "permanent"
  remedy  = "a file is not where the command looks for it"
  wrapper = true
}

# What benchgraph itself ended. These come last: what the log says of a cause goes before.

failure "not_ready" {
  match  = "^benchgraph: the server was not ready after .* \\(timeout\\)$"
  stage  = ["start"]
  class  = "permanent"
  remedy = "the log shows how far the server came: raise timeout of ready, or correct what it is asked"
}

failure "out_of_time" {
  match  = "^benchgraph: ended after .* \\(timeout\\)$"
  class  = "permanent"
  remedy = "raise timeout if the work needs it"
}
