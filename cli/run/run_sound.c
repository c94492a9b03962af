/* facula run and predict: a model that takes waveforms hears files, window by window. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "facula/data/sound.h"
#include "json.h"
#include "analyze/kind.h"
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

bool means_sounds(const char *path) {
    const bool folder = is_folder(path) && !kind_is_album(path);
    return folder || is_sound(path) || ends_with(path, ".csv") || ends_with(path, ".tsv");
}

/* One sound that is heard, from `start` seconds of its file on. */
typedef struct hearing {
    const sound_run *r;
    hearer *h;
    const char *path;
    const float *x;
    int64_t size, window, hop; /* samples */
    double start;
    float *wave;  /* one window */
    double *mean; /* of the probabilities of all windows */
    int64_t windows;
    cJSON *rows;
} hearing;

/* Where windows begin: those of a model with states follow each other; else the last one ends with
 * the sound. */
static int64_t count_windows(const hearing *g) {
    if (hearer_carries(g->h)) return (g->size + g->hop - 1) / g->hop;
    return g->size <= g->window ? 1 : 1 + (g->size - g->window + g->hop - 1) / g->hop;
}
static int64_t begin_of(const hearing *g, int64_t k) {
    const int64_t last = g->size - g->window;
    if (hearer_carries(g->h)) return k * g->hop - hearer_before(g->h);
    if (g->size <= g->window) return 0;
    return k * g->hop < last ? k * g->hop : last;
}

/* What is short is followed by silence; so is what comes before the beginning. */
static void fill(const hearing *g, int64_t from) {
    for (int64_t i = 0; i < g->window; i++) {
        const int64_t at = from + i;
        g->wave[i] = at >= 0 && at < g->size ? g->x[at] : 0;
    }
}

/* ---- what is said ---- */

static cJSON *classes_json(const hearing *g, const fac_class *top, int n) {
    cJSON *all = cJSON_CreateArray();
    char name[64];
    for (int k = 0; k < n; k++) {
        cJSON *c = cJSON_CreateObject();
        cJSON_AddNumberToObject(c, "index", (double)top[k].index);
        cJSON_AddStringToObject(c, "label", heard_as(g->h, &top[k], name, sizeof name));
        json_number(c, "p", top[k].probability, 7);
        cJSON_AddItemToArray(all, c);
    }
    return all;
}

static void print_classes(const hearing *g, const fac_class *top, int n) {
    char name[64];
    for (int k = 0; k < n; k++)
        printf("%s%6.2f %% %s", k ? "," : "", 100 * top[k].probability,
               heard_as(g->h, &top[k], name, sizeof name));
    printf("\n");
}

static void tell_window(const hearing *g, double from, double to, const fac_class *top, int n) {
    if (!g->r->json) {
        if (g->r->averaged) return;
        printf("%8.2f - %6.2f s ", from, to);
        print_classes(g, top, n);
        return;
    }
    cJSON *row = cJSON_CreateObject();
    json_number(row, "from", from, 7);
    json_number(row, "to", to, 7);
    cJSON_AddItemToObject(row, "top", classes_json(g, top, n));
    cJSON_AddItemToArray(g->rows, row);
}

/* All windows together; of a model with states the average says little. */
static void tell_all(const hearing *g, cJSON *file) {
    fac_class top[TOP];
    const int n = best_of(g->mean, g->h->classes, g->r->names, g->r->top, top);
    if (file) cJSON_AddItemToObject(file, "average", classes_json(g, top, n));
    if (file || (!g->r->averaged && g->windows < 2) || hearer_carries(g->h)) return;
    if (g->r->averaged)
        printf("%s ", g->path);
    else
        printf("%20s ", "average");
    print_classes(g, top, n);
}

/* ---- windows ---- */

static int add(hearing *g) {
    const size_t n = (size_t)g->h->classes;
    if (!g->mean) g->mean = calloc(n, sizeof *g->mean);
    if (!g->mean) return fail_text("out of memory");
    for (size_t c = 0; c < n; c++) g->mean[c] += g->h->p[c];
    return EXIT_OK;
}

