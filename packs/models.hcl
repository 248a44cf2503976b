# Sizes of models as their authors publish them, in the language of benchmarks.hcl. A project adds its own, or corrects one,
# with a model block of the same name.
#
# parameters: all of them, those of experts included. weights: bytes of the files that are loaded, where they are not two a
# parameter. cache: bytes of keys and values for one token at 16 bits. rope: the scaling of positions that an engine must know.

# Meta
model "meta-llama/Llama-2-7b-hf" {
  parameters   = 6740000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 524288
  gated        = true
}
model "meta-llama/Llama-2-7b-chat-hf" {
  parameters   = 6740000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 524288
  gated        = true
}
model "meta-llama/Llama-2-13b-hf" {
  parameters   = 13020000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 819200
  gated        = true
}
model "meta-llama/Llama-2-13b-chat-hf" {
  parameters   = 13020000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 819200
  gated        = true
}
model "meta-llama/Llama-2-70b-hf" {
  parameters   = 68980000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 327680
  gated        = true
}
model "meta-llama/Llama-2-70b-chat-hf" {
  parameters   = 68980000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 327680
  gated        = true
}
model "huggyllama/llama-7b" {
  parameters   = 6740000000
  architecture = "LlamaForCausalLM"
  max_length   = 2048
  cache        = 524288
}
model "huggyllama/llama-13b" {
  parameters   = 13020000000
  architecture = "LlamaForCausalLM"
  max_length   = 2048
  cache        = 819200
}
model "meta-llama/Meta-Llama-3-8B" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  cache        = 131072
  gated        = true
}
model "meta-llama/Meta-Llama-3-8B-Instruct" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  cache        = 131072
  gated        = true
}
model "meta-llama/Meta-Llama-3-70B" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  cache        = 327680
  gated        = true
}
model "meta-llama/Meta-Llama-3-70B-Instruct" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  cache        = 327680
  gated        = true
}
model "neuralmagic/Meta-Llama-3-8B-Instruct-FP8" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  weights      = 9080000000
  quantization = "fp8"
  cache        = 131072
}
model "RedHatAI/Meta-Llama-3-8B-Instruct-FP8" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  weights      = 9080000000
  quantization = "fp8"
  cache        = 131072
}
model "neuralmagic/Meta-Llama-3-70B-Instruct-FP8" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  weights      = 72700000000
  quantization = "fp8"
  cache        = 327680
}
model "RedHatAI/Meta-Llama-3-70B-Instruct-FP8" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 8192
  weights      = 72700000000
  quantization = "fp8"
  cache        = 327680
}
model "meta-llama/Llama-3.1-8B" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 131072
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.1-8B-Instruct" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 131072
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Meta-Llama-3.1-8B" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 131072
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Meta-Llama-3.1-8B-Instruct" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 131072
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.1-70B" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 327680
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.1-70B-Instruct" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 327680
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Meta-Llama-3.1-70B-Instruct" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 327680
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.1-405B" {
  parameters   = 405850000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 516096
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.1-405B-Instruct" {
  parameters   = 405850000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 516096
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.1-405B-Instruct-FP8" {
  parameters   = 405850000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  weights      = 410000000000
  quantization = "fp8"
  cache        = 516096
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.2-1B" {
  parameters   = 1240000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 32768
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.2-1B-Instruct" {
  parameters   = 1240000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 32768
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.2-3B" {
  parameters   = 3210000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 114688
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.2-3B-Instruct" {
  parameters   = 3210000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 114688
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-3.2-11B-Vision-Instruct" {
  parameters   = 10670000000
  architecture = "MllamaForConditionalGeneration"
  max_length   = 131072
  cache        = 163840
  gated        = true
}
model "meta-llama/Llama-3.2-90B-Vision-Instruct" {
  parameters   = 88600000000
  architecture = "MllamaForConditionalGeneration"
  max_length   = 131072
  cache        = 409600
  gated        = true
}
model "meta-llama/Llama-3.3-70B-Instruct" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 327680
  gated        = true
  rope         = "llama3"
}
model "meta-llama/Llama-4-Scout-17B-16E" {
  parameters   = 108600000000
  architecture = "Llama4ForConditionalGeneration"
  max_length   = 10485760
  cache        = 196608
  gated        = true
}
model "meta-llama/Llama-4-Scout-17B-16E-Instruct" {
  parameters   = 108600000000
  architecture = "Llama4ForConditionalGeneration"
  max_length   = 10485760
  cache        = 196608
  gated        = true
}
model "meta-llama/Llama-4-Maverick-17B-128E-Instruct" {
  parameters   = 401600000000
  architecture = "Llama4ForConditionalGeneration"
  max_length   = 1048576
  cache        = 196608
  gated        = true
}
model "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8" {
  parameters   = 401600000000
  architecture = "Llama4ForConditionalGeneration"
  max_length   = 1048576
  weights      = 413000000000
  quantization = "fp8"
  cache        = 196608
  gated        = true
}
model "RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic" {
  parameters   = 108600000000
  architecture = "Llama4ForConditionalGeneration"
  max_length   = 10485760
  weights      = 112000000000
  quantization = "fp8"
  cache        = 196608
}
model "RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16" {
  parameters   = 108600000000
  architecture = "Llama4ForConditionalGeneration"
  max_length   = 10485760
  weights      = 61000000000
  quantization = "int4"
  cache        = 196608
}

