# Made by benchgraph import of sglang-commits.json: 80 commits.
locals {
  # These are used where a commit has no value:
  # merge(local.defaults, { for k, v in each.commit.params : k => v if v != null })
  defaults = { gpus = 1, mode = "serving" }
}

commit "021f76e4" {
  rev    = "021f76e4f49861b2e9ea9ccff06a46d577e3c548"
  parent = "777688b8929c877e4e28c2eac208d776abe4c3af"
  title  = "[Perf] Refactor LoRAManager to eliminate stream syncs and redundant computations  (#6994)"
  params = {
    model  = "meta-llama/Llama-3.1-8B-Instruct"
    server = "--disable-radix-cache --lora-paths lora=algoprog/fact-generation-llama-3.1-8b-instruct-lora"
    client = "--num-prompt 480 --request-rate 8 --lora-name lora"
  }
}

commit "132dad87" {
  rev    = "132dad874d2e44592d03a112e4b7d63b153e8346"
  parent = "60fdad7cf343333e956a3889c12956396a1516bf"
  title  = "[PD] Optimize transfer queue forward logic for dummy rank (#6922)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "187b85b7" {
  rev    = "187b85b7f38496653948a2aba546d53c09ada0f3"
  parent = "ceba0ce4f661722198f6568a54ba20cf06b7e033"
  title  = "[PD] Optimize custom mem pool usage and bump mooncake version (#7393)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "1acca3a2" {
  rev    = "1acca3a2c685221cdb181c2abda4f635e1ead435"
  parent = "6ea1e6ac6e2fa949cebd1b4338f9bfb7036d14fe"
  title  = "FA3 speed up: skip len operation and get batch size directly from forward batch (#5969)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "6b231325" {
  rev    = "6b231325b9782555eb8e1cfcf27820003a98382b"
  parent = "b1c8d4e9f31953560f2db45a3b6e68099ef00c13"
  title  = "[PD Perf] replace Queue to FastQueue (#6649)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "73b13e69" {
  rev    = "73b13e69b4207f240650c6b51eba7a7204f64939"
  parent = "8609e637a961dd0bd17bbf7f8f81b34cb2f7863a"
  title  = "Optimize DP attn scheduling for speculative decoding (#7285)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "a191a0e4" {
  rev    = "a191a0e47c2f0b0c8aed28080b9cb78624365e92"
  parent = "8c7279c24e535681478188967b3007916b87b3d0"
  title  = "Improve performance of two batch overlap in some imbalanced cases (#6593)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "da47621c" {
  rev    = "da47621ccc4f8e8381f3249257489d5fe32aff1b"
  parent = "22a6b9fc051154347b6eb5064d2f6ef9b4dba471"
  title  = "Minor speedup topk postprocessing (#7058)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "dd1012fc" {
  rev    = "dd1012fcbe2a1fb36c44e10c16f8d0bcd8e9da25"
  parent = "44aab7f91c350b1c6ecb77a7a34efb98af106cb5"
  title  = "[PD] Fix potential perf spike caused by tracker gc and optimize doc (#6764)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "df7f61ee" {
  rev    = "df7f61ee7d235936e6663f07813d7c03c4ec1603"
  parent = "ef21729c1d8fdd9575cb2c8aaea96c94481c10fa"
  title  = "Speed up rebalancing when using non-static dispatch algorithms (#6812)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "e3ec6bf4" {
  rev    = "e3ec6bf4b65a50e26e936a96adc7acc618292002"
  parent = "b04df75acdda5b99999c02820e64b5b005c07159"
  title  = "Minor speed up block_quant_dequant (#6814)"
  params = { model = "meta-llama/Llama-3.1-8B-Instruct", client = "--num-prompts 100" }
}

commit "205d5cb4" {
  rev    = "205d5cb407f7860c79df870b3f045d74b8292f77"
  parent = "3d7f7a43c87f6c8018cda4a0b46217d628d68e63"
  title  = "perf: Optimize local attention memory allocation in FlashAttentionBackend (#6356)"
  params = {
    model   = "RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16"
    gpus    = 4
    dataset = "random"
    client  = "--num-prompts 100 --random-input 1000 --random-output 1000 --random-range-ratio 1.0 --max-concurrency 64"
  }
}

