/* Curves and weights of a user's program.  Both are limited: a full curve drops every second of its
 * points, and from then on takes every second new one. */
#include "studio/runs/notebook.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/text.h"
#include "studio/server/json.h"

enum { POINTS = 500, BUCKETS = 24, SIDE = 48 };

typedef struct curve {
    char name[NOTEBOOK_NAME];
    double x[POINTS + 1], y[POINTS + 1];
    int n, shown; /* points kept; points shown, which always include the last one */
    int64_t every, count;
} curve;

typedef struct picture {
    char name[NOTEBOOK_NAME];
    fac_dims dims;
    double min, max, mean, std, norm;
    uint32_t counts[BUCKETS];
    int w, h;
    uint8_t image[SIDE * SIDE];
} picture;

struct notebook {
    pthread_mutex_t lock;
    curve *curve[NOTEBOOK_CURVES];
    int ncurves;
    picture *tensor;
    int ntensors;
    notebook_turn turn;
    atomic_bool stopped;
};

notebook *fac_notebook_new(void) {
    notebook *n = fac_alloc(1, sizeof *n);
    if (n) pthread_mutex_init(&n->lock, NULL);
    return n;
}

void fac_notebook_free(notebook *n) {
    if (!n) return;
    for (int k = 0; k < n->ncurves; k++) fac_release(n->curve[k]);
    fac_release(n->tensor);
    pthread_mutex_destroy(&n->lock);
    fac_release(n);
}

void fac_notebook_stop(notebook *n) { atomic_store(&n->stopped, true); }
bool fac_notebook_stopped(const notebook *n) { return atomic_load(&n->stopped); }

notebook_turn fac_notebook_turn(notebook *n) {
    pthread_mutex_lock(&n->lock);
    const notebook_turn turn = n->turn;
    pthread_mutex_unlock(&n->lock);
    return turn;
}

/* ---- curves ---- */

static curve *find_curve(notebook *n, const char *name) {
    for (int k = 0; k < n->ncurves; k++)
        if (!strcmp(n->curve[k]->name, name)) return n->curve[k];
    if (n->ncurves == NOTEBOOK_CURVES) return NULL;
    curve *c = fac_alloc(1, sizeof *c);
    if (!c) return NULL;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->every = 1;
    return n->curve[n->ncurves++] = c;
}

static void add_point(curve *c, double x, double y) {
    if (c->n == POINTS) {
        for (int k = 0; k < POINTS / 2; k++) {
            c->x[k] = c->x[2 * k];
            c->y[k] = c->y[2 * k];
        }
        c->n = POINTS / 2;
        c->every *= 2;
    }
    c->x[c->n] = x;
    c->y[c->n] = y;
    c->shown = c->n + 1;
    if (c->count++ % c->every == 0) c->n++;
}

static fac_status check_name(const char *name, fac_error *err) {
    if (name && *name && strlen(name) < NOTEBOOK_NAME) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "a name must have 1 to %d bytes, not \"%s\"",
                     NOTEBOOK_NAME - 1, name ? name : "");
}

fac_status fac_notebook_log(notebook *n, double step, int count, const char *const names[],
                            const double values[], fac_error *err) {
    fac_status status = FAC_OK;
    for (int k = 0; k < count; k++) FAC_TRY(check_name(names[k], err));
    pthread_mutex_lock(&n->lock);
    for (int k = 0; k < count && !status; k++) {
        curve *c = find_curve(n, names[k]);
        if (c)
            add_point(c, step, values[k]);
        else if (n->ncurves < NOTEBOOK_CURVES)
            status = fac_raise_memory(err, "a curve");
        else
            status = fac_raise(err, FAC_E_ARGUMENT, "%s: a studio shows at most %d curves",
                               names[k], NOTEBOOK_CURVES);
    }
    n->turn.curves++;
    pthread_mutex_unlock(&n->lock);
    return status;
}

static void put_numbers(fac_text *to, const char *key, const double *x, int n) {
    fac_json_put_key(to, key);
    for (int k = 0; k < n; k++) {
        fac_text_add(to, k ? "," : "[");
        fac_json_put_number(to, x[k]);
    }
    fac_text_add(to, n ? "]" : "[]");
}

