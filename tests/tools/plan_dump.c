/* Writes the plans of all zoo networks, and the texts of their OpenCL kernels, to a folder: what a
 * change of the library's structure must leave as it was (scripts/compare_plans.sh holds two builds
 * against each other).
 *
 *   plan_dump FOLDER DEVICE [NETWORK|FILE.onnx|FILE.graph|FILE.gguf|train:FILE.onnx...]
 *
 * DEVICE: cpu:avx512, cpu:avx2, ..., opencl (the first real device; kernels are not compiled), or
 * sm_80, sm_90: an NVIDIA GPU that need not be there, with the facts of an A100 or H200.  FOLDER
 * gets DEVICE.MODE.txt (avx512.f32.txt) with a part for each network, batch and use, and
 * kernels/HASH.cl.  Nothing is run and no weight is read.  Of a language model it is the plan of a
 * step of decoding: one token, one slot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "backends/opencl/device/opencl.h"
#include "backends/opencl/device/probe.h"
#include "backends/wisdom.h"
#include "base/error.h"
#include "base/optional.h"
#include "facula/facula.h"
#include "lm/session.h"
#include "plan/plan.h"
#include "run/program_internal.h"
#include "shipped_wisdom.h"
#include "run/run.h"
#include "train/train_internal.h"

typedef struct mode {
    const char *name;
    fac_precision precision;
    fac_dtype mixed;
    bool nvidia;
} mode;
static const mode modes[] = { { "f32", FAC_PRECISION_HIGHEST, FAC_NONE, false },
                              { "default", FAC_PRECISION_DEFAULT, FAC_NONE, false },
                              { "tf32", FAC_PRECISION_HIGH, FAC_NONE, true },
                              { "bf16", FAC_PRECISION_DEFAULT, FAC_BF16, true } };
static fac_error err;

static int failed(const char *what) {
    fprintf(stderr, "plan_dump: %s: %s\n", what, err.text);
    return 1;
}

/* ---- devices ---- */

/* The facts of a card, as the device would have found them on it. */
static fac_status pretend(fac_opencl *o, const char *card) {
    const bool hopper = !strcmp(card, "sm_90");
    static const fac_cl_path both[] = { FAC_CL_DOUBLES, FAC_CL_SHUFFLE_NVIDIA, FAC_CL_DOT8_NVIDIA,
                                        FAC_CL_MMA,     FAC_CL_LOCAL_99,       FAC_CL_LOCAL_163,
                                        FAC_CL_FENCES,  FAC_CL_RELAY };
    o->limits = (fac_gpu_limits){ .memory = (size_t)80 << 30,
                                  .largest = (size_t)20 << 30,
                                  .local = 49152,
                                  .align = 512,
                                  .group = 1024,
                                  .arguments = 4352,
                                  .units = hopper ? 132 : 108,
                                  .vector = o->limits.vector,
                                  .fp64 = true,
                                  .gpu = true,
                                  .major = 1,
                                  .minor = 2 };
    snprintf(o->limits.vendor, sizeof o->limits.vendor, "%s", o->place.vendor);
    snprintf(o->extensions, sizeof o->extensions, "cl_khr_fp64 cl_nv_device_attribute_query");
    for (int k = 0; k < FAC_CL_PATHS; k++) o->paths[k] = FAC_CL_BAD;
    for (size_t k = 0; k < sizeof both / sizeof *both; k++) o->paths[both[k]] = FAC_CL_GOOD;
    if (hopper) o->paths[FAC_CL_WGMMA] = o->paths[FAC_CL_MAPS] = FAC_CL_GOOD;
    o->last = 0;
    snprintf(o->device.key, sizeof o->device.key, "opencl, NVIDIA, %u units, %s", o->limits.units,
             card);
    return fac_device_ship(&o->device, fac_shipped_wisdom, &err);
}

static bool is_cpu(const char *name) { return !strncmp(name, "cpu:", 4); }

static fac_status open_device(const char *name, const char *texts, fac_device **out) {
    const bool cpu = is_cpu(name);
    const fac_device_opts opts = {
        .threads = 2, .isa = cpu ? name + 4 : NULL, .wisdom = "", .kernel_texts = texts
    };
    FAC_TRY(fac_device_open(cpu ? "cpu" : "opencl", &opts, out, &err));
    if (cpu) return FAC_OK;
    fac_opencl *o = fac_opencl_of(*out);
    o->builds.dry = true;
    return strncmp(name, "sm_", 3) ? FAC_OK : pretend(o, name);
}

/* ---- a plan as text ---- */

