/* Models that hear: their inputs, and one window. */
#include <stdlib.h>
#include <string.h>
#include "facula/data/sound.h"
#include "hear.h"

/* Models of others, known by the names of their inputs, that say nothing of themselves. */
static const struct known {
    const char *wave, *state;
    int rate;
    int64_t window, hop;
    const char *only;
} known[] = {
    { "input", "state", 16000, 576, 512, "speech" }, /* silero-vad 5 and 6 */
    { "input", "h", 16000, 576, 512, "speech" },     /* ... silero_vad_16k_sequence.onnx */
};
enum { KNOWN = sizeof known / sizeof *known };

static const char *input_name(const fac_graph *g, int i) {
    return fac_value_name(fac_graph_input(g, i));
}

static int find_input(const fac_graph *g, const char *name) {
    for (int i = 0; i < fac_graph_inputs(g); i++)
        if (!strcmp(input_name(g, i), name)) return i;
    return -1;
}

static const struct known *find_known(const fac_graph *g) {
    for (int k = 0; k < KNOWN; k++)
        if (find_input(g, known[k].wave) >= 0 && find_input(g, known[k].state) >= 0)
            return &known[k];
    return NULL;
}

static int64_t number_in(const fac_graph *g, const char *key, int64_t usual) {
    const char *note = fac_graph_note(g, key);
    const long long x = note ? strtoll(note, NULL, 10) : 0;
    return x > 0 && x <= 1 << 28 ? x : usual;
}

/* ---- inputs ---- */

/* Dims with one of them open or above 1: how long it is, -1 open; 0: no waveform. */
static int64_t wave_length(const fac_type *t) {
    int64_t length = 1;
    int open = 0;
    if (t->dtype != FAC_F32 || t->dims.n < 1) return 0;
    for (int k = 0; k < t->dims.n; k++) {
        if (t->dims.d[k] < 0) open++;
        if (t->dims.d[k] > 1 && length > 1) return 0;
        if (t->dims.d[k] > 1) length = t->dims.d[k];
    }
    if (length > 1) return length;
    return open ? -1 : 0;
}

/* The last open dim takes the samples unless a dim has a size; other open ones are 1. */
static fac_dims dims_for(const fac_type *t, int64_t n) {
    fac_dims d = t->dims;
    int at = -1;
    for (int k = 0; k < d.n; k++)
        if (d.d[k] > 1) at = k;
    for (int k = d.n - 1; k >= 0 && at < 0; k--)
        if (d.d[k] < 0) at = k;
    for (int k = 0; k < d.n; k++)
        if (d.d[k] < 0) d.d[k] = 1;
    if (at >= 0) d.d[at] = n;
    return d;
}

static fac_dims closed(const fac_type *t) {
    fac_dims d = t->dims;
    for (int k = 0; k < d.n; k++)
        if (d.d[k] < 0) d.d[k] = 1;
    return d;
}

/* An integer that only the rate can be. */
static bool takes_rate(const fac_type *t) {
    const fac_dims d = closed(t);
    return (t->dtype == FAC_I64 || t->dtype == FAC_I32) && fac_dims_count(&d) == 1;
}

static fac_status rate_tensor(const hearer *h, const fac_type *t, fac_tensor **out,
                              fac_error *err) {
    const int64_t wide = h->rate;
    const int32_t narrow = h->rate;
    const bool is_wide = t->dtype == FAC_I64;
    const void *from = is_wide ? (const void *)&wide : (const void *)&narrow;
    const size_t bytes = is_wide ? sizeof wide : sizeof narrow;
    const fac_status s = fac_tensor_new(NULL, t->dtype, closed(t), out, err);
    return s ? s : fac_tensor_write(*out, from, bytes, err);
}

/* Which input is the waveform: of several floats the one that a table names, else the first. */
static int find_wave(const fac_graph *g, const struct known *k) {
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const fac_type t = fac_value_type(fac_graph_input(g, i));
        if (k ? !strcmp(input_name(g, i), k->wave) : wave_length(&t) != 0) return i;
    }
    return -1;
}

