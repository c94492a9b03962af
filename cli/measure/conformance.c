/* facula conformance: ONNX backend-test folders, each a model.onnx with
 * test_data_set_N/{input,output}_N.pb. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli.h"
#include "json.h"
#include "measure/conformance.h"

static struct {
    device_options device;
    double rtol, atol;
    long every;
    bool json, failed, unsupported, quiet, reexport;
} o = { .rtol = 1e-3, .atol = 1e-7, .every = 1 };

static const option options[] = {
    { "--rtol", OPTION_REAL, &o.rtol, "X",
      "relative tolerance; default 1e-3, as in onnx's own runner", "[0, inf)" },
    { "--atol", OPTION_REAL, &o.atol, "X", "absolute tolerance; default 1e-7", "[0, inf)" },
    { "--every", OPTION_INT, &o.every, "N", "run only each N-th case", "[1, 1000000]" },
    LINK_ROOT_OPTION,
    { "--quiet", OPTION_FLAG, &o.quiet, NULL, "print only failures and totals" },
    { "--reexport", OPTION_FLAG, &o.reexport, NULL,
      "write each model again as `facula export` does, and run the result" },
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

static const char *const verdict_names[] = { "passed", "failed", "unsupported" };

static bool exists(const char *path) {
    struct stat s;
    return stat(path, &s) == 0;
}

static verdict verdict_of(const fac_error *err) {
    return err->status == FAC_E_UNSUPPORTED ? UNSUPPORTED : FAILED;
}

/* ---- the files of a case ---- */

enum { PORTS = 256 };
/* An input or output of the model as its first set of data has it: one tensor, or those of a
 * sequence. */
typedef struct port {
    char name[200];
    fac_onnx_kind kind;
    int n;
    bool sequence, fixed;
    fac_tensor **tensors;
} port;
typedef struct ports {
    port in[PORTS], out[PORTS];
    int nin, nout;
    bool lists, failed;
} ports;

static void see_port(void *self, bool output, const char *name, fac_onnx_kind kind) {
    ports *p = self;
    int *n = output ? &p->nout : &p->nin;
    if (*n == PORTS) {
        p->failed = true;
        return;
    }
    port *to = output ? &p->out[(*n)++] : &p->in[(*n)++];
    *to = (port){ .kind = kind };
    snprintf(to->name, sizeof to->name, "%s", name);
    p->lists |= kind != FAC_ONNX_TENSOR;
}

static void empty_port(port *p) {
    if (p->kind == FAC_ONNX_TENSOR)
        tensors_free(p->tensors, p->n);
    else
        fac_onnx_tensors_free(p->tensors, p->n);
    p->tensors = NULL;
    p->n = 0;
}

static fac_status read_file(port *p, const char *dir, const char *what, int k, fac_error *err) {
    char path[1400];
    snprintf(path, sizeof path, "%s/%s_%d.pb", dir, what, k);
    empty_port(p);
    if (p->kind != FAC_ONNX_TENSOR)
        return fac_onnx_tensors_load(path, p->kind, &p->tensors, &p->n, &p->sequence, err);
    p->tensors = tensors_new(1);
    if (!p->tensors) return *err = (fac_error){ FAC_E_NOMEM, "out of memory" }, FAC_E_NOMEM;
    const fac_status status = fac_onnx_tensor_load(path, &p->tensors[0], NULL, 0, err);
    p->n = !status;
    return status;
}

static fac_status read_inputs(ports *p, const char *dir, fac_error *err) {
    for (int k = 0; k < p->nin; k++) {
        const fac_status status = read_file(&p->in[k], dir, "input", k, err);
        if (status) return status;
    }
    return FAC_OK;
}

static void free_ports(ports *p) {
    for (int k = 0; k < p->nin; k++) empty_port(&p->in[k]);
    for (int k = 0; k < p->nout; k++) empty_port(&p->out[k]);
    free(p);
}

/* ---- a set of data ---- */

/* How many outputs of the graph a port is; -1: an optional that holds nothing. */
static int outputs_of(const fac_graph *g, const char *name) {
    char key[240];
    snprintf(key, sizeof key, "list.%s", name);
    const char *note = fac_graph_note(g, key);
    return note ? atoi(note) : 1;
}

static void compare_port(result *r, port *want, int count, fac_tensor *const got[]) {
    if (count != want->n) {
        r->v = FAILED;
        snprintf(r->why, sizeof r->why, "output %s has %d elements, expected %d", want->name, count,
                 want->n);
        return;
    }
    for (int k = 0; k < count && r->v == PASSED; k++)
        compare_output(r, want->name, got[k], want->tensors[k], o.rtol, o.atol);
}

