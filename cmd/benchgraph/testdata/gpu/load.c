// A program that uses a GPU, for machines without CUDA's tools: it speaks to the driver's libcuda alone, which is loaded
// when it runs.
//
//   load SECONDS MIB
//
// takes MIB of the memory of the first device that it sees, lets it multiply and add for SECONDS, and prints
//
//   device GPU-… (1 seen)
//   work done: 41234.5 GFLOP/s
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// What LLVM 14 makes of a loop of four fused multiply-adds (llc -mcpu=sm_50). The driver compiles it for its device.
static const char burn[] =
	".address_size 64\n"
	".visible .entry burn(.param .u64 burn_param_0, .param .u32 burn_param_1)\n"
	"{\n"
	"	.reg .pred %p<2>;\n"
	"	.reg .b32 %r<10>;\n"
	"	.reg .f32 %f<8>;\n"
	"	.reg .b64 %rd<4>;\n"
	"	ld.param.u32 %r4, [burn_param_1];\n"
	"	ld.param.u64 %rd1, [burn_param_0];\n"
	"	mov.u32 %r6, %ctaid.x;\n"
	"	mov.u32 %r7, %ntid.x;\n"
	"	mov.u32 %r8, %tid.x;\n"
	"	mad.lo.s32 %r1, %r6, %r7, %r8;\n"
	"	cvt.rn.f32.s32 %f7, %r1;\n"
	"	mov.u32 %r9, 0;\n"
	"LBB0_1:\n"
	"	fma.rn.f32 %f4, %f7, 0f3F7FFFFF, 0f3F000000;\n"
	"	fma.rn.f32 %f5, %f4, 0f3F7FFFFF, 0f3F000000;\n"
	"	fma.rn.f32 %f6, %f5, 0f3F7FFFFF, 0f3F000000;\n"
	"	fma.rn.f32 %f7, %f6, 0f3F7FFFFF, 0f3F000000;\n"
	"	add.s32 %r9, %r9, 1;\n"
	"	setp.lt.u32 %p1, %r9, %r4;\n"
	"	@%p1 bra LBB0_1;\n"
	"	mul.wide.u32 %rd2, %r1, 4;\n"
	"	add.s64 %rd3, %rd1, %rd2;\n"
	"	st.global.f32 [%rd3], %f7;\n"
	"	ret;\n"
	"}\n";

// Newer drivers may refuse what is for old devices only, and older ones do not know new ones.
static const char *const targets[] = {".version 6.3\n.target sm_75\n", ".version 4.0\n.target sm_50\n"};

enum { blocks = 1056, threads = 256, rounds = 20000 };

static void *cuda;

static void *function(const char *name) {
	void *f = dlsym(cuda, name);
	if (!f) {
		fprintf(stderr, "libcuda has no %s\n", name);
		exit(1);
	}
	return f;
}

static void check(const char *what, int result) {
	if (result) {
		fprintf(stderr, "%s: CUDA error %d\n", what, result);
		exit(1);
	}
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: load SECONDS MIB\n");
		return 1;
	}
	double seconds = atof(argv[1]);
	size_t bytes = (size_t)atol(argv[2]) << 20;
	if (!(cuda = dlopen("libcuda.so.1", RTLD_NOW))) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int (*init)(unsigned) = function("cuInit");
	int (*getCount)(int *) = function("cuDeviceGetCount");
	int (*getDevice)(int *, int) = function("cuDeviceGet");
	int (*getUUID)(uint8_t *, int) = function("cuDeviceGetUuid");
	int (*retain)(void **, int) = function("cuDevicePrimaryCtxRetain");
	int (*setCurrent)(void *) = function("cuCtxSetCurrent");
	int (*synchronize)(void) = function("cuCtxSynchronize");
	int (*loadModule)(void **, const void *) = function("cuModuleLoadData");
	int (*getFunction)(void **, void *, const char *) = function("cuModuleGetFunction");
	int (*alloc)(uint64_t *, size_t) = function("cuMemAlloc_v2");
	int (*fill)(uint64_t, unsigned char, size_t) = function("cuMemsetD8_v2");
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) = function("cuLaunchKernel");

	int count = 0, device;
	void *context, *module, *kernel;
	check("cuInit", init(0));
	check("cuDeviceGetCount", getCount(&count));
	check("cuDeviceGet", getDevice(&device, 0));
	uint8_t id[16];
	check("cuDeviceGetUuid", getUUID(id, device));
	printf("device GPU-");
	for (int i = 0; i < 16; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	printf(" (%d seen)\n", count);
	check("cuDevicePrimaryCtxRetain", retain(&context, device));
	check("cuCtxSetCurrent", setCurrent(context));

	int loaded = 1;
	for (size_t i = 0; loaded && i < sizeof targets / sizeof *targets; i++) {
		char text[sizeof burn + 64];
		snprintf(text, sizeof text, "%s%s", targets[i], burn);
		loaded = loadModule(&module, text);
	}
	check("cuModuleLoadData", loaded);
	check("cuModuleGetFunction", getFunction(&kernel, module, "burn"));
	if (bytes < blocks * threads * sizeof(float))
		bytes = blocks * threads * sizeof(float);
	uint64_t memory;
	check("cuMemAlloc", alloc(&memory, bytes));
	check("cuMemset", fill(memory, 0, bytes));
	check("cuCtxSynchronize", synchronize());
	fflush(stdout);

	uint32_t n = rounds;
	void *arguments[] = {&memory, &n};
	long launches = 0;
	double start = now(), end;
	do {
		check("cuLaunchKernel", launch(kernel, blocks, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL));
		check("cuCtxSynchronize", synchronize());
		launches++;
	} while ((end = now()) - start < seconds);
	printf("work done: %.1f GFLOP/s\n", launches * (8.0 * rounds * blocks * threads) / (end - start) / 1e9);
	return 0;
}
