/* facula/io.h: well-formed files of every kind, round trips, and files that lie. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/rng.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"
#include "weight_files.h"

static uint64_t seed, drawn;
static uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

static fac_error err;
#define OK(call) do { if (call) fail_msg("%s: %s", #call, err.text); } while (0)

static char folder[] = "/tmp/facula-weights-XXXXXX";
static char path[200];
static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static int make_folder(void **state) { (void)state; return mkdtemp(folder) ? 0 : -1; }
static int remove_folder(void **state) { (void)state; return rmdir(folder); }       /* fails if a test left something */

static fac_status parse(const fac_text *t, fac_weights **w) {
    fac_file *f = fac_file_memory(t->s, t->n);
    fac_status status = f ? fac_weights_parse(f, "file", w, &err) : FAC_E_NOMEM;
    fac_file_free(f);
    return status;
}

/* Reads every byte of every tensor, so that a sanitizer sees what lies outside. */
static void touch(const fac_weights *w) {
    for (int i = 0; i < fac_weights_count(w); i++) {
        fac_tensor *t = fac_weights_tensor(w, i);
        size_t bytes = fac_type_bytes(&t->type);
        assert_ptr_equal(fac_weights_find(w, fac_weights_name(w, i)), t);
        void *to = bytes < 1 << 20 ? fac_alloc(bytes, 1) : NULL;
        if (to) OK(fac_tensor_read(t, to, bytes, &err));
        fac_release(to);
    }
}

static void expect(const fac_weights *w, const char *name, fac_dims dims, const float *values) {
    fac_tensor *t = fac_weights_find(w, name);
    float x[64];
    if (!t) fail_msg("there is no %s", name);
    assert_int_equal(t->type.dtype, FAC_F32);
    assert_true(fac_dims_equal(&t->type.dims, &dims));
    OK(fac_tensor_read(t, x, fac_type_bytes(&t->type), &err));
    assert_memory_equal(x, values, fac_type_bytes(&t->type));
}

/* The file must be refused with a message that holds these words. */
static void refuse(const fac_text *t, fac_status status, const char *words) {
    fac_weights *w = NULL;
    fac_status got = parse(t, &w);
    if (!got) fail_msg("accepted what should be \"%s\"", words);
    if (got != status || !strstr(err.text, words) || strncmp(err.text, "file: ", 6))
        fail_msg("%s \"%s\", expected %s \"file: ...%s\"", fac_status_name(got), err.text, fac_status_name(status), words);
    assert_null(w);
}

/* ---- well-formed files ---- */

static void every_kind_is_read(void **state) {
    (void)state;
    float x[12], fortran[12];
    static const float turned[8] = { 1, 5, 2, 6, 3, 7, 4, 8 };
    for (int i = 0; i < 12; i++) x[i] = (float)i, fortran[i] = (float)(i / 4 + i % 4 * 3);
    for (int k = 0; k < WEIGHT_FILES; k++) {
        fac_text t = { 0 };
        fac_weights *w = NULL;
        weight_file(&t, k);
        OK(parse(&t, &w));
        fac_text_free(&t);                                  /* the tensors keep the file */
        touch(w);
        assert_null(fac_weights_find(w, "nothing"));
        switch (k) {
        case NPY_1: expect(w, "arr_0", fac_shape(3, 4), x); break;
        case NPY_2: expect(w, "arr_0", fac_shape(12), x); break;
        case NPY_FORTRAN: expect(w, "arr_0", fac_shape(3, 4), fortran); break;
        case NPY_TEXT:
            assert_string_equal(((char *const *)fac_tensor_data(fac_weights_tensor(w, 0)))[0], "a");
            assert_string_equal(((char *const *)fac_tensor_data(fac_weights_tensor(w, 0)))[1], "\xf0\x9d\x84\x9e" "b");
            break;
        case NPZ: case NPZ_DEFLATED: case NPZ_64:
            assert_int_equal(fac_weights_count(w), 2);
            assert_string_equal(fac_weights_name(w, 1), "b.c");
            expect(w, "a", fac_shape(3, 4), x);
            expect(w, "b.c", fac_shape(3, 4), x);
            break;
        case SAFETENSORS:
            assert_int_equal(fac_weights_count(w), 2);
            expect(w, "a", fac_shape(2, 4), x);
            expect(w, "b", fac_shape(4), x + 8);
            break;
        case PTH: case PTH_DEFLATED: case PTH_LEGACY:
            assert_int_equal(fac_weights_count(w), 3);
            assert_string_equal(fac_weights_name(w, 0), "a");
            expect(w, "a", fac_shape(3, 4), x);
            expect(w, "again", fac_shape(3, 4), x);
            expect(w, "turned", fac_shape(4, 2), turned);
            assert_ptr_equal(fac_weights_find(w, "a")->storage, fac_weights_find(w, "turned")->storage);
            break;
        case PTH_NESTED:
            assert_int_equal(fac_weights_count(w), 2);
            expect(w, "a", fac_shape(3, 4), x);
            expect(w, "inner.7", fac_shape(4, 2), turned);
            break;
        }
        fac_weights_free(w);
    }
    fac_weights_free(NULL);
}

