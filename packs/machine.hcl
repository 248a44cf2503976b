# What a failure means, first part: causes that the machine or the input has. These rules, those of vllm/failures.hcl and
# sglang/failures.hcl, and then those of failures.hcl are known to every project, after its own. The first rule that
# matches a line decides, so specific rules stand before general ones. A rule that matches only warnings and
# notices comes after those that match errors. A wrapper only says that something failed, and counts when nothing else
# matched. Transient and infra failures are tried again, the others are outcomes.

# The input itself is wrong: errors that follow in the log are consequences.

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
  match  = "(?i)oom-kill|oomkilled|out of memory: killed|killed by SIGKILL by OOM|killed signal terminated program|cannot allocate memory|std::bad_alloc|\\bMemoryError\\b|runtime: out of memory|fatal error: out of memory"
  class  = "transient"
  remedy = "the host ran out of memory: fewer jobs at once, or a larger machine"
  retry {
    attempts = 2
    backoff  = "30s"
  }
}

failure "worker_out_of_memory" {
  match  = "Task was killed due to the node running low on memory|killed due to memory pressure \\(OOM\\)"
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
  match  = "can't start new thread|pthread_create failed|fork: (retry: )?Resource temporarily unavailable|: Cannot fork$|failed to create new OS thread"
  class  = "infra"
  remedy = "raise the limit on processes (ulimit -u, pids cgroup), or run fewer jobs at once"
}

failure "file_system" {
  match  = "\\[Errno (5|116)\\]|: Input/output error|Stale (NFS )?file handle"
  class  = "infra"
  remedy = "the disk or the file server does not answer as it should: see the log of the kernel"
}

failure "read_only" {
  match  = "(?i)read-only file system"
  class  = "infra"
  remedy = "the file system is mounted read-only: write below $OUT"
}

# GPU and driver.

failure "gpu_fabric" {
  match  = "system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY"
  stage  = ["start", "run", "build", "verify"]
  class  = "infra"
  remedy = "the GPUs have not joined the fabric of NVSwitches: start nvidia-fabricmanager, of the driver's version"
}

failure "gpu_exclusive" {
  match  = "CUDA-capable device(s|\\(s\\))( is/are| are) busy or unavailable|cudaErrorDevicesUnavailable|CUDA_ERROR_DEVICE_UNAVAILABLE"
  stage  = ["start", "run", "build", "verify"]
  class  = "infra"
  remedy = "another process is on the GPU, whose compute mode is probably exclusive (nvidia-smi -q -d COMPUTE): nvidia-smi -c DEFAULT, or end the MPS daemon"
}

failure "gpu_unavailable" {
  match  = "no CUDA-capable device is detected|No CUDA GPUs are available|CUDA driver version is insufficient|Found no NVIDIA driver on your system|NVIDIA-SMI has failed|Failed to initialize NVML|uncorrectable ECC error|uncorrectable NVLink error|CUDA error: hardware stack error|fallen off the bus|CUDA unknown error|The NVIDIA driver on your system is too old|forward compatibility was attempted on non supported HW|MPS client failed to connect|NVMLError_(Unknown|LibraryNotFound|LibRmVersionMismatch|DriverNotLoaded|GpuIsLost|ResetRequired)|No HIP GPUs are available|could not select device driver .* with capabilities: \\[\\[gpu\\]\\]|nvidia-container-cli: "
  stage  = ["start", "run", "build", "verify"]
  class  = "infra"
  remedy = "the driver or the container runtime offers no usable GPU: see benchgraph devices and doctor"
}

failure "gpu_free_memory" {
  match  = "on startup is less than desired GPU memory utilization"
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
  match  = "(INFO [^\\n]*)?non_torch_memory takes ([2-9]\\d|\\d{3,})\\.\\d+ ?GiB|memory capacity is unbalanced\\. Some GPUs may be occupied"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "another process holds a GPU: it must leave first"
  retry {
    attempts = 3
    backoff  = "60s"
  }
}

failure "cuda_out_of_memory" {
  match  = "OutOfMemoryError: (CUDA|HIP|XPU) out of memory|(CUDA|HIP|XPU|NPU) out of memory\\. Tried to allocate|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
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
  match  = "GPUs with compute capability (below|less than) \\d+\\.\\d+ are not supported"
  stage  = ["build", "start", "run"]
  class  = "permanent"
  remedy = "this GPU is too old for the engine"
}

failure "cuda_bfloat16" {
  match  = "[Bb]float16 is only supported on GPUs\\s+with compute capability"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "--dtype=half, or a newer GPU"
}

failure "cuda_no_device_type" {
  match  = "Failed to infer device type"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "give the container the GPU: gpus in the block, the nvidia runtime, libcuda.so.1"
}

failure "cuda_crash" {
  match  = "CUDA error: (an illegal memory access|device-side assert|misaligned address|unspecified launch failure)"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "a kernel is wrong: run with CUDA_LAUNCH_BLOCKING=1 to see which"
}
