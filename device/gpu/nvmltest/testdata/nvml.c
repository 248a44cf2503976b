// A library with the binary interface of NVIDIA's NVML that plays a scenario from a text file, for machines without GPUs.
// The file named by NVML_SCENARIO is read anew at every call, so that a test changes the world by writing it:
//
//   system driver=550.54.15 cuda=12040 init=0 hang=1     (hang: no call ever returns, nor any about a gpu that has it;
//                                                        stuck=1: shutdown never returns; deaf=1 at a gpu: nor do its events)
//   gpu uuid=GPU-a name=NVIDIA_H100 mib=81559 used=4 pci=00000000:18:00.0 limit=700 temp=31 util=0 power=70 sm=1980 max=1980
//       mem=2619 slow=0x4 ecc=0 gone=15 mig=1 compute=2 persistence=0 fabric=2 brand=14
//                                                        (one line; gone is the error that every call on it returns)
//   part of=GPU-a uuid=MIG-1 name=NVIDIA_H100_MIG_1g.10gb mib=9856 used=0
//   process on=GPU-a pid=4242 mib=1024
//   client on=GPU-a pid=4242 mib=1024                     (a process that uses the GPU through MPS)
//   nvlink from=GPU-a to=GPU-b n=4                        (to= a PCI address that is no GPU's: a switch)
//   path from=GPU-a to=GPU-b level=40
//   xid on=GPU-a code=79
//
// lock=4 at a gpu is the error that locking its clocks returns, reset=4 the one of resetting them, and drift=1 means that locking has
// no effect. What was locked and reset is appended, a line each, to the file NVML_SCENARIO.clocks, which all processes share:
// "lock GPU-a 1410", "reset GPU-a".
//
// Underscores in names stand for blanks. Built with -DOLD, the library lacks what drivers before 2020 lack, and the counts
// of memory errors and the greatest clock, which a library may lack as well.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml.h"

enum { maxLines = 256 };
static __thread char lines[maxLines][512]; // NVML may be called from any thread
static __thread int count;

static void read_scenario(const char *name) {
	FILE *f = name ? fopen(name, "r") : NULL;
	count = 0;
	while (f && count < maxLines && fgets(lines[count], sizeof lines[count], f)) {
		lines[count][strcspn(lines[count], "\n")] = 0;
		count++;
	}
	if (f)
		fclose(f);
}

// load reads the scenario. One that is empty is just being written: a world without GPUs has a comment in it.
static void load(void) {
	const char *name = getenv("NVML_SCENARIO");
	read_scenario(name);
	for (int i = 0; name && count == 0 && i < 3000; i++) {
		usleep(1000);
		read_scenario(name);
	}
}

// value finds key=... in a line and copies it; 0 when it is not there.
static int value(const char *line, const char *key, char *to, size_t size) {
	size_t n = strlen(key);
	for (const char *p = line; (p = strstr(p, key)); p += n) {
		if (p > line && p[-1] == ' ' && p[n] == '=') {
			size_t len = strcspn(p + n + 1, " ");
			if (len >= size)
				len = size - 1;
			memcpy(to, p + n + 1, len);
			to[len] = 0;
			return 1;
		}
	}
	return 0;
}

static unsigned long long amount(const char *line, const char *key, unsigned long long missing) {
	char text[64];
	return value(line, key, text, sizeof text) ? strtoull(text, NULL, 0) : missing;
}

static int is(const char *line, const char *kind) { return strncmp(line, kind, strlen(kind)) == 0 && line[strlen(kind)] == ' '; }

// hang does not return while a line says so: the driver is wedged.
static void hangs(const char *line, const char *key) {
	if (amount(line, key, 0))
		for (;;)
			pause();
}
static void hang(const char *line) { hangs(line, "hang"); }

// A handle is the number of a line plus one: lines of devices keep their places while a test runs.
static nvmlDevice_t handle(int i) { return (nvmlDevice_t){(void *)(size_t)(i + 1)}; }