static void print_layout(FILE *to, const fac_operand *o, const fac_slot *s) {
    if (s->root < 0 || o->type.dtype == FAC_NONE) {
        fprintf(to, " -");
        return;
    }
    const fac_layout *l = &s->layout;
    fprintf(to, " r%d", s->root);
    if (l->offset) fprintf(to, "@%lld", (long long)l->offset);
    if (!fac_layout_is_plain(l, &o->type.dims))
        for (int k = 0; k < o->type.dims.n; k++)
            fprintf(to, "%c%lld", k ? ',' : '[', (long long)l->stride[k]);
    if (!fac_layout_is_plain(l, &o->type.dims))
        fprintf(to, "/%d:%d+%d]", l->axis, l->block, l->halo);
}

static void print_step(FILE *to, const fac_step *s) {
    static const char *const kinds[] = { "run", "pack", "packs" };
    const fac_problem *q = s->problem;
    fprintf(to, "%s %s:%d %.4g %s%s%s |", kinds[s->kind], s->solver ? s->solver->name : "-",
            q->variant, s->estimate, fac_text_or(s->label, "-"), fac_text_if(s->aside, " aside"),
            fac_text_if(s->relay, " relay"));
    for (int i = 0; i < q->nin; i++) print_layout(to, &q->in[i], &s->in[i]);
    fprintf(to, " ->");
    for (int k = 0; k < q->nout; k++) print_layout(to, &q->out[k], &s->out[k]);
    fprintf(to, "\n");
}

static void print_plan(FILE *to, const fac_plan *p) {
    fac_graph_write(p->graph, to, NULL);
    fprintf(to, "slices %lld stages %d arena %zu values %zu copied %zu\n", (long long)p->slices,
            p->nstages, p->arena_bytes, p->values_bytes, p->copied_bytes);
    for (int i = 0; i < p->nsteps; i++) print_step(to, &p->steps[i]);
    for (int i = 0; i < p->nroots; i++) {
        const fac_root *r = &p->roots[i];
        if (r->kind != FAC_ROOT_ARENA) continue;
        fprintf(to, "root %d at %zu bytes %zu steps %d..%d\n", i, r->at, r->bytes, r->first,
                r->last);
    }
}

/* ---- networks ---- */

static fac_status dump_program(FILE *to, fac_program *p, fac_tensor *const in[]) {
    fac_plan *plan;
    FAC_TRY(fac_plan_new(p->graph, p->steers, in, p->device, &p->opts, false, &plan, &err));
    print_plan(to, plan);
    fac_plan_free(plan);
    return FAC_OK;
}

static fac_status dump_inference(FILE *to, const fac_graph *g, fac_device *d, const mode *m,
                                 fac_tensor *const in[]) {
    fac_graph *mixed = m->mixed ? fac_graph_autocast(g, m->mixed) : NULL;
    fac_program *p = NULL;
    const fac_program_opts opts = { .precision = m->precision };
    fac_status status = fac_program_new(mixed ? mixed : g, d, &opts, &p, &err);
    if (!status) status = dump_program(to, p, in);
    fac_program_free(p);
    fac_graph_free(mixed);
    return status;
}

static fac_status dump_training(FILE *to, const fac_graph *g, fac_device *d, const mode *m,
                                fac_tensor *x) {
    fac_trainer *t = NULL;
    fac_tensor *in[3] = { x, NULL, NULL };
    const fac_trainer_opts opts = { .optimizer = "adam",
                                    .precision = m->precision,
                                    .mixed = m->mixed };
    const fac_dims batch = { .n = 1, .d = { fac_tensor_type(x).dims.d[0] } };
    fac_status status = fac_tensor_new(NULL, FAC_I64, batch, &in[1], &err);
    if (!status) status = fac_tensor_new(NULL, FAC_F64, (fac_dims){ 0 }, &in[2], &err);
    if (!status) status = fac_trainer_new(g, d, &opts, &t, &err);
    if (!status) status = dump_program(to, fac_trainer_program(t), in);
    fac_trainer_free(t);
    fac_tensor_free(in[1]);
    fac_tensor_free(in[2]);
    return status;
}

static fac_status dump_network(FILE *to, const fac_zoo *z, fac_device *d, const mode *m) {
    static const struct {
        const char *use;
        int64_t batch;
        bool train;
    } uses[] = { { "inference", 1, false }, { "inference", 16, false }, { "training", 8, true } };
    fac_graph *g = NULL;
    fac_status status = fac_zoo_new(z->name, NULL, 1, &g, &err);
    for (size_t k = 0; k < sizeof uses / sizeof *uses && !status; k++) {
        const fac_dims dims = { .n = 4, .d = { uses[k].batch, z->channels, z->height, z->width } };
        fac_tensor *x = NULL;
        fprintf(to, "== %s %s batch %lld\n", z->name, uses[k].use, (long long)uses[k].batch);
        status = fac_tensor_new(NULL, FAC_F32, dims, &x, &err);
        if (!status)
            status =
                uses[k].train ? dump_training(to, g, d, m, x) : dump_inference(to, g, d, m, &x);
        fac_tensor_free(x);
    }
    fac_graph_free(g);
    return status;
}

