/* See sample_files.h. */
#include "sample_files.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { AT_ONCE = 64 }; /* samples of a file, where the model takes any number */

/* ---- which files ---- */

static bool called_tensor(const char *path) {
    return ends_with(path, ".npy") || ends_with(path, ".npz") || ends_with(path, ".pb");
}

static int add_file(sample_files *s, const char *path) {
    char **more = realloc(s->at, (size_t)(s->n + 1) * sizeof *more);
    if (!more) return fail_text("out of memory");
    s->at = more;
    if (!(more[s->n] = strdup(path))) return fail_text("out of memory");
    s->n++;
    return EXIT_OK;
}

static int look_at(sample_files *s, const char *path) {
    struct stat st;
    if (stat(path, &st)) return EXIT_OK;
    s->folders += S_ISDIR(st.st_mode);
    const bool wanted = S_ISREG(st.st_mode) && (called_tensor(path) || called_image(path));
    return wanted ? add_file(s, path) : EXIT_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int sample_files_list(const char *folder, sample_files *out) {
    char path[4096];
    DIR *dir = opendir(folder);
    *out = (sample_files){ 0 };
    if (!dir) return fail_text("%s: cannot be read as a folder", folder);
    int code = EXIT_OK;
    for (struct dirent *e; !code && (e = readdir(dir));) {
        const int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && n < (int)sizeof path) code = look_at(out, path);
    }
    closedir(dir);
    if (!code && !out->n)
        code = fail_text("%s: holds no photos and no .npy, .npz or .pb%s", folder,
                         out->folders ? ", only folders: of those with a folder for each class "
                                        "--set image-folder makes a data set"
                                      : "");
    if (!code) qsort(out->at, (size_t)out->n, sizeof *out->at, by_name);
    return code;
}

void sample_files_free(sample_files *s) {
    for (int i = 0; i < s->n; i++) free(s->at[i]);
    free(s->at);
    *s = (sample_files){ 0 };
}

/* ---- one file ---- */

static int give(sample_walk *w, fac_tensor *const in[]) {
    fac_error err = { 0 };
    w->taken++;
    return w->take(w->self, in, &err) ? fail_text("%s: %s", w->path, err.text) : EXIT_OK;
}

/* How many samples of a tensor go into one run. */
static int64_t at_once(const sample_walk *w, const fac_tensor *t) {
    const fac_dims want = fac_value_type(fac_graph_input(w->m->graph, 0)).dims;
    const fac_dims has = fac_tensor_type(t).dims;
    if (fac_graph_inputs(w->m->graph) != 1 || want.n != has.n || !has.n) return INT64_MAX;
    if (want.d[0] < 0) return AT_ONCE;
    return want.d[0] > 0 && has.d[0] % want.d[0] == 0 ? want.d[0] : INT64_MAX;
}

static int give_part(sample_walk *w, fac_tensor *t, int64_t from, int64_t count) {
    fac_error err = { 0 };
    fac_dims dims = fac_tensor_type(t).dims;
    const int64_t *strides = fac_tensor_strides(t);
    fac_tensor *part;
    dims.d[0] = count;
    if (fac_tensor_view(t, dims, strides, from * strides[0], &part, &err)) return fail(&err);
    const int code = give(w, &part);
    fac_tensor_free(part);
    return code;
}

static int give_all(sample_walk *w, const inputs *in) {
    const int64_t step = in->n ? at_once(w, in->tensor[0]) : INT64_MAX;
    const int64_t all = step < INT64_MAX ? fac_tensor_type(in->tensor[0]).dims.d[0] : 0;
    int code = EXIT_OK;
    if (all <= step) return give(w, in->tensor);
    for (int64_t i = 0; i < all && w->taken < w->most && !code; i += step)
        code = give_part(w, in->tensor[0], i, i + step < all ? step : all - i);
    return code;
}

/* "NAME=FILE.npz:NAME" for each input. */
static int name_entries(const sample_walk *w, const char *path, list *to) {
    const int n = fac_graph_inputs(w->m->graph);
    *to = (list){ calloc((size_t)n + 1, sizeof *to->at), 0 };
    for (int i = 0; to->at && i < n; i++) {
        const char *name = fac_value_name(fac_graph_input(w->m->graph, i));
        const size_t size = 2 * strlen(name) + strlen(path) + 3;
        char *text = malloc(size);
        if (!text) return fail_text("out of memory");
        snprintf(text, size, "%s=%s:%s", name, path, name);
        to->at[to->n++] = text;
    }
    return to->at ? EXIT_OK : fail_text("out of memory");
}

static void free_entries(list *l) {
    for (int i = 0; i < l->n; i++) free((void *)(uintptr_t)l->at[i]);
    free((void *)(uintptr_t)l->at);
}

static int take_file(sample_walk *w, const char *path) {
    inputs in = { 0 };
    list named = { 0 };
    input_options how = *w->input;
    const bool entries = ends_with(path, ".npz") && fac_graph_inputs(w->m->graph) > 1;
    int code = entries ? name_entries(w, path, &named) : EXIT_OK;
    if (entries) how.named = named;
    const list files = { &path, entries ? 0 : 1 };
    w->path = path;
    if (!code) code = inputs_load(w->m, &how, w->v, files, &in);
    if (!code) code = give_all(w, &in);
    if (!code && in.plan.from != PHOTO_NONE) w->plan = in.plan;
    inputs_free(&in);
    free_entries(&named);
    return code;
}

int sample_files_walk(sample_walk *w, const sample_files *s) {
    const int files = s->n < w->most ? s->n : (int)w->most;
    const double start = now();
    int code = EXIT_OK;
    for (int i = 0; i < files && !code && w->taken < w->most; i++) {
        code = take_file(w, s->at[(int64_t)i * s->n / files]);
        progress("samples", i + 1, files, start);
    }
    return code;
}