static const char *lineOf(nvmlDevice_t d, nvmlReturn_t *err) {
	load();
	size_t i = (size_t)d.handle - 1;
	*err = NVML_SUCCESS;
	if (i >= (size_t)count) {
		*err = NVML_ERROR_INVALID_ARGUMENT;
		return "";
	}
	hang(lines[i]);
	*err = (nvmlReturn_t)amount(lines[i], "gone", 0);
	return lines[i];
}

static nvmlReturn_t string(nvmlDevice_t d, const char *key, char *to, unsigned int size) {
	nvmlReturn_t err;
	const char *line = lineOf(d, &err);
	if (err)
		return err;
	if (!value(line, key, to, size))
		return NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

static nvmlReturn_t integer(nvmlDevice_t d, const char *key, unsigned int *to, unsigned int scale) {
	nvmlReturn_t err;
	const char *line = lineOf(d, &err);
	if (err)
		return err;
	unsigned long long n = amount(line, key, -1ULL);
	if (n == -1ULL)
		return NVML_ERROR_NOT_SUPPORTED;
	*to = (unsigned int)n * scale;
	return NVML_SUCCESS;
}

static const char *system_(void) {
	load();
	for (int i = 0; i < count; i++)
		if (is(lines[i], "system"))
			return lines[i];
	return "";
}

nvmlReturn_t nvmlInit_v2(void) {
	hang(system_());
	return (nvmlReturn_t)amount(system_(), "init", 0);
}
nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }
nvmlReturn_t nvmlShutdown(void) {
	hangs(system_(), "stuck");
	return NVML_SUCCESS;
}
const char *nvmlErrorString(nvmlReturn_t r) {
	static char text[64];
	snprintf(text, sizeof text, "NVML error %d", r);
	return text;
}
nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int n) {
	return value(system_(), "driver", to, n) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n) {
	load();
	*n = 0;
	for (int i = 0; i < count; i++)
		*n += is(lines[i], "gpu");
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *d) {
	load();
	for (int i = 0; i < count; i++)
		if (is(lines[i], "gpu") && index-- == 0) {
			hang(lines[i]);
			*d = handle(i);
			return (nvmlReturn_t)amount(lines[i], "gone", 0);
		}
	return NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *d) {
	char have[96];
	load();
	for (int i = 0; i < count; i++)
		if ((is(lines[i], "gpu") || is(lines[i], "part")) && value(lines[i], "uuid", have, sizeof have) && !strcmp(have, uuid)) {
			*d = handle(i);
			return (nvmlReturn_t)amount(lines[i], "gone", 0);
		}
	return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *to, unsigned int n) { return string(d, "uuid", to, n); }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *to, unsigned int n) {
	nvmlReturn_t r = string(d, "name", to, n);
	for (char *p = to; r == NVML_SUCCESS && *p; p++)
		if (*p == '_')
			*p = ' ';
	return r;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) {
	nvmlReturn_t err;
	const char *line = lineOf(d, &err);
	m->total = amount(line, "mib", 0) << 20;
	m->used = amount(line, "used", 0) << 20;
	m->free = m->total - m->used;
	return err;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) {
	memset(p, 0, sizeof *p);
	return string(d, "pci", p->busId, sizeof p->busId);
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u) { return integer(d, "util", &u->gpu, 1); }
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned int *t) { return integer(d, "temp", t, 1); }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *mw) { return integer(d, "power", mw, 1000); }
// clocks opens the file of what was locked.
static FILE *clocks(const char *mode) {
	char name[4096];
	const char *scenario = getenv("NVML_SCENARIO");
	if (!scenario)
		return NULL;
	snprintf(name, sizeof name, "%s.clocks", scenario);
	return fopen(name, mode);
}

// lockedAt is what the clock of a device was last locked at; 0 when it is not.
static unsigned int lockedAt(const char *uuid) {
	char line[256], of[96];
	unsigned int mhz = 0, now;
	FILE *f = clocks("r");
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "lock %95s %u", of, &now) == 2 && !strcmp(of, uuid))
			mhz = now;
		else if (sscanf(line, "reset %95s", of) == 1 && !strcmp(of, uuid))
			mhz = 0;
	}
	if (f)
		fclose(f);
	return mhz;
}

