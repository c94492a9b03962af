/* facula run: a model that takes waveforms hears a file, window by window. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "facula/sound.h"
#include "json.h"
#include "run_sound.h"

enum { TOP = 100 };

bool is_sound(const char *path) {
    static const char *const ends[] = { ".wav", ".flac", ".ogg",  ".oga", ".opus",
                                        ".mp3", ".aif",  ".aiff", ".au",  NULL };
    const char *dot = strrchr(path, '.');
    for (const char *const *e = ends; dot && *e; e++)
        if (!strcasecmp(dot, *e)) return true;
    return false;
}

/* One file that is heard. */
typedef struct hearing {
    const float *x;
    int64_t size, window; /* samples; of a window */
    int rate;
    fac_dims dims; /* of the input */
} hearing;

/* The model says at which rate it hears, and how much at once; an open length is the whole file. */
static int understand(const sound_run *r, hearing *h) {
    const fac_graph *g = r->m->graph;
    const char *note = fac_graph_note(g, FAC_NOTE_RATE);
    const long rate = note ? strtol(note, NULL, 10) : 0;
    if (fac_graph_inputs(g) != 1)
        return fail_text("a sound is for a model with one input, this one has %d",
                         fac_graph_inputs(g));
    const fac_type t = fac_value_type(fac_graph_input(g, 0));
    if (rate < 1 || rate > 10000000)
        return fail_text(
            "the model does not say at which rate it hears: `facula edit --meta " FAC_NOTE_RATE
            "=16000` does");
    h->rate = (int)rate;
    h->dims = t.dims;
    bool wave = t.dtype == FAC_F32 && t.dims.n >= 1;
    for (int k = 0; k + 1 < t.dims.n; k++) {
        wave &= t.dims.d[k] < 0 || t.dims.d[k] == 1;
        h->dims.d[k] = 1;
    }
    if (!wave) return fail_text("the model takes no waveform: its input must be f32 [N, samples]");
    h->window = t.dims.d[t.dims.n - 1];
    return EXIT_OK;
}

/* Where windows begin: the last one ends with the file. */
static int64_t windows_of(const hearing *h) {
    const int64_t hop = h->window / 2 > 0 ? h->window / 2 : 1;
    return h->size <= h->window ? 1 : 1 + (h->size - h->window + hop - 1) / hop;
}
static int64_t begin_of(const hearing *h, int64_t k) {
    const int64_t hop = h->window / 2 > 0 ? h->window / 2 : 1, last = h->size - h->window;
    if (h->size <= h->window) return 0;
    return k * hop < last ? k * hop : last;
}

/* What is short is followed by silence. */
static fac_status hear(const sound_run *r, const hearing *h, int64_t from, fac_tensor **scores,
                       fac_error *err) {
    fac_tensor *x = NULL;
    float *wave = calloc((size_t)h->window + 1, sizeof *wave);
    if (!wave) return out_of_memory(err);
    const int64_t n = h->size - from < h->window ? h->size - from : h->window;
    memcpy(wave, h->x + from, (size_t)n * sizeof *wave);
    fac_dims dims = h->dims;
    dims.d[dims.n - 1] = h->window;
    fac_status status = fac_tensor_new(NULL, FAC_F32, dims, &x, err);
    if (!status) status = fac_tensor_write(x, wave, (size_t)h->window * sizeof *wave, err);
    const int nout = fac_graph_outputs(r->m->graph);
    fac_tensor **out = status ? NULL : calloc((size_t)nout, sizeof *out);
    if (!status && !out) status = out_of_memory(err);
    if (!status) status = fac_program_run(r->program, &x, out, err);
    if (!status) status = fac_device_sync(r->device, err);
    if (!status) {
        *scores = out[0];
        out[0] = NULL;
    }
    for (int k = 0; out && k < nout; k++) fac_tensor_free(out[k]);
    free(out);
    free(wave);
    fac_tensor_free(x);
    return status;
}

