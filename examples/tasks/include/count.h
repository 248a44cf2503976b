#ifndef COUNT_H
#define COUNT_H

#include <stddef.h>
#include <stdio.h>

struct counts {
	size_t lines, words, bytes;
};

/* count reads in to its end. */
struct counts count(FILE *in);

#endif
