/* Where models come from: ONNX files, graph texts, the zoo. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "cli.h"

int memory_limit(const char *text) {
    if (!text) return EXIT_OK;
    char *end;
    double x = strtod(text, &end);
    const char *units = "kMGT", *u = *end ? strchr(units, *end) : NULL;
    for (const char *k = units; u && k <= u; k++) x *= 1000;
    if (end == text || (*end && (!u || (end[1] && strcmp(end + 1, "B")))) || x < 1) {
        fprintf(stderr, "facula: --memory-limit needs a size such as 800M or 2G, not \"%s\"\n", text);
        return EXIT_USAGE;
    }
    /* counts what is allocated, not what is mapped from files: the library reports the allocation that fails */
    struct rlimit limit = { (rlim_t)x, (rlim_t)x };
    if (setrlimit(RLIMIT_DATA, &limit)) return fail_text("cannot limit the memory to %s", text);
    return EXIT_OK;
}

int device_open(const device_options *o, fac_device **out) {
    fac_error err = { 0 };
    int code = memory_limit(o->memory_limit);
    if (code) return code;
    if (o->threads < 0 || o->threads > 1024) {
        fprintf(stderr, "facula: --threads is 1 to 1024, or 0 for one a core\n");
        return EXIT_USAGE;
    }
    fac_device_opts opts = { .threads = (int)o->threads, .isa = o->isa, .wisdom = o->wisdom,
                             .packed_cache = o->cache_packed ? "" : NULL };
    return fac_device_open(o->device ? o->device : "cpu", &opts, out, &err) ? fail(&err) : EXIT_OK;
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

const char *dims_text(const fac_graph *g, const fac_dims *dims, char *to, size_t size) {
    size_t n = 0;
    to[0] = 0;
    for (int k = 0; k < dims->n && n < size; k++) {
        const char *name = dims->d[k] < 0 ? fac_symbol_name(g, dims->d[k]) : NULL;
        if (dims->d[k] < 0) n += (size_t)snprintf(to + n, size - n, "%s%s", k ? "x" : "", name ? name : "?");
        else n += (size_t)snprintf(to + n, size - n, "%s%lld", k ? "x" : "", (long long)dims->d[k]);
    }
    if (!dims->n) snprintf(to, size, "scalar");
    return to;
}

/* "x=1x3x224x224" or, for the first input, "1x3x224x224". */
static int shapes_parse(const list *shapes, const char **names, fac_dims *dims) {
    for (int i = 0; i < shapes->n; i++) {
        const char *equals = strrchr(shapes->at[i], '=');
        names[i] = NULL;
        if (equals) {
            char *name = strdup(shapes->at[i]);
            if (!name) return fail_text("out of memory");
            name[equals - shapes->at[i]] = 0;
            names[i] = name;
        }
        if (!dims_parse(equals ? equals + 1 : shapes->at[i], &dims[i])) {
            fprintf(stderr, "facula: --shape needs NAME=1x3x224x224, not \"%s\"\n", shapes->at[i]);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

int model_load(const char *path, const char *weights, const list *shapes, long seed, model *out) {
    fac_error err = { 0 };
    model m = { 0 };
    if (!strncmp(path, "zoo:", 4)) {
        m.zoo = fac_zoo_find(path + 4);
        if (!m.zoo) return fail_text("the zoo has no \"%s\" (see `facula zoo`)", path + 4);
        if (weights && fac_weights_load(weights, &m.weights, &err)) return fail(&err);
        m.random = !weights;
        if (fac_zoo_new(path + 4, m.weights, (uint64_t)seed, &m.graph, &err)) {
            model_free(&m);
            return fail(&err);
        }
    } else if (weights) {
        return fail_text("--weights goes with zoo:NAME; %s has its own", path);
    } else if (ends_with(path, ".txt") || ends_with(path, ".fac")) {
        FILE *f = fopen(path, "r");
        if (!f) return fail_text("%s: cannot be opened", path);
        fac_status status = fac_graph_read(f, &m.graph, &err);
        fclose(f);
        if (status) return fail(&err);
    } else {
        const char *names[64];
        fac_dims dims[64];
        int n = shapes && shapes->n <= 64 ? shapes->n : 0, named = 0;
        int code = n ? shapes_parse(shapes, names, dims) : EXIT_OK;
        if (code) return code;
        for (int i = 0; i < n; i++)
            if (names[i]) {
                names[named] = names[i];
                dims[named++] = dims[i];
            }
        fac_onnx_opts opts = { .n = named, .inputs = names, .dims = dims };
        fac_status status = fac_onnx_load(path, &opts, &m.graph, &err);
        for (int i = 0; i < named; i++) free((char *)(uintptr_t)names[i]);
        if (status) return fail(&err);
    }
    *out = m;
    return EXIT_OK;
}

void model_free(model *m) {
    fac_graph_free(m->graph);
    fac_weights_free(m->weights);
    *m = (model){ 0 };
}
