/* Texts as data sets: vectors of words, tokens in batches, pairs of arrays. */
#include "text_check.h"

/* ---- vectors ---- */

static void vectors_of_words_are_found(void **state) {
    (void)state;
    fac_vocab *v;
    fac_tensor *t;
    int64_t found = -1;
    OK(fac_vocab_new(&four, &(fac_vocab_opts){ .kind = FAC_TOKENS_SPACE }, &v, err));
    const char *file = "film 1 -2.5 3e-1\nno such word 1 2 3\nthe 0.125 1E2 +7\r\n"
                       "film 9 9 9\n. . . 1 2 3\ncast 123456789012345678901234 0.1 .5";
    OK(fac_vocab_vectors(v, put("glove.txt", file), 5, &t, &found, err));
    assert_int_equal(found, 3);
    const fac_type type = fac_tensor_type(t);
    assert_true(type.dtype == FAC_F32 && type.dims.n == 2 && type.dims.d[0] == 9 &&
                type.dims.d[1] == 3);
    const float *x = fac_tensor_data(t);
    const float film[] = { 1, -2.5f, 0.3f }, the[] = { 0.125f, 100, 7 },
                cast[] = { 123456789012345678901234.f, 0.1f, 0.5f };
    assert_memory_equal(x + 3 * 3, film, sizeof film);
    assert_memory_equal(x + 3 * 2, the, sizeof the);
    assert_memory_equal(x + 3 * 7, cast, sizeof cast);
    assert_true(x[0] == 0 && x[1] == 0 && x[2] == 0);
    for (int k = 3; k < 6; k++) assert_true(x[k] != 0 && fabsf(x[k]) <= 0.25f);
    fac_tensor_free(t);
    OK(fac_vocab_vectors(v, put("w2v.txt", "2 2\nfilm 1 2\nend 3 4\n"), 5, &t, NULL, err));
    assert_int_equal(fac_tensor_type(t).dims.d[1], 2);
    assert_true(((const float *)fac_tensor_data(t))[3 * 2 + 1] == 2);
    fac_tensor_free(t);
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "film\n", ":1" },
        { "film 1 2\nthe 1\n", ":2: needs a word and 2" },
        { "film 1 x\n", ":1: a vector holds" },
        { "film 1 1e99\n", ":1" },
        { "film 1 2e\n", ":1" },
        { "the 1 2\nfilm 1 nan\n", ":2" },
        { "\n", ":1" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fac_error e = { 0 };
        assert_int_equal(fac_vocab_vectors(v, put("glove.txt", bad[k].text), 0, &t, NULL, &e),
                         FAC_E_FORMAT);
        says(&e, bad[k].says);
    }
    fac_vocab_free(v);
}

/* ---- data sets ---- */

static void texts_become_tokens(void **state) {
    (void)state;
    fac_vocab *v;
    fac_dataset d = { 0 };
    OK(fac_vocab_new(&four, NULL, &v, err));
    OK(fac_dataset_texts(&four, v, 0, &d, err));
    assert_true(d.count == 4 && d.item.n == 1 && d.item.d[0] == 5 &&
                d.classes == 2); /* < pad > are three */
    const int32_t first[] = { fac_vocab_find(v, "the"), fac_vocab_find(v, "film"),
                              fac_vocab_find(v, "the"), fac_vocab_find(v, "cast"), FAC_PAD };
    assert_memory_equal(d.tokens, first, sizeof first);
    assert_int_equal(d.labels[2], 1);
    fac_dataset_free(&d);
    OK(fac_dataset_texts(&four, v, 2, &d, err));
    assert_true(d.item.d[0] == 2 && d.tokens[1] == first[1] && d.tokens[2] == first[0]);
    fac_dataset a = { 0 }, b = { 0 };
    OK(fac_dataset_split(&d, 0.5, 3, &a, &b, err));
    assert_true(a.tokens && b.tokens && a.count == 2 && b.count == 2 && a.item.d[0] == 2);
    fac_dataset_free(&a);
    fac_dataset_free(&b);
    fac_dataset_free(&d);
    fac_error e = { 0 };
    assert_int_equal(fac_dataset_texts(&four, v, -1, &d, &e), FAC_E_ARGUMENT);
    assert_int_equal(fac_dataset_texts(&four, v, (int64_t)1 << 61, &d, &e), FAC_E_NOMEM);
    fac_vocab_free(v);
}