static void stored_tensors_borrow_the_file(void **state) {
    (void)state;
    fac_weights *w = NULL;
    fac_file *f;
    fac_text t = { 0 };
    safetensors_file(&t, "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "abcd", 4);
    f = fac_file_memory(t.s, t.n);
    OK(fac_weights_parse(f, "file", &w, &err));
    assert_ptr_equal(fac_tensor_data(fac_weights_tensor(w, 0)), (const char *)fac_file_data(f) + t.n - 4);
    fac_file_free(f);
    fac_tensor *a = fac_tensor_retain(fac_weights_tensor(w, 0));
    fac_weights_free(w);
    assert_memory_equal(fac_tensor_data(a), "abcd", 4);
    OK(fac_tensor_write(a, "efgh", 4, &err));
    assert_memory_equal(fac_tensor_data(a), "efgh", 4);
    fac_tensor_free(a);
    fac_text_free(&t);
}

/* ---- round trips through our own writers ---- */

static fac_tensor *random_tensor(fac_dtype dtype, fac_dims dims) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, dtype, dims, &t, &err));
    size_t bytes = fac_type_bytes(&t->type);
    unsigned char *data = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)draw(dtype == FAC_BOOL ? 2 : 256);
    if (dtype != FAC_TEXT) {
        OK(fac_tensor_write(t, data, bytes, &err));
    } else {
        static char *const words[] = { "", "a", "Gr\xc3\xbc\xc3\x9fyou", "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9d\x84\x9e",
                                      "long long text" };
        char *texts[64];
        int64_t n = fac_dims_count(&dims);
        for (int64_t i = 0; i < n; i++) texts[i] = words[draw(5)];
        OK(fac_tensor_write(t, texts, (size_t)n * sizeof *texts, &err));
    }
    free(data);
    return t;
}

static void expect_equal(const fac_tensor *a, const fac_tensor *b) {
    size_t bytes = fac_type_bytes(&a->type);
    assert_int_equal(a->type.dtype, b->type.dtype);
    assert_true(fac_dims_equal(&a->type.dims, &b->type.dims));
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    OK(fac_tensor_read(a, x, bytes, &err));
    OK(fac_tensor_read(b, y, bytes, &err));
    if (a->type.dtype != FAC_TEXT) assert_memory_equal(x, y, bytes);
    for (size_t i = 0; a->type.dtype == FAC_TEXT && i < bytes / sizeof(char *); i++)
        assert_string_equal(((char **)(void *)x)[i], ((char **)(void *)y)[i]);
    free(x);
    free(y);
}