# Mistral
model "mistralai/Mistral-7B-v0.1" {
  parameters   = 7240000000
  architecture = "MistralForCausalLM"
  max_length   = 32768
  cache        = 131072
  gated        = true
}
model "mistralai/Mistral-7B-Instruct-v0.1" {
  parameters   = 7240000000
  architecture = "MistralForCausalLM"
  max_length   = 32768
  cache        = 131072
  gated        = true
}
model "mistralai/Mistral-7B-Instruct-v0.2" {
  parameters   = 7240000000
  architecture = "MistralForCausalLM"
  max_length   = 32768
  cache        = 131072
  gated        = true
}
model "mistralai/Mistral-7B-v0.3" {
  parameters   = 7250000000
  architecture = "MistralForCausalLM"
  max_length   = 32768
  cache        = 131072
  gated        = true
}
model "mistralai/Mistral-7B-Instruct-v0.3" {
  parameters   = 7250000000
  architecture = "MistralForCausalLM"
  max_length   = 32768
  cache        = 131072
  gated        = true
}
model "mistralai/Mistral-Nemo-Instruct-2407" {
  parameters   = 12250000000
  architecture = "MistralForCausalLM"
  max_length   = 131072
  cache        = 163840
  gated        = true
}
model "mistralai/Mistral-Large-Instruct-2407" {
  parameters   = 122610000000
  architecture = "MistralForCausalLM"
  max_length   = 131072
  cache        = 360448
  gated        = true
}
model "mistralai/Mixtral-8x7B-v0.1" {
  parameters   = 46700000000
  architecture = "MixtralForCausalLM"
  max_length   = 32768
  cache        = 131072
  gated        = true
}
model "mistralai/Mixtral-8x7B-Instruct-v0.1" {
  parameters   = 46700000000
  architecture = "MixtralForCausalLM"
  max_length   = 32768
  cache        = 131072
  gated        = true
}
model "nm-testing/Mixtral-8x7B-Instruct-v0.1-FP8" {
  parameters   = 46700000000
  architecture = "MixtralForCausalLM"
  max_length   = 32768
  weights      = 47000000000
  quantization = "fp8"
  cache        = 131072
}
model "neuralmagic/Mixtral-8x7B-Instruct-v0.1-FP8" {
  parameters   = 46700000000
  architecture = "MixtralForCausalLM"
  max_length   = 32768
  weights      = 47000000000
  quantization = "fp8"
  cache        = 131072
}
model "RedHatAI/Mixtral-8x7B-Instruct-v0.1-FP8" {
  parameters   = 46700000000
  architecture = "MixtralForCausalLM"
  max_length   = 32768
  weights      = 47000000000
  quantization = "fp8"
  cache        = 131072
}
model "mistralai/Mixtral-8x22B-v0.1" {
  parameters   = 140620000000
  architecture = "MixtralForCausalLM"
  max_length   = 65536
  cache        = 229376
  gated        = true
}
model "mistralai/Mixtral-8x22B-Instruct-v0.1" {
  parameters   = 140620000000
  architecture = "MixtralForCausalLM"
  max_length   = 65536
  cache        = 229376
  gated        = true
}