static fac_status read_graph(const char *path, fac_graph **out) {
    if (strstr(path, ".onnx")) return fac_onnx_load(path, NULL, out, &err);
    FILE *from = fopen(path, "r");
    if (!from) return fac_raise(&err, FAC_E_IO, "%s cannot be read", path);
    const fac_status status = fac_graph_read(from, out, &err);
    fclose(from);
    return status;
}

/* A model or a graph's text, with inputs of zeros; open sizes are 1.  After "train:" it is a step
 * of training. */
static fac_status dump_file(FILE *to, const char *name, fac_device *d, const mode *m) {
    enum { INPUTS = 1024 };
    const bool train = !strncmp(name, "train:", 6);
    const char *path = train ? name + 6 : name;
    fac_graph *g = NULL;
    fac_tensor *in[INPUTS] = { NULL };
    fac_status status = read_graph(path, &g);
    const int n = status ? 0 : fac_graph_inputs(g);
    if (n > INPUTS) status = fac_raise(&err, FAC_E_UNSUPPORTED, "%s has %d inputs", path, n);
    for (int i = 0; i < n && !status; i++) {
        fac_type t = fac_value_type(fac_graph_input(g, i));
        for (int k = 0; k < t.dims.n; k++)
            if (t.dims.d[k] < 0) t.dims.d[k] = 1;
        status = fac_tensor_new(NULL, t.dtype, t.dims, &in[i], &err);
    }
    fprintf(to, "== %s\n", name);
    if (!status)
        status = train ? dump_training(to, g, d, m, in[0]) : dump_inference(to, g, d, m, in);
    for (int i = 0; i < INPUTS; i++) fac_tensor_free(in[i]);
    fac_graph_free(g);
    return status;
}

/* A step of decoding of a language model. */
static fac_status dump_language(FILE *to, const char *path, fac_device *d, const mode *m) {
    fac_lm *lm = NULL;
    fac_session *s = NULL;
    const fac_lm_opts opts = { .context = 1024, .precision = m->precision };
    fac_status status = fac_lm_load(path, d, &opts, &lm, &err);
    if (!status) status = fac_session_new(lm, &s, &err);
    fprintf(to, "== %s\n", path);
    if (!status) status = dump_program(to, s->program, s->in[0]);
    fac_session_free(s);
    fac_lm_free(lm);
    return status;
}

static bool is_language(const char *name) { return strstr(name, ".gguf") || strchr(name, '/'); }
static bool is_file(const char *name) { return strstr(name, ".onnx") || strstr(name, ".graph"); }

static bool wanted(const char *name, int n, char **names) {
    for (int i = 0; i < n; i++)
        if (!strcmp(name, names[i])) return true;
    return n == 0;
}

static int dump(const char *folder, const char *device, int n, char **names) {
    char texts[4096], path[4200];
    fac_device *d = NULL;
    fac_status status = FAC_OK;
    snprintf(texts, sizeof texts, "%s/kernels", folder);
    mkdir(folder, 0777);
    mkdir(texts, 0777);
    if (open_device(device, texts, &d)) return failed(device);
    for (size_t k = 0; k < sizeof modes / sizeof *modes && !status; k++) {
        if (modes[k].nvidia && strncmp(device, "sm_", 3)) continue;
        snprintf(path, sizeof path, "%s/%s.%s.txt", folder, is_cpu(device) ? device + 4 : device,
                 modes[k].name);
        FILE *to = fopen(path, "w");
        if (!to) {
            perror(path);
            return 1;
        }
        for (const fac_zoo *z = fac_zoo_models; z->name && !status; z++)
            if (wanted(z->name, n, names)) status = dump_network(to, z, d, &modes[k]);
        for (int i = 0; i < n && !status; i++)
            if (is_file(names[i]))
                status = dump_file(to, names[i], d, &modes[k]);
            else if (is_language(names[i]) && !modes[k].mixed)
                status = dump_language(to, names[i], d, &modes[k]);
        if (fclose(to)) {
            perror(path);
            return 1;
        }
    }
    fac_device_free(d);
    return status ? failed(device) : 0;
}

int main(int argc, char **argv) {
    if (argc >= 3) return dump(argv[1], argv[2], argc - 3, argv + 3);
    fprintf(stderr, "usage: plan_dump FOLDER DEVICE [NETWORK...]\n");
    return 2;
}
