/* The packer: weights of many convolutions at once, as a step of training has them.  One launch for
 * all that have the same type and the same mode, as far as its arguments have room for their
 * buffers; what else each unit needs to know stands in a table that is made with the plan.
 *
 * Forms of the same weights (forward and flipped) are neighbours, so that the second one finds them
 * in the second cache. */
#include "backends/opencl/device/calls.h"
#include "backends/opencl/nvidia/unit/pack.h"
#include "backends/opencl/device/probe.h"
#include "opencl_solvers.h"
#include "base/error.h"
#include "base/memory.h"

enum { SOURCES = 192, LARGEST_ARGUMENTS = 4096 }; /* more is not everywhere what it is said to be */

static const struct {
    const fac_solver *solver;
    fac_nv_weights (*weights)(const void *plan);
} taken[] = { { &fac_cl_conv_wgmma, fac_nv_rows_weights },
              { &fac_cl_conv_mma, fac_nv_rows_weights },
              { &fac_cl_conv_wgmma_stream, fac_nv_conv_wgmma_stream_weights },
              { &fac_cl_winograd_wgmma, fac_nv_winograd_wgmma_weights } };
enum { TAKEN = sizeof taken / sizeof *taken };

static int number_of(const fac_solver *s) {
    int i = 0;
    while (i < TAKEN && taken[i].solver != s) i++;
    return i;
}

static bool takes(const fac_solver *s) { return number_of(s) < TAKEN; }

typedef struct job {
    fac_nv_weights w;
    const fac_pack_job *job;
    int launch, place;
} job;

typedef struct table {
    fac_nv_pack *phases;
    int32_t *units;
    size_t nphases, nunits, bytes;
} table;

/* Of each buffer a place and a pointer; tiles, the table and a number beside the weights. */
static int sources_most(const fac_opencl *o) {
    const size_t bytes =
        o->limits.arguments < LARGEST_ARGUMENTS ? o->limits.arguments : LARGEST_ARGUMENTS;
    const int most = (int)(bytes / 16) - 3;
    return most < SOURCES ? most : SOURCES;
}

static fac_status no_memory(int n, fac_error *err) {
    return fac_raise(err, FAC_E_NOMEM, "no memory to pack %d weights", n);
}

/* ---- which launch ---- */

static int form_of(const job *j) { return (int)j->job->type.dtype << 8 | (int)j->w.k->mode; }

static bool before(const job *a, const job *b) {
    return form_of(a) != form_of(b) ? form_of(a) < form_of(b) : a->job->from < b->job->from;
}

/* By form, then by source, else in the order of the jobs. */
static void sort(job *jobs, int n) {
    for (int i = 1; i < n; i++) {
        const job x = jobs[i];
        int k = i;
        for (; k > 0 && before(&x, &jobs[k - 1]); k--) jobs[k] = jobs[k - 1];
        jobs[k] = x;
    }
}

/* The number of each job's launch, and of its source there; returns how many launches. */
static int cut(const fac_opencl *o, job *jobs, int n) {
    int launches = 0, places = 0;
    for (int i = 0; i < n; i++) {
        const job *last = &jobs[i ? i - 1 : 0];
        const bool alike = i && form_of(last) == form_of(&jobs[i]),
                   known = alike && last->job->from == jobs[i].job->from;
        if (!alike || (!known && places == sources_most(o))) launches++, places = 0;
        if (!known) places++;
        jobs[i].launch = launches - 1;
        jobs[i].place = places - 1;
    }
    return launches;
}

/* ---- the table ---- */

/* The units of a job, after those of its launch so far; fills the table where it has memory
 * already. */
static void add_units(const job *j, table *t, size_t start) {
    for (int i = 0; i < fac_nv_pack_phases(&j->w); i++) {
        fac_nv_pack s = fac_nv_pack_phase(&j->w, i, j->job->to);
        const size_t units = fac_nv_pack_units(&j->w, &s);
        s.source = j->place;
        s.first = (int32_t)(t->nunits - start);
        if (t->phases) t->phases[t->nphases] = s;
        for (size_t u = 0; u < units && t->units; u++)
            t->units[t->nunits + u] = (int32_t)t->nphases;
        t->nphases++, t->nunits += units;
    }
}

/* starts: of each launch its first unit, and one more. */
static void fill(const job *jobs, int n, table *t, size_t *starts) {
    int launch = -1;
    t->nphases = t->nunits = 0;
    for (int i = 0; i < n; i++) {
        if (jobs[i].launch != launch) starts[launch = jobs[i].launch] = t->nunits;
        add_units(&jobs[i], t, starts[launch]);
    }
    starts[launch + 1] = t->nunits;
}

