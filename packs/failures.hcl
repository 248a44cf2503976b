# What a failure means, last part: devices that talk to each other, models, revisions, builds, crashes, networks.

failure "nccl" {
  match  = "ncclSystemError|ncclUnhandledCudaError|ncclInternalError|ncclRemoteError|NCCL error( in)?:? .*unhandled (cuda|system) error|NCCL error: (unhandled|internal|invalid)|Watchdog caught collective operation timeout"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "more shared memory or the IPC namespace of the host; NCCL_DEBUG=INFO shows the cause"
}

# Models.

failure "model_not_found" {
  match  = "Repository Not Found for url|Invalid repository ID or local directory specified|RepositoryNotFoundError|is not a local folder and is not a valid model identifier"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "no such model: correct its name, or give the token that may see it"
}

failure "model_gated" {
  match  = "GatedRepoError|Cannot access gated repo for url|access a gated repo|is gated\\. You must be authenticated|Access to model \\S+ is restricted"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "a token whose owner accepted the licence, or a local copy of the model"
}

failure "hub_rate_limited" {
  match  = "429 Client Error: Too Many Requests"
  stage  = ["start", "run", "fetch", "build"]
  class  = "transient"
  remedy = "wait, use a token or a mirror, or a downloaded model with HF_HUB_OFFLINE=1"
  retry {
    attempts = 4
    backoff  = "60s"
  }
}

# Options and revisions that do not exist.

failure "unknown_option" {
  match  = "error: unrecognized arguments: |error: argument \\S+: invalid choice: |flag provided but not defined: |unknown (shorthand )?flag: |unrecognized option |(invalid|illegal|unknown) option |error: unexpected argument "
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
  match  = "manifest unknown|manifest for \\S+ not found|pull access denied for|repository does not exist or may require|No image on Docker Hub|Docker image doesn't exist"
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
  class  = "fixable"
  remedy = "no prebuilt wheel fits: declare a build block"
}

failure "wheel_download" {
  match  = "HTTP status client error \\(404 Not Found\\) for url|Failed to (fetch|download):? `?https?://\\S+\\.whl"
  stage  = ["build", "fetch"]
  class  = "fixable"
  remedy = "no wheel is there: declare a build block"
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
  match  = "(^|vet: |\\s)\\S*\\.go:\\d+:\\d+: "
  stage  = ["build", "run"]
  class  = "permanent"
  remedy = "the source does not compile: correct this line; the log has all errors"
}

failure "go_build" {
  match  = "^# \\S+ \\[\\S+\\.test\\]$|\\[build failed\\]|\\[setup failed\\]"
  stage  = ["build", "run"]
  class  = "permanent"
  remedy = "a package does not compile: its errors are in the log"
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

# A program is missing, or does not fit the machine.

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

failure "numpy_array_api" {
  match  = "_ARRAY_API not found"
  stage  = ["verify", "start", "run", "build"]
  class  = "fixable"
  remedy = "pip install 'numpy<2': a module was compiled for NumPy 1"
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

# A process that was killed: by the kernel for want of memory, or by a server or a harness that cleaned up after an error.

failure "killed" {
  match  = "(?i)exit(ed with)? (code|status)[:=]? ?(137|-9)\\b|died with <Signals\\.SIGKILL|^Killed$|line \\d+: +\\d+ Killed\\b|signal: killed"
  stage  = ["start", "run", "build", "verify"]
  class  = "transient"
  remedy = "often the host ran out of memory: fewer jobs at once, or a larger machine; the kernel's log tells"
  retry {
    attempts = 2
    backoff  = "30s"
  }
}

# The client of a benchmark. After the crashes: a server that died is why no request succeeds.

failure "server_unreachable" {
  match  = "ClientConnectorError: Cannot connect to host|ConnectionRefusedError: |ConnectError: \\[Errno 111\\]"
  stage  = ["run"]
  class  = "transient"
  remedy = "the server is dead or not up yet: see its log"
  retry {
    attempts = 3
    backoff  = "5s"
  }
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
  match  = "(?i)\\b50[0234] Server Error\\b|\\bHTTP error (code )?50[0234]\\b|returned error: (HTTP/[\\d.]+ )?50[0234]\\b|\\bERROR 50[0234]: |unexpected status( code)?:? 50[0234]\\b|HTTP status server error \\(50[0234]\\b"
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
  match  = "We couldn't connect to 'https?://|HTTPSConnectionPool\\(host='[^']*(huggingface|hf)[^']*', port=\\d+\\): (Max retries exceeded|Read timed out)|LocalEntryNotFoundError"
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

failure "rendezvous_port" {
  match  = "The server socket has failed to listen on any local network address"
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "two processes took one internal port (vLLM #8791, #11617): set VLLM_PORT"
  retry {
    attempts = 3
    backoff  = "10s"
  }
}

failure "address_in_use" {
  match  = "(?i)address already in use|EADDRINUSE|\\[Errno 98\\]|\\bPort \\d+ is not available\\b"
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

# Exceptions of any Python program.

failure "architecture_uninspected" {
  match  = "Model architectures \\[[^\\]]*\\] failed to be inspected"
  stage  = ["start", "run"]
  class  = "permanent"
  remedy = "the import error of the model stands above, in the log of registry.py"
}

# The first letters after RuntimeError leave out what engines and harnesses say when another process failed: Engine core
# initialization failed, Initialization failed, Rank 0 scheduler died, Server failed to start, cancelled, and gloo's
# [file:line].

failure "python_exception" {
  match  = "\\b(TypeError|KeyError|IndexError|ValueError|ZeroDivisionError|NotImplementedError|FileNotFoundError|RecursionError|UnicodeDecodeError|ValidationError|StopIteration|OverflowError|OutOfResources|OfflineModeIsEnabled): |\\bRuntimeError: ([^EIRSsc\\[]|ca?[^an]|can[^c]|E[^n]|I[^n]|In[^i]|R[^a]|[Ss][^e])"
  stage  = ["run", "start", "build", "verify"]
  class  = "permanent"
  remedy = "an exception that no rule knows: its traceback is in the log"
}

# Processes that lost each other. After the exceptions, since one of them may be why the other end is gone.

failure "distributed" {
  match  = "gloo/transport/|DistNetworkError: The client socket|DistStoreError: "
  stage  = ["start", "run"]
  class  = "transient"
  remedy = "the processes of a group do not reach each other: see the network, and why the other end left"
}

# Wrappers.

failure "no_result" {
  match   = "benchmark produced no metrics|No (throughput |latency )?metrics in (\\w+ )?output|server failed to start|Server crashed (during startup|after applying patch)"
  stage   = ["run", "start"]
  class   = "permanent"
  remedy  = "a harness found no result: the log of the server or of the benchmark has the cause"
  wrapper = true
}

failure "server_slow" {
  match   = "Server didn't start in \\d+ ?s|Server (startup )?timeout after \\d+ ?s"
  stage   = ["start"]
  class   = "transient"
  remedy  = "the log shows how far the server came: more time, or a second try"
  wrapper = true
  retry {
    attempts = 2
    backoff  = "10s"
  }
}

# All names but those that end in DeadError: vLLM raises EngineDeadError whenever a server is stopped.
failure "python_error" {
  match   = "(^|\\s)(Exception|[A-Za-z_][\\w.]*Exception|([A-Za-z_][\\w.]*)?([^d\\W]|\\.|([^a\\W]|([^e\\W]|[^D\\W]e)a)d)Error): "
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

# Attempts that benchgraph itself ended. These come last: a cause that the log states goes before.

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
