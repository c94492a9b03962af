/* Dropout of language models: of attention's probabilities, too, and in training alone. */
#include "facula/edit.h"
#include "facula/ops.h"
#include "lm_train_check.h"

static fac_lm *thin(const char *shape, double dropout) {
    fac_lm_shape s = {
        .context = CONTEXT, .vocabulary = VOCABULARY, .seed = seed, .dropout = dropout
    };
    fac_lm *m;
    OK(fac_lm_shape_parse(shape, &s, &err));
    OK(fac_lm_new(&s, cpu, &m, &err));
    return m;
}

static int count_of(const char *text, const char *word) {
    int n = 0;
    for (const char *s = text; (s = strstr(s, word)); s += strlen(word)) n++;
    return n;
}

/* Of the embeddings, and in each layer of the probabilities and of what is added to the stream. */
static void attention_is_dropped_in_training_alone(void **state) {
    (void)state;
    static const char *const shapes[] = { "gpt:2x2x16", "llama:2x2x16" };
    static const int32_t ids[] = { 1, 4, 2, 0, 3, 12 };
    for (int k = 0; k < 2; k++) {
        fac_lm *m = thin(shapes[k], 0.4), *full = thin(shapes[k], 0);
        fac_graph *g;
        OK(fac_lm_graph(m, 0, &g, &err));
        char *text;
        size_t bytes;
        FILE *to = open_memstream(&text, &bytes);
        OK(fac_graph_write(g, to, &err));
        fclose(to);
        assert_int_equal(count_of(text, "dropout("), 1 + 3 * 2);
        free(text);
        fac_graph_free(g);
        fac_tensor *a = logits(m), *b = logits(full);
        assert_true(distance(a, b) < 1e-5);
        fac_tensor_free(a);
        fac_tensor_free(b);
        fac_session *s, *t;
        OK(fac_session_new(m, &s, &err));
        OK(fac_session_new(full, &t, &err));
        OK(fac_session_feed(s, 0, ids, 6, &err));
        OK(fac_session_feed(t, 0, ids, 6, &err));
        OK(fac_session_step(s, &err));
        OK(fac_session_step(t, &err));
        for (int c = 0; c < VOCABULARY; c++)
            assert_true(fac_session_logits(s, 0)[c] == fac_session_logits(t, 0)[c]);
        fac_session_free(s);
        fac_session_free(t);
        fac_perplexity of[2];
        OK(fac_lm_perplexity(m, ids, 6, 4, &of[0], &err));
        OK(fac_lm_perplexity(full, ids, 6, 4, &of[1], &err));
        assert_true(fabs(of[0].nll - of[1].nll) < 1e-5);
        fac_lm_free(m);
        fac_lm_free(full);
    }
}

/* Weights ten times as large, so that little of the loss is rounding. */
static void sharpen(fac_graph *g) {
    for (int k = 0; k < fac_graph_params(g); k++) {
        fac_value *v = fac_graph_param(g, k);
        const fac_dims d = fac_value_type(v).dims;
        void *data;
        if (!fac_value_trains(v) || d.n < 2) continue;
        OK(fac_tensor_begin_write(fac_value_tensor(v), &data, &err));
        for (int64_t i = 0; i < fac_dims_count(&d); i++) ((float *)data)[i] *= 10;
    }
}

/* The loss with weights w + step along, and what the same counter drops. */
static double loss_at(fac_program *p, fac_graph *g, fac_tensor *w, const float *from,
                      const double *along, double step, fac_tensor *out[2]) {
    const fac_type type = fac_tensor_type(w);
    fac_tensor *ids = some_ids(), *counter = fac_value_tensor(fac_graph_find(g, "dropout.counter"));
    double loss;
    void *data;
    OK(fac_tensor_write(counter, &(int64_t){ 5 }, sizeof(int64_t), &err));
    OK(fac_tensor_begin_write(w, &data, &err));
    for (int64_t i = 0; i < fac_dims_count(&type.dims); i++)
        ((float *)data)[i] = (float)((double)from[i] + step * along[i]);
    OK(fac_program_run(p, &ids, out, &err));
    OK(fac_tensor_read(out[0], &loss, sizeof loss, &err));
    fac_tensor_free(ids);
    return loss;
}

/* A graph of the loss and its gradient by one weight. */
static fac_program *with_gradient(fac_lm *m, const char *weight, fac_graph **g) {
    fac_value *d;
    fac_program *p;
    OK(fac_lm_graph(m, 0, g, &err));
    fac_value *y = fac_graph_output(*g, 0), *w = fac_graph_find(*g, weight);
    fac_value *square = fac_cast(fac_mul(y, y), FAC_F64);
    fac_value *loss = fac_sum(square, (fac_dims){ 0 }, false);
    fac_grad(loss, 1, &w, &d);
    fac_output(*g, "loss", loss);
    fac_output(*g, "gradient", d);
    fac_graph *few;
    OK(fac_graph_output_removed(*g, "logits", &few, &err));
    fac_graph_free(*g);
    *g = few;
    sharpen(few);
    OK(fac_program_new(few, cpu, NULL, &p, &err));
    return p;
}

/* Along its gradient the loss rises by the gradient's length, by central differences. */
static void its_gradient_is_that_of_what_is_dropped(void **state) {
    (void)state;
    static const char *const of[][2] = { { "gpt:1x2x16", "blk.0.attn_qkv.weight" },
                                         { "llama:1x2x16", "blk.0.attn_k.weight" } };
    for (int k = 0; k < 2; k++) {
        fac_lm *m = thin(of[k][0], 0.4);
        fac_graph *g;
        fac_program *p = with_gradient(m, of[k][1], &g);
        fac_tensor *w = fac_value_tensor(fac_graph_find(g, of[k][1])), *out[2] = { NULL };
        const fac_type type = fac_tensor_type(w);
        const int64_t n = fac_dims_count(&type.dims);
        float *from = fac_alloc((size_t)n, sizeof *from);
        double *along = fac_alloc((size_t)n, sizeof *along), length = 0;
        memcpy(from, fac_tensor_data(w), (size_t)n * sizeof *from);
        loss_at(p, g, w, from, along, 0, out);
        const float *d = fac_tensor_data(out[1]);
        for (int64_t i = 0; i < n; i++) length += (double)d[i] * (double)d[i];
        length = sqrt(length);
        for (int64_t i = 0; i < n; i++) along[i] = (double)d[i] / length;
        const double h = 1e-3, up = loss_at(p, g, w, from, along, h, out),
                     down = loss_at(p, g, w, from, along, -h, out), rise = (up - down) / (2 * h);
        if (!(length > 0.1 && fabs(rise - length) < 0.01 * length))
            fail_msg("%s: the loss rises by %g, the gradient says %g", of[k][0], rise, length);
        fac_tensor_free(out[0]);
        fac_tensor_free(out[1]);
        fac_release(from);
        fac_release(along);
        fac_program_free(p);
        fac_graph_free(g);
        fac_lm_free(m);
    }
}

int main(void) {
    seed = fresh_seed() & 0xFFFFFFFF;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_dropped_in_training_alone),
        cmocka_unit_test(its_gradient_is_that_of_what_is_dropped),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fac_device_free(cpu);
    return failed;
}
