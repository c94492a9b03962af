/* Functions: an op with its attributes and the types of its inputs, or the gradient of such a
 * function, as a program that is made once and kept.  This is what eager calls run: looking one up
 * costs less than a microsecond, planning it again would cost twenty. */
#include <string.h>
#include "function.h"

enum { KEY = 2048, KEPT = 4096, SAVED = 62 };

static Entry **table;
static size_t slots, count;
static uint64_t tick, made, found;

/* ---- keys ---- */

typedef struct Key {
    unsigned char at[KEY];
    size_t bytes;
    bool full;
} Key;

static void put(Key *k, const void *data, size_t bytes) {
    if (k->bytes + bytes > KEY) {
        k->full = true;
        return;
    }
    memcpy(k->at + k->bytes, data, bytes);
    k->bytes += bytes;
}

static const fac_port *port(const fac_op *op, int i) {
    const fac_port *p = op->in;
    if (!p || !p->name) return NULL;
    while (i-- > 0 && p[1].name) p++;
    return p;
}

static bool steers(const fac_op *op, int i) {
    const fac_port *p = port(op, i);
    return p && (p->is & FAC_HOST);
}

static bool put_tensor(Key *k, TensorObject *x, bool contents) {
    fac_type type = { FAC_NONE, { 0 } };
    if (x) type = py_type(x);
    unsigned char head[2] = { (unsigned char)type.dtype, (unsigned char)type.dims.n };
    put(k, head, sizeof head);
    put(k, type.dims.d, (size_t)type.dims.n * sizeof *type.dims.d);
    if (!x || !contents) return true;
    if (!py_value((PyObject *)x)) return false;
    const void *data = fac_tensor_data(x->t);
    if (data) put(k, data, fac_type_bytes(&type));
    return true;
}