static int one_window(hearing *g, int64_t k) {
    fac_error err = { 0 };
    fac_class top[TOP];
    const int64_t from = begin_of(g, k), first = from < 0 ? 0 : from, over = from + g->window,
                  end = over < g->size ? over : g->size;
    fill(g, from);
    if (hearer_hear(g->h, g->wave, g->window, &err)) return fail(&err);
    int code = k ? EXIT_OK : labels_fit(g->r->names, g->h->classes);
    if (!code) code = add(g);
    if (code) return code;
    const int n = best_of(g->h->p, g->h->classes, g->r->names, g->r->top, top);
    tell_window(g, g->start + (double)first / g->h->rate, g->start + (double)end / g->h->rate, top,
                n);
    return EXIT_OK;
}

static int all_windows(hearing *g, cJSON *file) {
    fac_error err = { 0 };
    int code = hearer_reset(g->h, &err) ? fail(&err) : EXIT_OK;
    g->wave = calloc((size_t)g->window + 1, sizeof *g->wave);
    if (!g->wave) return fail_text("out of memory");
    g->windows = count_windows(g);
    for (int64_t k = 0; !code && k < g->windows; k++) code = one_window(g, k);
    for (int64_t c = 0; !code && c < g->h->classes; c++) g->mean[c] /= (double)g->windows;
    if (!code) tell_all(g, file);
    free(g->wave);
    free(g->mean);
    return code;
}

/* ---- sounds ---- */

static cJSON *file_json(hearing *g, cJSON *files) {
    if (!files) return NULL;
    cJSON *file = cJSON_CreateObject();
    cJSON_AddStringToObject(file, "sound", g->path);
    cJSON_AddNumberToObject(file, "rate", g->h->rate);
    g->rows = cJSON_AddArrayToObject(file, "windows");
    cJSON_AddItemToArray(files, file);
    return file;
}

/* The part of the sound that a record of a table means. */
static int take_part(hearing *g, const fac_tensor *mono, double end) {
    const int64_t all = fac_tensor_type(mono).dims.d[0],
                  from = (int64_t)(g->start * g->h->rate + 0.5);
    int64_t to = end > 0 ? (int64_t)(end * g->h->rate + 0.5) : all;
    if (to > all) to = all;
    if (!all) return fail_text("%s: a sound without samples", g->path);
    if (from >= to) return fail_text("%s: nothing from %g s on", g->path, g->start);
    g->x = (const float *)fac_tensor_data(mono) + from;
    g->size = to - from;
    g->window = g->h->window < 0 ? g->size : g->h->window;
    g->hop = g->h->hop ? g->h->hop : g->window / 2;
    if (g->hop < 1) g->hop = 1;
    return EXIT_OK;
}

static int one_sound(const sound_run *r, hearer *h, const char *path, double start, double end,
                     cJSON *files) {
    fac_error err = { 0 };
    fac_sound s = { 0 };
    fac_tensor *mono = NULL;
    hearing g = { .r = r, .h = h, .path = path, .start = start };
    int code = EXIT_OK;
    if (fac_sound_load(path, &s, &err) || fac_sound_mono(&s, h->rate, &mono, &err))
        code = fail(&err);
    if (!code) code = take_part(&g, mono, end);
    cJSON *file = code ? NULL : file_json(&g, files);
    if (!code && !r->json && !r->averaged)
        printf("%s: %.2f s, %d Hz, %d channel%s\n", path, (double)s.frames / s.rate, s.rate,
               s.channels, s.channels > 1 ? "s" : "");
    if (!code) code = all_windows(&g, file);
    fac_tensor_free(mono);
    fac_sound_free(&s);
    return code;
}

/* A sound, a folder or a table. */
static int one_path(const sound_run *r, hearer *h, const char *path, cJSON *files) {
    fac_error err = { 0 };
    fac_sound_files all = { 0 };
    if (fac_sound_files_find(path, &all, &err)) return fail(&err);
    int code = EXIT_OK;
    for (int64_t i = 0; i < all.count && !code; i++)
        code = one_sound(r, h, all.path[i], all.start[i], all.end[i], files);
    fac_sound_files_free(&all);
    return code;
}

int run_sounds(const sound_run *r, list files) {
    hearer h = { 0 };
    cJSON *root = r->json ? cJSON_CreateObject() : NULL,
          *all = root ? cJSON_AddArrayToObject(root, "sounds") : NULL;
    int code = labels_find(r->m, r->labels, r->names);
    if (!code) code = hearer_open(&h, r->m, r->device, r->program);
    for (int i = 0; i < files.n && !code; i++) code = one_path(r, &h, files.at[i], all);
    hearer_free(&h);
    if (root && !code) return json_print(root);
    cJSON_Delete(root);
    return code;
}
