/* Texts: tables, tokens, vocabularies, vectors, data sets of tokens, npy pairs; broken files; lost
 * allocations. */
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

static const char *put(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
    return path_of(name);
}

static void says(const fac_error *e, const char *part) {
    if (!strstr(e->text, part)) fail_msg("\"%s\" does not say \"%s\"", e->text, part);
}

/* ---- tables ---- */

static void check(const fac_texts *t, int64_t i, const char *text, int64_t label) {
    assert_true(i < t->count);
    assert_string_equal(t->text[i], text);
    assert_int_equal(t->labels[i], label);
}

static void tabs_lines_and_their_ends(void **state) {
    (void)state;
    fac_texts t = { 0 };
    OK(fac_texts_load(put("a.tsv", "\xef\xbb\xbf"
                                   "good film\t1\r\n\n\"quoted\" stays\t0\r\n\r\nlast , line\t2"),
                      NULL, &t, err));
    assert_int_equal(t.count, 3);
    assert_int_equal(t.classes, 3);
    assert_null(t.class_names);
    check(&t, 0, "good film", 1);
    check(&t, 1, "\"quoted\" stays", 0);
    check(&t, 2, "last , line", 2);
    fac_texts_free(&t);
}

static void commas_and_quotes(void **state) {
    (void)state;
    fac_texts t = { 0 };
    const char *csv = "id,review,mark\n7,\"said \"\"no\"\", twice\r\nand "
                      "left\",bad\r\n8,fine,good\n9,\"\",\"bad\"\n";
    const fac_texts_opts o = { .header = true, .text = "review", .label = "mark" };
    OK(fac_texts_load(put("b.CSV", csv), &o, &t, err));
    assert_int_equal(t.classes, 2);
    assert_string_equal(t.class_names[0], "bad");
    assert_string_equal(t.class_names[1], "good");
    check(&t, 0, "said \"no\", twice\r\nand left", 0);
    check(&t, 1, "fine", 1);
    check(&t, 2, "", 0);

    fac_texts u = { 0 };
    const fac_texts_opts same = { .separator = ';', .text = "1", .label = "0", .like = &t };
    OK(fac_texts_load(put("c.txt", "good;better\nbad;worse\n"), &same, &u, err));
    assert_int_equal(u.classes, 2);
    assert_string_equal(u.class_names[1], "good");
    check(&u, 0, "better", 1);
    check(&u, 1, "worse", 0);
    fac_texts_free(&u);
    fac_error e = { 0 };
    assert_int_equal(fac_texts_load(put("c.txt", "good;better\nugly;worse\n"), &same, &u, &e),
                     FAC_E_FORMAT);
    says(&e, "c.txt:2");
    says(&e, "ugly");
    assert_null(u.memory);
    fac_texts_free(&t);
}

static void broken_tables_name_their_line(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *says;
        bool header;
    } bad[] = {
        { "x.tsv", "a\t1\nb\n", "x.tsv:2: 1 columns where 2 are needed", false },
        { "x.csv", "a,1\n\"b\nc,1\n", "x.csv:2: a quote is opened", false },
        { "x.csv", "\"a\nb\",1\n\"b\"c,1\n", "x.csv:3: text after", false },
        { "x.tsv", "sentence\tmark\na\t1\n", "no column \"label\"", true },
        { "x.tsv", "\n\n", "no records", false },
        { "x.tsv", "a\tup\nb\t\n", "x.tsv:2: the label \"\"", false },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fac_error e = { 0 };
        fac_texts t = { 0 };
        const fac_texts_opts o = { .header = bad[k].header,
                                   .label = bad[k].header ? "label" : NULL };
        assert_int_not_equal(fac_texts_load(put(bad[k].name, bad[k].text), &o, &t, &e), FAC_OK);
        says(&e, bad[k].says);
        assert_null(t.memory);
    }
    fac_error e = { 0 };
    fac_texts t = { 0 };
    assert_int_equal(fac_texts_load(put("x.tsv", ""), NULL, &t, &e), FAC_E_FORMAT);
    assert_int_equal(fac_texts_load(path_of("none.tsv"), NULL, &t, &e), FAC_E_IO);
    assert_int_equal(fac_texts_scan("a\0b\t1", 5, "nul.tsv", NULL, &t, &e), FAC_E_FORMAT);
    says(&e, "nul.tsv:1: a NUL byte");
    const fac_texts_opts by_name = { .text = "sentence" };
    assert_int_equal(fac_texts_scan("a\t1", 3, "x", &by_name, &t, &e), FAC_E_ARGUMENT);
    char *wide = malloc(600);
    memset(wide, '\t', 600);
    assert_int_equal(fac_texts_scan(wide, 600, "wide", NULL, &t, &e), FAC_E_FORMAT);
    says(&e, "columns");
    free(wide);
}

