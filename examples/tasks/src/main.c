#include "count.h"

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	FILE *in = fopen(argv[1], "rb");
	if (!in) {
		perror(argv[1]);
		return 1;
	}
	struct counts c = count(in);
	fclose(in);
	printf("%zu %zu %zu\n", c.lines, c.words, c.bytes);
	return 0;
}
