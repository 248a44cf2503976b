package stated

// countNames is the table of the labels and keys of counts.
func countNames() map[string]string {
	return map[string]string{
		"successful_requests": "successful_requests", "completed_requests": "successful_requests",
		"requests_completed": "successful_requests", "completed": "successful_requests",
		"num_completed": "successful_requests", "request_errors": "failed_requests", "num_failed": "failed_requests",
		"failed_requests": "failed_requests", "failed": "failed_requests", "error_count": "failed_requests",
		"errors": "failed_requests", "num_errors": "failed_requests", "total_errors": "failed_requests",
		"failures": "failed_requests", "total_input_tokens": "total_input_tokens",
		"total_output_tokens": "total_output_tokens", "total_generated_tokens": "total_output_tokens",
		"benchmark_duration": "benchmark_duration", "benchmark_duration_s": "benchmark_duration",
	}
}

// settingNames is the table of the labels and keys of settings.
func settingNames() map[string]string {
	names := map[string]string{
		"model": "model_id", "model_name": "model_id", "tokenizer": "tokenizer_id",
		"traffic_request_rate": "request_rate", "request_rate_configured_rps": "request_rate",
		"burstiness_factor": "burstiness", "maximum_request_concurrency": "max_concurrency",
		"max_request_concurrency": "max_concurrency", "number_of_prompts": "num_prompts",
		"number_of_requests": "requests", "total_requests": "requests", "warm_up_requests": "warmup_requests",
		"num_warmups": "warmup_requests", "num_warmup_requests": "warmup_requests",
		"warmup_request_count": "warmup_requests", "warmup_iters": "warmup_iterations",
		"num_iters_warmup": "warmup_iterations", "num_warmup_iters": "warmup_iterations",
		"num_steps": "steps", "num_repeats": "repetitions", "num_repetitions": "repetitions",
	}
	for _, name := range []string{"num_iterations", "num_iters", "n_iterations", "n_iters", "iters",
		"number_of_iterations", "iteration_count"} {
		names[name] = "iterations"
	}
	for _, name := range []string{
		"backend", "model_id", "tokenizer_id", "dataset", "dataset_name", "endpoint", "endpoint_type", "request_rate",
		"burstiness", "max_concurrency", "num_prompts", "requests", "warmup_requests", "batch_size", "input_len",
		"output_len", "random_input_len", "random_output_len", "random_range_ratio",
		"sharegpt_output_len", "ignore_eos", "disable_ignore_eos", "best_of", "use_beam_search", "temperature", "top_p",
		"top_k", "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps", "dtype", "kv_cache_dtype", "quantization",
		"precision", "keep_alive", "tensor_parallel_size", "iterations", "warmup_iterations", "repetitions", "steps",
	} {
		names[name] = name
	}
	return names
}

// kind is the form that a setting must have in a line or a document of an unknown program, since its name alone proves
// little.
type kind int

const (
	ofKnown  kind = iota // the name means the setting only for known programs
	ofWord               // one word that is no number
	ofNumber             // a number, or inf
	ofWhole              // a whole number, or inf: a fraction is probably a measurement
)

// Amount reports whether a setting is an amount of work. A program that chooses the amount by itself states another
// number in each run; such a number is no setting.
func Amount(setting string) bool {
	return setting == "iterations" || setting == "repetitions" || setting == "steps"
}

func kindOf(setting string) kind {
	switch setting {
	case "model_id", "tokenizer_id", "dataset", "dataset_name", "dtype", "kv_cache_dtype", "quantization", "precision":
		return ofWord
	case "burstiness", "random_range_ratio":
		return ofNumber
	case "request_rate", "max_concurrency", "num_prompts", "requests", "warmup_requests", "batch_size",
		"random_input_len", "random_output_len",
		"keep_alive", "tensor_parallel_size", "iterations", "warmup_iterations", "repetitions", "steps":
		return ofWhole
	}
	return ofKnown
}
