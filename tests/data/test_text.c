/* Texts: tables, tokens, vocabularies, vectors, data sets of tokens, npy pairs; broken files; lost
 * allocations. */
#include "text_check.h"

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
        cmocka_unit_test(no_allocation_may_be_lost_in_silence),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
