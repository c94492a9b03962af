/* TensorProto: every element type in every storage field, files that lie. */
#include "onnx_tensor_check.h"

/* ---- storage fields ---- */

typedef struct kind {
    int number;
    fac_dtype dtype;
    int field;
} kind;
static const kind kinds[] = { { 1, FAC_F32, FLOATS },   { 2, FAC_U8, INT32S },
                              { 3, FAC_I8, INT32S },    { 4, FAC_U16, INT32S },
                              { 5, FAC_I16, INT32S },   { 6, FAC_I32, INT32S },
                              { 7, FAC_I64, INT64S },   { 9, FAC_BOOL, INT32S },
                              { 10, FAC_F16, INT32S },  { 11, FAC_F64, DOUBLES },
                              { 12, FAC_U32, UINT64S }, { 13, FAC_U64, UINT64S },
                              { 16, FAC_BF16, INT32S } };
enum { KINDS = sizeof kinds / sizeof *kinds, N = 6 };

/* The same six numbers in every type: as the bits that a typed field holds, and as memory. */
static void contents(fac_dtype dtype, uint64_t bits[N], uint8_t memory[N * 8]) {
    static const double x[N] = { 0, 1, 2, 100, -1, -100 };
    size_t size = (size_t)fac_dtype_get(dtype)->block_bytes;
    for (int k = 0; k < N; k++) {
        fac_tensor *wide, *t;
        double v = dtype == FAC_BOOL                               ? k % 2
                   : fac_dtype_get(dtype)->kind == 'u' && x[k] < 0 ? 7 - x[k]
                                                                   : x[k];
        assert_int_equal(fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &wide, NULL), FAC_OK);
        assert_int_equal(fac_tensor_write(wide, &v, sizeof v, NULL), FAC_OK);
        assert_int_equal(fac_tensor_convert(wide, dtype, &t, NULL), FAC_OK);
        assert_int_equal(fac_tensor_read(t, memory + (size_t)k * size, size, NULL), FAC_OK);
        bits[k] = 0;
        memcpy(&bits[k], memory + (size_t)k * size, size);
        if (fac_dtype_get(dtype)->kind == 'i')
            bits[k] = (uint64_t)(int64_t)v; /* as protobuf extends signs */
        fac_tensor_free(wide);
        fac_tensor_free(t);
    }
}

static void put_typed(bytes *b, const kind *k, const uint64_t bits[N], bool packed) {
    bytes all = { 0 }, *to = packed ? &all : b;
    for (int i = 0; i < N; i++) {
        int wire = 0;
        if (k->field == FLOATS) wire = 5;
        if (k->field == DOUBLES) wire = 1;
        if (!packed) w_varint(to, (uint64_t)k->field << 3 | (uint64_t)wire);
        if (wire)
            w_raw(to, &bits[i], wire == 5 ? 4 : 8);
        else
            w_varint(to, bits[i]);
    }
    if (packed) w_sub(b, k->field, all);
}

static void holds(fac_tensor *t, const kind *k, const uint8_t *memory) {
    fac_type type = fac_tensor_type(t);
    uint8_t got[N * 8] = { 0 };
    size_t size = fac_type_bytes(&type);
    assert_int_equal(type.dtype, k->dtype);
    assert_int_equal(type.dims.n, 2);
    assert_int_equal(type.dims.d[0], 2);
    assert_int_equal(type.dims.d[1], 3);
    assert_int_equal(fac_tensor_read(t, got, size, NULL), FAC_OK);
    assert_memory_equal(got, memory, size);
    fac_tensor_free(t);
}

static void every_field(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        const kind *k = &kinds[i];
        uint64_t bits[N];
        uint8_t memory[N * 8];
        fac_tensor *t = NULL;
        fac_error err;
        contents(k->dtype, bits, memory);
        for (int form = 0; form < 2 + 9;
             form++) { /* unpacked, packed, raw data at each place modulo 8 */
            bytes b = w_tensor(NULL, k->number, "2,3");
            if (form >= 2) {
                bytes name = { 0 };
                w_raw(&name, "xxxxxxxx", (size_t)(form - 2));
                w_bytes(&b, 8, name.p, name.n);
                free(name.p);
                w_bytes(&b, RAW, memory, (size_t)N * (size_t)fac_dtype_get(k->dtype)->block_bytes);
            } else
                put_typed(&b, k, bits, form == 1);
            assert_int_equal(load(b, &t, &err), FAC_OK);
            holds(t, k, memory);
        }
    }
}