static void batches_are_cut_after_their_longest(void **state) {
    (void)state;
    static const int32_t tokens[3][9] = { { 2, 3, 4 }, { 5 }, { 6, 0, 0, 7, 8 } };
    static const int64_t y[3] = { 1, 0, 1 };
    const fac_dataset d = {
        .count = 3, .item = fac_shape(9), .classes = 2, .tokens = tokens[0], .labels = y
    };
    fac_tensor *x, *labels;
    static const struct {
        int64_t size;
        int trim;
        int64_t index, length;
    } want[] = { { 2, 0, 0, 9 }, { 2, 1, 0, 3 }, { 2, 1, 1, 5 },  { 2, 4, 0, 4 },
                 { 2, 4, 1, 8 }, { 3, 8, 0, 8 }, { 3, 100, 0, 9 } };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        const fac_batches b = { .size = want[k].size, .trim = want[k].trim };
        OK(fac_batch(&d, &b, 0, want[k].index, &x, &labels, err));
        const fac_type type = fac_tensor_type(x);
        assert_true(type.dtype == FAC_I64 && type.dims.n == 2 && type.dims.d[1] == want[k].length);
        const int64_t *at = fac_tensor_data(x);
        for (int64_t i = 0; i < type.dims.d[0]; i++)
            for (int64_t s = 0; s < want[k].length; s++)
                assert_int_equal(at[i * want[k].length + s],
                                 tokens[want[k].index * want[k].size + i][s]);
        assert_int_equal(((const int64_t *)fac_tensor_data(labels))[0],
                         y[want[k].index * want[k].size]);
        fac_tensor_free(x);
        fac_tensor_free(labels);
    }
    fac_error e = { 0 };
    const float values[9] = { 0 };
    const fac_dataset floats = { .count = 1, .item = fac_shape(9), .values = values, .labels = y };
    assert_int_equal(
        fac_batch(&floats, &(fac_batches){ .size = 1, .trim = 8 }, 0, 0, &x, &labels, &e),
        FAC_E_ARGUMENT);
    assert_int_equal(fac_batch(&d, &(fac_batches){ .size = 1, .trim = -8 }, 0, 0, &x, &labels, &e),
                     FAC_E_ARGUMENT);
}

static const char *save(const char *name, fac_dtype dtype, fac_dims dims, const void *data) {
    fac_tensor *t;
    OK(fac_tensor_borrow(dtype, dims, NULL, data, NULL, NULL, &t, err));
    OK(fac_npy_save(t, path_of(name), err));
    fac_tensor_free(t);
    return path_of(name);
}

static void pairs_of_arrays(void **state) {
    (void)state;
    char x[160], y[160];
    fac_dataset d = { 0 };
    const double values[] = { 0.5, 1, 2, 3, 4, 5 };
    const int64_t tokens[] = { 3, 4, 5, 6, 7, 0 }, wide[] = { 3, (int64_t)1 << 32, 5, 6, 7, 0 };
    const uint8_t pixels[12] = { 1, 2, 3 };
    const int32_t labels[] = { 2, 0, 1 }, wrong[] = { 2, -1, 1 };
    strcpy(y, save("y.npy", FAC_I32, fac_shape(3), labels));
    strcpy(x, save("x.npy", FAC_F64, fac_shape(3, 2), values));
    OK(fac_dataset_npy(x, y, &d, err));
    assert_true(d.count == 3 && d.classes == 3 && d.item.n == 1 && d.item.d[0] == 2 &&
                d.values[0] == 0.5f && d.values[5] == 5);
    assert_true(d.labels[0] == 2 && d.labels[1] == 0);
    fac_dataset_free(&d);
    save("x.npy", FAC_I64, fac_shape(3, 2), tokens);
    OK(fac_dataset_npy(x, y, &d, err));
    assert_true(d.tokens && d.tokens[4] == 7);
    fac_dataset_free(&d);
    save("x.npy", FAC_U8, fac_shape(3, 1, 2, 2), pixels);
    OK(fac_dataset_npy(x, y, &d, err));
    assert_true(d.bytes && d.item.n == 3 && d.bytes[2] == 3);
    fac_dataset_free(&d);

    fac_error e = { 0 };
    save("x.npy", FAC_I64, fac_shape(3, 2), wide);
    assert_int_equal(fac_dataset_npy(x, y, &d, &e), FAC_E_FORMAT);
    says(&e, "token 1 of sample 0");
    save("x.npy", FAC_F64, fac_shape(2, 3), values);
    assert_int_equal(fac_dataset_npy(x, y, &d, &e), FAC_E_FORMAT);
    says(&e, "one for each of 2");
    save("x.npy", FAC_F64, fac_shape(3, 2), values);
    save("y.npy", FAC_I32, fac_shape(3), wrong);
    assert_int_equal(fac_dataset_npy(x, y, &d, &e), FAC_E_FORMAT);
    says(&e, "label -1 of sample 1");
    save("x.npy", FAC_U8, fac_shape(12), pixels);
    assert_int_equal(fac_dataset_npy(x, y, &d, &e), FAC_E_FORMAT);
    assert_int_equal(fac_dataset_npy(x, path_of("none.npy"), &d, &e), FAC_E_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_words_are_found),
        cmocka_unit_test(texts_become_tokens),
        cmocka_unit_test(batches_are_cut_after_their_longest),
        cmocka_unit_test(pairs_of_arrays),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