static void compare_all(result *r, const char *dir, const fac_graph *g, ports *p,
                        fac_tensor *const out[]) {
    fac_error err = { 0 };
    for (int k = 0, at = 0; k < p->nout && r->v == PASSED; k++) {
        const int count = outputs_of(g, p->out[k].name);
        if (read_file(&p->out[k], dir, "output", k, &err))
            explain(r, verdict_of(&err), &err);
        else
            compare_port(r, &p->out[k], count, out + at);
        if (count > 0) at += count;
    }
}

static void run_set(result *r, const char *dir, const fac_graph *g, fac_device *device,
                    ports *ports_) {
    fac_program *p = NULL;
    fac_error err = { 0 };
    const int n = fac_graph_inputs(g), m = fac_graph_outputs(g);
    fac_tensor **in = tensors_new(n + 1), **out = tensors_new(m + 1);
    int given = 0;
    if (!in || !out) err = (fac_error){ FAC_E_NOMEM, "out of memory" };
    if (!err.status) read_inputs(ports_, dir, &err);
    for (int k = 0; k < ports_->nin && !err.status; k++)
        for (int j = 0; j < ports_->in[k].n && !ports_->in[k].fixed && given < n; j++)
            in[given++] = ports_->in[k].tensors[j];
    if (!err.status) fac_program_new(g, device, NULL, &p, &err);
    if (!err.status) fac_program_run(p, in, out, &err);
    if (err.status)
        explain(r, verdict_of(&err), &err);
    else
        compare_all(r, dir, g, ports_, out);
    free(in);
    tensors_free(out, m);
    fac_program_free(p);
}

/* The graph again, by way of a file of our own. */
static fac_status reexport(fac_graph **g, fac_error *err) {
    char path[] = "/tmp/facula-XXXXXX.onnx";
    fac_graph *again = NULL;
    int fd = mkstemps(path, 5);
    if (fd < 0)
        return fac_onnx_load(path, NULL, &again, err); /* says what is wrong with that place */
    close(fd);
    fac_status status = fac_onnx_save(*g, path, NULL, err);
    if (!status) status = fac_onnx_load(path, NULL, &again, err);
    unlink(path);
    if (status) return status;
    fac_graph_free(*g);
    *g = again;
    return FAC_OK;
}

/* ---- a case ---- */

/* Lengths of sequences, and the contents of small integer inputs, which may steer them, are those
 * of the first set of data. */
static fac_status load_with_data(const char *path, const char *dir, ports *p, fac_graph **g,
                                 fac_error *err) {
    enum { SMALL = 16 };
    static fac_onnx_sequence lists[PORTS];
    static fac_type types[PORTS][SMALL];
    static const char *fixed[PORTS];
    static fac_tensor *contents[PORTS];
    fac_onnx_opts how = {
        .link_root = link_root, .lists = lists, .fixed = fixed, .contents = contents
    };
    fac_status status = read_inputs(p, dir, err);
    for (int k = 0; k < p->nin && !status; k++) {
        port *in = &p->in[k];
        if (in->kind == FAC_ONNX_TENSOR) {
            const fac_type t = fac_tensor_type(in->tensors[0]);
            in->fixed = strchr("ibu", fac_dtype_get(t.dtype)->kind) && t.dims.n <= 1 &&
                        fac_dims_count(&t.dims) <= SMALL;
            if (!in->fixed) continue;
            contents[how.nfixed] = in->tensors[0];
            fixed[how.nfixed++] = in->name;
            continue;
        }
        for (int j = 0; j < in->n && j < SMALL; j++) types[k][j] = fac_tensor_type(in->tensors[j]);
        lists[how.nlists++] =
            (fac_onnx_sequence){ in->name, in->n < SMALL ? in->n : SMALL, types[k], in->sequence };
    }
    return status ? status : fac_onnx_load(path, &how, g, err);
}

static fac_status load_case(const char *path, const char *dir, ports *p, fac_graph **g,
                            fac_error *err) {
    char first[1200];
    fac_error why = { 0 };
    fac_status status = fac_onnx_load(path, &(fac_onnx_opts){ .link_root = link_root }, g, err);
    snprintf(first, sizeof first, "%s/test_data_set_0", dir);
    if (status != FAC_E_UNSUPPORTED || !exists(first) || fac_onnx_ports(path, see_port, p, &why) ||
        p->failed)
        return status;
    return load_with_data(path, first, p, g, err);
}

static bool draws(const char *path) {
    static const char *const types[] = {
        "Bernoulli",         "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
        "RandomUniformLike", NULL
    };
    const fac_onnx_listed *n;
    fac_onnx_listing *l = NULL;
    bool found = false;
    if (fac_onnx_list_nodes(path, &l, NULL)) return false;
    for (int i = 0; (n = fac_onnx_listing_node(l, i)); i++)
        for (int k = 0; types[k]; k++) found |= !strcmp(n->type, types[k]);
    fac_onnx_listing_free(l);
    return found;
}

