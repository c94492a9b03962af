/* facula/io.h: well-formed files of every kind, round trips, damaged files, lost memory. */
#include <math.h>
#include "weights_check.h"

/* ---- well-formed files ---- */

/* Entries that are none here are passed over; who wants one learns why it is missing. */
static void others(const fac_weights *w, int kind, const float *x, const float *fortran) {
    static const struct {
        const char *name, *why;
        int before;
    } skipped[][2] = { [NPZ_OTHERS] = { { "object", "elements of type '|O': Python objects", 0 },
                                        { "freqs", "elements of type '<c16'", 1 } },
                       [SAFETENSORS_OTHERS] = { { "freqs", "element type \"C64\"", 0 },
                                                { "scale", "element type \"F6_E2M3\"", 0 } },
                       [PTH_OTHERS] = { { "freqs", "elements of type complex128", 0 },
                                        { "packed", "a quantized tensor", 0 } },
                       [PTH_LEGACY_OTHERS] = { { "freqs", "elements of type complex64", 0 },
                                               { "packed", "a quantized tensor", 0 } } };
    assert_int_equal(fac_weights_skipped(w), 2);
    for (int i = 0; i < 2; i++) {
        const fac_skipped s = fac_weights_skipped_at(w, i);
        assert_string_equal(s.name, skipped[kind][i].name);
        assert_string_equal(s.why, skipped[kind][i].why);
        assert_int_equal(s.before, skipped[kind][i].before);
        assert_ptr_equal(fac_weights_why(w, s.name), s.why);
        assert_null(fac_weights_find(w, s.name));
    }
    assert_null(fac_weights_why(w, "a"));
    assert_int_equal(fac_weights_count(w), kind == PTH_OTHERS ? 2 : 1);
    expect(w, "a", kind == SAFETENSORS_OTHERS ? fac_shape(8) : fac_shape(3, 4),
           kind == SAFETENSORS_OTHERS ? x + 4
           : kind == NPZ_OTHERS       ? fortran
                                      : x);
    if (kind != PTH_OTHERS) return;
    const fac_tensor *t = fac_weights_find(w, "bytes");
    uint16_t half[6], want[6];
    for (int i = 0; i < 6; i++) memcpy(&want[i], (const char *)&x[2 * i] + 2, 2);
    assert_true(t && t->type.dtype == FAC_U16 && t->type.dims.n == 1 && t->type.dims.d[0] == 6);
    OK(fac_tensor_read(t, half, sizeof half, &err));
    assert_memory_equal(half, want, sizeof half);
}

