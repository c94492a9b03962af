/* facula/io.h: files that lie are refused, each with one sentence that says what is wrong. */
#include "weights_check.h"

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
    snprintf(expected, sizeof expected,
             "%s: no weights: not .safetensors, .gguf, .npy, .npz or PyTorch's .pth",
             in_folder("text"));
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
    refuse_npy("{'descr': '>f4', 'fortran_order': False, 'shape': (5,), }", FAC_E_FORMAT,
               "needs more than the 16 bytes");
    refuse_npy("{'descr': '>c8', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED,
               "'>c8'");
    refuse_npy("{'descr': '>i1', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED,
               "'>i1'");
    refuse_npy("{'descr': '>', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED, "'>'");
    refuse_npy("{'descr': '', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED, "''");
    refuse_npy("{'descr': '>U9', 'fortran_order': False, 'shape': (1,), }", FAC_E_FORMAT,
               "outside the file");
    refuse_npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED,
               "Python objects");
    refuse_npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", FAC_E_UNSUPPORTED,
               "'<c8'");
    refuse_npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
               FAC_E_UNSUPPORTED, "a structured array");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", FAC_E_FORMAT,
               "needs more than the 16 bytes");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
               FAC_E_FORMAT, "needs more");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
               FAC_E_FORMAT, "broken shape");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", FAC_E_FORMAT,
               "broken shape");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
               FAC_E_UNSUPPORTED, "more than 8 dims");
    refuse_npy("{'descr': '<f4', 'fortran_order': maybe, 'shape': (1,), }", FAC_E_FORMAT,
               "fortran_order");
    refuse_npy("{'descr': '<f4', 'shape': (1,), }", FAC_E_FORMAT, "broken dict");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", FAC_E_FORMAT,
               "a field 'more'");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", FAC_E_FORMAT,
               "broken dict");
    refuse_npy("{'descr': '<U9', 'fortran_order': False, 'shape': (1,), }", FAC_E_FORMAT,
               "outside the file");
    refuse_npy("{'descr': '<U0', 'fortran_order': False, 'shape': (999999999999,), }", FAC_E_FORMAT,
               "outside the file");
    refuse_npy("{'descr': '<U4611686018427387905', 'fortran_order': False, 'shape': (4,), }",
               FAC_E_FORMAT, "");
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
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}",
                       FAC_E_FORMAT, "truncated");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
                       FAC_E_FORMAT, "another number of bytes");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                       FAC_E_FORMAT, "the last 4 bytes belong to no tensor");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                       FAC_E_FORMAT, "begins at byte 4");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                       "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                       FAC_E_FORMAT, "b: begins at byte 4, the tensor before it ends at 8");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                       "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                       FAC_E_FORMAT, "two tensors of this name");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
                       FAC_E_FORMAT, "bytes 8 to 0");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
                       FAC_E_FORMAT, "no size");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}",
                       FAC_E_FORMAT, "no size");
    refuse_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[4503599627370496,4503599627370496],"
                       "\"data_offsets\":[0,8]}}",
                       FAC_E_FORMAT, "");
    refuse_safetensors(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,8]}}",
        FAC_E_UNSUPPORTED, "8 dims");
    refuse_safetensors("{\"a\":{\"dtype\":\"F6_E3M2\",\"shape\":[8],\"data_offsets\":[0,8]}}",
                       FAC_E_UNSUPPORTED, "a: element type \"F6_E3M2\"");
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