enum { MANY = 40 };
static int make_tensors(const char *names[MANY], fac_tensor *t[MANY], bool texts) {
    static char labels[MANY][40];
    int n = 0;
    for (int k = FAC_F32; k < FAC_DTYPES; k++) {
        if (k == FAC_BIT || (k == FAC_TEXT && !texts)) continue;
        fac_tensor *base = random_tensor((fac_dtype)k, fac_shape(4, 6));
        OK(fac_tensor_view(base, fac_shape(6, 2), (int64_t[]){ 1, 12 }, 0, &t[n + 1], &err));
        t[n] = base;
        for (int j = 0; j < 2; j++) {
            snprintf(labels[n + j], sizeof labels[0], "%s.%d \"\\/", fac_dtype_get((fac_dtype)k)->name, j);
            names[n + j] = labels[n + j];
        }
        n += 2;
    }
    names[n] = "scalar";
    t[n++] = random_tensor(FAC_F64, (fac_dims){ 0 });
    names[n] = "empty";
    t[n++] = random_tensor(FAC_I16, fac_shape(3, 0));
    names[n] = "eight";
    t[n++] = random_tensor(FAC_U8, fac_shape(1, 2, 1, 2, 1, 2, 1, 2));
    return n;
}

static void what_was_saved_is_loaded(void **state) {
    (void)state;
    const char *names[MANY];
    fac_tensor *t[MANY];
    fac_weights *w = NULL;
    for (int kind = 0; kind < 2; kind++) {
        int n = make_tensors(names, t, kind == 0);
        OK((kind ? fac_safetensors_save : fac_npz_save)(in_folder("w"), n, names, t, &err));
        OK(fac_weights_load(in_folder("w"), &w, &err));
        unlink(in_folder("w"));                             /* the mapping keeps it alive */
        assert_int_equal(fac_weights_count(w), n);
        for (int i = 0; i < n; i++) {
            if (!fac_weights_find(w, names[i])) fail_msg("%s is lost", names[i]);
            expect_equal(fac_weights_find(w, names[i]), t[i]);
            if (kind == 0) assert_string_equal(fac_weights_name(w, i), names[i]);
            if (t[i]->type.dtype != FAC_TEXT && fac_dims_count(&t[i]->type.dims))
                assert_true(fac_weights_find(w, names[i])->storage->borrowed);
        }
        fac_weights_free(w);
        for (int i = 0; i < n; i++) fac_tensor_free(t[i]);
    }
    for (int turn = 0; turn < 20; turn++) {
        fac_tensor *a = random_tensor((fac_dtype)(1 + draw(FAC_BOOL)), fac_shape((int64_t)draw(5), (int64_t)draw(5))), *b = NULL;
        OK(fac_npy_save(a, in_folder("a.npy"), &err));
        OK(fac_npy_load(in_folder("a.npy"), &b, &err));
        expect_equal(a, b);
        fac_tensor_free(a);
        fac_tensor_free(b);
        unlink(in_folder("a.npy"));
    }
}

static void what_cannot_be_saved(void **state) {
    (void)state;
    fac_tensor *bits = NULL, *texts = NULL;
    OK(fac_tensor_new(NULL, FAC_BIT, fac_shape(3), &bits, &err));
    OK(fac_tensor_new(NULL, FAC_TEXT, fac_shape(3), &texts, &err));
    assert_int_equal(fac_npy_save(bits, in_folder("x"), &err), FAC_E_UNSUPPORTED);
    assert_int_equal(fac_npz_save(in_folder("x"), 1, (const char *[]){ "b" }, &bits, &err), FAC_E_UNSUPPORTED);
    assert_string_equal(err.text, "b: NumPy has no elements like bit");
    assert_int_equal(fac_safetensors_save(in_folder("x"), 1, (const char *[]){ "t" }, &texts, &err), FAC_E_UNSUPPORTED);
    fac_tensor *two[2];
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3), &two[0], &err));
    two[1] = two[0];
    assert_int_equal(fac_safetensors_save(in_folder("x"), 2, (const char *[]){ "t", "t" }, two, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_npy_save(two[0], folder, &err), FAC_E_IO);
    assert_int_equal(fac_npz_save(in_folder("no/x"), 1, (const char *[]){ "t" }, two, &err), FAC_E_IO);
    assert_int_equal(access(in_folder("x"), F_OK), -1);
    fac_tensor_free(two[0]);
    fac_tensor_free(bits);
    fac_tensor_free(texts);
}

