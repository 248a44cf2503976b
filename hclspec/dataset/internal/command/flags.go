package command

import "strings"

// engineFlag reports whether a flag belongs to the inference engine, not to the benchmark that drives it. Flags that
// both have, such as --seed, belong to the benchmark.
func engineFlag(name string) bool {
	for _, prefix := range enginePrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return engineFlags[strings.TrimPrefix(name, "no-")]
}

var enginePrefixes = []string{
	"speculative-", "cuda-graph-", "moe-", "ep-", "deepep-", "kv-", "override-", "mm-", "ngram-", "max-lora",
	"max-cpu-lora",
	"typical-acceptance-", "torch-compile-", "triton-", "schedule-", "collect-detailed-", "spec-", "disaggregation-",
	"nccl-", "data-parallel-",
}

var engineFlags = set(`
	dtype quantization q load-format download-dir config-format tokenizer-mode skip-tokenizer-init tokenizer-revision
	revision code-revision trust-remote-code allowed-local-media-path quantization-param-path kv-cache-dtype
	max-model-len max-seq-len guided-decoding-backend logits-processor-pattern model-impl hf-config-path hf-overrides
	hf-token distributed-executor-backend dp dp-size tensor-parallel-size tp pipeline-parallel-size pp
	enable-expert-parallel enable-eplb max-parallel-loading-workers worker-use-ray engine-use-ray
	ray-workers-use-nsight block-size enable-prefix-caching prefix-caching-hash-algo disable-sliding-window
	use-v2-block-manager num-lookahead-slots swap-space cpu-offload-gb gpu-memory-utilization num-gpu-blocks-override
	max-num-batched-tokens max-num-partial-prefills max-long-partial-prefills long-prefill-token-threshold
	max-num-seqs max-paddings max-logprobs disable-log-stats disable-log-requests max-log-len rope-scaling rope-theta
	enforce-eager max-seq-len-to-capture max-context-len-to-capture disable-custom-all-reduce tokenizer-pool-size
	tokenizer-pool-type tokenizer-pool-extra-config limit-mm-per-prompt disable-mm-preprocessor-cache enable-lora
	enable-lora-bias lora-extra-vocab-size lora-dtype long-lora-scaling-factors fully-sharded-loras lora-modules
	lora-paths enable-prompt-adapter max-prompt-adapters max-prompt-adapter-token prompt-adapters device
	num-scheduler-steps multi-step-stream-outputs scheduler-delay-factor enable-chunked-prefill num-speculative-tokens
	disable-logprobs-during-spec-decoding model-loader-extra-config ignore-patterns preemption-mode
	qlora-adapter-name-or-path otlp-traces-endpoint disable-async-output-proc scheduling-policy scheduler-cls
	compilation-config O worker-cls worker-extension-cls generation-config enable-sleep-mode calculate-kv-scales
	additional-config enable-reasoning reasoning-parser disable-cascade-attn async-scheduling
	disable-frontend-multiprocessing enable-auto-tool-choice tool-call-parser chat-template response-role
	api-server-count enable-prompt-tokens-details attention-backend sampling-backend grammar-backend
	mem-fraction-static max-running-requests max-total-tokens chunked-prefill-size max-prefill-tokens context-length
	enable-torch-compile disable-radix-cache disable-cuda-graph disable-cuda-graph-padding enable-dp-attention
	enable-mixed-chunk disable-overlap-schedule enable-flashinfer-mla enable-flashmla page-size enable-metrics
	random-seed stream-interval watchdog-timeout tokenizer-path enable-p2p-check enable-memory-saver
	enable-two-batch-overlap disable-shared-experts-fusion num-continuous-decode-steps delete-ckpt-after-loading
	enable-nccl-nvls enable-tokenizer-batch-encode hicache-ratio enable-hierarchical-cache allow-auto-truncate
`)

func set(words string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		all[w] = true
	}
	return all
}