static void what_is_no_utf8_is_replaced(void **state) {
    (void)state;
    fac_texts t = { 0 };
    static const char text[] = "a\xff"
                               "b\xe2\x82\t0\n\xc3\xa9\xef\xbf\xbd\t0\n\xed\xa0\x80\t0\n";
    OK(fac_texts_scan(text, sizeof text - 1, "utf", NULL, &t, err));
    check(&t, 0,
          "a\xef\xbf\xbd"
          "b\xef\xbf\xbd",
          0);
    check(&t, 1, "\xc3\xa9\xef\xbf\xbd", 0);
    check(&t, 2, "\xef\xbf\xbd", 0);
    fac_texts_free(&t);
}

static void sst2_in_both_layouts(void **state) {
    (void)state;
    fac_texts t = { 0 };
    put("train.tsv", "sentence of its own\t1\nbad\t0\n");
    put("dev.tsv", "sentence\tlabel\nit 's good \t1\n");
    put("test.tsv", "sentence\tlabel\nbad\t2\n");
    OK(fac_texts_sst2(folder, "train", &t, err));
    assert_int_equal(t.count, 2);
    check(&t, 0, "sentence of its own", 1);
    fac_texts_free(&t);
    OK(fac_texts_sst2(folder, "dev", &t, err));
    assert_int_equal(t.count, 1);
    assert_int_equal(t.classes, 2);
    assert_string_equal(t.class_names[1], "positive");
    check(&t, 0, "it 's good ", 1);
    fac_texts_free(&t);
    fac_error e = { 0 };
    assert_int_equal(fac_texts_sst2(folder, "test", &t, &e), FAC_E_FORMAT);
    says(&e, "test.tsv:2");
}

/* ---- tokens ---- */

static void cut(fac_token_kind kind, bool keep_case, const char *text, const char *want) {
    char got[1000] = "", token[FAC_TOKEN_ROOM];
    for (const unsigned char *p = (const unsigned char *)text;
         fac_token_next(kind, keep_case, &p, token);) {
        strcat(got, token);
        strcat(got, "|");
    }
    assert_string_equal(got, want);
}

static void texts_are_cut_into_tokens(void **state) {
    (void)state;
    cut(FAC_TOKENS_WORD, false, "It's GREAT, isn't it?!", "it|'s|great|,|is|n't|it|?|!|");
    cut(FAC_TOKENS_WORD, false, " it 's great , is n't it ? ", "it|'s|great|,|is|n't|it|?|");
    cut(FAC_TOKENS_WORD, false, "they\xe2\x80\x99re don\xe2\x80\x99T can't wo n't",
        "they|'re|do|n't|ca|n't|wo|n't|");
    cut(FAC_TOKENS_WORD, false, "rock 'n' roll 'tis the 90s", "rock|'|n|'|roll|'|tis|the|90s|");
    cut(FAC_TOKENS_WORD, false,
        "\xc3\x89T\xc3\x89\xc2\xa0"
        "caf"
        "e\xcc\x81 \xce\xa9\xd0\x96",
        "\xc3\xa9t\xc3\xa9|cafe\xcc\x81|\xcf\x89\xd0\xb6|");
    cut(FAC_TOKENS_WORD, true, "No\n\tYes", "No|Yes|");
    cut(FAC_TOKENS_WORD, false, "\xe2\x80\xa6\xf0\x9f\x98\x80x",
        "\xe2\x80\xa6|\xf0\x9f\x98\x80|x|");
    cut(FAC_TOKENS_SPACE, false,
        "  It's  a\xe3\x80\x80"
        "B,c ",
        "it's|a|b,c|");
    cut(FAC_TOKENS_CHAR, false, "A \xc3\x89", "a| |\xc3\xa9|");
    cut(FAC_TOKENS_CHAR, true, "a\xff", "a|\xef\xbf\xbd|");
    cut(FAC_TOKENS_WORD, false, "", "");
    cut(FAC_TOKENS_WORD, false, " \t\n", "");
    char longest[400];
    memset(longest, 'a', sizeof longest);
    strcpy(longest + 300, " b");
    cut(FAC_TOKENS_WORD, false, longest, "|b|");
}