static result run_loaded(const char *dir, fac_device *device, ports *p) {
    result r = { PASSED, 0, "", false };
    fac_graph *g = NULL;
    fac_error err = { 0 };
    char path[1200];
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    r.drawn = draws(path);
    fac_status status = load_case(path, dir, p, &g, &err);
    if (!status && !p->nin && !p->nout) status = fac_onnx_ports(path, see_port, p, &err);
    if (status || (o.reexport && reexport(&g, &err))) {
        explain(&r, verdict_of(&err), &err);
        fac_graph_free(g);
        return r;
    }
    int sets = 0;
    for (; r.v == PASSED; sets++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d", dir, sets);
        if (!exists(path)) break;
        run_set(&r, path, g, device, p);
    }
    if (!sets && r.v == PASSED) {
        r.v = FAILED;
        snprintf(r.why, sizeof r.why, "no test_data_set_0");
    }
    fac_graph_free(g);
    return r;
}

static result run_case(const char *dir, fac_device *device) {
    result r = { FAILED, 0, "out of memory", false };
    ports *p = calloc(1, sizeof *p);
    if (!p) return r;
    r = run_loaded(dir, device, p);
    free_ports(p);
    return r;
}

/* Folders with a model.onnx, at any depth below dir, sorted. */
static int collect(const char *dir, char ***cases, int *n) {
    char path[1100];
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    if (exists(path)) {
        char **more = realloc(*cases, (size_t)(*n + 1) * sizeof *more);
        if (!more) return fail_text("out of memory");
        *cases = more;
        if (!(more[*n] = strdup(dir))) return fail_text("out of memory");
        ++*n;
        return EXIT_OK;
    }
    DIR *d = opendir(dir);
    if (!d) return fail_text("%s: cannot be read as a folder", dir);
    int code = EXIT_OK;
    for (struct dirent *e; !code && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (is_folder(path)) code = collect(path, cases, n);
    }
    closedir(d);
    return code;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int run(list args) {
    fac_device *device = NULL;
    char **cases = NULL;
    int n = 0, counts[3] = { 0 };
    const int wrong =
        arguments_fit(verb_find("conformance"), args, 1, ANY_NUMBER, "which folders?");
    if (wrong) return wrong;
    int code = device_open(&o.device, &device);
    for (int i = 0; i < args.n && !code; i++) code = collect(args.at[i], &cases, &n);
    if (!code && !n) code = fail_text("no model.onnx below %s", args.at[0]);
    if (!code) qsort(cases, (size_t)n, sizeof *cases, by_name);
    cJSON *root = o.json && !code ? cJSON_CreateObject() : NULL,
          *rows = root ? cJSON_CreateArray() : NULL;
    double start = now();
    for (int i = 0; i < n && !code; i += (int)o.every) {
        const char *slash = strrchr(cases[i], '/'), *name = slash ? slash + 1 : cases[i];
        progress("conformance", i, n, start);
        result r = run_case(cases[i], device);
        counts[r.v]++;
        if (root) {
            cJSON *c = cJSON_CreateObject();
            cJSON_AddStringToObject(c, "name", name);
            cJSON_AddStringToObject(c, "result", verdict_names[r.v]);
            if (r.v == PASSED)
                json_number(c, "error", r.worst, 3);
            else
                cJSON_AddStringToObject(c, "why", r.why);
            cJSON_AddItemToArray(rows, c);
        } else if (r.v == FAILED || !o.quiet) {
            printf("%-11s %s%s%s\n", verdict_names[r.v], name, r.why[0] ? ": " : "", r.why);
        }
    }
    progress("conformance", 1, 1, start);
    for (int i = 0; i < n; i++) free(cases[i]);
    free(cases);
    fac_device_free(device);
    if (code) return code;
    const int ran = counts[PASSED] + counts[FAILED] + counts[UNSUPPORTED];
    if (root) {
        for (int k = 0; k < 3; k++) cJSON_AddNumberToObject(root, verdict_names[k], counts[k]);
        cJSON_AddNumberToObject(root, "total", ran);
        cJSON_AddItemToObject(root, "cases", rows);
        code = json_print(root);
    } else {
        printf("%d passed, %d failed, %d unsupported, %d in all\n", counts[PASSED], counts[FAILED],
               counts[UNSUPPORTED], ran);
    }
    return counts[FAILED] ? EXIT_FAILED : code;
}

const verb verb_conformance = {
    .name = "conformance",
    .summary = "run ONNX's backend tests from their folders",
    .usage = "facula conformance DIR... [options]",
    .options = options,
    .examples = "conformance onnx/backend/test/data/node --quiet\nconformance "
                "onnx/backend/test/data --device opencl --every 10",
    .run = run,
    .more = "Every folder below DIR that has a model.onnx is a case.  Exit code 1: a case failed."
};
