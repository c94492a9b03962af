/* Files of texts, and four texts with labels. */
#ifndef FACULA_TESTS_TEXT_CHECK_H
#define FACULA_TESTS_TEXT_CHECK_H
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "allocations.h"
#include "data/text/text_internal.h"
#include "facula/io.h"
#include "folder.h"

static inline const char *put(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
    return path_of(name);
}

static inline void says(const fac_error *e, const char *part) {
    if (!strstr(e->text, part)) fail_msg("\"%s\" does not say \"%s\"", e->text, part);
}

static const char *const lines[] = { "the film the cast", "the end", "a film", "b c <pad>" };
static const int64_t marks[] = { 0, 1, 1, 0 };
static const fac_texts four = { .count = 4, .text = lines, .labels = marks, .classes = 2 };

#endif