# Qwen
model "Qwen/Qwen1.5-0.5B" {
  parameters   = 620000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 98304
}
model "Qwen/Qwen1.5-0.5B-Chat" {
  parameters   = 620000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 98304
}
model "Qwen/Qwen1.5-7B" {
  parameters   = 7720000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 524288
}
model "Qwen/Qwen1.5-7B-Chat" {
  parameters   = 7720000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 524288
}
model "Qwen/Qwen2-0.5B" {
  parameters   = 490000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 12288
}
model "Qwen/Qwen2-0.5B-Instruct" {
  parameters   = 490000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 12288
}
model "Qwen/Qwen2-7B" {
  parameters   = 7620000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 57344
}
model "Qwen/Qwen2-7B-Instruct" {
  parameters   = 7620000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 57344
}
model "Qwen/Qwen2-72B" {
  parameters   = 72710000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 327680
}
model "Qwen/Qwen2-72B-Instruct" {
  parameters   = 72710000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 327680
}
model "Qwen/Qwen2-VL-2B" {
  parameters   = 2210000000
  architecture = "Qwen2VLForConditionalGeneration"
  max_length   = 32768
  cache        = 28672
}
model "Qwen/Qwen2-VL-2B-Instruct" {
  parameters   = 2210000000
  architecture = "Qwen2VLForConditionalGeneration"
  max_length   = 32768
  cache        = 28672
}
model "Qwen/Qwen2-VL-7B" {
  parameters   = 8290000000
  architecture = "Qwen2VLForConditionalGeneration"
  max_length   = 32768
  cache        = 57344
}
model "Qwen/Qwen2-VL-7B-Instruct" {
  parameters   = 8290000000
  architecture = "Qwen2VLForConditionalGeneration"
  max_length   = 32768
  cache        = 57344
}
model "Qwen/Qwen2-VL-72B-Instruct" {
  parameters   = 73410000000
  architecture = "Qwen2VLForConditionalGeneration"
  max_length   = 32768
  cache        = 327680
}
model "Qwen/Qwen2.5-0.5B" {
  parameters   = 490000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 12288
}
model "Qwen/Qwen2.5-0.5B-Instruct" {
  parameters   = 490000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 12288
}
model "Qwen/Qwen2.5-1.5B" {
  parameters   = 1540000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 28672
}
model "Qwen/Qwen2.5-1.5B-Instruct" {
  parameters   = 1540000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 28672
}
model "Qwen/Qwen2.5-3B" {
  parameters   = 3090000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 36864
}
model "Qwen/Qwen2.5-3B-Instruct" {
  parameters   = 3090000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 36864
}
model "Qwen/Qwen2.5-7B" {
  parameters   = 7620000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 57344
}
model "Qwen/Qwen2.5-7B-Instruct" {
  parameters   = 7620000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 57344
}
model "Qwen/Qwen2.5-14B" {
  parameters   = 14770000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 196608
}
model "Qwen/Qwen2.5-14B-Instruct" {
  parameters   = 14770000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 196608
}
model "Qwen/Qwen2.5-32B" {
  parameters   = 32760000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 262144
}
model "Qwen/Qwen2.5-32B-Instruct" {
  parameters   = 32760000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 262144
}
model "Qwen/Qwen2.5-72B" {
  parameters   = 72710000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 327680
}
model "Qwen/Qwen2.5-72B-Instruct" {
  parameters   = 72710000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 32768
  cache        = 327680
}
model "Qwen/Qwen2.5-VL-3B-Instruct" {
  parameters   = 3750000000
  architecture = "Qwen2_5_VLForConditionalGeneration"
  max_length   = 128000
  cache        = 36864
}
model "Qwen/Qwen2.5-VL-7B-Instruct" {
  parameters   = 8290000000
  architecture = "Qwen2_5_VLForConditionalGeneration"
  max_length   = 128000
  cache        = 57344
}
model "Qwen/Qwen2.5-VL-72B-Instruct" {
  parameters   = 73410000000
  architecture = "Qwen2_5_VLForConditionalGeneration"
  max_length   = 128000
  cache        = 327680
}
model "Qwen/Qwen3-0.6B" {
  parameters   = 600000000
  architecture = "Qwen3ForCausalLM"
  max_length   = 40960
  cache        = 114688
}
model "Qwen/Qwen3-1.7B" {
  parameters   = 1720000000
  architecture = "Qwen3ForCausalLM"
  max_length   = 40960
  cache        = 114688
}
model "Qwen/Qwen3-4B" {
  parameters   = 4020000000
  architecture = "Qwen3ForCausalLM"
  max_length   = 40960
  cache        = 147456
}
model "Qwen/Qwen3-8B" {
  parameters   = 8190000000
  architecture = "Qwen3ForCausalLM"
  max_length   = 40960
  cache        = 147456
}
model "Qwen/Qwen3-14B" {
  parameters   = 14770000000
  architecture = "Qwen3ForCausalLM"
  max_length   = 40960
  cache        = 163840
}
model "Qwen/Qwen3-32B" {
  parameters   = 32760000000
  architecture = "Qwen3ForCausalLM"
  max_length   = 40960
  cache        = 262144
}
model "Qwen/Qwen3-30B-A3B" {
  parameters   = 30530000000
  architecture = "Qwen3MoeForCausalLM"
  max_length   = 40960
  cache        = 98304
}
model "Qwen/Qwen3-30B-A3B-FP8" {
  parameters   = 30530000000
  architecture = "Qwen3MoeForCausalLM"
  max_length   = 40960
  weights      = 31200000000
  quantization = "fp8"
  cache        = 98304
}
model "Qwen/Qwen3-235B-A22B" {
  parameters   = 235090000000
  architecture = "Qwen3MoeForCausalLM"
  max_length   = 40960
  cache        = 192512
}
model "Qwen/Qwen3-235B-A22B-FP8" {
  parameters   = 235090000000
  architecture = "Qwen3MoeForCausalLM"
  max_length   = 40960
  weights      = 239000000000
  quantization = "fp8"
  cache        = 192512
}