static uint64_t hash_of(const Key *k) {
    uint64_t h = 1469598103934665603u;
    size_t i = 0;
    for (; i + 8 <= k->bytes; i += 8) {
        uint64_t word;
        memcpy(&word, k->at + i, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (; i < k->bytes; i++) h = (h ^ k->at[i]) * 1099511628211u;
    return h ^ (h >> 32);
}

/* ---- life ---- */

static void free_entry(Entry *e) {
    fac_program_free(e->f.program);
    fac_lazy_body_free(e->f.body);
    fac_graph_free(e->f.graph);
    for (int i = 0; i < e->how.n; i++) fac_tensor_free(e->how.fixed[i]);
    for (int i = 0; i < e->f.nvjps; i++) free_entry((Entry *)e->f.vjps[i]);
    PyMem_Free(e->f.vjps);
    PyMem_Free(e->f.masks);
    PyMem_Free(e->how.attrs);
    PyMem_Free(e);
}

/* Gradients live as long as what they are gradients of, so the op at their root is counted. */
static Function *root(Function *f) {
    while (((Entry *)f)->how.of) f = ((Entry *)f)->how.of;
    return f;
}

Function *py_function_hold(Function *f) {
    root(f)->refs++;
    return f;
}

void py_function_free(Function *f) {
    Function *r = f ? root(f) : NULL;
    if (r && !--r->refs) free_entry((Entry *)r);
}

static Entry *new_entry(const Key *k, uint64_t hash) {
    size_t bytes = k ? k->bytes : 0;
    Entry *e = PyMem_Calloc(1, sizeof *e + bytes);
    if (!e) {
        PyErr_NoMemory();
        return NULL;
    }
    e->f.refs = 1;
    e->hash = hash;
    e->bytes = bytes;
    if (k) memcpy(e->key, k->at, bytes);
    return e;
}

/* ---- looking up ---- */

static bool grow(void) {
    size_t wider = slots ? slots * 2 : 256;
    Entry **to = PyMem_Calloc(wider, sizeof *to);
    if (!to) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < slots; i++)
        while (table[i]) {
            Entry *e = table[i];
            table[i] = e->next;
            e->next = to[e->hash & (wider - 1)];
            to[e->hash & (wider - 1)] = e;
        }
    PyMem_Free(table);
    table = to;
    slots = wider;
    return true;
}

/* Half of the entries go, those used longest ago. */
static void forget(void) {
    uint64_t before = tick - KEPT / 2;
    for (size_t i = 0; i < slots; i++)
        for (Entry **at = &table[i]; *at;) {
            Entry *e = *at;
            if (e->used >= before) {
                at = &e->next;
                continue;
            }
            *at = e->next;
            count--;
            py_function_free(&e->f);
        }
}

static Entry *lookup(const Key *k, uint64_t hash) {
    for (Entry *e = slots ? table[hash & (slots - 1)] : NULL; e; e = e->next)
        if (e->hash == hash && e->bytes == k->bytes && !memcmp(e->key, k->at, k->bytes)) {
            e->used = ++tick;
            found++;
            return e;
        }
    return NULL;
}

static bool describe(Entry *e, const fac_op *op, const char *attrs, int n,
                     TensorObject *const in[]) {
    Recipe *how = &e->how;
    how->op = op;
    how->n = e->f.nin = n;
    if (attrs) {
        how->attrs = PyMem_Malloc(strlen(attrs) + 1);
        if (!how->attrs) return PyErr_NoMemory() != NULL;
        strcpy(how->attrs, attrs);
    }
    for (int i = 0; i < n; i++) {
        how->absent[i] = !in[i];
        if (!in[i]) continue;
        how->types[i] = py_type(in[i]);
        e->f.work += (uint64_t)fac_dims_count(&how->types[i].dims);
        if (steers(op, i)) {
            fac_error err;
            e->f.fixed[i] = true;
            if (fac_tensor_convert(in[i]->t, how->types[i].dtype, &how->fixed[i], &err))
                return py_raise(&err) != NULL;
        } else
            e->f.floats_in[i] = fac_dtype_get(how->types[i].dtype)->kind == 'f';
    }
    return true;
}

static void add_work_of_results(Function *f) {
    for (int k = 0; k < f->nout; k++) {
        fac_type t = fac_value_type(fac_graph_output(f->graph, k));
        int64_t n = fac_dims_count(&t.dims);
        f->work += n > 0 ? (uint64_t)n : 0;
    }
}

Function *py_function_op(const fac_op *op, const char *attrs, int want, fac_device *device, int n,
                         TensorObject *const in[]) {
    Key k = { .bytes = 0 };
    if (n > PY_PORTS - 2) {
        PyErr_Format(PyExc_ValueError, "%s: %d inputs, at most %d can be given at once", op->name,
                     n, PY_PORTS - 2);
        return NULL;
    }
    put(&k, &op, sizeof op);
    put(&k, &device, sizeof device);
    put(&k, &want, sizeof want);
    for (int i = 0; i < n; i++)
        if (!put_tensor(&k, in[i], steers(op, i))) return NULL;
    if (attrs) put(&k, attrs, strlen(attrs));
    if (k.full) {
        PyErr_Format(PyExc_ValueError, "%s: inputs that steer shapes are too long", op->name);
        return NULL;
    }
    uint64_t hash = hash_of(&k);
    Entry *e = lookup(&k, hash);
    if (e) return &e->f;
    if (count >= slots && !grow()) return NULL;
    if (count >= KEPT) forget();
    e = new_entry(&k, hash);
    if (!e) return NULL;
    e->f.device = device;
    e->how.want = want;
    if (!describe(e, op, attrs, n, in) || !py_function_build_op(e)) {
        free_entry(e);
        return NULL;
    }
    add_work_of_results(&e->f);
    made++;
    e->used = ++tick;
    e->next = table[hash & (slots - 1)];
    table[hash & (slots - 1)] = e;
    count++;
    return &e->f;
}

Function *py_function_graph(const fac_graph *g, fac_device *device) {
    const int n = fac_graph_inputs(g), nout = fac_graph_outputs(g);
    if (n > PY_PORTS || nout > PY_PORTS) {
        PyErr_Format(PyExc_ValueError, "%d inputs and %d results, at most %d of both can be called",
                     n, nout, PY_PORTS);
        return NULL;
    }
    Entry *e = new_entry(NULL, 0);
    if (!e) return NULL;
    e->f.device = device;
    e->f.nin = n;
    e->f.nout = nout;
    e->f.graph = fac_graph_clone(g);
    for (int i = 0; i < n; i++) {
        e->how.types[i] = fac_value_type(fac_graph_input(g, i));
        const int64_t elements = fac_dims_count(&e->how.types[i].dims);
        e->f.work += elements > 0 ? (uint64_t)elements : 0;
    }
    if (e->f.graph) return &e->f;
    free_entry(e);
    PyErr_NoMemory();
    return NULL;
}

static bool keep_vjp(Function *f, Function *v, uint64_t key) {
    Function **vjps = PyMem_Realloc(f->vjps, (size_t)(f->nvjps + 1) * sizeof *vjps);
    if (vjps) f->vjps = vjps;
    uint64_t *masks = vjps ? PyMem_Realloc(f->masks, (size_t)(f->nvjps + 1) * sizeof *masks) : NULL;
    if (!masks) return PyErr_NoMemory() != NULL;
    f->masks = masks;
    f->vjps[f->nvjps] = v;
    f->masks[f->nvjps++] = key;
    return true;
}

Function *py_function_vjp(Function *f, uint64_t key) {
    for (int i = 0; i < f->nvjps; i++)
        if (f->masks[i] == key) return f->vjps[i];
    Entry *e = new_entry(NULL, 0);
    if (!e) return NULL;
    e->f.device = f->device;
    e->how.mask = key & ~(UINT64_C(1) << SAVED);
    memcpy(e->how.types, ((Entry *)f)->how.types, sizeof e->how.types);
    memcpy(e->f.floats_in, f->floats_in, sizeof f->floats_in);
    memcpy(e->f.fixed, f->fixed, sizeof f->fixed);
    e->how.of = f;
    e->f.gradient = true;
    bool ok = py_function_build_vjp(e, key >> SAVED & 1);
    if (ok) add_work_of_results(&e->f);
    e->f.work += f->work;
    if (ok) ok = keep_vjp(f, &e->f, key);
    if (ok) return &e->f;
    free_entry(e);
    return NULL;
}

/* ---- running ---- */

enum { SMALL = 1 << 14 }; /* elements: about what takes as long as giving the GIL away */

static bool compile(Function *f) {
    fac_program *p;
    fac_error err;
    if (fac_program_new(f->graph, f->device, NULL, &p, &err)) return py_raise(&err) != NULL;
    f->program = p;
    return true;
}

bool py_function_run(Function *f, fac_tensor *const in[], fac_tensor *out[]) {
    fac_error err;
    fac_status status;
    fac_tensor *given[PY_PORTS];
    int n = 0;
    if (!f->program && !compile(f)) return false;
    const Entry *e = (const Entry *)f;
    for (int i = 0; i < f->nin; i++) /* absent ones are no inputs of the graph */
        if (e->how.types[i].dtype) given[n++] = in[i];
    for (int k = 0; k < f->nout; k++) out[k] = NULL;
    if (f->work <= SMALL)
        status = fac_program_run(f->program, given, out, &err);
    else {
        py_function_hold(f);
        PY_WORK_BEGIN
        status = fac_program_run(f->program, given, out, &err);
        PY_WORK_END(status)
        py_function_free(f);
    }
    if (!status) return true;
    py_raise(&err);
    return false;
}

PyObject *py_cache_stat(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return Py_BuildValue("{s:n,s:K,s:K}", "functions", (Py_ssize_t)count, "made", made, "found",
                         found);
}