commit "2ed68d7a" {
  rev    = "2ed68d7a6c4737618652cfa0288443a5a5d73b14"
  parent = "e984d5073bc8a4cd83bbbda0c37a67665a07ce5e"
  title  = "[PD Disaggregation] replace transfer with batch transfer for better performance (#7236)"
  params = { model = "deepseek-ai/DeepSeek-V2-Lite-Chat", dataset = "random", client = "--num-prompts 100 --random-input 1000 --random-output 1000" }
}

commit "31589e17" {
  rev    = "31589e177e2df6014607293fb4603cfd63297b67"
  parent = "ae6a5b2950227aad2606f156f5152e5f1087f125"
  title  = "Speed up when having padding tokens two-batch overlap (#6668)"
  params = {
    model   = "deepseek-ai/DeepSeek-V2-Lite-Chat"
    dataset = "random"
    client  = "--random-range-ratio 1 --random-input-len 1000 --random-output-len 1000 --max-concurrency 1"
  }
}

commit "c087ddd6" {
  rev    = "c087ddd6865a52634326a05af66429cb5531cd16"
  parent = "f4a8987f6904e4909adb473c52b443a62ba5a4b5"
  title  = "Refine pre_reorder_triton_kernel slightly to improve performance (#6627)"
  params = { mode = "one_batch", model = "deepseek-ai/DeepSeek-V2-Lite-Chat", server = "--trust-remote-code", client = "--batch-size 1 --input 128 --output 256" }
}

commit "d1112d85" {
  rev    = "d1112d8548eb13c842900b3a8d622345f9737759"
  parent = "48efec7b052354865aa2f0605a5bf778721f3cbb"
  title  = "Add endpoint for file support, purely to speed up processing of input_embeds. (#2797)"
  params = { mode = "none" }
}

commit "93470a14" {
  rev    = "93470a14116a60fe5dd43f0599206e8ccabdc211"
  parent = "db452760e5b2378efd06b1ceb9385d2eeb6d217c"
  title  = "Refactor and Optimize FA3 Code (#5090)"
  params = { mode = "none" }
}

commit "9c088829" {
  rev    = "9c088829ee2a28263f36d0814fde448c6090b5bc"
  parent = "005aad32ad45ce27d73fd39aa1f7e9ba5d8ebb8f"
  title  = "Revert \"Use device_id in dist init to reduce NCCL communicator warmup & creation overhead\" (#5786)"
  params = { mode = "none" }
}

commit "a37e1247" {
  rev    = "a37e1247c183cff86a18f2ed1a075e40704b1c5e"
  parent = "136c6e0431c2067c3a2a98ad2c77fc89a9cb98e7"
  title  = "[Multimodal][Perf] Use `pybase64` instead of `base64` (#7724)"
  params = { mode = "none" }
}

commit "3212c2ad" {
  rev    = "3212c2ad3f7e4fb473dc807b4b176020a778ed5b"
  parent = "534756749ae4e664f762de2645a4f63ca2901bab"
  title  = "vlm: optimize tensor transport (#6003)"
  params = { mode = "none" }
}

commit "09deb20d" {
  rev    = "09deb20deef8181a23f66c933ea74b86fee47366"
  parent = "33b242df303e03886835d08a583fefe979a3ee88"
  title  = "Optimize the memory usage of logits processor (#420)"
  params = { mode = "none" }
}

commit "10189d08" {
  rev    = "10189d08dde1096f5759316c0a6ff05962714c4b"
  parent = "c4336b2b60acdc2a835842f5033c05226d211e56"
  title  = "[Performance]: Process affinity to CPU cores with multiple sockets support (#2171)"
  params = { mode = "none" }
}

commit "148254d4" {
  rev    = "148254d4db8bf3bffee23710cd1acbd5711ebd1b"
  parent = "a4d6d6f1ddc9f15bfa904e7e286e3f5ba4ba5a50"
  title  = "Improve moe reduce sum kernel performance (#2705)"
  params = { mode = "none" }
}

commit "1bf1cf19" {
  rev    = "1bf1cf195302fdff14a4321eb8a17831f5c2fc11"
  parent = "e822e5900b98d89d19e0a293d9ad384f4df2945a"
  title  = "Reduce overhead when `fork(1)` (#375)"
  params = { mode = "none" }
}