# DeepSeek
model "deepseek-ai/DeepSeek-V2" {
  parameters   = 235740000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 69120
}
model "deepseek-ai/DeepSeek-V2-Chat" {
  parameters   = 235740000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 69120
}
model "deepseek-ai/DeepSeek-V2.5" {
  parameters   = 235740000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 69120
}
model "deepseek-ai/DeepSeek-V2-Lite" {
  parameters   = 15710000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 31104
}
model "deepseek-ai/DeepSeek-V2-Lite-Chat" {
  parameters   = 15710000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 31104
}
model "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct" {
  parameters   = 15710000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 31104
}
model "deepseek-ai/DeepSeek-Coder-V2-Lite-Base" {
  parameters   = 15710000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 31104
}
model "deepseek-ai/DeepSeek-Coder-V2-Instruct" {
  parameters   = 235740000000
  architecture = "DeepseekV2ForCausalLM"
  max_length   = 163840
  cache        = 69120
}
model "deepseek-ai/DeepSeek-V3" {
  parameters   = 671030000000
  architecture = "DeepseekV3ForCausalLM"
  max_length   = 163840
  weights      = 688000000000
  quantization = "fp8"
  cache        = 70272
}
model "deepseek-ai/DeepSeek-V3-0324" {
  parameters   = 671030000000
  architecture = "DeepseekV3ForCausalLM"
  max_length   = 163840
  weights      = 688000000000
  quantization = "fp8"
  cache        = 70272
}
model "deepseek-ai/DeepSeek-V3-Base" {
  parameters   = 671030000000
  architecture = "DeepseekV3ForCausalLM"
  max_length   = 163840
  weights      = 688000000000
  quantization = "fp8"
  cache        = 70272
}
model "deepseek-ai/DeepSeek-R1" {
  parameters   = 671030000000
  architecture = "DeepseekV3ForCausalLM"
  max_length   = 163840
  weights      = 688000000000
  quantization = "fp8"
  cache        = 70272
}
model "deepseek-ai/DeepSeek-R1-0528" {
  parameters   = 671030000000
  architecture = "DeepseekV3ForCausalLM"
  max_length   = 163840
  weights      = 688000000000
  quantization = "fp8"
  cache        = 70272
}
model "deepseek-ai/DeepSeek-V3.1" {
  parameters   = 671030000000
  architecture = "DeepseekV3ForCausalLM"
  max_length   = 163840
  weights      = 688000000000
  quantization = "fp8"
  cache        = 70272
}
model "deepseek-ai/DeepSeek-R1-Distill-Llama-8B" {
  parameters   = 8030000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 131072
  rope         = "llama3"
}
model "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B" {
  parameters   = 7620000000
  architecture = "Qwen2ForCausalLM"
  max_length   = 131072
  cache        = 57344
}
model "deepseek-ai/DeepSeek-R1-Distill-Llama-70B" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 327680
  rope         = "llama3"
}