/* Inputs that are neither the waveform nor the rate carry the outputs after the first, in order. */
static int find_states(hearer *h) {
    const fac_graph *g = h->m->graph;
    int next = 1;
    for (int i = 0; i < h->ninputs; i++) {
        const fac_type t = fac_value_type(fac_graph_input(g, i));
        h->from[i] = -1;
        if (i == h->wave || takes_rate(&t)) continue;
        if (next >= h->noutputs)
            return fail_text(
                "input %s is neither a waveform nor a rate, and no output carries it on",
                input_name(g, i));
        h->from[i] = next++;
    }
    return EXIT_OK;
}

int hearer_open(hearer *h, const model *m, fac_device *device, fac_program *program) {
    const fac_graph *g = m->graph;
    const struct known *k = find_known(g);
    fac_error err = { 0 };
    *h = (hearer){ .m = m,
                   .device = device,
                   .program = program,
                   .ninputs = fac_graph_inputs(g),
                   .noutputs = fac_graph_outputs(g),
                   .only = k ? k->only : NULL };
    if (h->ninputs > HEAR_STATES || h->noutputs > HEAR_STATES || h->noutputs < 1)
        return fail_text("a model that takes sound has up to %d inputs and outputs", HEAR_STATES);
    h->wave = find_wave(g, k);
    const fac_type t = h->wave < 0 ? (fac_type){ 0 } : fac_value_type(fac_graph_input(g, h->wave));
    const int64_t length = h->wave < 0 ? 0 : wave_length(&t);
    if (!length)
        return fail_text("the model takes no waveform: its input must be f32 [N, samples]");
    h->rate = (int)number_in(g, FAC_NOTE_RATE, k ? k->rate : 0);
    if (h->rate < 1 || h->rate > 10000000)
        return fail_text(
            "the model does not state the rate of its sound: `facula edit --meta " FAC_NOTE_RATE
            "=16000` does");
    h->window = number_in(g, FAC_NOTE_WINDOW, k ? k->window : -1);
    if (length > 0) h->window = length;
    h->hop = number_in(g, FAC_NOTE_HOP, k ? k->hop : 0);
    const int code = find_states(h);
    if (!code && hearer_carries(h) && !h->hop) h->hop = h->window;
    if (!code && hearer_carries(h) && h->window < h->hop)
        return fail_text("windows of %lld samples every %lld would miss some", (long long)h->window,
                         (long long)h->hop);
    return !code && hearer_reset(h, &err) ? fail(&err) : code;
}

bool hearer_carries(const hearer *h) {
    for (int i = 0; i < h->ninputs; i++)
        if (h->from[i] >= 0) return true;
    return false;
}

int64_t hearer_before(const hearer *h) { return hearer_carries(h) ? h->window - h->hop : 0; }

fac_status hearer_reset(hearer *h, fac_error *err) {
    fac_status s = FAC_OK;
    for (int i = 0; i < h->ninputs && !s; i++) {
        const fac_type t = fac_value_type(fac_graph_input(h->m->graph, i));
        fac_tensor_free(h->in[i]);
        h->in[i] = NULL;
        if (h->from[i] >= 0)
            s = fac_tensor_new(NULL, t.dtype, closed(&t), &h->in[i], err);
        else if (i != h->wave)
            s = rate_tensor(h, &t, &h->in[i], err);
    }
    return s;
}

void hearer_free(hearer *h) {
    for (int i = 0; i < HEAR_STATES; i++) fac_tensor_free(h->in[i]);
    free(h->p);
    *h = (hearer){ 0 };
}

/* ---- one window ---- */

static fac_status no_scores(const hearer *h, fac_error *err) {
    snprintf(err->text, sizeof err->text, "the first output, %s, is not a row of scores",
             fac_graph_output_name(h->m->graph, 0));
    return err->status = FAC_E_SHAPE;
}

