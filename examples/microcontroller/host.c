/* What the program needs of the machine, where that has a C library. */
#include <stdio.h>

void print(const char *text)
{
    fputs(text, stdout);
}
