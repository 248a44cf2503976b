/* Sums a matrix, by rows or by columns, for half a second, and prints how many elements a second that is. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 1024 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(void)
{
	double *m = calloc(SIZE * SIZE, sizeof *m), begun = now(), took;
	volatile double sum = 0;
	long rounds = 0;

	if (!m)
		return 1;
	do {
		double s = 0;
		for (int i = 0; i < SIZE; i++)
			for (int j = 0; j < SIZE; j++)
#ifdef BY_COLUMNS
				s += m[j * SIZE + i];
#else
				s += m[i * SIZE + j];
#endif
		sum += s;
		rounds++;
		took = now() - begun;
	} while (took < 0.5);
	printf("rate: %.1f M/s\n", rounds * (SIZE * (double)SIZE) / took / 1e6);
	return 0;
}