static void every_kind_is_read(void **state) {
    (void)state;
    float x[12], fortran[12];
    static const float transposed[8] = { 1, 5, 2, 6, 3, 7, 4, 8 };
    for (int i = 0; i < 12; i++) {
        x[i] = (float)i;
        fortran[i] = (float)(i / 4 + i % 4 * 3);
    }
    for (int k = 0; k < WEIGHT_FILES; k++) {
        fac_text t = { 0 };
        fac_weights *w = NULL;
        weight_file(&t, k);
        OK(parse(&t, &w));
        fac_text_free(&t); /* the tensors keep the file */
        touch(w);
        assert_null(fac_weights_find(w, "nothing"));
        switch (k) {
        case NPY_1:
            expect(w, "arr_0", fac_shape(3, 4), x);
            break;
        case NPY_2:
            expect(w, "arr_0", fac_shape(12), x);
            break;
        case NPY_FORTRAN:
            expect(w, "arr_0", fac_shape(3, 4), fortran);
            break;
        case NPY_TEXT:
            assert_string_equal(((char *const *)fac_tensor_data(fac_weights_tensor(w, 0)))[0], "a");
            assert_string_equal(((char *const *)fac_tensor_data(fac_weights_tensor(w, 0)))[1],
                                "\xf0\x9d\x84\x9e"
                                "b");
            break;
        case NPZ:
        case NPZ_DEFLATED:
        case NPZ_64:
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
        case PTH:
        case PTH_DEFLATED:
        case PTH_LEGACY:
            assert_int_equal(fac_weights_count(w), 3);
            assert_string_equal(fac_weights_name(w, 0), "a");
            expect(w, "a", fac_shape(3, 4), x);
            expect(w, "again", fac_shape(3, 4), x);
            expect(w, "transposed", fac_shape(4, 2), transposed);
            assert_ptr_equal(fac_weights_find(w, "a")->storage,
                             fac_weights_find(w, "transposed")->storage);
            break;
        case PTH_NESTED:
            assert_int_equal(fac_weights_count(w), 2);
            expect(w, "a", fac_shape(3, 4), x);
            expect(w, "inner.7", fac_shape(4, 2), transposed);
            break;
        case NPY_BIG:
            expect(w, "arr_0", fac_shape(3, 4), fortran);
            break;
        case NPZ_OTHERS:
        case SAFETENSORS_OTHERS:
        case PTH_OTHERS:
        case PTH_LEGACY_OTHERS:
            others(w, k, x, fortran);
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
    safetensors_file(&t, "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "abcd",
                     4);
    f = fac_file_memory(t.s, t.n);
    OK(fac_weights_parse(f, "file", &w, &err));
    assert_ptr_equal(fac_tensor_data(fac_weights_tensor(w, 0)),
                     (const char *)fac_file_data(f) + t.n - 4);
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
        static char *const words[] = { "", "a", "Gr\xc3\xbc\xc3\x9fyou",
                                       "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9d\x84\x9e",
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
        if (k == FAC_BIT || (k == FAC_TEXT && !texts) || fac_dtype_get((fac_dtype)k)->kind == 'q' ||
            fac_dtype_is_stored((fac_dtype)k))
            continue;
        fac_tensor *base = random_tensor((fac_dtype)k, fac_shape(4, 6));
        OK(fac_tensor_view(base, fac_shape(6, 2), (int64_t[]){ 1, 12 }, 0, &t[n + 1], &err));
        t[n] = base;
        for (int j = 0; j < 2; j++) {
            snprintf(labels[n + j], sizeof labels[0], "%s.%d \"\\/",
                     fac_dtype_get((fac_dtype)k)->name, j);
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
        unlink(in_folder("w")); /* the mapping keeps it alive */
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
        fac_tensor *a = random_tensor((fac_dtype)(1 + draw(FAC_BOOL)),
                                      fac_shape((int64_t)draw(5), (int64_t)draw(5))),
                   *b = NULL;
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
    assert_int_equal(fac_npz_save(in_folder("x"), 1, (const char *[]){ "b" }, &bits, &err),
                     FAC_E_UNSUPPORTED);
    assert_string_equal(err.text, "b: NumPy has no elements like bit");
    assert_int_equal(fac_safetensors_save(in_folder("x"), 1, (const char *[]){ "t" }, &texts, &err),
                     FAC_E_UNSUPPORTED);
    fac_tensor *two[2];
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(3), &two[0], &err));
    two[1] = two[0];
    assert_int_equal(
        fac_safetensors_save(in_folder("x"), 2, (const char *[]){ "t", "t" }, two, &err),
        FAC_E_ARGUMENT);
    assert_int_equal(fac_npy_save(two[0], folder, &err), FAC_E_IO);
    assert_int_equal(fac_npz_save(in_folder("no/x"), 1, (const char *[]){ "t" }, two, &err),
                     FAC_E_IO);
    assert_int_equal(access(in_folder("x"), F_OK), -1);
    fac_tensor_free(two[0]);
    fac_tensor_free(bits);
    fac_tensor_free(texts);
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
                fail_msg("%s was read from its first %zu of %zu bytes", weight_file_names[k], n,
                         t.n);
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
            if (status)
                assert_int_equal(status, FAC_E_NOMEM);
            else
                fac_weights_free(w);
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
            status = (kind ? fac_safetensors_save : fac_npz_save)(in_folder("w"), count, names,
                                                                  tensors, &err);
            allocations_left = -1;
            if (status) assert_int_equal(status, FAC_E_NOMEM);
            assert_int_equal(unlink(in_folder("w")) == 0,
                             status == FAC_OK); /* nothing half-written */
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
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(stored_tensors_borrow_the_file),
        cmocka_unit_test(what_was_saved_is_loaded),
        cmocka_unit_test(what_cannot_be_saved),
        cmocka_unit_test(any_damage_is_survived),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(real_files),
    };
    return run_weights_tests("weights", tests, sizeof tests / sizeof *tests);
}
