#include "count.h"

#include <ctype.h>

struct counts count(FILE *in)
{
	struct counts c = {0, 0, 0};
	int inside = 0;

	for (int ch; (ch = getc(in)) != EOF;) {
		c.bytes++;
		c.lines += ch == '\n';
		if (isspace(ch)) {
			inside = 0;
		} else if (!inside) {
			inside = 1;
			c.words++;
		}
	}
	return c;
}