void fac_notebook_put_curves(notebook *n, fac_text *to) {
    pthread_mutex_lock(&n->lock);
    fac_json_put_key(to, "curves");
    fac_text_add(to, "[");
    for (int k = 0; k < n->ncurves; k++) {
        const curve *c = n->curve[k];
        fac_text_add(to, k ? ",{" : "{");
        fac_json_put_pair_text(to, "name", c->name);
        fac_json_put_pair(to, "count", (double)c->count);
        put_numbers(to, "x", c->x, c->shown);
        put_numbers(to, "y", c->y, c->shown);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
    pthread_mutex_unlock(&n->lock);
}

/* ---- weights ---- */

/* NaN affects mean, std and norm only. */
static void measure(picture *p, const float *x, int64_t n) {
    double sum = 0, square = 0;
    p->min = NAN;
    p->max = NAN;
    for (int64_t i = 0; i < n; i++) {
        const double v = (double)x[i];
        sum += v;
        square += v * v;
        p->min = fmin(p->min, v);
        p->max = fmax(p->max, v);
    }
    p->mean = sum / (double)n;
    p->std = sqrt(fmax(square / (double)n - p->mean * p->mean, 0));
    p->norm = sqrt(square);
    const double wide = p->max - p->min;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) continue;
        const double at = wide > 0 ? ((double)x[i] - p->min) / wide * BUCKETS : 0;
        if (at >= 0) p->counts[at < BUCKETS ? (int)at : BUCKETS - 1]++;
    }
}

/* Rows are the first dim, columns all others; large tensors are sampled. */
static void draw(picture *p, const float *x, int64_t n) {
    const double most = fmax(fabs(p->min), fabs(p->max));
    const int64_t rows = p->dims.n > 1 ? p->dims.d[0] : 1, cols = n / rows;
    p->h = (int)(rows < SIDE ? rows : SIDE);
    p->w = (int)(cols < SIDE ? cols : SIDE);
    for (int i = 0; i < p->h; i++)
        for (int j = 0; j < p->w; j++) {
            const double v = (double)x[i * rows / p->h * cols + j * cols / p->w];
            const double byte = most > 0 ? 127.5 + 127.5 * v / most : 127.5;
            p->image[i * p->w + j] = byte >= 0 ? (uint8_t)byte : 0;
        }
}

static fac_status look(picture *p, const char *name, const fac_tensor *t, fac_error *err) {
    fac_tensor *narrow = NULL;
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    snprintf(p->name, sizeof p->name, "%s", name);
    p->dims = type.dims;
    FAC_TRY(fac_tensor_convert(t, FAC_F32, &narrow, err));
    const float *x = fac_tensor_data(narrow);
    if (x && n) measure(p, x, n);
    if (x && n) draw(p, x, n);
    fac_tensor_free(narrow);
    return FAC_OK;
}

fac_status fac_notebook_weights(notebook *n, int count, const char *const names[],
                                fac_tensor *const tensors[], fac_error *err) {
    const int kept = count < NOTEBOOK_TENSORS ? count : NOTEBOOK_TENSORS;
    picture *new = fac_alloc((size_t)kept + 1, sizeof *new);
    fac_status status = new ? FAC_OK : fac_raise_memory(err, "pictures of weights");
    for (int k = 0; k < kept && !status; k++) status = check_name(names[k], err);
    for (int k = 0; k < kept && !status; k++) status = look(&new[k], names[k], tensors[k], err);
    if (status) {
        fac_release(new);
        return status;
    }
    pthread_mutex_lock(&n->lock);
    picture *old = n->tensor;
    n->tensor = new;
    n->ntensors = kept;
    n->turn.weights++;
    pthread_mutex_unlock(&n->lock);
    fac_release(old);
    return FAC_OK;
}

static void put_tensor(const picture *p, fac_text *to) {
    fac_json_put_pair_text(to, "name", p->name);
    fac_json_put_key(to, "shape");
    for (int k = 0; k < p->dims.n; k++)
        fac_text_print(to, k ? ",%lld" : "[%lld", (long long)p->dims.d[k]);
    fac_text_add(to, p->dims.n ? "]" : "[]");
    fac_json_put_pair(to, "min", p->min);
    fac_json_put_pair(to, "max", p->max);
    fac_json_put_pair(to, "mean", p->mean);
    fac_json_put_pair(to, "std", p->std);
    fac_json_put_pair(to, "norm", p->norm);
    fac_json_put_key(to, "counts");
    for (int k = 0; k < BUCKETS; k++) fac_text_print(to, k ? ",%u" : "[%u", p->counts[k]);
    fac_text_add(to, "]");
}

static void put_pictures(const notebook *n, fac_text *to) {
    const char count[] = { (char)(n->ntensors & 255), (char)(n->ntensors >> 8) };
    fac_text_add_bytes(to, count, sizeof count);
    for (int k = 0; k < n->ntensors; k++) {
        const picture *p = &n->tensor[k];
        const char head[] = { 0, (char)k, (char)p->w, 0, (char)p->h, 0 };
        fac_text_add_bytes(to, head, sizeof head);
        fac_text_add_bytes(to, (const char *)p->image, (size_t)(p->w * p->h));
    }
}

void fac_notebook_put_weights(notebook *n, fac_text *to, fac_text *pictures) {
    pthread_mutex_lock(&n->lock);
    fac_json_put_key(to, "tensors");
    fac_text_add(to, "[");
    for (int k = 0; k < n->ntensors; k++) {
        fac_text_add(to, k ? ",{" : "{");
        put_tensor(&n->tensor[k], to);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
    put_pictures(n, pictures);
    pthread_mutex_unlock(&n->lock);
}