/* ---- files that are no weights ---- */

static void errors_name_the_file(void **state) {
    (void)state;
    fac_weights *w = NULL;
    fac_tensor *t = NULL;
    char expected[300];
    assert_int_equal(fac_weights_load(folder, &w, &err), FAC_E_IO);
    snprintf(expected, sizeof expected, "%s: is a directory", folder);
    assert_string_equal(err.text, expected);
    assert_int_equal(fac_weights_load(in_folder("none"), &w, &err), FAC_E_IO);
    assert_int_equal(fac_npy_load(in_folder("none"), &t, &err), FAC_E_IO);
    FILE *f = fopen(in_folder("text"), "w");
    fputs("hello, this is a text file\n", f);
    fclose(f);
    assert_int_equal(fac_weights_load(in_folder("text"), &w, &err), FAC_E_FORMAT);
    snprintf(expected, sizeof expected, "%s: no weights: not .safetensors, .npy, .npz or PyTorch's .pth", in_folder("text"));
    assert_string_equal(err.text, expected);
    assert_int_equal(fac_npy_load(in_folder("text"), &t, &err), FAC_E_FORMAT);
    unlink(in_folder("text"));
}

static void refuse_npy(const char *dict, fac_status status, const char *words) {
    fac_text t = { 0 };
    npy_file(&t, 1, dict, "0123456789abcdef", 16);
    refuse(&t, status, words);
    fac_text_free(&t);
}

static void npy_lies(void **state) {
    (void)state;
    refuse_npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED,
               "elements of type '>f4': big-endian");
    refuse_npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED, "Python objects");
    refuse_npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED, "'<c8'");
    refuse_npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED, "a structured array");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", FAC_E_FORMAT, "needs more than the 16 bytes");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", FAC_E_FORMAT, "needs more");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", FAC_E_FORMAT, "broken shape");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", FAC_E_FORMAT, "broken shape");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", FAC_E_UNSUPPORTED, "more than 8 dims");
    refuse_npy("{'descr': '<f4', 'fortran_order': maybe, 'shape': (1,), }", FAC_E_FORMAT, "fortran_order");
    refuse_npy("{'descr': '<f4', 'shape': (1,), }", FAC_E_FORMAT, "broken dict");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", FAC_E_FORMAT, "a field 'more'");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", FAC_E_FORMAT, "broken dict");
    refuse_npy("{'descr': '<U9', 'fortran_order': False, 'shape': (1,), }", FAC_E_FORMAT, "outside the file");
    refuse_npy("{'descr': '<U0', 'fortran_order': False, 'shape': (999999999999,), }", FAC_E_FORMAT, "outside the file");
    refuse_npy("{'descr': '<U4611686018427387905', 'fortran_order': False, 'shape': (4,), }", FAC_E_FORMAT, "");
    refuse_npy("no dict", FAC_E_FORMAT, "no dict");
    fac_text t = { 0 };
    npy_file(&t, 9, "{}", "", 0);
    refuse(&t, FAC_E_UNSUPPORTED, "version 9.0");
    fac_text_free(&t);
}

static void refuse_safetensors(const char *json, fac_status status, const char *words) {
    fac_text t = { 0 };
    safetensors_file(&t, json, "01234567", 8);
    refuse(&t, status, words);
    fac_text_free(&t);
}

