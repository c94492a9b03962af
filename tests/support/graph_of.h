/* Graphs from texts, for tests. */
#ifndef FACULA_TESTS_GRAPH_OF_H
#define FACULA_TESTS_GRAPH_OF_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "facula/graph.h"

/* The caller owns it; a text that is wrong fails the test. */
static inline fac_graph *graph_of(const char *text) {
    fac_graph *g = NULL;
    fac_error wrong = { 0 };
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    if (fac_graph_read(f, &g, &wrong)) fail_msg("%s\n%s", wrong.text, text);
    fclose(f);
    return g;
}
#endif