commit "23c764b1" {
  rev    = "23c764b18aeb37c42ddedd7468f1a5753df1f232"
  parent = "87fafa0105316a34b97a2189184d8ab2c80e7474"
  title  = "[Feature] Support DeepEP Low Latency (#4767)"
  params = { mode = "none" }
}

commit "25c83fff" {
  rev    = "25c83fff6a80d9e3d2749f2ead122f96fdc127e9"
  parent = "9f2c9568f071bd45edd98d51cc7f1ebbb4ed5e73"
  title  = "Performing Vocabulary Parallelism for LM Head across Attention TP Groups (#5558)"
  params = { mode = "none" }
}

commit "25e1816e" {
  rev    = "25e1816eff104da56f97ce494e255306603fe2f6"
  parent = "a53fe428f9f569f7b4fee2bb26f7da8a50524b63"
  title  = "fix custom allreduce performance/accuracy problem (#4477)"
  params = { mode = "none" }
}

commit "27168308" {
  rev    = "2716830802ae8c2428fdacde7c4041b6f7852d68"
  parent = "e3bed74afb1ffbc753c3e53d272ed5b347366a73"
  title  = "Speed up when having padding tokens in DeepEP (#6175)"
  params = { mode = "none" }
}

commit "2854a5ea" {
  rev    = "2854a5ea9fbb31165936f633ab99915dec760f8d"
  parent = "42a2d82ba71dc86ca3b6342c978db450658b750c"
  title  = "Fix the overhead due to penalizer in bench_latency (#1496)"
  params = { mode = "none" }
}

commit "2a413829" {
  rev    = "2a413829f42b8e8433a3e7cfd91cc9cb241cfbc0"
  parent = "d5c097a2f9ce139c70e8c08f45a05b6b44067398"
  title  = "Add triton version as a fused_moe_triton config search key to avoid performace decrease in different Triton version (#5955)"
  params = { mode = "none" }
}

commit "2a754e57" {
  rev    = "2a754e57b052e249ed4f8572cb6f0069ba6a495e"
  parent = "96c503eb6029d37f896e91466e23469378dfc3dc"
  title  = "2x performance improvement for large prefill & Fix workspace conflicts (#579)"
  params = { mode = "none" }
}

commit "2bd18e2d" {
  rev    = "2bd18e2d767e3a0f8afb5aff427bc8e6e4d297c0"
  parent = "83452dbb4a19c6a2461e972eb2b64a2df9a466b8"
  title  = "Memory pool: Minor optimize to avoid to (#2901)"
  params = { mode = "none" }
}

commit "2f427491" {
  rev    = "2f42749184ca3679d2bb0361903f46632408f9a2"
  parent = "d8189660a9bbd4b5b5fe2526424d42c8ffcf7195"
  title  = "Fix topk inference performance reduce (#6474)"
  params = { mode = "none" }
}

commit "4418f599" {
  rev    = "4418f599a54699181b35d89b0def2697cccb721a"
  parent = "04f2abcb341037f2587e74c1d04e0b08c4ac65fb"
  title  = "Fix FA3 DeepSeek prefill performance regression (#5624)"
  params = { mode = "none" }
}

commit "5239d795" {
  rev    = "5239d79568f3b5ce55106cb3c9d9bee7cc8e7477"
  parent = "f08154193ceaa8cfcc672d9cc312784731ec8312"
  title  = "Speedup shared expert weight construction by avoid cloning (#5188)"
  params = { mode = "none" }
}

commit "564a898a" {
  rev    = "564a898ad975192b593be81387d11faf15cb1d3e"
  parent = "5d264a90ac5154d8e368ee558337dd3dd92e720b"
  title  = "Optimize mem indices mangement (#619)"
  params = { mode = "none" }
}

commit "5e023301" {
  rev    = "5e02330137a1ce44f29cc41a4da5f010c4bffec6"
  parent = "fa7d7fd9e5eccd388c0a2ce3fcb07691425d2260"
  title  = "[perf] dsv3 bmm fallback to bf16 (#5662)"
  params = { mode = "none" }
}

commit "62757db6" {
  rev    = "62757db6f0f09a6dff15b1ee1ac3029602951509"
  parent = "73fa2d49d539fd67548b0458a365528d3e3b6edc"
  title  = "Reduce the overhead when cache is disabled (#1010)"
  params = { mode = "none" }
}

