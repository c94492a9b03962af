/* Between the files of schemes for trained models: see facula/quantize.h. */
#ifndef FACULA_QUANTIZE_SCHEMES_H
#define FACULA_QUANTIZE_SCHEMES_H
#include "facula/report/activations.h"
#include "facula/program.h"
#include "facula/quantize.h"
#include "graph/graph_internal.h"
#include "quantize/leveled.h"

/* What a value becomes: bytes, in a few cases with the scale of another value. */
typedef struct fac_slot {
    bool bytes, tallied;   /* tallied: stays floats, and is counted for a layer that reads it */
    const fac_value *like; /* the value whose scale it has; NULL: its own */
    fac_tally *tally;      /* NULL: nothing was seen */
} fac_slot;

/* q stands for (q - zero) scale. */
typedef struct fac_step {
    double scale;
    int zero;
} fac_step;

typedef struct fac_scheme_row fac_scheme_row;

typedef struct fac_integer_work {
    const fac_node *node;
    fac_integer_layer is;
    bool bytes;               /* of lq:wWaA: its weight is bytes, and nothing else */
    const fac_value *seen;    /* what later layers read of it */
    fac_tensor *float_result; /* of the sample at hand */
    double signal, error;
} fac_integer_work;

enum { FAC_KEPT_SAMPLES = 8 };

struct fac_calibrator {
    fac_graph *model; /* for inference, simplified; every value has a name */
    fac_device *device;
    fac_integers how; /* `keep` is not read after the beginning */
    const fac_scheme_row *row;
    fac_slot *slots; /* by id of value */
    fac_integer_work *layers;
    int nlayers, runs, samples;
    int weight_bits, input_bits; /* of lq:wWaA */
    fac_tensor **sample[FAC_KEPT_SAMPLES];
    fac_program *program; /* of the model, with a hook */
    fac_table values;     /* name -> fac_value of the model */
    fac_arena memory;
    fac_error wrong; /* of a visit, which cannot return one */
};

/* One row a scheme, one scheme a file. */
struct fac_scheme_row {
    const char *name, *about;
    /* Whether the row has a scheme of this name; NULL: its own name alone. */
    bool (*fits)(const char *scheme);
    bool calibrates;
    bool refits; /* layers of few bits, which other schemes leave as they are */
    /* Whether it has a form of such a node. */
    bool (*takes)(const fac_node *n);
    /* Which values become bytes, or are counted; may be NULL.  May leave c->wrong. */
    void (*plan)(fac_calibrator *c);
    /* The layer in its new form. */
    bool (*put)(fac_calibrator *c, fac_integer_work *l, fac_graph *to, fac_value *const in[],
                fac_value *out[]);
};
extern const fac_scheme_row fac_scheme_static, fac_scheme_dynamic, fac_scheme_int4, fac_scheme_lq;

/* lq.c: the bits of "lq:wWaA"; false: it is none. */
bool fac_lq_bits(const char *scheme, int *weights, int *inputs);

static inline fac_slot *fac_slot_of(const fac_calibrator *c, const fac_value *v) {
    return &c->slots[v->id];
}
/* The layer that a node is, unless it is kept; NULL: none. */
fac_integer_work *fac_layer_of(const fac_node *n);

/* ---- range.c ---- */

/* The scale of a value that becomes bytes; signed or not as the calibrator is told. */
fac_step fac_step_of(const fac_calibrator *c, const fac_value *v);
/* The step of a range; at least 0 lies within it. */
fac_step fac_step_between(double lo, double hi, bool is_signed);
/* Where |x| is to be cut, so that 128 levels diverge least from its histogram. */
double fac_entropy_limit(const fac_tally *t);

/* ---- weights.c ---- */

/* A weight as rows, one for each output channel: element k of row r is
 * at[r row_step + k term_step].  `tensor` holds it as f32. */
struct fac_rows {
    fac_tensor *tensor;
    const float *at;
    int64_t rows, terms, row_step, term_step;
};

/* Whether a node multiplies by a constant weight of f32, input 1, that can be seen as rows. */
bool fac_is_weighted(const fac_node *n);
fac_status fac_rows_of(const fac_node *n, fac_rows *to, fac_error *err);
void fac_rows_free(fac_rows *r);

/* Weights of 8 bits, symmetric. */
typedef struct fac_bytes_weight {
    fac_tensor *q, *scale, *zero;
    double sqnr;
} fac_bytes_weight;
/* The weight of n as it is asked for; least (may be NULL): the smallest scale that row r may have;
 * transposed: q is terms by rows. */
fac_status fac_bytes_weight_new(const fac_integers *how, const fac_node *n, const double *least,
                                bool transposed, fac_bytes_weight *to, fac_error *err);
/* byte_weights.c: the weight of n as bytes of scales for each row, dequantized; NULL: err. */
fac_value *fac_byte_weight(const fac_node *n, fac_graph *to, const char *name, double *sqnr,
                           fac_error *err);
/* A `linear` of other than two dims, which ONNX has as a product with a weight that is transposed.
 */
bool fac_is_transposed(const fac_node *n);
void fac_bytes_weight_free(fac_bytes_weight *w);
/* 10 log10(signal / error); INFINITY where there is no error. */
double fac_decibels(double signal, double error);

/* A new tensor in host memory, and its contents, which may be written; NULL when memory is gone. */
void *fac_quantize_tensor(fac_dtype dtype, fac_dims dims, fac_tensor **out, fac_error *err);
/* A constant called "NAME_SUFFIX", where the name is free; t stays the caller's. */
fac_value *fac_quantize_const(fac_graph *to, fac_tensor *t, const char *name, const char *suffix);
/* The name of the layer's weight, or of the layer. */
const char *fac_weight_name(const fac_integer_work *l);

/* Runs a program for what its hooks see: its results are dropped. */
fac_status fac_integers_run(fac_program *p, size_t outputs, fac_tensor *const in[], fac_error *err);

/* ---- measure.c ---- */
fac_status fac_integers_measure(fac_calibrator *c, const fac_graph *result, fac_error *err);
#endif
