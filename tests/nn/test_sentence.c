/* Networks that read sentences: their line of text, and that padding says nothing. */
#include "facula/data/data.h"
#include "facula/nn/sentence.h"
#include "nn_check.h"

static void a_text_comes_back(void **state) {
    static const struct {
        const char *text, *again;
    } good[] = { { "", "64,3-4-5,0.5" },
                 { "100", "100,3-4-5,0.5" },
                 { "7,2", "7,2,0.5" },
                 { "512,1-16-3,0", "512,1-16-3,0" },
                 { "1,1-2-3-4-5-6-7-8,0.95", "1,1-2-3-4-5-6-7-8,0.95" } };
    (void)state;
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        fac_sentence_net s;
        char text[64], twice[64];
        OK(fac_sentence_parse(good[k].text, &s, &err));
        fac_sentence_text(&s, text, sizeof text);
        assert_string_equal(text, good[k].again);
        OK(fac_sentence_parse(text, &s, &err));
        fac_sentence_text(&s, twice, sizeof twice);
        assert_string_equal(twice, text);
    }
}

static void what_is_wrong_is_named(void **state) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "0", "filters" },       { "513", "filters" },      { "-1", "filters" },
        { "x", "filters" },       { "4.5", "filters" },      { ",3", "filters" },
        { "4,", "comma" },        { "4,0", "widths" },       { "4,17", "widths" },
        { "4,3-", "widths" },     { "4,3--4", "widths" },    { "4,3x", "widths" },
        { "4,3-3", "twice" },     { "4,3,1", "dropout" },    { "4,3,-.1", "dropout" },
        { "4,3,nan", "dropout" }, { "4,3,.5,1", "network" }, { "4,1-2-3-4-5-6-7-8-9", "at most 8" }
    };
    char line[200];
    fac_sentence_net s = { .filters = 77 };
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_int_equal(fac_sentence_parse(bad[k].text, &s, &err), FAC_E_ARGUMENT);
        if (!strstr(err.text, bad[k].says)) fail_msg("%s: %s", bad[k].text, err.text);
    }
    memset(line, '1', sizeof line - 1);
    line[sizeof line - 1] = 0;
    assert_int_equal(fac_sentence_parse(line, &s, &err), FAC_E_ARGUMENT);
    assert_int_equal(s.filters, 77);
    assert_int_equal(fac_sentence_parse("3", &s, NULL), FAC_OK);
    fac_sentence_text(&s, line, 4); /* cut, within its room */
    assert_string_equal(line, "3,3");
}

enum { WORDS = 20, CLASSES = 3, LONGEST = 12 };

/* length: places of an LSTM, whose sizes are fixed. */
static fac_program *new_net(bool lstm, const char *text, int64_t length, fac_device *device) {
    fac_graph *g = fac_graph_new();
    fac_program *p;
    fac_sentence_net s;
    OK(fac_sentence_parse(text, &s, &err));
    s.dim = 5;
    fac_nn_seed(g, 3);
    fac_value *x = fac_input(g, "tokens", FAC_I64,
                             fac_shape(fac_symbol(g, "N"), lstm ? length : fac_symbol(g, "L")));
    fac_output(g, "logits",
               lstm ? fac_nn_sentence_lstm(x, WORDS, &s, CLASSES)
                    : fac_nn_sentence_cnn(x, WORDS, &s, CLASSES));
    OK(fac_graph_check(g, &err));
    fac_graph *quiet = fac_graph_inference(g);
    OK(fac_program_new(quiet, device, NULL, &p, &err));
    fac_graph_free(quiet);
    fac_graph_free(g);
    return p;
}

/* Logits of one sentence of n words in `length` places. */
static void answer(fac_program *p, int n, int length, double y[CLASSES]) {
    int64_t ids[4 * LONGEST] = { FAC_PAD };
    float logits[CLASSES];
    fac_tensor *x, *out = NULL;
    for (int k = 0; k < n; k++) ids[k] = 2 + 7 * k % (WORDS - 2);
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(1, length), &x, &err));
    OK(fac_tensor_write(x, ids, (size_t)length * sizeof *ids, &err));
    OK(fac_program_run(p, &x, &out, &err));
    OK(fac_tensor_read(out, logits, sizeof logits, &err));
    for (int k = 0; k < CLASSES; k++) y[k] = (double)logits[k];
    fac_tensor_free(out);
    fac_tensor_free(x);
}

static void padding_says_nothing(void **state) {
    static const char *const nets[] = { "6", "3,1", "4,16-2" };
    fac_device *device;
    double want[CLASSES], y[CLASSES], other[CLASSES];
    (void)state;
    OK(fac_device_open("cpu", NULL, &device, &err));
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        fac_program *p = new_net(false, nets[k], 0, device);
        for (int n = 1; n <= LONGEST; n++) {
            answer(p, n, n, want);
            answer(p, n, n + 1 + 5 * n % 17, y);
            for (int c = 0; c < CLASSES; c++) assert_true(fabs(y[c] - want[c]) < 1e-5);
        }
        answer(p, 0, 4, y);
        answer(p, LONGEST - 1, LONGEST, other);
        assert_true(fabs(other[0] - want[0]) > 1e-7); /* words do */
        fac_program_free(p);
    }
    fac_device_free(device);
}

static void an_lstm_ends_with_its_sentence(void **state) {
    fac_device *device;
    double y[CLASSES], wide[CLASSES], other[CLASSES];
    (void)state;
    OK(fac_device_open("cpu", NULL, &device, &err));
    fac_program *p = new_net(true, "4", LONGEST, device);
    fac_program *q = new_net(true, "4", 2 * LONGEST, device); /* of the same weights */
    for (int n = 1; n <= LONGEST; n++) {
        answer(p, n, LONGEST, y);
        answer(q, n, 2 * LONGEST, wide);
        for (int c = 0; c < CLASSES; c++) assert_true(fabs(y[c] - wide[c]) < 1e-6);
    }
    answer(p, LONGEST - 1, LONGEST, other);
    assert_true(isfinite(y[0]) && fabs(y[0] - other[0]) > 1e-7); /* words count */
    fac_program_free(q);
    fac_program_free(p);
    fac_device_free(device);
}

static void a_struct_beyond_its_bounds_is_refused(void **state) {
    static const fac_sentence_net bad[] = { { .n = FAC_SENTENCE_WIDTHS + 1 },
                                            { .n = 1, .width = { 0 } },
                                            { .n = 1, .width = { FAC_SENTENCE_WIDEST + 1 } },
                                            { .filters = -1 },
                                            { .filters = FAC_SENTENCE_FILTERS + 1 },
                                            { .dim = -1 },
                                            { .dropout = 1.5 } };
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        for (int lstm = 0; lstm < 2; lstm++) {
            fac_graph *g = fac_graph_new();
            fac_value *tokens = fac_input(g, "tokens", FAC_I64, fac_shape(2, 3));
            fac_output(g, "y",
                       lstm ? fac_nn_sentence_lstm(tokens, 10, &bad[k], 2)
                            : fac_nn_sentence_cnn(tokens, 10, &bad[k], 2));
            assert_int_equal(fac_graph_check(g, &err), FAC_E_ARGUMENT);
            assert_non_null(strstr(err.text, "sentences"));
            fac_graph_free(g);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_comes_back),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(padding_says_nothing),
        cmocka_unit_test(an_lstm_ends_with_its_sentence),
        cmocka_unit_test(a_struct_beyond_its_bounds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