static void characters_are_known(void **state) {
    (void)state;
    assert_true(fac_unicode_is_letter('a') && fac_unicode_is_letter('Z'));
    assert_true(fac_unicode_is_letter(0x4e00) && fac_unicode_is_letter(0xaa));
    assert_false(fac_unicode_is_letter('@') || fac_unicode_is_letter('['));
    assert_false(fac_unicode_is_letter(0x2014) || fac_unicode_is_letter(0x10ffff));
    assert_true(fac_unicode_is_number('9') && fac_unicode_is_number(0xbd) &&
                !fac_unicode_is_number(':'));
    assert_true(fac_unicode_is_mark(0x301) && !fac_unicode_is_mark('a'));
    assert_true(fac_unicode_is_space(0x2003) && fac_unicode_is_space('\t') &&
                !fac_unicode_is_space('_'));
    assert_int_equal(fac_unicode_lower('Q'), 'q');
    assert_int_equal(fac_unicode_lower(0x100), 0x101); /* of pairs beside each other */
    assert_int_equal(fac_unicode_lower(0x101), 0x101);
    assert_int_equal(fac_unicode_lower(0x1e9e), 0xdf);
    assert_int_equal(fac_unicode_lower(0x10400), 0x10428);
    assert_int_equal(fac_unicode_lower(0x10ffff), 0x10ffff);
}

/* ---- vocabularies ---- */

static const char *const lines[] = { "the film the cast", "the end", "a film", "b c <pad>" };
static const int64_t marks[] = { 0, 1, 1, 0 };
static const fac_texts four = { .count = 4, .text = lines, .labels = marks, .classes = 2 };

static void words_are_counted(void **state) {
    (void)state;
    fac_vocab *v;
    OK(fac_vocab_new(&four, &(fac_vocab_opts){ .kind = FAC_TOKENS_SPACE }, &v, err));
    static const char *const want[] = { "<pad>", "<unk>", "the",  "film", "a",
                                        "b",     "c",     "cast", "end" };
    assert_int_equal(fac_vocab_count(v), 9);
    for (int k = 0; k < 9; k++) assert_string_equal(fac_vocab_word(v, k), want[k]);
    assert_null(fac_vocab_word(v, 9));
    assert_null(fac_vocab_word(v, -1));
    assert_int_equal(fac_vocab_find(v, "film"), 3);
    assert_int_equal(fac_vocab_find(v, "movie"), FAC_UNK);
    int32_t ids[3] = { 77, 77, 77 };
    assert_int_equal(fac_vocab_encode(v, "THE movie end", ids, 2), 3);
    assert_true(ids[0] == 2 && ids[1] == FAC_UNK && ids[2] == 77);
    fac_vocab_free(v);
    OK(fac_vocab_new(&four, &(fac_vocab_opts){ .min_count = 2, .size = 1 }, &v, err));
    assert_int_equal(fac_vocab_count(v), 3);
    fac_vocab_free(v);
    fac_error e = { 0 };
    assert_int_equal(fac_vocab_new(&four, &(fac_vocab_opts){ .size = -1 }, &v, &e), FAC_E_ARGUMENT);
}