# Google
model "google/gemma-2b" {
  parameters   = 2510000000
  architecture = "GemmaForCausalLM"
  max_length   = 8192
  cache        = 18432
  gated        = true
}
model "google/gemma-2b-it" {
  parameters   = 2510000000
  architecture = "GemmaForCausalLM"
  max_length   = 8192
  cache        = 18432
  gated        = true
}
model "google/gemma-7b" {
  parameters   = 8540000000
  architecture = "GemmaForCausalLM"
  max_length   = 8192
  cache        = 458752
  gated        = true
}
model "google/gemma-7b-it" {
  parameters   = 8540000000
  architecture = "GemmaForCausalLM"
  max_length   = 8192
  cache        = 458752
  gated        = true
}
model "google/gemma-2-2b" {
  parameters   = 2610000000
  architecture = "Gemma2ForCausalLM"
  max_length   = 8192
  cache        = 106496
  gated        = true
}
model "google/gemma-2-2b-it" {
  parameters   = 2610000000
  architecture = "Gemma2ForCausalLM"
  max_length   = 8192
  cache        = 106496
  gated        = true
}
model "google/gemma-2-9b" {
  parameters   = 9240000000
  architecture = "Gemma2ForCausalLM"
  max_length   = 8192
  cache        = 344064
  gated        = true
}
model "google/gemma-2-9b-it" {
  parameters   = 9240000000
  architecture = "Gemma2ForCausalLM"
  max_length   = 8192
  cache        = 344064
  gated        = true
}
model "google/gemma-2-27b" {
  parameters   = 27230000000
  architecture = "Gemma2ForCausalLM"
  max_length   = 8192
  cache        = 376832
  gated        = true
}
model "google/gemma-2-27b-it" {
  parameters   = 27230000000
  architecture = "Gemma2ForCausalLM"
  max_length   = 8192
  cache        = 376832
  gated        = true
}
model "google/gemma-3-1b-it" {
  parameters   = 1000000000
  architecture = "Gemma3ForCausalLM"
  max_length   = 32768
  gated        = true
}
model "google/gemma-3-4b-it" {
  parameters   = 4300000000
  architecture = "Gemma3ForConditionalGeneration"
  max_length   = 131072
  gated        = true
}
model "google/gemma-3-12b-it" {
  parameters   = 12190000000
  architecture = "Gemma3ForConditionalGeneration"
  max_length   = 131072
  gated        = true
}
model "google/gemma-3-27b-it" {
  parameters   = 27430000000
  architecture = "Gemma3ForConditionalGeneration"
  max_length   = 131072
  gated        = true
}