static void safetensors_lies(void **state) {
    (void)state;
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}", FAC_E_FORMAT, "truncated");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", FAC_E_FORMAT,
                       "another number of bytes");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", FAC_E_FORMAT,
                       "the last 4 bytes belong to no tensor");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", FAC_E_FORMAT, "begins at byte 4");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                       "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                       FAC_E_FORMAT, "b: begins at byte 4, the tensor before it ends at 8");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                       "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                       FAC_E_FORMAT, "two tensors of this name");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", FAC_E_FORMAT, "bytes 8 to 0");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", FAC_E_FORMAT, "no size");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}", FAC_E_FORMAT, "no size");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[4503599627370496,4503599627370496],\"data_offsets\":[0,8]}}",
                       FAC_E_FORMAT, "");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", FAC_E_UNSUPPORTED,
                       "8 dims");
    refuse_safetensors("{\"a\":{\"dtype\":\"F8_E5M2\",\"shape\":[8],\"data_offsets\":[0,8]}}", FAC_E_UNSUPPORTED,
                       "a: element type \"F8_E5M2\"");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", FAC_E_FORMAT, "needs dtype");
    refuse_safetensors("{\"a\":[1,2]}", FAC_E_FORMAT, "needs dtype");
    refuse_safetensors("{\"a\":", FAC_E_FORMAT, "no JSON object");
    fac_text t = { 0 };
    put_literal(&t, "\xff\xff\xff\xff\xff\xff\xff\x7f{}");
    refuse(&t, FAC_E_FORMAT, "header of 9223372036854775807 bytes");
    fac_text_free(&t);
    put_literal(&t, "\xff\0\0\0\0\0\0\0{}");
    refuse(&t, FAC_E_FORMAT, "ends within its header");
    fac_text_free(&t);
}

static void zip_lies(void **state) {
    (void)state;
    fac_text t = { 0 }, npy = { 0 };
    weight_file(&npy, NPY_1);
    zip_file z = { .to = &t };
    zip_entry(&z, "a.npy", npy.s, npy.n, false);
    zip_entry(&z, "a.npy", npy.s, npy.n, false);
    zip_finish(&z);
    refuse(&t, FAC_E_FORMAT, "a.npy: twice");
    fac_text_free(&t);

    /* ten entries on the same data, together larger than the file */
    z = (zip_file){ .to = &t };
    zip_entry(&z, "a.npy", npy.s, npy.n, false);
    fac_text one = z.directory;
    z.directory = (fac_text){ 0 };
    for (z.n = 0; z.n < 10; z.n++) {
        put_bytes(&z.directory, &one);
        z.directory.s[z.directory.n - 5] = (char)('a' + z.n);
    }
    fac_text_free(&one);
    zip_finish(&z);
    refuse(&t, FAC_E_FORMAT, "overlapping entries");
    fac_text_free(&t);

    z = (zip_file){ .to = &t };
    zip_entry(&z, "readme.txt", "hello", 5, false);
    zip_finish(&z);
    refuse(&t, FAC_E_FORMAT, "a zip archive without tensors");
    t.s[t.n - 7] = 1;                                       /* the directory begins far behind the end */
    t.s[t.n - 4] = 1;
    refuse(&t, FAC_E_FORMAT, "broken directory");
    fac_text_free(&t);

    fac_text_add(&t, "PK\3\4 and nothing else that a zip archive has");
    refuse(&t, FAC_E_FORMAT, "without its end");
    fac_text_free(&t);

#ifdef FAC_HAVE_ZLIB
    weight_file(&t, NPZ_DEFLATED);
    for (size_t i = 0; i < t.n; i++)
        if (!memcmp(t.s + i, "PK\1\2", 4)) {
            t.s[i + 16] ^= 1;
            refuse(&t, FAC_E_FORMAT, "a.npy: its checksum is wrong");
            t.s[i + 16] ^= 1;
            t.s[i + 26] = 1;
            refuse(&t, FAC_E_FORMAT, "a.npy: its compressed data is broken");
            t.s[i + 27] = 1;
            refuse(&t, FAC_E_FORMAT, "a.npy: its size cannot be true");
            t.s[i + 26] = t.s[i + 27] = 0;
            t.s[i + 10] = 9;
            refuse(&t, FAC_E_UNSUPPORTED, "a.npy: compression method 9");
            t.s[i + 8] = 1;
            refuse(&t, FAC_E_UNSUPPORTED, "a.npy: encrypted");
            break;
        }
    fac_text_free(&t);
#endif
    fac_text_free(&npy);
}