commit "6a2941f4" {
  rev    = "6a2941f4d037cb5fa7c927342dc7f09387c29ab0"
  parent = "5ac8b80677614a9c024740e94f9a087a39eb3499"
  title  = "Improve tensor parallel performance (#625)"
  params = { mode = "none" }
}

commit "6b7038ba" {
  rev    = "6b7038babd562de099b583957ff19b78c4689a37"
  parent = "57eec0bfbce964e347ef2affb999e03416f22325"
  title  = "Speedup warmup when DP > 1 (#4695)"
  params = { mode = "none" }
}

commit "6cb00c63" {
  rev    = "6cb00c6398126513e37c43dd975d461765fb44c7"
  parent = "62cac2c43abb7c2d00be3b93581ab50ab1562a10"
  title  = "[PD] Optimize time out logic and add env var doc for mooncake (#6761)"
  params = { mode = "none" }
}

commit "6e2da515" {
  rev    = "6e2da5156176ed2d7fe2445b7c7316bc1650b20a"
  parent = "e9a47f4cb58a5a2fedd7843211684b8e4db3c0c5"
  title  = "Replace time.time() to time.perf_counter() for benchmarking. (#6178)"
  params = { mode = "none" }
}

commit "6f560c76" {
  rev    = "6f560c761b2fc2f577682d0cfda62630f37a3bb0"
  parent = "cd6872334e9ead684049b8fccd5f2dac9433b1b4"
  title  = "Improve the control of streaming and improve the first token latency in streaming (#117)"
  params = { mode = "none" }
}

commit "6fc17596" {
  rev    = "6fc175968c3a9fc0521948aa3636887cd6d84107"
  parent = "ad506a4e6bf3d9ac12100d4648c48df76f584c4e"
  title  = "Optimize a pad operation to accelerate 25us (#5945)"
  params = { mode = "none" }
}

commit "79961afa" {
  rev    = "79961afa8281f98f380d11db45c8d4b6e66a574f"
  parent = "cfca4e0ed2cf4a97c2ee3b668f7115b59db0028a"
  title  = "optimize pad operations in fa3 to accelarate 100+us (#6077)"
  params = { mode = "none" }
}

commit "7ce36068" {
  rev    = "7ce36068914503c3a53ad7be23ab29831fb8aa63"
  parent = "efb099cdee90b9ad332fcda96d89dd91ddebe072"
  title  = "Faster overlap mode scheduler (#1738)"
  params = { mode = "none" }
}

commit "86a876d8" {
  rev    = "86a876d883a7c7a0e2b0fca5ef86e20ab92c0694"
  parent = "92823069c471928beb312b750c8c4f586d32f607"
  title  = "Optimize topk operation in llama4 (#5128)"
  params = { mode = "none" }
}

commit "880221bd" {
  rev    = "880221bd3b3e56a4bc2268fe9a9f77f426accf6c"
  parent = "8f3173d0b0721acc94a39fb654eb46a4f298958d"
  title  = "Revert \"[PD Disaggregation] replace transfer with batch transfer for better performance (#7236)\" (#7968)"
  params = { mode = "none" }
}

commit "8f8f96a6" {
  rev    = "8f8f96a6217ea737c94e7429e480196319594459"
  parent = "05b3bf5e8e4751cf51510198ae2e864c4b11ac2f"
  title  = "Fix the perf regression due to additional_stop_token_ids (#1773)"
  params = { mode = "none" }
}

commit "912788c0" {
  rev    = "912788c095c9306daabc996fd06e59cf062a783b"
  parent = "0f75b907c6bf6273dbb813b9e983757dab20751f"
  title  = "perf: optimize local_block_table memory allocation (#6273)"
  params = { mode = "none" }
}

commit "915140fd" {
  rev    = "915140fd18c9ff4193e994e6d756ea762a52240a"
  parent = "36fc9260a276be963c098a1a0c2402b9a4008922"
  title  = "[NVIDIA] Add Low Latency NVFP4 decode kernels from Flashinfer (#8552)"
  params = { mode = "none" }
}

commit "9183c23e" {
  rev    = "9183c23eca51bf76159e81dfd6edf5770796c2d8"
  parent = "148254d4db8bf3bffee23710cd1acbd5711ebd1b"
  title  = "Speed up `update_weights_from_tensor` (#2695)"
  params = { mode = "none" }
}