# Others
model "facebook/opt-125m" {
  parameters   = 125000000
  architecture = "OPTForCausalLM"
  max_length   = 2048
  cache        = 36864
}
model "facebook/opt-1.3b" {
  parameters   = 1320000000
  architecture = "OPTForCausalLM"
  max_length   = 2048
  cache        = 196608
}
model "facebook/opt-6.7b" {
  parameters   = 6660000000
  architecture = "OPTForCausalLM"
  max_length   = 2048
  cache        = 524288
}
model "facebook/opt-13b" {
  parameters   = 12850000000
  architecture = "OPTForCausalLM"
  max_length   = 2048
  cache        = 819200
}
model "facebook/opt-30b" {
  parameters   = 29970000000
  architecture = "OPTForCausalLM"
  max_length   = 2048
  cache        = 1376256
}
model "facebook/opt-66b" {
  parameters   = 65700000000
  architecture = "OPTForCausalLM"
  max_length   = 2048
  cache        = 2359296
}
model "gpt2" {
  parameters   = 124000000
  architecture = "GPT2LMHeadModel"
  max_length   = 1024
  cache        = 36864
}
model "openai-community/gpt2" {
  parameters   = 124000000
  architecture = "GPT2LMHeadModel"
  max_length   = 1024
  cache        = 36864
}
model "lmsys/vicuna-7b-v1.5" {
  parameters   = 6740000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 524288
}
model "lmsys/vicuna-13b-v1.5" {
  parameters   = 13020000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 819200
}
model "tiiuae/falcon-7b" {
  parameters   = 7220000000
  architecture = "FalconForCausalLM|RWForCausalLM"
  max_length   = 2048
  cache        = 8192
}
model "tiiuae/falcon-40b" {
  parameters   = 41840000000
  architecture = "FalconForCausalLM|RWForCausalLM"
  max_length   = 2048
  cache        = 122880
}
model "microsoft/phi-1_5" {
  parameters   = 1420000000
  architecture = "PhiForCausalLM"
  max_length   = 2048
  cache        = 196608
}
model "microsoft/phi-2" {
  parameters   = 2780000000
  architecture = "PhiForCausalLM"
  max_length   = 2048
  cache        = 327680
}
model "microsoft/Phi-3-mini-4k-instruct" {
  parameters   = 3820000000
  architecture = "Phi3ForCausalLM"
  max_length   = 4096
  cache        = 393216
}
model "microsoft/phi-4" {
  parameters   = 14660000000
  architecture = "Phi3ForCausalLM"
  max_length   = 16384
  cache        = 204800
}
model "01-ai/Yi-1.5-9B" {
  parameters   = 8830000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 98304
}
model "01-ai/Yi-1.5-9B-Chat" {
  parameters   = 8830000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 98304
}
model "01-ai/Yi-34B" {
  parameters   = 34390000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 245760
}
model "01-ai/Yi-34B-Chat" {
  parameters   = 34390000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 245760
}
model "01-ai/Yi-1.5-34B-Chat" {
  parameters   = 34390000000
  architecture = "LlamaForCausalLM"
  max_length   = 4096
  cache        = 245760
}
model "ibm-ai-platform/Bamba-9B" {
  parameters   = 9780000000
  architecture = "BambaForCausalLM"
  max_length   = 4096
}
model "ibm-ai-platform/Bamba-9B-v1" {
  parameters   = 9780000000
  architecture = "BambaForCausalLM"
  max_length   = 4096
}
model "ibm-ai-platform/Bamba-9B-v2" {
  parameters   = 9780000000
  architecture = "BambaForCausalLM"
  max_length   = 4096
}
model "nvidia/Nemotron-4-340B-Instruct" {
  parameters   = 341000000000
  architecture = "NemotronForCausalLM"
  max_length   = 4096
  cache        = 589824
}
model "nvidia/Nemotron-4-340B-Base" {
  parameters   = 341000000000
  architecture = "NemotronForCausalLM"
  max_length   = 4096
  cache        = 589824
}
model "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF" {
  parameters   = 70550000000
  architecture = "LlamaForCausalLM"
  max_length   = 131072
  cache        = 327680
  rope         = "llama3"
}
model "databricks/dbrx-instruct" {
  parameters   = 131600000000
  architecture = "DbrxForCausalLM"
  max_length   = 32768
  cache        = 163840
  gated        = true
}
model "databricks/dbrx-base" {
  parameters   = 131600000000
  architecture = "DbrxForCausalLM"
  max_length   = 32768
  cache        = 163840
  gated        = true
}
model "CohereForAI/c4ai-command-r-plus" {
  parameters   = 103800000000
  architecture = "CohereForCausalLM"
  max_length   = 131072
  cache        = 262144
  gated        = true
}
model "bigscience/bloom" {
  parameters   = 176250000000
  architecture = "BloomForCausalLM"
  max_length   = 2048
  cache        = 4014080
}
model "openai/gpt-oss-20b" {
  parameters   = 20900000000
  architecture = "GptOssForCausalLM"
  max_length   = 131072
  weights      = 13800000000
  quantization = "mxfp4"
  cache        = 49152
}
model "openai/gpt-oss-120b" {
  parameters   = 116800000000
  architecture = "GptOssForCausalLM"
  max_length   = 131072
  weights      = 65300000000
  quantization = "mxfp4"
  cache        = 73728
}
model "llava-hf/llava-1.5-7b-hf" {
  parameters   = 7060000000
  architecture = "LlavaForConditionalGeneration"
  max_length   = 4096
  cache        = 524288
}
model "TinyLlama/TinyLlama-1.1B-Chat-v1.0" {
  parameters   = 1100000000
  architecture = "LlamaForCausalLM"
  max_length   = 2048
  cache        = 22528
}

# Names that are asked for and that no model has.
model "Qwen/Qwen3-7B-Instruct" { exists = false }
model "Qwen/Qwen3-7B" { exists = false }
model "Qwen/Qwen3-8B-Instruct" { exists = false }
model "Qwen/Qwen3-72B-Instruct" { exists = false }
