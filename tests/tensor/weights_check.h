/* What tests of weight files share: a folder of their own, files in memory, and what must come of
 * them. */
#ifndef FACULA_TESTS_WEIGHTS_CHECK_H
#define FACULA_TESTS_WEIGHTS_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "fresh_seed.h"
#include "base/rng.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"
#include "weight_files.h"

static uint64_t seed, drawn;
static inline uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static char folder[] = "/tmp/facula-weights-XXXXXX";
static char path[200];
static inline const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static inline int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}
static inline int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
} /* fails if a test left something */

static inline fac_status parse(const fac_text *t, fac_weights **w) {
    fac_file *f = fac_file_memory(t->s, t->n);
    fac_status status = f ? fac_weights_parse(f, "file", w, &err) : FAC_E_NOMEM;
    fac_file_free(f);
    return status;
}

/* Reads every byte of every tensor, so that a sanitizer sees what lies outside. */
static inline void touch(const fac_weights *w) {
    for (int i = 0; i < fac_weights_count(w); i++) {
        fac_tensor *t = fac_weights_tensor(w, i);
        size_t bytes = fac_type_bytes(&t->type);
        assert_ptr_equal(fac_weights_find(w, fac_weights_name(w, i)), t);
        void *to = bytes < 1 << 20 ? fac_alloc(bytes, 1) : NULL;
        if (to) OK(fac_tensor_read(t, to, bytes, &err));
        fac_release(to);
    }
}

static inline void expect(const fac_weights *w, const char *name, fac_dims dims,
                          const float *values) {
    fac_tensor *t = fac_weights_find(w, name);
    float x[64];
    if (!t) fail_msg("there is no %s", name);
    assert_int_equal(t->type.dtype, FAC_F32);
    assert_true(fac_dims_equal(&t->type.dims, &dims));
    OK(fac_tensor_read(t, x, fac_type_bytes(&t->type), &err));
    assert_memory_equal(x, values, fac_type_bytes(&t->type));
}

/* The file must be refused with a message that holds these words. */
static inline void refuse(const fac_text *t, fac_status status, const char *words) {
    fac_weights *w = NULL;
    fac_status got = parse(t, &w);
    if (!got) fail_msg("accepted what should be \"%s\"", words);
    if (got != status || !strstr(err.text, words) || strncmp(err.text, "file: ", 6))
        fail_msg("%s \"%s\", expected %s \"file: ...%s\"", fac_status_name(got), err.text,
                 fac_status_name(status), words);
    assert_null(w);
}

static inline int run_weights_tests(const char *name, const struct CMUnitTest *tests, size_t n) {
    seed = fresh_seed();
    return _cmocka_run_group_tests(name, tests, n, make_folder, remove_folder);
}
#endif
