/* Where models come from: ONNX files, graph texts, the zoo. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "analyze/kind.h"
#include "run/inputs.h"
#include "run/labels.h"

static int size_of(const char *text, double *out) {
    const double most = 1e18; /* fits into every type that counts bytes */
    char *end;
    double x = strtod(text, &end);
    const char *units = "kMGT", *u = *end ? strchr(units, *end) : NULL;
    for (const char *k = units; u && k <= u; k++) x *= 1000;
    if (end == text || (*end && (!u || (end[1] && strcmp(end + 1, "B")))) ||
        strchr(" \t-", *text) || strpbrk(text, "xX") || !(x >= 1 && x <= most)) {
        fprintf(stderr, "facula: --memory-limit needs a size such as 800M or 2G, not \"%s\"\n",
                text);
        return EXIT_USAGE;
    }
    *out = x;
    return EXIT_OK;
}

int memory_limit(const char *text) {
    double x;
    int code = text ? size_of(text, &x) : EXIT_OK;
    if (!text || code) return code;
    /* counts what is allocated, not what is mapped from files: the library reports the allocation
     * that fails */
    struct rlimit limit = { (rlim_t)x, (rlim_t)x };
    if (setrlimit(RLIMIT_DATA, &limit)) return fail_text("cannot limit the memory to %s", text);
    return EXIT_OK;
}

int device_open(const device_options *o, fac_device **out) {
    fac_error err = { 0 };
    const char *name = o->device ? o->device : "cpu";
    /* other devices have memory of their own, and their drivers end a process that has little */
    const bool process = !strncmp(name, "cpu", 3);
    double limit = 0;
    int code = process           ? memory_limit(o->memory_limit)
               : o->memory_limit ? size_of(o->memory_limit, &limit)
                                 : EXIT_OK;
    if (code) return code;
    fac_device_opts opts = { .threads = (int)o->threads,
                             .isa = o->isa,
                             .wisdom = o->wisdom,
                             .packed_cache = o->cache_packed ? "" : NULL,
                             .memory_limit = (size_t)limit };
    return fac_device_open(name, &opts, out, &err) ? fail(&err) : EXIT_OK;
}

bool dims_parse(const char *text, fac_dims *out) {
    fac_dims d = { 0 };
    if (!strcmp(text, "scalar")) {
        *out = d;
        return true;
    }
    for (const char *p = text;; p++) {
        char *end;
        long long x = strtoll(p, &end, 10);
        if (end == p || x < 0 || d.n == FAC_DIMS) return false;
        d.d[d.n++] = x;
        p = end;
        if (!*p) break;
        if (*p != 'x' && *p != ',') return false;
    }
    *out = d;
    return true;
}

const char *type_dims(const fac_graph *g, const fac_type *t, char *to, size_t size) {
    if (t->dtype != FAC_NONE) return dims_text(g, &t->dims, to, size);
    snprintf(to, size, "unknown");
    return to;
}

/* ---- sizes of inputs: "x=1x3x224x224" or, for the first input, "1x3x224x224" ---- */

typedef struct size_given {
    char *name; /* NULL: the first input */
    const char *text;
    fac_dims dims;
} size_given;
typedef struct sizes {
    int n;
    size_given *at;
} sizes;

static void sizes_free(sizes *s) {
    for (int i = 0; i < s->n; i++) free(s->at[i].name);
    free(s->at);
    *s = (sizes){ 0 };
}