/* A pickle in the zip container beside a storage of four floats. */
static void refuse_pickle(const char *bytes, size_t n, fac_status status, const char *words) {
    fac_text t = { 0 }, pickle = { 0 };
    pickle_begin(&pickle);
    fac_text_add_bytes(&pickle, bytes, n);
    pth_zip(&t, &pickle, "0", (float[]){ 1, 2, 3, 4 }, 16, false);
    refuse(&t, status, words);
    fac_text_free(&t);
    fac_text_free(&pickle);
}

static void pickles_run_nothing(void **state) {
    (void)state;
#define PICKLE(bytes, status, words) refuse_pickle(bytes, sizeof bytes - 1, status, words)
    PICKLE("cposix\nsystem\n(X\4\0\0\0echotR.", FAC_E_UNSUPPORTED, "net/data.pkl: a pickle that uses posix.system");
    PICKLE("cbuiltins\neval\n.", FAC_E_UNSUPPORTED, "builtins.eval");
    PICKLE("ctorch\nComplexFloatStorage\n.", FAC_E_UNSUPPORTED, "torch.ComplexFloatStorage");
    PICKLE("ctorch._utils\n_rebuild_tensor_v2x\n.", FAC_E_UNSUPPORTED, "_rebuild_tensor_v2x");
    PICKLE("ctorch._utils._rebuild\ntensor_v2\n.", FAC_E_UNSUPPORTED, "");
    PICKLE("iposix\nsystem\n.", FAC_E_UNSUPPORTED, "opcode 0x69 ('i')");
    PICKLE("\x93.", FAC_E_UNSUPPORTED, "opcode 0x93 ('?')");
    PICKLE("ctorch\nFloatStorage\n)R.", FAC_E_UNSUPPORTED, "calls torch.FloatStorage");
    PICKLE("N)R.", FAC_E_FORMAT, "cannot be called");
    PICKLE("}N", FAC_E_FORMAT, "truncated");
    PICKLE(".", FAC_E_FORMAT, "does not end with one value");
    PICKLE("NN.", FAC_E_FORMAT, "does not end with one value");
    PICKLE("(.", FAC_E_FORMAT, "does not end with one value");
    PICKLE("t.", FAC_E_FORMAT, "no mark");
    PICKLE("\x87.", FAC_E_FORMAT, "more values than there are");
    PICKLE("}(Nu.", FAC_E_FORMAT, "a key without a value");
    PICKLE("](NNs.", FAC_E_FORMAT, "items for no dict");
    PICKLE("}Na.", FAC_E_FORMAT, "items for no list");
    PICKLE("](\x85.", FAC_E_FORMAT, "a mark inside a container");
    PICKLE("h\0.", FAC_E_FORMAT, "not set");
    PICKLE("Nr\xff\xff\xff\xff.", FAC_E_FORMAT, "out of order");
    PICKLE("q\0.", FAC_E_FORMAT, "nothing to remember");
    PICKLE("(q\0.", FAC_E_FORMAT, "nothing to remember");
    PICKLE("X\xff\xff\xff\xff" "a.", FAC_E_FORMAT, "truncated");
    PICKLE("NQ.", FAC_E_FORMAT, "no storage");
    PICKLE("NNb.", FAC_E_FORMAT, "no OrderedDict");
    PICKLE("ccollections\nOrderedDict\nK\1\x85R.", FAC_E_FORMAT, "no list");
    PICKLE("ccollections\nOrderedDict\n]Na\x85R.", FAC_E_FORMAT, "no pairs");
    PICKLE("ctorch._utils\n_rebuild_parameter\nN\x85R.", FAC_E_FORMAT, "no tensor");
    PICKLE("ctorch._utils\n_rebuild_tensor_v2\n(tR.", FAC_E_FORMAT, "without storage");
    PICKLE("}q\0X\1\0\0\0ah\0s.", FAC_E_FORMAT, "a: a dict that occurs twice");      /* it contains itself */
    PICKLE("N.", FAC_E_FORMAT, "without tensors");
#undef PICKLE
}

