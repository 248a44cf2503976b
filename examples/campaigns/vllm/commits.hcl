# Made by benchgraph import of vllm-commits.json: 96 commits.
locals {
  # These are used where a commit has no value:
  # merge(local.defaults, { for k, v in each.commit.params : k => v if v != null })
  defaults = { dataset = "random", gpus = 1, mode = "serving" }
}

commit "015069b0" {
  rev    = "015069b01741e9ecb9e604c7fe87fbdfc306ebe5"
  parent = "fbefc8a78d22b20eac042c586805c7dcbfc66b1c"
  title  = "[Misc] Optimize the Qwen3_ReasoningParser extract_reasoning_content (#17515)"
  params = { model = "Qwen/Qwen3-7B-Instruct", dataset = "sharegpt", client = "--request-rate 1" }
}

commit "0d243f2a" {
  rev    = "0d243f2a54fbd1c56da8a571f0899c30b6aba5d9"
  parent = "88f6ba3281f727d5641d362476ae68562b666081"
  title  = "[ROCm][MoE] mi300 mixtral8x7B perf for specific BS (#13577)"
  params = { model = "mistralai/Mixtral-8x7B-Instruct-v0.1" }
}

commit "0ec82edd" {
  rev    = "0ec82edda59aaf5cf3b07aadf4ecce1aa1131add"
  parent = "005ae9be6c22dfa2c2c5580b50b41e67faee4a87"
  title  = "[perf] Speed up align sum kernels (#21079)"
  params = { mode = "throughput", model = "Qwen/Qwen3-30B-A3B", server = "--load-format dummy", client = "--input-len 1000 --output-len 100" }
}

commit "19d98e0c" {
  rev    = "19d98e0c7db96713f0e2201649159431177a56e2"
  parent = "2b04c209ee98174f29f1fc98f0dc3222d652a7bd"
  title  = "[Kernel] Optimize moe intermediate_cache usage (#13625)"
  params = { model = "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", dataset = "sharegpt", client = "--num-prompts 100" }
}

commit "21d93c14" {
  rev    = "21d93c140d0a97af5f0c59e660cf04bd417fd424"
  parent = "f1c8520146031a650404a6ab120ee11e91c10bed"
  title  = "Optimize Mixtral with expert parallelism (#2090)"
  params = { model = "mistralai/Mixtral-8x7B-Instruct-v0.1", gpus = 8 }
}