static fac_status table_of(const job *jobs, int n, table *t, size_t *starts, fac_error *err) {
    fill(jobs, n, t, starts);
    t->bytes = t->nphases * sizeof *t->phases + t->nunits * sizeof *t->units;
    t->phases = fac_alloc(t->bytes + 1, 1);
    if (!t->phases) return no_memory(n, err);
    t->units = (int32_t *)(t->phases + t->nphases);
    fill(jobs, n, t, starts);
    return FAC_OK;
}

/* ---- the plan ---- */

static void add_buffer(fac_cl_call *c, fac_cl_origin origin, int index, size_t size) {
    c->buffer[c->buffers++] = (fac_cl_operand){ origin, index, size, 0 };
}

static size_t bytes_of(fac_dtype t) { return (size_t)fac_dtype_get(t)->block_bytes; }

/* Five groups on a compute unit: whatever waits for its weights, others make tiles. */
static const char *registers(fac_opencl *o) {
    return fac_cl_has_path(o, FAC_CL_MMA) ? "-cl-nv-maxrregcount=48" : "";
}

/* The launch that begins with the first of these jobs; units: how many groups, from: its first
 * one's word in the table. */
static fac_status add_launch(fac_opencl *o, fac_cl_plan *plan, const job *jobs, int n, size_t units,
                             size_t from, fac_error *err) {
    const fac_nv_mode mode = jobs->w.k->mode;
    const fac_dtype type = jobs->job->type.dtype;
    const size_t items = fac_nv_pack_items(o);
    fac_text text = { 0 };
    fac_cl_call *c = NULL;
    text.failed |= !fac_nv_packs_text(type, mode, jobs[n - 1].place + 1, &text);
    fac_status status = fac_cl_call_text(o, plan, &text, registers(o), "packs", &c, err);
    fac_text_free(&text);
    FAC_TRY(status);
    for (int i = 0; i < n; i++)
        if (!i || jobs[i].place != jobs[i - 1].place)
            add_buffer(c, FAC_CL_IN, jobs[i].job->from, bytes_of(type));
    add_buffer(c, FAC_CL_TABLE, 0, sizeof(int32_t));
    add_buffer(c, FAC_CL_OUT, 0, fac_nv_is_half(mode) ? 2 : 4);
    fac_cl_call_number(c, (int64_t)from);
    fac_cl_call_items(c, units * items, items);
    return FAC_OK;
}

static fac_status add_launches(fac_opencl *o, fac_cl_plan *plan, const job *jobs, int n,
                               fac_error *err) {
    size_t *starts = fac_alloc((size_t)n + 1, sizeof *starts);
    table t = { 0 };
    fac_status status = starts ? table_of(jobs, n, &t, starts, err) : no_memory(n, err);
    if (!status) status = fac_cl_plan_table(o, plan, t.phases, t.bytes, err);
    for (int i = 0, next; i < n && !status; i = next) {
        const int launch = jobs[i].launch;
        for (next = i; next < n && jobs[next].launch == launch;) next++;
        status = add_launch(o, plan, jobs + i, next - i, starts[launch + 1] - starts[launch],
                            t.nphases * (sizeof *t.phases / sizeof *t.units) + starts[launch], err);
    }
    fac_release(t.phases);
    fac_release(starts);
    return status;
}

fac_status fac_nv_packs_make(fac_opencl *o, const fac_nv_weights *w, const fac_pack_job *all, int n,
                             void **out, fac_error *err) {
    job *jobs = fac_alloc((size_t)n + 1, sizeof *jobs);
    if (!jobs) return no_memory(n, err);
    for (int i = 0; i < n; i++) jobs[i] = (job){ .w = w[i], .job = &all[i] };
    sort(jobs, n);
    const int launches = cut(o, jobs, n);
    fac_cl_plan *plan = fac_cl_plan_open(launches);
    const fac_status status = plan ? add_launches(o, plan, jobs, n, err) : FAC_OK;
    fac_release(jobs);
    return fac_cl_plan_close(&o->device, plan, status, out, err);
}

static fac_status make(fac_device *d, const fac_pack_job *jobs, int n, void **out, fac_error *err) {
    fac_nv_weights *w = fac_alloc((size_t)n + 1, sizeof *w);
    if (!w) return no_memory(n, err);
    for (int i = 0; i < n; i++) w[i] = taken[number_of(jobs[i].solver)].weights(jobs[i].plan);
    fac_status status = fac_nv_packs_make(fac_opencl_of(d), w, jobs, n, out, err);
    fac_release(w);
    return status;
}

static fac_status run(const void *plan, fac_device *d, const fac_span *from, fac_span to,
                      fac_error *err) {
    return fac_cl_plan_run(plan, d, from, &to, (fac_span){ 0 }, err);
}

const fac_packer fac_nv_packer = { takes, make, fac_cl_plan_done, run };