static cJSON *row_json(double from, double to, const fac_class *top, int n) {
    cJSON *row = cJSON_CreateObject(), *all;
    char name[64];
    json_number(row, "from", from, 7);
    json_number(row, "to", to, 7);
    all = cJSON_AddArrayToObject(row, "top");
    for (int k = 0; k < n; k++) {
        cJSON *c = cJSON_CreateObject();
        cJSON_AddNumberToObject(c, "index", (double)top[k].index);
        cJSON_AddStringToObject(c, "label", label_of(&top[k], name, sizeof name));
        json_number(c, "p", top[k].probability, 7);
        cJSON_AddItemToArray(all, c);
    }
    return row;
}

static void print_row(double from, double to, const fac_class *top, int n) {
    char name[64];
    printf("%8.2f - %6.2f s ", from, to);
    for (int k = 0; k < n; k++)
        printf("%s%6.2f %% %s", k ? "," : "", 100 * top[k].probability,
               label_of(&top[k], name, sizeof name));
    printf("\n");
}

static int one_window(const sound_run *r, const hearing *h, int64_t k, cJSON *rows) {
    fac_error err = { 0 };
    fac_tensor *scores = NULL;
    fac_class top[TOP];
    const int64_t from = begin_of(h, k),
                  end = from + h->window < h->size ? from + h->window : h->size;
    int found = 0;
    if (hear(r, h, from, &scores, &err)) return fail(&err);
    const fac_type t = fac_tensor_type(scores);
    int code = k ? EXIT_OK : labels_fit(r->names, fac_dims_count(&t.dims));
    if (!code && fac_top(scores, 0, r->names->names, r->top, top, &found, &err)) code = fail(&err);
    const double a = (double)from / h->rate, b = (double)end / h->rate;
    if (!code && rows) cJSON_AddItemToArray(rows, row_json(a, b, top, found));
    if (!code && !rows) print_row(a, b, top, found);
    fac_tensor_free(scores);
    return code;
}

static int one_file(const sound_run *r, const char *path, cJSON *files) {
    fac_error err = { 0 };
    fac_sound s = { 0 };
    fac_tensor *mono = NULL;
    hearing h = { 0 };
    int code = understand(r, &h);
    if (code) return code;
    if (fac_sound_load(path, &s, &err) || fac_sound_mono(&s, h.rate, &mono, &err))
        code = fail(&err);
    cJSON *file = files ? cJSON_CreateObject() : NULL, *rows = NULL;
    if (file) {
        cJSON_AddStringToObject(file, "sound", path);
        cJSON_AddNumberToObject(file, "rate", h.rate);
        rows = cJSON_AddArrayToObject(file, "windows");
        cJSON_AddItemToArray(files, file);
    } else if (!code) {
        printf("%s: %.2f s, %d Hz, %d channel%s\n", path, (double)s.frames / s.rate, s.rate,
               s.channels, s.channels > 1 ? "s" : "");
    }
    if (!code) {
        h.x = fac_tensor_data(mono);
        h.size = fac_tensor_type(mono).dims.d[0];
        if (h.window < 0) h.window = h.size;
    }
    if (!code && !h.size) code = fail_text("%s: a sound without samples", path);
    for (int64_t k = 0; !code && k < windows_of(&h); k++) code = one_window(r, &h, k, rows);
    fac_tensor_free(mono);
    fac_sound_free(&s);
    return code;
}

int run_sounds(const sound_run *r, list files) {
    cJSON *root = r->json ? cJSON_CreateObject() : NULL,
          *all = root ? cJSON_AddArrayToObject(root, "sounds") : NULL;
    int code = labels_find(r->m, r->labels, r->names);
    for (int i = 0; i < files.n && !code; i++) code = one_file(r, files.at[i], all);
    if (root && !code) return json_print(root);
    cJSON_Delete(root);
    return code;
}