static nvmlReturn_t smClock(nvmlDevice_t d, unsigned int *mhz) {
	nvmlReturn_t err;
	char uuid[96] = "";
	const char *line = lineOf(d, &err);
	if (!err)
		value(line, "uuid", uuid, sizeof uuid);
	unsigned int locked = lockedAt(uuid);
	if (err || !locked || amount(line, "drift", 0))
		return integer(d, "sm", mhz, 1);
	*mhz = locked;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t t, unsigned int *mhz) { return t == NVML_CLOCK_MEM ? integer(d, "mem", mhz, 1) : smClock(d, mhz); }
#ifndef OLD
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t t, unsigned int *mhz) { return integer(d, "max", mhz, 1); }
#endif
#ifndef OLD
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t t, nvmlEccCounterType_t c, unsigned long long *n) {
	unsigned int errors;
	nvmlReturn_t r = integer(d, "ecc", &errors, 1);
	*n = errors;
	return r;
}
#endif
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *bits) {
	unsigned int n;
	nvmlReturn_t r = integer(d, "slow", &n, 1);
	*bits = n;
	return r;
}
#ifdef OLD
typedef nvmlProcessInfo_v1_t processInfo;
#else
typedef nvmlProcessInfo_t processInfo;
#endif

// processes lists those of the lines of a kind.
static nvmlReturn_t processes(nvmlDevice_t d, const char *kind, unsigned int *n, processInfo *infos) {
	nvmlReturn_t err;
	char own[96] = "", on[96];
	value(lineOf(d, &err), "uuid", own, sizeof own);
	if (err)
		return err;
	unsigned int found = 0;
	for (int i = 0; i < count; i++)
		if (is(lines[i], kind) && value(lines[i], "on", on, sizeof on) && !strcmp(on, own)) {
			if (found < *n) {
				infos[found].pid = amount(lines[i], "pid", 0);
				infos[found].usedGpuMemory = amount(lines[i], "mib", -1ULL);
				if (infos[found].usedGpuMemory != -1ULL)
					infos[found].usedGpuMemory <<= 20;
			}
			found++;
		}
	err = found > *n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
	*n = found;
	return err;
}
#ifdef OLD
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t d, unsigned int *n, processInfo *infos) { return processes(d, "process", n, infos); }
#else
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, processInfo *infos) { return processes(d, "process", n, infos); }
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, processInfo *infos) { return processes(d, "client", n, infos); }
#endif
#ifdef OLD
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_v1_t *infos) {
#else
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_t *infos) {
#endif
	*n = 0;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level) {
	nvmlReturn_t err;
	char one[96], two[96], from[96], to[96];
	value(lineOf(a, &err), "uuid", one, sizeof one);
	value(lineOf(b, &err), "uuid", two, sizeof two);
	for (int i = 0; i < count; i++)
		if (is(lines[i], "path") && value(lines[i], "from", from, sizeof from) && value(lines[i], "to", to, sizeof to) &&
		    ((!strcmp(from, one) && !strcmp(to, two)) || (!strcmp(from, two) && !strcmp(to, one)))) {
			*level = (nvmlGpuTopologyLevel_t)amount(lines[i], "level", 50);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_SUPPORTED;
}

// A set of events is one device and how many of its errors were told.
struct nvmlEventSet_st {
	char uuid[96];
	int told;
};

#ifndef OLD
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t d, nvmlComputeMode_t *mode) { return integer(d, "compute", (unsigned int *)mode, 1); }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, nvmlEnableState_t *mode) { return integer(d, "persistence", (unsigned int *)mode, 1); }
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *info) {
	unsigned int state;
	nvmlReturn_t r = integer(d, "fabric", &state, 1);
	if (!r)
		info->state = state;
	return r;
}
static nvmlReturn_t note(nvmlDevice_t d, const char *format, unsigned int mhz) {
	char uuid[96];
	nvmlReturn_t err = string(d, "uuid", uuid, sizeof uuid);
	FILE *f = err ? NULL : clocks("a");
	if (!f)
		return err ? err : NVML_ERROR_UNKNOWN;
	fprintf(f, format, uuid, mhz);
	fclose(f);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t d, unsigned int min, unsigned int max) {
	nvmlReturn_t err;
	const char *line = lineOf(d, &err);
	if (!err)
		err = (nvmlReturn_t)amount(line, "lock", 0);
	if (!err && min != max)
		err = NVML_ERROR_INVALID_ARGUMENT;
	return err ? err : note(d, "lock %s %u\n", max);
}
nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t d) {
	nvmlReturn_t err;
	const char *line = lineOf(d, &err);
	if (!err)
		err = (nvmlReturn_t)amount(line, "reset", 0);
	return err ? err : note(d, "reset %s\n", 0);
}
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	set->handle = calloc(1, sizeof *set->handle);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
	free(set.handle);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set) {
	nvmlReturn_t err;
	hangs(lineOf(d, &err), "deaf");
	return string(d, "uuid", set.handle->uuid, sizeof set.handle->uuid);
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms) {
	char on[96];
	int n = 0;
	load();
	for (int i = 0; i < count; i++)
		if (is(lines[i], "xid") && value(lines[i], "on", on, sizeof on) && !strcmp(on, set.handle->uuid) && n++ == set.handle->told) {
			set.handle->told++;
			data->eventType = nvmlEventTypeXidCriticalError;
			data->eventData = amount(lines[i], "code", 0);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_TIMEOUT;
}
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t d, nvmlBrandType_t *brand) { return integer(d, "brand", (unsigned int *)brand, 1); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *v) {
	*v = (int)amount(system_(), "cuda", 0);
	return *v ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *bits) { return nvmlDeviceGetCurrentClocksThrottleReasons(d, bits); }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned int *mw) { return integer(d, "limit", mw, 1000); }
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending) {
	*pending = 0;
	return integer(d, "mig", current, 1);
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned int *n) {
	*n = 7;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int index, nvmlDevice_t *part) {
	nvmlReturn_t err;
	char own[96] = "", of[96];
	value(lineOf(d, &err), "uuid", own, sizeof own);
	for (int i = 0; i < count; i++)
		if (is(lines[i], "part") && value(lines[i], "of", of, sizeof of) && !strcmp(of, own) && index-- == 0) {
			*part = handle(i);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

// link finds the nth link of a device and writes the PCI address of its other end.
static nvmlReturn_t link_(nvmlDevice_t d, unsigned int n, char *remote, size_t size) {
	nvmlReturn_t err;
	char own[96] = "", from[96], to[96], uuid[96];
	value(lineOf(d, &err), "uuid", own, sizeof own);
	for (int i = 0; i < count; i++) {
		if (!is(lines[i], "nvlink") || !value(lines[i], "from", from, sizeof from) || !value(lines[i], "to", to, sizeof to))
			continue;
		const char *other = !strcmp(from, own) ? to : !strcmp(to, own) ? from : NULL;
		unsigned int links = (unsigned int)amount(lines[i], "n", 1);
		if (!other)
			continue;
		if (n >= links) {
			n -= links;
			continue;
		}
		snprintf(remote, size, "%s", other);
		for (int j = 0; j < count; j++)
			if (is(lines[j], "gpu") && value(lines[j], "uuid", uuid, sizeof uuid) && !strcmp(uuid, other))
				value(lines[j], "pci", remote, size);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_SUPPORTED;
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int n, nvmlEnableState_t *on) {
	char remote[96];
	*on = NVML_FEATURE_ENABLED;
	return link_(d, n, remote, sizeof remote);
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned int n, nvmlPciInfo_t *p) {
	memset(p, 0, sizeof *p);
	return link_(d, n, p->busId, sizeof p->busId);
}
#endif