static int sizes_parse(const list *shapes, sizes *to) {
    *to = (sizes){ 0, calloc((size_t)(shapes ? shapes->n : 0) + 1, sizeof *to->at) };
    if (!to->at) return fail_text("out of memory");
    for (int i = 0; shapes && i < shapes->n; i++) {
        const char *equals = strrchr(shapes->at[i], '=');
        size_given *s = &to->at[to->n++];
        s->name = equals ? strndup(shapes->at[i], (size_t)(equals - shapes->at[i])) : NULL;
        s->text = equals ? equals + 1 : shapes->at[i];
        if (equals && !s->name) return fail_text("out of memory");
        if (!dims_parse(s->text, &s->dims)) {
            fprintf(stderr, "facula: --shape needs NAME=1x3x224x224, not \"%s\"\n", shapes->at[i]);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

/* Of a graph that is there: types are inferred anew. */
static fac_status resize(fac_graph **g, const char *name, const char *text, fac_error *err) {
    fac_graph *next = NULL;
    if (!name && fac_graph_inputs(*g)) name = fac_value_name(fac_graph_input(*g, 0));
    fac_status status = fac_graph_shaped(*g, name ? name : "", text, &next, err);
    if (status) return status;
    fac_graph_free(*g);
    *g = next;
    return FAC_OK;
}

/* ---- models ---- */

/* Files that are made of it say how photos are prepared and what the classes are. */
static int zoo_notes(model *m) {
    char spec[FAC_PREPROCESS_TEXT];
    const char *names[1000];
    const fac_preset *p = fac_preset_find(m->zoo->preset);
    if (!p) return EXIT_OK;
    if (fac_preprocess_print(&p->how, spec, sizeof spec) < 0) return fail_text("out of memory");
    fac_graph_set_note(m->graph, FAC_NOTE_PRESET, spec);
    if (m->zoo->classes != 1000) return EXIT_OK;
    for (int k = 0; k < 1000; k++) names[k] = fac_imagenet_name(k);
    return labels_note(m->graph, 1000, names);
}

static int load_zoo(const char *name, const char *weights, long seed, model *m) {
    fac_error err = { 0 };
    m->zoo = fac_zoo_find(name);
    if (!m->zoo) return fail_text("the zoo has no \"%s\" (see `facula zoo`)", name);
    if (weights && fac_weights_load(weights, &m->weights, &err)) return fail(&err);
    m->random = !weights;
    if (fac_zoo_new(name, m->weights, (uint64_t)seed, &m->graph, &err)) return fail(&err);
    return zoo_notes(m);
}

/* Packed files and texts of graphs share an ending: the first has the length of its header in
 * front. */
static bool is_packed(const char *path) {
    unsigned char head[9] = { 0 };
    if (!ends_with(path, ".fac")) return false;
    const int f = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = f < 0 ? 0 : read(f, head, sizeof head);
    if (f >= 0) close(f);
    return n == sizeof head && head[7] == 0 && head[8] == '{';
}

static int load_packed(const char *path, model *m) {
    fac_error err = { 0 };
    return fac_packed_load(path, &m->graph, &err) ? fail(&err) : EXIT_OK;
}

enum { LONGEST_TEXT = 256 << 20 };

static int load_text(const char *path, model *m) {
    fac_error err = { 0 };
    char *text;
    size_t bytes;
    if (fac_read_text(path, LONGEST_TEXT, FAC_READ_FILE_OR_PIPE, &text, &bytes, &err))
        return fail(&err);
    FILE *f = bytes ? fmemopen(text, bytes, "r")
                    : fmemopen((char[]){ "\n" }, 1, "r"); /* no bytes: refused */
    fac_status status = FAC_OK;
    if (f) {
        setvbuf(f, NULL, _IONBF, 0);
        status = fac_graph_read(f, &m->graph, &err);
        fclose(f);
    }
    fac_read_free(text);
    if (!f) return fail_text("out of memory");
    return status ? fail_text("%s: %s", path, err.text) : EXIT_OK;
}

const char *link_root;
const list *inputs_given;

/* The names of "NAME=FILE"; NULL without memory. */
static char **names_given(int *n) {
    char **names = calloc(inputs_given ? (size_t)inputs_given->n + 1 : 1, sizeof *names);
    for (*n = 0; names && inputs_given && *n < inputs_given->n; ++*n) {
        const char *text = inputs_given->at[*n];
        if (!(names[*n] = strndup(text, strcspn(text, "=")))) break;
    }
    return names;
}

static void names_free(char **names) {
    for (char **name = names; name && *name; name++) free(*name);
    free(names);
}

/* Sizes by name are known while the file is read: nodes that compute shapes become constants. */
static int load_onnx(const char *path, sizes *s, bool look, model *m) {
    fac_error err = { 0 };
    const char **names = malloc(((size_t)s->n + 1) * sizeof *names);
    fac_dims *dims = malloc(((size_t)s->n + 1) * sizeof *dims);
    int n = 0, given = 0;
    char **own = names_given(&given);
    int code = names && dims && own ? EXIT_OK : fail_text("out of memory");
    for (int i = 0; i < s->n && !code; i++) {
        if (!s->at[i].name) continue;
        names[n] = s->at[i].name;
        dims[n++] = s->at[i].dims;
    }
    const fac_onnx_opts opts = { .n = n,
                                 .inputs = names,
                                 .dims = dims,
                                 .link_root = link_root,
                                 .opaque = look,
                                 .noverridden = given,
                                 .overridden = (const char *const *)own };
    if (!code && fac_onnx_load(path, &opts, &m->graph, &err)) code = fail(&err);
    names_free(own);
    free(names);
    free(dims);
    return code;
}

static int read_model(const char *path, const char *weights, long seed, bool look, sizes *s,
                      model *m) {
    if (!strncmp(path, "zoo:", 4)) return load_zoo(path + 4, weights, seed, m);
    if (is_packed(path)) return load_packed(path, m);
    if (ends_with(path, ".txt") || ends_with(path, ".fac")) return load_text(path, m);
    return load_onnx(path, s, look, m);
}

static int load(const char *path, const char *weights, const list *shapes, long seed, bool look,
                model *out) {
    fac_error err = { 0 };
    model m = { 0 };
    sizes s;
    const bool zoo = !strncmp(path, "zoo:", 4),
               text = ends_with(path, ".txt") || ends_with(path, ".fac");
    int code = sizes_parse(shapes, &s);
    if (!code && !zoo && (!text || is_folder(path))) code = kind_check_model(path);
    if (!code && weights && !zoo)
        code = fail_text("--weights goes with zoo:NAME; %s has its own", path);
    if (!code) code = read_model(path, weights, seed, look, &s, &m);
    if (!code && !fac_graph_outputs(m.graph)) /* a text that was cut off */
        code = fail_text("%s: the graph has no outputs", path);
    for (int i = 0; i < s.n && !code; i++)
        if ((zoo || text || !s.at[i].name) && resize(&m.graph, s.at[i].name, s.at[i].text, &err))
            code = fail(&err);
    sizes_free(&s);
    if (!zoo) m.path = path;
    if (code)
        model_free(&m);
    else
        *out = m;
    return code;
}

int model_load(const char *path, const char *weights, const list *shapes, long seed, model *out) {
    return load(path, weights, shapes, seed, false, out);
}

int model_look(const char *path, const char *weights, const list *shapes, long seed, model *out) {
    return load(path, weights, shapes, seed, true, out);
}

void model_free(model *m) {
    fac_graph_free(m->graph);
    fac_weights_free(m->weights);
    *m = (model){ 0 };
}

/* ---- of few bits ---- */

bool rest_chosen(const char *text, bool *bytes) {
    *bytes = text && !strcmp(text, "int8");
    return !text || *bytes || !strcmp(text, "float");
}

int with_byte_weights(fac_graph **g) {
    fac_error err = { 0 };
    fac_graph *made;
    if (fac_graph_byte_weights(*g, NULL, &made, &err)) return fail(&err);
    fac_graph_free(*g);
    *g = made;
    return EXIT_OK;
}