static void packed_dims(void **state) {
    (void)state;
    fac_tensor *t;
    bytes b = { 0 }, dims = { 0 };
    uint64_t bits[N];
    uint8_t memory[N * 8];
    contents(FAC_I64, bits, memory);
    w_bytes(&b, RAW, memory, N * 8); /* fields may come in any order */
    w_varint(&dims, 2);
    w_varint(&dims, 3);
    w_sub(&b, DIMS, dims);
    w_int(&b, TYPE, 7);
    assert_int_equal(load(b, &t, NULL), FAC_OK);
    holds(t, &kinds[6], memory);
}

static void bools_are_0_or_1(void **state) {
    (void)state;
    fac_tensor *t;
    uint8_t got[3];
    bytes b = w_tensor(NULL, 9, "3");
    w_bytes(&b, RAW, "\x00\x02\xff", 3);
    assert_int_equal(load(b, &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_read(t, got, 3, NULL), FAC_OK);
    assert_memory_equal(got, "\x00\x01\x01", 3);
    fac_tensor_free(t);
}

static void zero_size_and_scalar(void **state) {
    (void)state;
    fac_tensor *t;
    float x = 2.5f, got = 0;
    assert_int_equal(load(w_tensor(NULL, 1, "3,0,2"), &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_type(t).dims.n, 3);
    fac_tensor_free(t);
    assert_int_equal(load(w_tensor_f32("x", "", &x, 1), &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_type(t).dims.n, 0);
    assert_int_equal(fac_tensor_read(t, &got, 4, NULL), FAC_OK);
    assert_true(got == x);
    fac_tensor_free(t);
}

static void texts(void **state) {
    (void)state;
    fac_tensor *t;
    char *got[3];
    bytes b = w_tensor(NULL, 8, "3");
    w_text(&b, TEXTS, "one");
    w_text(&b, TEXTS, "");
    w_text(&b, TEXTS, "\xc3\xa4");
    assert_int_equal(load(b, &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_read(t, got, sizeof got, NULL), FAC_OK);
    assert_string_equal(got[0], "one");
    assert_string_equal(got[1], "");
    assert_string_equal(got[2], "\xc3\xa4");
    assert_int_equal(fac_onnx_tensor_save(t, "words", path_of("s.pb"), NULL), FAC_OK);
    fac_tensor_free(t);
    char name[16];
    assert_int_equal(fac_onnx_tensor_load(path_of("s.pb"), &t, name, sizeof name, NULL), FAC_OK);
    assert_string_equal(name, "words");
    assert_int_equal(fac_tensor_read(t, got, sizeof got, NULL), FAC_OK);
    assert_string_equal(got[2], "\xc3\xa4");
    fac_tensor_free(t);
}

static void saving(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        uint64_t bits[N];
        uint8_t memory[N * 8];
        fac_tensor *t;
        char name[4];
        fac_error err;
        contents(kinds[i].dtype, bits, memory);
        fac_dims dims = fac_shape(2, 3);
        assert_int_equal(
            fac_tensor_borrow(kinds[i].dtype, dims, NULL, memory, NULL, NULL, &t, &err), FAC_OK);
        assert_int_equal(fac_onnx_tensor_save(t, "long name", path_of("s.pb"), &err), FAC_OK);
        fac_tensor_free(t);
        assert_int_equal(fac_onnx_tensor_load(path_of("s.pb"), &t, name, sizeof name, &err),
                         FAC_OK);
        assert_string_equal(name, "lon");
        holds(t, &kinds[i], memory);
    }
    fac_tensor *t;
    fac_error err;
    assert_int_equal(fac_tensor_new(NULL, FAC_BIT, fac_shape(64), &t, &err), FAC_OK);
    assert_int_equal(fac_onnx_tensor_save(t, NULL, path_of("bit.pb"), &err), FAC_E_UNSUPPORTED);
    assert_int_not_equal(access(path_of("bit.pb"), F_OK), 0);
    fac_tensor_free(t);
}

/* ---- what is refused ---- */

static bytes with(bytes b, int field, const void *data, size_t n) {
    w_bytes(&b, field, data, n);
    return b;
}

static void lies(void **state) {
    (void)state;
    static const uint8_t zero[64];
    bytes b;
    refuses(with(w_tensor(NULL, 1, "2,3"), RAW, zero, 23), FAC_E_FORMAT,
            "23 bytes of data where its type needs 24");
    refuses(with(w_tensor(NULL, 1, "2,3"), RAW, zero, 25), FAC_E_FORMAT, "25 bytes");
    refuses(with(w_tensor(NULL, 1, "2,3"), FLOATS, zero, 20), FAC_E_FORMAT, "20 bytes");
    refuses(w_tensor(NULL, 1, "2,3"), FAC_E_FORMAT, "0 elements of data where its dims need 6");
    refuses(with(w_tensor(NULL, 7, "3"), INT64S, zero, 2), FAC_E_FORMAT,
            "2 elements of data where its dims need 3");
    refuses(with(w_tensor(NULL, 7, "3"), INT64S, zero, 4), FAC_E_FORMAT, "more than 3 elements");
    refuses(with(w_tensor(NULL, 7, "3"), INT32S, zero, 3), FAC_E_FORMAT,
            "0 elements"); /* another type's field */
    refuses(with(w_tensor(NULL, 8, "2"), TEXTS, "a", 1), FAC_E_FORMAT, "1 elements");
    refuses(with(w_tensor(NULL, 8, "1"), TEXTS, "a\0b", 3), FAC_E_UNSUPPORTED, "zero byte");
    refuses(with(w_tensor(NULL, 8, "1"), RAW, "a", 1), FAC_E_FORMAT, "texts as raw data");
    refuses(with(w_tensor(NULL, 1, "1"), 8, "a\0b", 3), FAC_E_FORMAT, "zero byte");
    refuses(w_tensor(NULL, 1, "-1"), FAC_E_FORMAT, "negative dim");
    refuses(w_tensor(NULL, 1, "1,1,1,1,1,1,1,1,1"), FAC_E_UNSUPPORTED, "9 dims");
    refuses(w_tensor(NULL, 1, "4611686018427387904,4611686018427387904"), FAC_E_FORMAT,
            "does not fit");
    refuses(w_tensor(NULL, 1, "4294967296,4294967296"), FAC_E_FORMAT, "does not fit");
    refuses(w_tensor(NULL, 8, "1000000000000"), FAC_E_FORMAT,
            "elements of data"); /* before any memory is asked for */
    refuses(w_tensor(NULL, 3, "1000000000000"), FAC_E_FORMAT, "elements of data");
    refuses(w_tensor(NULL, 14, "1"), FAC_E_UNSUPPORTED, "complex64 (14)");
    refuses(w_tensor(NULL, 99, "1"), FAC_E_UNSUPPORTED, "unknown (99)");
    refuses(w_tensor(NULL, 0, "1"), FAC_E_FORMAT, "no element type");
    refuses(with(w_tensor(NULL, 1, "1"), SEGMENT, "", 0), FAC_E_UNSUPPORTED, "segments");
    b = w_tensor(NULL, 1, "0");
    w_int(&b, LOCATION, 2);
    refuses(b, FAC_E_UNSUPPORTED, "data location 2");
    b = (bytes){ 0 };
    w_text(&b, TYPE, "float"); /* a known field of another type */
    refuses(b, FAC_E_FORMAT, "malformed TensorProto");
    b = (bytes){ 0 };
    w_raw(&b, "\x00\x00", 2);
    refuses(b, FAC_E_FORMAT, "malformed TensorProto");
    b = (bytes){ 0 };
    w_raw(&b, "\x13\x10\x01\x14", 4); /* groups left protobuf long ago */
    refuses(b, FAC_E_FORMAT, "malformed TensorProto");
    refuses((bytes){ 0 }, FAC_E_FORMAT, "is empty");
    fac_tensor *t = NULL;
    assert_int_equal(fac_onnx_tensor_load(path_of("none.pb"), &t, NULL, 0, NULL), FAC_E_IO);
    assert_int_equal(fac_onnx_tensor_load(folder, &t, NULL, 0, NULL), FAC_E_IO);
    assert_null(t);
}

/* Any prefix of a file is an error or a tensor, never a crash; the same with each bit flipped.
 */
static void torn(void **state) {
    (void)state;
    static const float x[] = { 1, 2, 3, 4 };
    bytes all = w_tensor_f32("name", "2,2", x, 4);
    for (size_t n = 1; n <= all.n; n++) {
        bytes part = { 0 };
        fac_tensor *t = NULL;
        w_raw(&part, all.p, n);
        fac_status status = load(part, &t, NULL);
        assert_int_equal(status == FAC_OK, n == all.n);
        fac_tensor_free(t);
    }
    for (size_t bit = 0; bit < all.n * 8; bit++) {
        bytes part = { 0 };
        fac_tensor *t = NULL;
        w_raw(&part, all.p, all.n);
        part.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (load(part, &t, NULL)) assert_null(t);
        fac_tensor_free(t);
    }
    free(all.p);
}

/* ---- maps ---- */

enum { MAP_NUMBERS = 3, MAP_TEXTS = 4, MAP_VALUES = 5, ELEMENTS = 3, ELEMENT_MAPS = 6 };

/* Two keys, which are texts or numbers, and their values; the second one may have another shape. */
static bytes map(bool texts, float first, bool uneven) {
    bytes m = { 0 }, values = { 0 };
    w_int(&m, 2, texts ? 8 : 7);
    if (texts) w_names(&m, MAP_TEXTS, "b,a");
    for (int k = 0; k < 2 && !texts; k++) w_int(&m, MAP_NUMBERS, 5 - 7 * k);
    for (int k = 0; k < 2; k++)
        w_sub(&values, ELEMENTS,
              w_tensor_f32("", k && uneven ? "1" : "", &(float){ first + k }, 1));
    w_sub(&m, MAP_VALUES, values);
    return m;
}

static fac_status load_map(bytes b, fac_onnx_kind form, fac_tensor ***out, int *n, fac_error *err) {
    bool sequence;
    write_file(path_of("t.pb"), b.p, b.n);
    free(b.p);
    return fac_onnx_tensors_load(path_of("t.pb"), form, out, n, &sequence, err);
}

static void maps(void **state) {
    (void)state;
    fac_tensor **t = NULL;
    fac_error err = { 0 };
    int n = 0;
    for (int texts = 0; texts < 2; texts++) {
        assert_int_equal(load_map(map(texts, 0.5f, false), FAC_ONNX_MAP, &t, &n, &err), FAC_OK);
        assert_int_equal(n, 2);
        const void *keys = fac_tensor_data(t[0]);
        const float *values = fac_tensor_data(t[1]);
        assert_true(values[0] == 0.5f && values[1] == 1.5f);
        assert_int_equal(fac_tensor_type(t[1]).dims.n, 1);
        if (texts)
            assert_string_equal(((char *const *)keys)[1], "a");
        else
            assert_int_equal(((const int64_t *)keys)[1], -2);
        fac_onnx_tensors_free(t, n);
    }
    bytes rows = { 0 };
    for (int k = 0; k < 3; k++) w_sub(&rows, ELEMENT_MAPS, map(true, (float)k * 10, false));
    assert_int_equal(load_map(rows, FAC_ONNX_SEQUENCE, &t, &n, &err), FAC_OK);
    assert_int_equal(n, 1);
    const fac_type table = fac_tensor_type(t[0]);
    assert_true(table.dims.n == 2 && table.dims.d[0] == 3 && table.dims.d[1] == 2);
    assert_true(((const float *)fac_tensor_data(t[0]))[5] == 21);
    fac_onnx_tensors_free(t, n);
    assert_int_equal(load_map(map(true, 0, true), FAC_ONNX_MAP, &t, &n, &err), FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "several types"));
}

static void maybe_map(const bytes *all, size_t n, size_t bit) {
    bytes part = { 0 };
    fac_tensor **t = NULL;
    int count = 0;
    w_raw(&part, all->p, n);
    if (bit < n * 8) part.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
    if (!load_map(part, FAC_ONNX_MAP, &t, &count, NULL)) fac_onnx_tensors_free(t, count);
}

/* Any prefix of a map, and a map with any bit flipped, is an error or a map; nothing is lost. */
static void torn_maps(void **state) {
    (void)state;
    bytes all = map(true, 1, false);
    for (size_t n = 1; n <= all.n; n++) maybe_map(&all, n, SIZE_MAX);
    for (size_t bit = 0; bit < all.n * 8; bit++) maybe_map(&all, all.n, bit);
    free(all.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field),
        cmocka_unit_test(packed_dims),
        cmocka_unit_test(bools_are_0_or_1),
        cmocka_unit_test(zero_size_and_scalar),
        cmocka_unit_test(texts),
        cmocka_unit_test(saving),
        cmocka_unit_test(lies),
        cmocka_unit_test(torn),
        cmocka_unit_test(maps),
        cmocka_unit_test(torn_maps),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