/* One entry is none for us, and says why; the others are there. */
static void skips(const fac_text *t, const char *name, const char *why) {
    fac_weights *w = NULL;
    OK(parse(t, &w));
    assert_int_equal(fac_weights_skipped(w), 1);
    assert_true(fac_weights_count(w) > 0);
    assert_string_equal(fac_weights_skipped_at(w, 0).name, name);
    assert_string_equal(fac_weights_skipped_at(w, 0).why, why);
    fac_weights_free(w);
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
    t.s[t.n - 7] = 1; /* the directory begins far after the end */
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
            skips(&t, "a", "compression method 9");
            t.s[i + 8] = 1;
            skips(&t, "a", "encrypted");
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
    PICKLE("cposix\nsystem\n(X\4\0\0\0echotR.", FAC_E_UNSUPPORTED,
           "net/data.pkl: a pickle that uses posix.system");
    PICKLE("cbuiltins\neval\n.", FAC_E_UNSUPPORTED, "builtins.eval");
    PICKLE("ctorch\nComplexFloatStorage\n.", FAC_E_FORMAT, "without tensors");
    PICKLE("ctorch\nComplexFloatStorage\n)R.", FAC_E_UNSUPPORTED,
           "calls torch.ComplexFloatStorage");
    PICKLE("ctorch\nfloat32\n)R.", FAC_E_UNSUPPORTED, "calls torch.float32");
    PICKLE("cbuiltins\nexec\n(X\1\0\0\0xtR.", FAC_E_UNSUPPORTED,
           "builtins.exec: refused, for it could run code");
    PICKLE("c__builtin__\ngetattr\n.", FAC_E_UNSUPPORTED, "could run code");
    PICKLE("c__main__\nConfig\n)\x81}b.", FAC_E_UNSUPPORTED, "__main__.Config");
    PICKLE("cfunctools\npartial\n.", FAC_E_UNSUPPORTED, "functools.partial");
    PICKLE("ccollections\nOrderedDict\n)\x81.", FAC_E_FORMAT, "no class");
    PICKLE("N)\x81.", FAC_E_FORMAT, "no class");
    PICKLE("\x81.", FAC_E_FORMAT, "no class");
    PICKLE("ctorch._utils\n_rebuild_tensor_v3\n(tR.", FAC_E_FORMAT, "without storage");
    PICKLE("ctorch._utils\n_rebuild_tensor_v3\n(NNNNNNNtR.", FAC_E_FORMAT, "without storage");
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
    PICKLE("X\xff\xff\xff\xff"
           "a.",
           FAC_E_FORMAT, "truncated");
    PICKLE("NQ.", FAC_E_FORMAT, "no storage");
    PICKLE("NNb.", FAC_E_FORMAT, "no OrderedDict");
    PICKLE("ccollections\nOrderedDict\nK\1\x85R.", FAC_E_FORMAT, "no list");
    PICKLE("ccollections\nOrderedDict\n]Na\x85R.", FAC_E_FORMAT, "no pairs");
    PICKLE("ctorch._utils\n_rebuild_parameter\nN\x85R.", FAC_E_FORMAT, "no tensor");
    PICKLE("ctorch._utils\n_rebuild_tensor_v2\n(tR.", FAC_E_FORMAT, "without storage");
    PICKLE("}q\0X\1\0\0\0ah\0s.", FAC_E_FORMAT,
           "a: a dict that occurs twice"); /* it contains itself */
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
    refuse_tensor(&(pickled_tensor){ "DoubleStorage", "0", 4, 0, 1, { 4 }, { 1 } }, FAC_E_FORMAT,
                  "file is too short");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "1", 4, 0, 1, { 4 }, { 1 } }, FAC_E_FORMAT,
                  "net/data/1: is missing");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 1, { 5 }, { 1 } }, FAC_E_ARGUMENT,
                  "outside the storage");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 1, 1, { 4 }, { 1 } }, FAC_E_ARGUMENT,
                  "outside the storage");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 2, { 2, 2 }, { 3, 1 } },
                  FAC_E_ARGUMENT, "outside the storage");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, 0, 2, { 2, 2 }, { -1, 1 } },
                  FAC_E_FORMAT, "sizes and strides");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", 4, -1, 1, { 2 }, { 1 } }, FAC_E_FORMAT,
                  "sizes and strides");
    refuse_tensor(&(pickled_tensor){ "FloatStorage", "0", -4, 0, 1, { 2 }, { 1 } }, FAC_E_FORMAT,
                  "no storage");
    refuse_tensor(
        &(pickled_tensor){
            "FloatStorage", "0", 4, 0, 3, { 2000000000, 2000000000, 2000000000 }, { 0, 0, 0 } },
        FAC_E_NOMEM, "");
    refuse_tensor(
        &(pickled_tensor){
            "FloatStorage", "0", 4, 0, 2, { 2000000000, 2 }, { 2000000000, 2000000000 } },
        FAC_E_ARGUMENT, "");
}

static void legacy_lies(void **state) {
    (void)state;
    fac_text t = { 0 };
    weight_file(&t, PTH_LEGACY);
    t.s[t.n - 48 - 8]++; /* the number of elements before the data */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_the_file),
        cmocka_unit_test(npy_lies),
        cmocka_unit_test(safetensors_lies),
        cmocka_unit_test(zip_lies),
        cmocka_unit_test(pickles_run_nothing),
        cmocka_unit_test(deep_and_long_names),
        cmocka_unit_test(tensors_stay_inside_their_storages),
        cmocka_unit_test(legacy_lies),
    };
    return run_weights_tests("weights lies", tests, sizeof tests / sizeof *tests);
}