static void deep_and_long_names(void **state) {
    (void)state;
    fac_text p = { 0 };
    for (int k = 0; k < 40; k++) {
        fac_text_add(&p, "}");
        pickle_text(&p, "d");
    }
    fac_text_add(&p, "}");
    for (int k = 0; k < 40; k++) fac_text_add(&p, "s");
    fac_text_add(&p, ".");
    refuse_pickle(p.s, p.n, FAC_E_FORMAT, "more than 32 dicts");
    fac_text_free(&p);
    char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    fac_text_add(&p, "}");
    pickle_text(&p, longer);
    fac_text_add(&p, "}s.");
    refuse_pickle(p.s, p.n, FAC_E_FORMAT, "a name of more than 1023 bytes");
    fac_text_free(&p);
    /* calls on one list of pairs after the other would need memory without end */
    put_literal(&p, "ccollections\nOrderedDict\nq\0]q\1(");
    for (int k = 0; k < 500; k++) put_literal(&p, "NN\x86");
    put_literal(&p, "e");
    for (int k = 0; k < 500; k++) put_literal(&p, "h\0h\1\x85R");
    fac_text_add(&p, ".");
    refuse_pickle(p.s, p.n, FAC_E_FORMAT, "more pairs than there are");
    fac_text_free(&p);
}

/* The storage has four elements, whatever the tensor says. */
static void refuse_tensor(const pickled_tensor *p, fac_status status, const char *words) {
    fac_text t = { 0 };
    fac_text_add(&t, "}");
    pickle_text(&t, "a");
    pickle_tensor(&t, p, false);
    fac_text_add(&t, "s.");
    refuse_pickle(t.s, t.n, status, words);
    fac_text_free(&t);
}

static void tensors_stay_inside_their_storages(void **state) {
    (void)state;
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 5, 0, 1, { 4 }, { 1 } }, FAC_E_FORMAT,
                  "a: storage 0 should have 5 elements");
    refuse_tensor(&(pickled_tensor){ "DoubleStorage", "0", 4, 0, 1, { 4 }, { 1 } }, FAC_E_FORMAT, "file is too short");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "1", 4, 0, 1, { 4 }, { 1 } }, FAC_E_FORMAT, "net/data/1: is missing");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 1, { 5 }, { 1 } }, FAC_E_ARGUMENT, "outside the storage");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 1, 1, { 4 }, { 1 } }, FAC_E_ARGUMENT, "outside the storage");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 2, { 2, 2 }, { 3, 1 } }, FAC_E_ARGUMENT, "outside the storage");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 2, { 2, 2 }, { -1, 1 } }, FAC_E_FORMAT, "sizes and strides");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, -1, 1, { 2 }, { 1 } }, FAC_E_FORMAT, "sizes and strides");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", -4, 0, 1, { 2 }, { 1 } }, FAC_E_FORMAT, "no storage");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 3, { 2000000000, 2000000000, 2000000000 }, { 0, 0, 0 } },
                  FAC_E_NOMEM, "");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 2, { 2000000000, 2 }, { 2000000000, 2000000000 } },
                  FAC_E_ARGUMENT, "");
}

static void legacy_lies(void **state) {
    (void)state;
    fac_text t = { 0 };
    weight_file(&t, PTH_LEGACY);
    t.s[t.n - 48 - 8]++;                                    /* the number of elements before the data */
    refuse(&t, FAC_E_FORMAT, "storage 0 should have 12 elements, the file says 13");
    fac_text_free(&t);
    put_literal(&t, "\x80\2}.");
    refuse(&t, FAC_E_FORMAT, "a pickle, but none of PyTorch");
    fac_text_free(&t);
    weight_file(&t, PTH_LEGACY);
    t.s[15 + 3] = 0;
    refuse(&t, FAC_E_UNSUPPORTED, "another version");
    fac_text_free(&t);
}

/* ---- any damage ---- */

static void survive(const fac_text *t, size_t n) {
    fac_weights *w = NULL;
    if (!parse(&(fac_text){ .s = t->s, .n = n }, &w)) {
        touch(w);
        fac_weights_free(w);
    }
}