commit "9216b106" {
  rev    = "9216b10678a036a1797e19693b0445c889016687"
  parent = "da19434c2f3cbe4f367f84993da0bcbd84efb6ba"
  title  = "Improve performance when running with full parallel (#394)"
  params = { mode = "none" }
}

commit "9c064bf7" {
  rev    = "9c064bf78af8558dbc50fbd809f65dcafd6fd965"
  parent = "58d1082e392cabbf26c404cb7ec18e4cb51b99e9"
  title  = "[LoRA, Performance] Speedup multi-LoRA serving - Step 1 (#1587)"
  params = { mode = "none" }
}

commit "9c745d07" {
  rev    = "9c745d078e29e153a64300bd07636c7c9c1c42d5"
  parent = "ebaa2f31996e80e4128b832d70f29f288b59944e"
  title  = "[Performance] Update xgrammar-related constrained decoding (#2056)"
  params = { mode = "none" }
}

commit "a73c4df4" {
  rev    = "a73c4df4387a30bd8cac94f828995bcf3bc2e615"
  parent = "89a554181f68554ded136545862757cb3b5d4ae1"
  title  = "Add optimized native kernels in sgl-kernel (#5150)"
  params = { mode = "none" }
}

commit "a99801e0" {
  rev    = "a99801e0750f41553fedd02e36f58d835c4d4bd6"
  parent = "4c605235aa832f259e148dfbdce08d9e471b5099"
  title  = "[Performance][PD Disaggregation] optimize TokenToKVPoolAllocator by sorting free pages (#8133)"
  params = { mode = "none" }
}

commit "ab4a83b2" {
  rev    = "ab4a83b25909aa98330b838a224e4fe5c943e483"
  parent = "62f15eea5a0b4266cdae965d0337fd33f6673736"
  title  = "Optimize schedule (#1339)"
  params = { mode = "none" }
}

commit "ac971ff6" {
  rev    = "ac971ff633de330de3ded7f7475caaf7cd5bbdcd"
  parent = "e1792cca2491af86f29782a3b83533a6566ac75b"
  title  = "perf: reduce ttft and itl with stream_interval 1 (#658)"
  params = { mode = "none" }
}

commit "adca585b" {
  rev    = "adca585bfb59a6c29cf18393b4a68bd5b4068f08"
  parent = "39d90449f39731fd56f7f0a2513f172bdfb1d4db"
  title  = "[DeepEP] Reduce routed scaling overhead (#5277)"
  params = { mode = "none" }
}

commit "b1709305" {
  rev    = "b170930534acbb9c1619a3c83670a839ceee763a"
  parent = "5ab20cceba227479bf5088a3fc95b1b4fe0ac3a9"
  title  = "feat: radix tree code optimize (#1697)"
  params = { mode = "none" }
}

commit "b1e5a33a" {
  rev    = "b1e5a33ae337d20e35e966b8d82a02a913d32689"
  parent = "9d5fa68b903d295d2b39201d54905c6801f60f7f"
  title  = "Eliminate stream sync to speed up LoRA batch init  (#6960)"
  params = { mode = "none" }
}

commit "b77a02cd" {
  rev    = "b77a02cdfdb4cd58be3ebc6a66d076832c309cfc"
  parent = "30643fed7f92be32540dfcdf9e4310e477ce0f6d"
  title  = "[Performance] Support both xgrammar and outlines for constrained decoding (#1752)"
  params = { mode = "none" }
}

commit "bb3a3b66" {
  rev    = "bb3a3b6675b1844a13ebe368ad693f3dc75b315b"
  parent = "45d6592d4053fe8b2b8dc9440f64c900de040d09"
  title  = "Support Faster JSON decoding for llava (#137)"
  params = { mode = "none" }
}

commit "bc3f6db2" {
  rev    = "bc3f6db2dd6a84000232aab063a0449b83c07c22"
  parent = "aac531c53b0166bc3883d1f6491f7f0fbb928197"
  title  = "[Fix] DeepEP Compatibility with Low Latency (#5068)"
  params = { mode = "none" }
}

commit "c2bd094d" {
  rev    = "c2bd094d6eb621a51a19d6595ddb3ddcc9030970"
  parent = "f8f9244a61544fd90800d94859ed5609798e100d"
  title  = "Optimize Permute Kernel in DeepEP (#4643)"
  params = { mode = "none" }
}