commit "22d33bac" {
  rev    = "22d33baca2c0c639cfd45c48e99803e56c3efa74"
  parent = "b0e96aaebbfbe8e70478e4192a5a13864ffdefa6"
  title  = "[FrontEnd][Perf] `merge_async_iterators` fast-path for single-prompt requests (#15150)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "22dd9c27" {
  rev    = "22dd9c2730dc1124b9d0ac15fff223d0b8d9020b"
  parent = "a6d795d593046abd490b16349bcd9b40feedd334"
  title  = "[Kernel] Optimize Prefill Attention in Unified Triton Attention Kernel (#20308)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "25ebed2f" {
  rev    = "25ebed2f8ca6d747d63f2be9ede023c561851ac8"
  parent = "d263bd9df7b2f5586910e5d006a11ff11ba7c310"
  title  = "[V1][Minor] Cache np arange to reduce input preparation overhead (#11214)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "296f927f" {
  rev    = "296f927f2493908984707354e3cc5d7b2e41650b"
  parent = "0032903a5bb7c7c655f52f4efdfcc221947e9ca8"
  title  = "[Model] RE: Mamba2 Prefill Performance Tweaks: Fixing Flurry of Unnecessary Memory Copies  (#14857)"
  params = { model = "ibm-ai-platform/Bamba-9B", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "299ebb62" {
  rev    = "299ebb62b269ce167eb1c71b5e39a1dc1f65ce1c"
  parent = "f728ab8e3578c22b42ed53e51b5e8ec35328d8b9"
  title  = "[Core] Speed up decode by remove synchronizing operation in sampler (#16436)"
  params = {
    model  = "Qwen/Qwen2.5-1.5B-Instruct"
    client = "--request-rate 1 --num-prompts 100 --random-input-len 1000 --random-output-len 100 --tokenizer Qwen/Qwen2.5-1.5B-Instruct --ignore-eos"
  }
}

commit "2a052011" {
  rev    = "2a052011ca473a9dc8160f3daa1f5f63a2ad1fe3"
  parent = "36fb68f94792a8cec8df5b58bab7ab4d4d6158b4"
  title  = "[Kernel] Support MoE Fp8 Checkpoints for Mixtral (Static Weights with Dynamic/Static Activations) (#4527)"
  params = { model = "mistralai/Mixtral-8x7B-Instruct-v0.1", server = "--quantization fp8" }
}

commit "2deb029d" {
  rev    = "2deb029d115dadd012ce5ea70487a207cb025493"
  parent = "029c71de11bc3bcf84a1b3cf9d91e79ab6949799"
  title  = "[Performance][BlockManagerV2] Mark prefix cache block as computed after schedule (#7822)"
  params = { mode = "prefix_caching", model = "RedHatAI/Meta-Llama-3-8B-Instruct-FP8", server = "--enable-prefix-caching", client = "--output-len 200" }
}

commit "2f192835" {
  rev    = "2f1928354903ae0c6edfe76cc90081eb513ead2c"
  parent = "95baec828f3ee046074dace1d88202a920b7dc15"
  title  = "[Core] latency optimization (#3890)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "30172b49" {
  rev    = "30172b4947c52890b808c6da3a6c7580f55cbb74"
  parent = "a4d577b37944cbfa1bc62e4869667d1e2739d62a"
  title  = "[V1] Optimize handling of sampling metadata and req_ids list (#13244)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "3092375e" {
  rev    = "3092375e274e9e003961e600e10a6192d33ceaa0"
  parent = "3cd91dc9555e6f10e55f23d37782c65b0366f7cf"
  title  = "[V1][Performance] Implement custom serializaton for MultiModalKwargs [Rebased] (#16432)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "310aca88" {
  rev    = "310aca88c984983189a57f1b72e3b1dde89fb92f"
  parent = "a732900efc4eb0d4393e3885d5df8ef3516d4834"
  title  = "[perf]fix current stream (#11870)"
  params = { mode = "latency", model = "meta-llama/Meta-Llama-3-70B", gpus = 4, server = "--load-format dummy --enforce-eager" }
}

commit "3127e975" {
  rev    = "3127e975fb9417d10513e25b80820870f594c627"
  parent = "4001ea126692d9c4e6872936a791a1999c826156"
  title  = "[CI/Build] Make pre-commit faster (#12212)"
  params = { mode = "none" }
}

commit "3476ed08" {
  rev    = "3476ed0809ec91a3457da0cb90543133a4f4b519"
  parent = "54600709b6d419fb243ce718a48ab7d40f5c3eb7"
  title  = "[Core] Optimize block_manager_v2 vs block_manager_v1 (to make V2 default)  (#5602)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "35fad35a" {
  rev    = "35fad35a485eac9195c510731ba4a9d297dfd963"
  parent = "733e7c9e95f5b066ac420b00701eef7ea164a79e"
  title  = "[V1][Sampler] Faster top-k only implementation (#15478)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct" }
}

commit "379da6dc" {
  rev    = "379da6dcb5f5d062d0452b2fc23291e5113dcf04"
  parent = "ebce310b7433e050086f52ca48571807df467f50"
  title  = "[Kernel] [FP8] Improve FP8 linear layer performance (#4691)"
  params = { model = "meta-llama/Meta-Llama-3-70B", gpus = 4, server = "--quantization fp8", client = "--input-len 1000 --output-len 50" }
}

commit "3a243095" {
  rev    = "3a243095e5e7b655b63ab08fbd5936cb40850415"
  parent = "64172a976c8d975b3aec946f1675716d2532d94f"
  title  = "Optimize `_get_ranks` in Sampler (#3623)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "3b61cb45" {
  rev    = "3b61cb450d899dc423feb264c297d4d18d701678"
  parent = "edc4fa31888b4a41060acb7b16250540f051ad59"
  title  = "[V1] Further reduce CPU overheads in flash-attn (#10989)"
  params = { mode = "latency", model = "meta-llama/Llama-3.1-8B-Instruct", client = "--batch-size 32 --input-len 512 --output-len 128" }
}

commit "4c822298" {
  rev    = "4c822298981a8f7521492075ff72659985fc4c3f"
  parent = "c8d70e2437feecdb3762ce17298df33439ae1bd1"
  title  = "[V1][Spec Decode] Optimize N-gram matching with Numba (#13365)"
  params = { mode = "latency", model = "meta-llama/Llama-3.1-8B-Instruct", server = "--speculative-model meta-llama/Llama-3.2-1B-Instruct --num-speculative-tokens 5" }
}

commit "4fb56914" {
  rev    = "4fb56914c5f27ef062e10d44a0f79c6ceab382f9"
  parent = "0df4d9b06b15fa39eeb2d440e7742da93afd5e6c"
  title  = "[perf] Add fused MLA QKV + strided layernorm (#21116)"
  params = { model = "deepseek-ai/DeepSeek-V3-0324", dataset = "sharegpt" }
}

commit "526de822" {
  rev    = "526de822d501c792b051c864ba873a836d78d5bf"
  parent = "56fe4c297c7d9d872eccc19e3edbf1d75e1a30e2"
  title  = "[Kernel][Triton][AMD] Use block size heuristic for avg 2.8x speedup for int8 models (#11698)"
  params = {
    mode   = "latency"
    model  = "MODEL"
    server = "--dtype bfloat16 --enable-chunked-prefill False --load-format dummy"
    client = "--batch-size BS --num-iters-warmup 2 --num-iters 5 --input-len INPUT_LEN --output-len OUTPUT_LEN"
  }
}

commit "58eee5f2" {
  rev    = "58eee5f2e05b74eb2cb1a3bbda9c04df4805e4cc"
  parent = "067c34a1559400e956311f067ddd185f54207a2b"
  title  = "[PERF] Use faster way of decode in tokenizer: avoid useless list-to-list conversion (#20000)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "61b8cea3" {
  rev    = "61b8cea3b42feab021d506e9143551de18f9165c"
  parent = "526078a96c52af678a1ddbdc3ecf78265e358f2b"
  title  = "[Attention] Optimize FlashInfer MetadataBuilder Build call (#21137)"
  params = { model = "meta-llama/Meta-Llama-3-8B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "660470e5" {
  rev    = "660470e5a36b8e52083615ad7c85e9b4fd4c72ce"
  parent = "8d59dbb00044a588cab96bcdc028006ed922eb06"
  title  = "[Core] Optimize evictor-v2 performance (#7193)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--enable-prefix-caching --use-v2-block-manager" }
}

commit "67da5720" {
  rev    = "67da5720d4ed2aa1f615ec812031f4f3753b3f62"
  parent = "5c04bb8b863bfdef8122b193631479315cc764f5"
  title  = "[PERF] Speed up Qwen2.5-VL model by speed up rotary position embedding (#17973)"
  params = { model = "Qwen/Qwen2.5-7B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "6a417b86" {
  rev    = "6a417b8600d4d1e57698a91b71a38446e8fc5c45"
  parent = "d3ea50113c08bdd3c5cfda42ec6ecbc72328d7d1"
  title  = "fix neuron performance issue (#13589)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "6ce01f30" {
  rev    = "6ce01f30667bbae33f112152e07a3b66b841078f"
  parent = "6a11fdfbb8d6701c7ad38648aead23d8cbe6aac5"
  title  = "[Performance] Optimize `get_seqs` (#7051)"
  params = { model = "meta-llama/Meta-Llama-3-8B", client = "--num-prompts 100" }
}

commit "6d0734c5" {
  rev    = "6d0734c562e759fdb7076d762222b3881e62ab1f"
  parent = "7d94577138e3d4c7bcfd781337ee1e5a2befa685"
  title  = "[NVIDIA] Add SM100 Flashinfer MoE blockscale fp8 backend for low latency (#20645)"
  params = { model = "mistralai/Mistral-7B-Instruct-v0.3", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "6d646d08" {
  rev    = "6d646d08a2e0e73e83e313a5ae470c1f9e4f200e"
  parent = "95a178f86120f42d183b3af5ee1ce58ee05c8889"
  title  = "[Core] Optimize Async + Multi-step (#8050)"
  params = { model = "meta-llama/Llama-3-8B-Instruct", dataset = "sharegpt" }
}

commit "6dd94dbe" {
  rev    = "6dd94dbe94c1820a1e224cba65efcf0befa97995"
  parent = "0e74d797ce8618fdb685126e0ff8576fb966e6ad"
  title  = "[perf] fix perf regression from #12253 (#12380)"
  params = { mode = "latency", model = "meta-llama/Meta-Llama-3-8B", server = "--load-format dummy" }
}

commit "6e36f4fa" {
  rev    = "6e36f4fa6ce64619b9ea94c88a157f5783a63a65"
  parent = "dd2a6a82e3f41b4673b1dbb24b2e99230ea96981"
  title  = "improve chunked prefill performance"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "70b808fe" {
  rev    = "70b808fe1a63322bc6bf5f46a91981a8f6b8af00"
  parent = "63d635d17962377df089cdc9d4a2684f0b007208"
  title  = "[Perf]:Optimize qwen2-vl to reduce cudaMemcpyAsync (#14377)"
  params = { model = "Qwen/Qwen2-VL-7B", client = "--request-rate 1" }
}

commit "7661e92e" {
  rev    = "7661e92ef85e552936195ae4b803e292b9a96776"
  parent = "f168b85725202915b5719c62b46d310a608b13dd"
  title  = "[Model] Optimize nemotron_h implementation (#19249)"
  params = { model = "nvidia/Nemotron-4-340B-Instruct", gpus = 8, dataset = "sharegpt", client = "--request-rate 1" }
}

commit "7c01f706" {
  rev    = "7c01f706418d593b3cf23d2ec9110dca7151c539"
  parent = "51e971d39e1272f1c5b070a5da6b38ccfa92fc14"
  title  = "[Core] Optimize `SequenceStatus.is_finished` by switching to IntEnum (#5974)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "80aa7e91" {
  rev    = "80aa7e91fcd547a7a1396f71b9bdce18e5c92245"
  parent = "bd43973522ea17be50e10fbb222a22f673c8067e"
  title  = "[Hardware][Intel] Optimize CPU backend and add more performance tips (#4971)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "83450458" {
  rev    = "83450458339b07765b0e72a822e5fe93eeaf5258"
  parent = "5b8a1fde84224e24ec121e0dc149d775330d911b"
  title  = "[Performance][Spec Decode] Optimize ngram lookup performance (#9333)"
  params = {
    mode   = "latency"
    model  = "meta-llama/Llama-3.1-8B-Instruct"
    server = "--speculative-model '[ngram]' --num-speculative-tokens 5"
    client = "--input-len 550 --output-len 150"
  }
}

commit "88693683" {
  rev    = "886936837ca89e5645bc1f71cc0e1492b65b1590"
  parent = "6d917d0eebd03990edf2443780a5f2506026ea78"
  title  = "[Performance][Core] Optimize the performance of evictor v1 and v2 by applying a priority queue and lazy deletion (#7209)"
  params = { model = "meta-llama/Meta-Llama-3-8B", server = "--enable-prefix-caching" }
}

commit "89a84b0b" {
  rev    = "89a84b0bb7b30706a02836234a94493ea8f780bf"
  parent = "084a01fd3544557990f8af8af6fd3c1185bae848"
  title  = "[Core] Use array to speedup padding (#6779)"
  params = { model = "Qwen/Qwen1.5-0.5B", client = "--num-prompts 2048 --input-len 1024" }
}

commit "8a4e5c5f" {
  rev    = "8a4e5c5f3c1d39e924e48a87c9cc6cf382aa3532"
  parent = "76b494444fd864ffc53a623420668d1865c804b9"
  title  = "[V1][P/D]Enhance Performance and code readability for P2pNcclConnector (#20906)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "8aa1485f" {
  rev    = "8aa1485fcff7be3e42300c0615ee0f3f3cbce9a8"
  parent = "89ac266b262f08d25ebf25fc66122d1b2367ae64"
  title  = "[Perf] Disable chunked local attention by default with llama4 (#21761)"
  params = { model = "meta-llama/Llama-4-Scout-17B-16E-Instruct", gpus = 4, server = "--trust-remote-code --max-model-len 16384" }
}

commit "8bc68e19" {
  rev    = "8bc68e198c4c90ddc2e54fa76eb81c2c714bb1cd"
  parent = "0fca3cdcf265cd375bca684d951702b6b7adf65a"
  title  = "[Frontend] [Core] perf: Automatically detect vLLM-tensorized model, update `tensorizer` to version 2.9.0 (#4208)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "8c1e77fb" {
  rev    = "8c1e77fb585c4f42783a3d88c1efc7c9e15fd89f"
  parent = "5fc5ce0fe45f974fc8840175e8321652238400f0"
  title  = "[Kernel] Update vllm-flash-attn version to reduce CPU overheads (#10742)"
  params = { mode = "latency", model = "meta-llama/Llama-3.1-8B-Instruct", client = "--batch-size 32 --input-len 512 --output-len 128" }
}

commit "8d75fe48" {
  rev    = "8d75fe48ca5f46b7af0f5201d8500b9604eed769"
  parent = "388596c91437a51d428a447594e9faec340c29b2"
  title  = "[Kernel] Switch fp8 layers to use the CUTLASS kernels (#5183)"
  params = { model = "neuralmagic/Meta-Llama-3-8B-Instruct-FP8", dataset = "sharegpt" }
}

commit "9323a315" {
  rev    = "9323a3153b20d4a2ca7ac04a2784609d6ce656e0"
  parent = "3257d449fa0fd3e05aa20cc8c5fff79ad101984f"
  title  = "[Core][Performance] Add XGrammar support for guided decoding and set it as default (#10785)"
  params = {
    mode   = "guided"
    model  = "meta-llama/Llama-3.1-8B-Instruct"
    server = "--enable-chunked-prefill"
    client = "--dataset xgrammar_bench --async-engine --output-len 512 --num-prompts 20 --guided-decoding-ratio 1"
  }
}

commit "93e5f3c5" {
  rev    = "93e5f3c5fb4a4bbd49610efb96aad30df95fca66"
  parent = "70363bccfac1a6a0818ea577ad9cf8123a0ec3ae"
  title  = "[Perf] Optimize Preparing Inputs for GPU Model Runner (#16484)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "9474e89b" {
  rev    = "9474e89ba4ecae253b585eb6b3e1d85f4e108f01"
  parent = "20478c4d3abcd0aa8a1d9ace9c76ea3a2e04cb5e"
  title  = "[PREFIX CACHING FOLLOW UP] A bunch of fixes to block allocator performance when automatic prefix caching is disabled (#3357)"
  params = { mode = "throughput_cache", model = "huggyllama/llama-7b", dataset = "sharegpt", client = "--num-prompts 2000" }
}

commit "98f47f2a" {
  rev    = "98f47f2a4032f8c395268de80858c64ffcfc60fa"
  parent = "8c1e77fb585c4f42783a3d88c1efc7c9e15fd89f"
  title  = "[V1] Optimize the CPU overheads in FlashAttention custom op (#10733)"
  params = { mode = "latency" }
}

commit "99abb8b6" {
  rev    = "99abb8b650c66664cdc84d815b7f306f33bd9881"
  parent = "3a1e6481586ed7f079275b5d5072a6e246af691e"
  title  = "[V1][Spec Decode] Optimize Rejection Sampler with Triton Kernels (#14930)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", dataset = "sharegpt", client = "--num-prompts 1000" }
}

commit "9a3b8832" {
  rev    = "9a3b88328f7e434cac35b90ee463de6689f9a833"
  parent = "3014c920dae5a2360b9b4141395522cc52b59193"
  title  = "[PERF] Speedup of MRoPE prepare inputs (#19939)"
  params = { model = "Qwen/Qwen2.5-VL-3B-Instruct", client = "--num-prompts 1000" }
}

commit "9badee53" {
  rev    = "9badee53decb3d432dc805336abfb0eb81dfb48f"
  parent = "beebf4742af80296d3c3a657c66d512615c550c1"
  title  = "Fix performance when `--generation-config` is not `None` (#14223)"
  params = { model = "meta-llama/Llama-3.2-1B-Instruct", dataset = "sharegpt" }
}

commit "9d72daf4" {
  rev    = "9d72daf4ced05a5fec1ad8ea2914a39296f402da"
  parent = "6dd55af6c9dde9174e0616739d783133f5e45d42"
  title  = "[V1][Perf] Simpler request output queues (#15156)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "9ed82e70" {
  rev    = "9ed82e7074a18e25680ab106fc846364ad97bc00"
  parent = "51f8aa90ad409cc77bfab208be7f5907bf7d5330"
  title  = "[Misc] Small perf improvements (#6520)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "9f1710f1" {
  rev    = "9f1710f1ace3535920c0bb6d4cc329c36289080e"
  parent = "e642ec962cf2283f9aa44492727e6efc17a32129"
  title  = "Fix mla prefill context performance (#13897)"
  params = { model = "deepseek-ai/DeepSeek-V2-Lite-Chat", client = "--input-len 28000 --output-len 64" }
}

commit "a3223766" {
  rev    = "a32237665df876fcb51196dc209e8aff9fd89d29"
  parent = "bc8a8ce5ec374dd18e86f59be7cb0057a4b21992"
  title  = "[Core] Optimize update checks in LogitsProcessor (#21245)"
  params = {
    model  = "facebook/opt-125m"
    client = "--served-model-name facebook/opt-125m --random-input-len 700 --random-output-len 1 --endpoint /v1/completions --ignore-eos --request-rate 200 --num-prompts 100"
  }
}

commit "ac45c44d" {
  rev    = "ac45c44d98e77f30e47b8fb69134f4635183070d"
  parent = "d6664664b442cb236f8541a126e4076a5e12c56d"
  title  = "[Bugfix] [Performance] DeepEPHighThroughput + DeepSeek : Quant before Dispatch (#21837)"
  params = { model = "deepseek-ai/DeepSeek-V2" }
}

commit "ad8d696a" {
  rev    = "ad8d696a99ca1eee19f1404e16e8e82df592ff85"
  parent = "3d925165f2b18379640a63fbb42de95440d63b64"
  title  = "[Core] Scheduler perf fix (#4270)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "aea94362" {
  rev    = "aea94362c9bdd08ed2b346701bdc09d278e85f66"
  parent = "7206ce4ce112ed117796a59045c968a6d353f691"
  title  = "[Frontend][V1] Online serving performance improvements (#12287)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "b10e5198" {
  rev    = "b10e51989551cd80dd74079429ccf91f0807bd92"
  parent = "9bde5ba12709ea0fe9e1a1eeee1e8d7b4c7ea668"
  title  = "[V1][Minor] Optimize get_cached_block (#16135)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "b2e0ad3b" {
  rev    = "b2e0ad3b598ed0e022cdbd678a20821d411873c2"
  parent = "4a18fd14ba4a349291c798a16bf62fa8a9af0b6b"
  title  = "[Perf] Reduce peak memory usage of llama (#10339)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", dataset = "sharegpt", client = "--num-prompts 100" }
}

commit "b55ed6ef" {
  rev    = "b55ed6ef8ab0dce7fb0f79ff292dafdb4d22610c"
  parent = "2f385183f35497e030ef22c9820d83b83bc4f6db"
  title  = "[V1][Minor] Optimize token_ids_cpu copy (#11692)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct" }
}

commit "b690e348" {
  rev    = "b690e34824fd5a5c4054a0c0468ebfb6aa1dd215"
  parent = "25373b6c6cc2068e3914fa906d3240088f7af157"
  title  = "[Model] Mamba2 preallocate SSM output tensor to avoid d2d copy overhead (#21075)"
  params = { model = "ibm-ai-platform/Bamba-9B-v2", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "b6d10354" {
  rev    = "b6d103542c654fb63013a1e45a586d654ae36a2a"
  parent = "51c31bc10ca7c48b580cd58fcd741ba4d6db4447"
  title  = "[Kernel] Layernorm performance optimization (#3662)"
  params = { mode = "latency", model = "meta-llama/Llama-2-70b-hf", server = "--dtype float16" }
}

commit "baeded25" {
  rev    = "baeded25699f9f4851843306f27f685c4d4ee7c5"
  parent = "3e1c76cf3a87854396d9e86a56a335e7d750c85f"
  title  = "[Attention] Deepseek v3 MLA support with FP8 compute (#12601)"
  params = { model = "deepseek-ai/DeepSeek-V3", server = "--dtype float16" }
}

commit "bc7c4d20" {
  rev    = "bc7c4d206bbfb56b06d218b6c2971e8ca191db36"
  parent = "f67e9e9f221e9791733b827585d6eb6dbc23133c"
  title  = "[Kernel][ROCM] Upstream prefix prefill speed up for vLLM V1 (#13305)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "bd6028d6" {
  rev    = "bd6028d6b0bbc0c569ece0535067081c5e8bdc14"
  parent = "802329dee9e5b70c0c73df93c9db1ecdc4632664"
  title  = "Optimized topk for topk=1 (Llama-4) (#16512)"
  params = {
    mode   = "latency"
    model  = "RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic"
    gpus   = 2
    server = "--max-model-len 8000"
    client = "--input-len 1000 --output-len 1000 --batch-size 1 --num-iters-warmup 5 --num-iters 5"
  }
}

commit "bfdb1ba5" {
  rev    = "bfdb1ba5c3fb14387c69acb1f5067102d8028e56"
  parent = "cf2f084d56a1293cb08da2393984cdc7685ac019"
  title  = "[Core] Improve detokenization performance for prefill (#3469)"
  params = { mode = "latency", model = "meta-llama/Llama-2-7b-chat-hf", client = "--batch-size 1 --output-len 2 --input-len 1000 --num-iters 1" }
}

commit "c0569dbc" {
  rev    = "c0569dbc82b5e945a77878190114d1b68027828b"
  parent = "8bb43b9c9ee878e07038d3f36aaf279ffb2fabab"
  title  = "[Misc] ModularKernel : Perform WeightAndReduce inside TritonExperts & DeepGemmExperts (#20725)"
  params = { model = "Qwen/Qwen3-30B-A3B-FP8", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "c45f3c3a" {
  rev    = "c45f3c3ab60f4bf4eaab791a76028b8b07ffe9bd"
  parent = "7a7929abe8e2fd6a4688487c471a1ee1fde0edd2"
  title  = "Optimize tensor parallel execution speed (#17)"
  params = { mode = "latency", model = "facebook/opt-13b" }
}

commit "ca7a2d5f" {
  rev    = "ca7a2d5f28eac9621474563cdda0e08596222755"
  parent = "333681408feabb97193880303b23f6571ba39045"
  title  = "Revert \"[Perf] Reduce MLA CPU overheads in V1 (#14384)\" (#14471)"
  params = { model = "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "ccf02fcb" {
  rev    = "ccf02fcbaebb1a5b59dfc6c7cb64aa7cc489f04c"
  parent = "acaea3bb07883c80b71643ebee1cd08d555797bc"
  title  = "Revert \"[Model] Mamba2 Prefill Performance Tweaks: Fixing Flurry of U… (#14848)"
  params = { model = "ibm-ai-platform/Bamba-9B", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "ce6bf3a2" {
  rev    = "ce6bf3a2cff4860c5661cac2280e0a28bedb6440"
  parent = "3cdfe1f38b2c07a10a1681cd2d60c3bea1bae2f0"
  title  = "[torch.compile] avoid Dynamo guard evaluation overhead (#7898)"
  params = { mode = "throughput", model = "google/gemma-2b", client = "--input-len 256 --output-len 256" }
}

commit "cf2f084d" {
  rev    = "cf2f084d56a1293cb08da2393984cdc7685ac019"
  parent = "f721096d48a7e3b98dffcb9b400bf58989cef64d"
  title  = "Dynamic scheduler delay to improve ITL performance  (#3279)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "d4bc1a4d" {
  rev    = "d4bc1a4d248a5d23e1f731ecb53511a9a54f5dfc"
  parent = "b56b6ca0d650c653c80ec113e27d6a8e640a4b2f"
  title  = "Add unoptimized OPT Attention"
  params = { model = "facebook/opt-125m", client = "--num-prompts 100" }
}

commit "d55e446d" {
  rev    = "d55e446d1320d0f5f22bc3584f81f18d7924f166"
  parent = "ec82c3e388b962a30a02fa376c222cef787b3c14"
  title  = "[V1][Spec Decode] Small refactors to improve eagle bookkeeping performance (#18424)"
  params = { model = "meta-llama/Llama-3-8B", client = "--batch-size 2" }
}

commit "d7740ea4" {
  rev    = "d7740ea4dcee4ab75d7d6eef723f33cae957b288"
  parent = "cc466a32903d53d0ceca459b766d74ad668c8f87"
  title  = "[Core] Optimize sampler get_logprobs (#4594)"
  params = { mode = "throughput", model = "meta-llama/Llama-3.1-8B-Instruct", client = "--input-len 256 --output-len 256" }
}

commit "dae68969" {
  rev    = "dae68969774e41b93b01cd31171ca033a92b574a"
  parent = "c34eeec58d3a94437c5311e256f8ba21d1912a39"
  title  = "[Perf] Reduce MLA CPU overheads in V1 (#14384)"
  params = { model = "deepseek-ai/DeepSeek-R1", gpus = 8, env = { VLLM_ATTENTION_BACKEND = "FLASHMLA", VLLM_USE_V1 = "1" } }
}

commit "dcc6cfb9" {
  rev    = "dcc6cfb991cd76369aad96e04424f29c8fecdbd8"
  parent = "dd572c0ab3effa539b74f9a1288bb61ce83ada76"
  title  = "[Kernel][Performance] Tweak MoE Batched silu_mul_fp8_quant_deep_gemm kernel (#21193)"
  params = { model = "Qwen/Qwen3-30B-A3B-FP8", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "e206b543" {
  rev    = "e206b5433109d298e53451015465b2bf8f03ef0a"
  parent = "1d35662e6dc199431bfe4004cc84d66fd9b297b1"
  title  = "[v0][Core] Use xgrammar shared context to avoid copy overhead for offline engine (#13837)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", server = "--guided-decoding-backend xgrammar", client = "--num-prompts 100" }
}

commit "e3580537" {
  rev    = "e3580537a41a46b0f3cd750b86b633c1857a8c90"
  parent = "f508e03e7f2d8aed897d8843e1ed1668e5c4ad7a"
  title  = "[Performance] Enable chunked prefill and prefix caching together (#7753)"
  params = { model = "RedHatAI/Meta-Llama-3-8B-Instruct-FP8", server = "--enable-prefix-caching --enable-chunked-prefill --max-num-batched-tokens 2048" }
}

commit "e493e485" {
  rev    = "e493e48524e9e78ab33eafec6461b3940e361189"
  parent = "4ce64e2df48649c4873f828b8bf71790aa1e56ee"
  title  = "[V0][Bugfix] Fix parallel sampling performance regression when guided decoding is enabled (#17731)"
  params = { model = "microsoft/phi-1_5", client = "--num-prompts 100" }
}

commit "e7523c2e" {
  rev    = "e7523c2e031bc96740723ab63833d1cf94229ab4"
  parent = "a869baca73eb90ae7bd18402915dc4bfc36cf06b"
  title  = "[V1][Sampler] Improve performance of FlashInfer sampling by sampling logits instead of probs (#18608)"
  params = {
    model   = "google/gemma-3-12b-it"
    dataset = "hf"
    client  = "--backend openai-chat --endpoint /v1/chat/completions --dataset-path lmarena-ai/VisionArena-Chat --hf-split train --num-prompts 1000"
  }
}

commit "e7b20426" {
  rev    = "e7b204268132cb775c139574c1ff4ad7e15c8f66"
  parent = "90f1e55421f1b61394ba25abe34bf5abd82a71af"
  title  = "Revert \"[Performance] Performance improvements in non-blockwise fp8 CUTLASS MoE (#20762) (#21334)"
  params = { model = "01-ai/Yi-1.5-9B-Chat", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "ec3b5ce9" {
  rev    = "ec3b5ce9ccb4262194a16a8b1c31ffd6b3b824b9"
  parent = "6368e777a8ead7fb62054d3779c6237361ec0d86"
  title  = "Improve detokenization performance (#1338)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "ed250545" {
  rev    = "ed25054577f7abca2aee32a5290200c4a1aed561"
  parent = "10904e6d755051260a7c3ce98659d8907c74caa9"
  title  = "[Core] Introduce popleft_n and append_n in FreeKVCacheBlockQueue to further optimize block_pool (#21222)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "eefbf4a6" {
  rev    = "eefbf4a68b7b0a5b8364a59647906be1b7f043e2"
  parent = "88faa466d788e25082c02dc9688931d7976361f9"
  title  = "[Perf] Optimize `reshape_and_cache_flash` CUDA Kernel (#22036)"
  params = { model = "Qwen/Qwen3-30B-A3B-FP8", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}

commit "f092153f" {
  rev    = "f092153fbe349a9a1742940e3703bfcff6aa0a6d"
  parent = "1da8f0e1dddaf8625829e7ecca7fce93eb685c03"
  title  = "[V1] Use more persistent buffers to optimize input preparation overheads (#11111)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "f26c4aee" {
  rev    = "f26c4aeecba481ce1445be7a998b0b97460a13bb"
  parent = "8936316d587ca0afb5ef058584c407d404c0ffb0"
  title  = "[Misc] Optimize ray worker initialization time (#11275)"
  params = {
    mode   = "latency"
    model  = "meta-llama/Llama-3.1-8B-Instruct"
    gpus   = 4
    server = "--max-model-len 2048 --no-enable-prefix-caching --distributed-executor-backend ray"
    client = "--num-iters-warmup 5 --num-iters 20 --batch-size 8 --input-len 128 --output-len 256"
  }
}

commit "fa63e710" {
  rev    = "fa63e710c7fbaae3a445f669d3b5ba6b9a4ef412"
  parent = "2a0309a646b1ed83a0c40974e08c8dc628726d3c"
  title  = "[V1][Perf] Reduce scheduling overhead in model runner after cuda sync (#12094)"
  params = { mode = "latency", model = "meta-llama/Meta-Llama-3-8B", client = "--input-len 1000 --batch-size 32", env = { VLLM_USE_V1 = "1" } }
}

commit "fb0acb6c" {
  rev    = "fb0acb6c72874e98617cabee4ff4851569374fc9"
  parent = "92b0ce2ac75e251fe683f5b720f07001782054ff"
  title  = "[Perf] Improve MLA on V1 (#14540)"
  params = {
    mode   = "throughput"
    model  = "deepseek-ai/DeepSeek-R1"
    gpus   = 8
    server = "--load-format dummy --trust-remote-code"
    client = "--input-len 6000 --output-len 1000 --num-prompts 50"
  }
}

commit "fc542144" {
  rev    = "fc542144c4477ffec1d3de6fa43e54f8fb5351e8"
  parent = "eb5741ad422f04d0bac60c9b6c07183e0431ce8c"
  title  = "[Feature] Fix guided decoding blocking bitmask memcpy (#12563)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 1" }
}

commit "fc7b8d1e" {
  rev    = "fc7b8d1eefcbe837a56b7c080509417fe5167e6c"
  parent = "67abdbb42fdbb59c274130368981c0d0ac3539e3"
  title  = "[Performance] e2e overheads reduction: Small followup diff (#7364)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "fe66b347" {
  rev    = "fe66b34728e5d383e3d19aefc544eeee808c99fb"
  parent = "270a5da495d24e947a71e2fa0c56635f4fad2dc3"
  title  = "[Model] Mamba2 Prefill Performance Tweaks: Fixing Flurry of Unnecessary Memory Copies  (#14778)"
  params = { model = "ibm-ai-platform/Bamba-9B", server = "--dtype float16", client = "--num-prompts 300 --seed 0" }
}