static void any_damage_is_survived(void **state) {
    (void)state;
    for (int k = 0; k < WEIGHT_FILES; k++) {
        fac_text t = { 0 };
        weight_file(&t, k);
        for (size_t n = 0; n < t.n; n++) {
            fac_weights *w = NULL;
            if (!parse(&(fac_text){ .s = t.s, .n = n }, &w))
                fail_msg("%s was read from its first %zu of %zu bytes", weight_file_names[k], n, t.n);
        }
        for (size_t i = 0; i < t.n; i++) {
            char was = t.s[i];
            for (int bit = 0; bit < 8; bit++) {
                t.s[i] = (char)(was ^ 1 << bit);
                survive(&t, t.n);
            }
            t.s[i] = (char)0xff;
            survive(&t, t.n);
            t.s[i] = was;
        }
        for (int turn = 0; turn < 300; turn++) {
            char was[8] = { 0 };
            size_t at = (size_t)draw(t.n - 8);
            memcpy(was, t.s + at, 8);
            for (size_t j = 0; j < 8; j++)
                if (draw(2)) t.s[at + j] = (char)draw(256);
            survive(&t, t.n);
            memcpy(t.s + at, was, 8);
        }
        fac_text_free(&t);
    }
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    for (int k = 0; k < WEIGHT_FILES; k++) {
        fac_text t = { 0 };
        weight_file(&t, k);
        long n = 0;
        for (fac_status status = FAC_E_NOMEM; status; n++) {
            fac_weights *w = NULL;
            allocations_left = n;
            status = parse(&t, &w);
            allocations_left = -1;
            if (status) assert_int_equal(status, FAC_E_NOMEM);
            else fac_weights_free(w);
        }
        assert_true(n > 3);
        fac_text_free(&t);
    }
    const char *names[MANY];
    fac_tensor *tensors[MANY];
    for (int kind = 0; kind < 2; kind++) {
        int count = make_tensors(names, tensors, kind == 0);
        long n = 0;
        for (fac_status status = FAC_E_NOMEM; status; n++) {
            allocations_left = n;
            status = (kind ? fac_safetensors_save : fac_npz_save)(in_folder("w"), count, names, tensors, &err);
            allocations_left = -1;
            if (status) assert_int_equal(status, FAC_E_NOMEM);
            assert_int_equal(unlink(in_folder("w")) == 0, status == FAC_OK);        /* nothing half-written */
        }
        for (int i = 0; i < count; i++) fac_tensor_free(tensors[i]);
    }
}

/* ---- real files, if FACULA_DATA says where they are ---- */

static void real_files(void **state) {
    (void)state;
    const char *data = getenv("FACULA_DATA");
    char file[1000];
    if (!data) skip();
    snprintf(file, sizeof file, "%s/models/cifar10_resnet20.th", data);
    fac_weights *w = NULL;
    OK(fac_weights_load(file, &w, &err));
    touch(w);
    assert_int_equal(fac_weights_count(w), 97);
    fac_tensor *t = fac_weights_tensor(w, 0);
    assert_string_equal(fac_weights_name(w, 0), "module.conv1.weight");
    assert_true(fac_dims_equal(&t->type.dims, &fac_shape(16, 3, 3, 3)));
    fac_weights_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read), cmocka_unit_test(stored_tensors_borrow_the_file),
        cmocka_unit_test(what_was_saved_is_loaded),
        cmocka_unit_test(what_cannot_be_saved), cmocka_unit_test(errors_name_the_file), cmocka_unit_test(npy_lies),
        cmocka_unit_test(safetensors_lies), cmocka_unit_test(zip_lies), cmocka_unit_test(pickles_run_nothing),
        cmocka_unit_test(deep_and_long_names), cmocka_unit_test(tensors_stay_inside_their_storages),
        cmocka_unit_test(legacy_lies),
        cmocka_unit_test(any_damage_is_survived), cmocka_unit_test(memory_may_run_out_anywhere), cmocka_unit_test(real_files),
    };
    seed = (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("weights", tests, make_folder, remove_folder);
}