commit "c2f212d6" {
  rev    = "c2f212d672ccaf8a1e5ef09099e981d943600b14"
  parent = "e2cdc8a5b5c6a6d5a68e39d8c3e2a0c46248a2d2"
  title  = "optimize MiniMax-Text-01 lightning_attn_decode triton (#2966)"
  params = { mode = "none" }
}

commit "c98e84c2" {
  rev    = "c98e84c21e4313d7d307425ca43e61753a53a9f7"
  parent = "9c064bf78af8558dbc50fbd809f65dcafd6fd965"
  title  = "[Minor, Performance] Use torch.argmax for greedy sampling (#1589)"
  params = { mode = "none" }
}

commit "cd7e32e2" {
  rev    = "cd7e32e2cb150fbf216c5c05697139c68bab4a8d"
  parent = "88799448006996eadd137b6bd6559069410e284a"
  title  = "Optimize attention in llama4 (#5127)"
  params = { mode = "none" }
}

commit "dc188132" {
  rev    = "dc1881326f61734a4160620b6e12a5542b756066"
  parent = "10bfce71b35300b61cb9016a544eb79d61352f77"
  title  = "Fix perf regression on small batch sizes (#3008)"
  params = { mode = "none" }
}

commit "dc67d976" {
  rev    = "dc67d9769382cf83b3e2644a4366d6473445a6c6"
  parent = "1e495e08470b6dc56645081f644831e0c620dfa5"
  title  = "misc: speedup load safetensors (#1319)"
  params = { mode = "none" }
}

commit "ddcf9fe3" {
  rev    = "ddcf9fe3beacd8aed573c711942194dd02350da4"
  parent = "6252ade98571c3374d7e7df3430a2bfbddfc5eb3"
  title  = "Optimize triton attention custom mask (#3731)"
  params = { mode = "none" }
}

commit "e5db40dc" {
  rev    = "e5db40dcbce67157e005f524bf6a5bea7dcb7f34"
  parent = "b170930534acbb9c1619a3c83670a839ceee763a"
  title  = "ORJson. Faster Json serialization (#1694)"
  params = { mode = "none" }
}

commit "e822e590" {
  rev    = "e822e5900b98d89d19e0a293d9ad384f4df2945a"
  parent = "ca4f1ab89c0c9bdd80fdfabcec52968fbde108bb"
  title  = "Optimize radix tree matching (#364)"
  params = { mode = "none" }
}

commit "e88dd482" {
  rev    = "e88dd482ed4bad37e153deea14583a7e74230e90"
  parent = "73600673bb1dd87b6c31d88cef17c9c8a0cce4ad"
  title  = "[CI]Add performance CI for VLM (#6038)"
  params = { mode = "none" }
}

commit "f0653886" {
  rev    = "f0653886a5e0fc6a92c879b68ff1cfb30941dd10"
  parent = "b146555749f84a684c7cf5e9d2950ca474b82de2"
  title  = "Expert distribution recording without overhead for EPLB (#4957)"
  params = { mode = "none" }
}

commit "f06e90c2" {
  rev    = "f06e90c2cfb41f283a22ee705ca20d2f451aab6e"
  parent = "2cea6146d8735780da602c0dfa0569b0fb5d47ba"
  title  = "Optimize retract (#440)"
  params = { mode = "none" }
}

commit "f0815419" {
  rev    = "f08154193ceaa8cfcc672d9cc312784731ec8312"
  parent = "2b3bdc938e6cd8f1190f17cb36a129327df6339e"
  title  = "Perform Batch Tokenization. (#5141)"
  params = { mode = "none" }
}

commit "fbcbb263" {
  rev    = "fbcbb26327e1da685139b3f66cdc75c49ae608c0"
  parent = "2fce449b1c0a6cadde4946984426336621baed22"
  title  = "Fix perf regression for set_kv_buffer (#1765)"
  params = { mode = "none" }
}

commit "ff00895c" {
  rev    = "ff00895c46a4549f6c4279b1f8de24c05f1fa7ef"
  parent = "ff91474825ebf733e99859305cb037ffa125c6b9"
  title  = "Add CPU optimized kernels for topk and rope fusions  (#6456)"
  params = { mode = "none" }
}
