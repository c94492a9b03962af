/* Files of one TensorProto in a folder of their own. */
#ifndef FACULA_TESTS_ONNX_TENSOR_CHECK_H
#define FACULA_TESTS_ONNX_TENSOR_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "facula/onnx.h"
#include "onnx_writer.h"

enum {
    DIMS = 1,
    TYPE = 2,
    SEGMENT = 3,
    FLOATS = 4,
    INT32S = 5,
    TEXTS = 6,
    INT64S = 7,
    RAW = 9,
    DOUBLES = 10,
    UINT64S = 11,
    LOCATION = 14
};

static char folder[] = "/tmp/facula-onnx-XXXXXX";

static const char *path_of(const char *name) {
    static char path[4][512];
    static int k;
    char *p = path[k++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (n) assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Writes the message, frees it, and loads the file. */
static fac_status load(bytes b, fac_tensor **out, fac_error *err) {
    write_file(path_of("t.pb"), b.p, b.n);
    free(b.p);
    return fac_onnx_tensor_load(path_of("t.pb"), out, NULL, 0, err);
}

static void refuses(bytes b, fac_status status, const char *text) {
    fac_tensor *t = NULL;
    fac_error err = { 0 };
    assert_int_equal(load(b, &t, &err), status);
    assert_null(t);
    if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static int start(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int finish(void **state) {
    static const char *const made[] = { "t.pb", "s.pb", "x.bin", "sub/y.bin" };
    (void)state;
    for (size_t k = 0; k < sizeof made / sizeof *made; k++) unlink(path_of(made[k]));
    rmdir(path_of("sub"));
    return rmdir(folder);
}

#endif