/* A single score is a probability itself. */
static fac_status take_one(hearer *h, const fac_tensor *scores, fac_error *err) {
    fac_tensor *real = NULL;
    fac_status s = fac_tensor_convert(scores, FAC_F64, &real, err);
    if (!s) s = fac_tensor_read(real, h->p, sizeof *h->p, err);
    fac_tensor_free(real);
    return s;
}

static fac_status take_row(hearer *h, const fac_tensor *scores, fac_error *err) {
    int found = 0;
    fac_class *all = calloc((size_t)h->classes, sizeof *all);
    if (!all) return out_of_memory(err);
    const fac_status s = fac_top(scores, 0, NULL, (int)h->classes, all, &found, err);
    for (int k = 0; k < found && !s; k++) h->p[all[k].index] = all[k].probability;
    free(all);
    return s;
}

/* Probabilities in the order of the classes. */
static fac_status take_scores(hearer *h, const fac_tensor *scores, fac_error *err) {
    enum { MOST = 1 << 24 };
    const fac_type t = fac_tensor_type(scores);
    const int64_t n = fac_dims_count(&t.dims);
    int wide = 0;
    for (int k = 0; k < t.dims.n; k++) wide += t.dims.d[k] > 1;
    if (wide > 1 || n < 1 || n > MOST) return no_scores(h, err);
    double *p = realloc(h->p, (size_t)n * sizeof *p);
    if (!p) return out_of_memory(err);
    h->p = p;
    h->classes = n;
    return n == 1 ? take_one(h, scores, err) : take_row(h, scores, err);
}

static fac_status write_wave(hearer *h, const float *wave, int64_t n, fac_error *err) {
    const fac_type t = fac_value_type(fac_graph_input(h->m->graph, h->wave));
    fac_tensor **x = &h->in[h->wave];
    const fac_dims dims = dims_for(&t, n);
    fac_type has = *x ? fac_tensor_type(*x) : (fac_type){ 0 };
    if (*x && fac_dims_count(&has.dims) != n) {
        fac_tensor_free(*x);
        *x = NULL;
    }
    const fac_status s = *x ? FAC_OK : fac_tensor_new(NULL, FAC_F32, dims, x, err);
    return s ? s : fac_tensor_write(*x, wave, (size_t)n * sizeof *wave, err);
}

fac_status hearer_hear(hearer *h, const float *wave, int64_t n, fac_error *err) {
    fac_tensor *out[HEAR_STATES] = { NULL };
    fac_status s = write_wave(h, wave, n, err);
    if (!s) s = fac_program_run(h->program, h->in, out, err);
    if (!s) s = fac_device_sync(h->device, err);
    if (!s) s = take_scores(h, out[0], err);
    for (int i = 0; i < h->ninputs && !s; i++) {
        if (h->from[i] < 0) continue;
        fac_tensor_free(h->in[i]);
        h->in[i] = out[h->from[i]];
        out[h->from[i]] = NULL;
    }
    for (int k = 0; k < h->noutputs; k++) fac_tensor_free(out[k]);
    return s;
}

/* ---- classes ---- */

int best_of(const double *p, int64_t classes, const labels *names, int most, fac_class *top) {
    int n = 0;
    for (int64_t c = 0; c < classes; c++) {
        int k = n < most ? n++ : most;
        if (k == most && !(p[c] > top[most - 1].probability)) continue;
        if (k == most) k--;
        for (; k > 0 && p[c] > top[k - 1].probability; k--) top[k] = top[k - 1];
        top[k] = (fac_class){ c, p[c], p[c], fac_labels_get(names->names, c) };
    }
    return n;
}

const char *heard_as(const hearer *h, const fac_class *c, char *to, size_t size) {
    return h->only && h->classes == 1 && !c->name ? h->only : label_of(c, to, size);
}
