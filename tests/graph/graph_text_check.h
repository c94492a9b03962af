/* Graphs to text and back. */
#ifndef FACULA_GRAPH_TEXT_CHECK_H
#define FACULA_GRAPH_TEXT_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/rng.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "graph/graph_internal.h"

static char *write_text(const fac_graph *g) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    fac_error err = { 0 };
    if (fac_graph_write(g, f, &err)) fail_msg("%s", err.text);
    fclose(f);
    return text;
}

static fac_status read_text(const char *text, size_t n, fac_graph **g, fac_error *err) {
    FILE *f = n ? fmemopen((void *)text, n, "r") : fopen("/dev/null", "r");
    fac_status s = fac_graph_read(f, g, err);
    fclose(f);
    return s;
}

static fac_graph *read_ok(const char *text) {
    fac_graph *g = NULL;
    fac_error err = { 0 };
    if (read_text(text, strlen(text), &g, &err)) fail_msg("%s\nin:\n%s", err.text, text);
    return g;
}
#endif