static void vocabularies_are_saved_and_loaded(void **state) {
    (void)state;
    static const char *const odd[] = { "a\\b\tc\nd\re", "Zz" };
    static const int64_t zeros[] = { 0, 0 };
    const fac_texts t = { .count = 2, .text = odd, .labels = zeros, .classes = 1 };
    fac_vocab *v, *again;
    const char *path = path_of("v.txt");
    OK(fac_vocab_new(&t, &(fac_vocab_opts){ .kind = FAC_TOKENS_CHAR, .keep_case = true }, &v, err));
    OK(fac_vocab_save(v, path, err));
    OK(fac_vocab_load(path, &again, err));
    assert_int_equal(again->kind, FAC_TOKENS_CHAR);
    assert_true(again->keep_case);
    assert_int_equal(fac_vocab_count(again), fac_vocab_count(v));
    for (int64_t k = 0; k < fac_vocab_count(v); k++)
        assert_string_equal(fac_vocab_word(again, k), fac_vocab_word(v, k));
    fac_vocab_free(v);
    fac_vocab_free(again);
    OK(fac_vocab_load(put("v.txt", "facula-vocab 1 word lower\r\n<pad>\r\n<unk>\r\nfilm"), &v,
                      err));
    assert_int_equal(fac_vocab_find(v, "film"), 2);
    fac_vocab_free(v);
    OK(fac_vocab_load(put("v.txt", "facula-vocab 1 word lower\n"), &v, err));
    assert_int_equal(fac_vocab_count(v), 2);
    fac_vocab_free(v);
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "film\n", "first line" },
        { "facula-vocab 1 wordy lower\n", "first line" },
        { "facula-vocab 1 word lower\n<unk>\n", ":2" },
        { "facula-vocab 1 word lower\n<pad>\n<unk>\nx\nx\n", ":5: the word \"x\"" },
        { "facula-vocab 1 word lower\n<pad>\n<unk>\n\nx\n", ":4" },
        { "facula-vocab 1 word lower\n<pad>\n<unk>\na\\q\n", ":4" },
        { "facula-vocab 1 word lower\n<pad>\n<unk>\na\\", ":4" },
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fac_error e = { 0 };
        assert_int_equal(fac_vocab_load(put("v.txt", bad[k].text), &v, &e), FAC_E_FORMAT);
        says(&e, bad[k].says);
    }
}

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

static void batches_are_cut_behind_their_longest(void **state) {
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

/* ---- memory ---- */

/* Everything that reads texts, once. */
static fac_status all(fac_error *e) {
    static const char csv[] = "name,\"te\"\"xt\"\nx,caf\xff\nyy,film\n", glove[] = "film 1 2\n";
    const fac_texts_opts o = { .separator = ',', .header = true, .text = "1", .label = "name" };
    fac_texts t = { 0 }, u = { 0 };
    fac_vocab *v = NULL, *w = NULL;
    fac_dataset d = { 0 };
    fac_tensor *vectors = NULL, *x = NULL, *labels = NULL;
    fac_status status = fac_texts_scan(csv, sizeof csv - 1, "csv", &o, &t, e);
    if (!status)
        status = fac_texts_scan(csv, sizeof csv - 1, "csv",
                                &(fac_texts_opts){ ',', true, "1", "0", &t }, &u, e);
    if (!status) status = fac_vocab_new(&t, NULL, &v, e);
    if (!status) status = fac_vocab_save(v, "/dev/null", e);
    if (!status) status = fac_vocab_parse("facula-vocab 1 char case\n", 25, "vocab", &w, e);
    if (!status)
        status = fac_vectors_parse(v, glove, sizeof glove - 1, "glove", 0, &vectors, NULL, e);
    if (!status) status = fac_dataset_texts(&t, v, 0, &d, e);
    if (!status)
        status = fac_batch(&d, &(fac_batches){ .size = 2, .trim = 8 }, 0, 0, &x, &labels, e);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_tensor_free(vectors);
    fac_dataset_free(&d);
    fac_vocab_free(v);
    fac_vocab_free(w);
    fac_texts_free(&t);
    fac_texts_free(&u);
    return status;
}

static void no_allocation_may_be_lost_in_silence(void **state) {
    (void)state;
    for (long n = 0;; n++) {
        fac_error e = { 0 };
        allocations_left = n;
        fac_status status = all(&e);
        allocations_left = -1;
        if (!status) {
            assert_true(n > 20);
            return;
        }
        if (status != FAC_E_NOMEM)
            fail_msg("allocation %ld lost: status %d, \"%s\"", n, status, e.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tabs_lines_and_their_ends),
        cmocka_unit_test(commas_and_quotes),
        cmocka_unit_test(broken_tables_name_their_line),
        cmocka_unit_test(what_is_no_utf8_is_replaced),
        cmocka_unit_test(sst2_in_both_layouts),
        cmocka_unit_test(texts_are_cut_into_tokens),
        cmocka_unit_test(characters_are_known),
        cmocka_unit_test(words_are_counted),
        cmocka_unit_test(vocabularies_are_saved_and_loaded),
        cmocka_unit_test(vectors_of_words_are_found),
        cmocka_unit_test(texts_become_tokens),
        cmocka_unit_test(batches_are_cut_behind_their_longest),
        cmocka_unit_test(pairs_of_arrays),
        cmocka_unit_test(no_allocation_may_be_lost_in_silence),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
