/* What the files of fac_verify share. */
#ifndef FACULA_REPORT_VERIFY_H
#define FACULA_REPORT_VERIFY_H
#include <string.h>
#include "facula/program.h"
#include "facula/report/verify.h"
#include "graph/graph_internal.h"
#include "graph/attr.h"
#include "op_list.h"
#include "report/cost/report.h"

/* ---- one comparison ---- */

/* A model: as it was given with its sizes bound, and what runs in its place. */
typedef struct fac_verify_side {
    fac_graph *graph, *run;
    fac_tensor **out; /* of all runs, [nout]: rounds times run->noutputs */
    size_t nout;
    int *error_at; /* BOUND: see fac_error_bounds      */
    bool coarse;
} fac_verify_side;

typedef struct fac_trial {
    fac_verify_side a, b;
    fac_device *device;
    const fac_verify_opts *o;
    fac_tensor **in;
    fac_verdict *v;
    fac_error *err;
    int prime;  /* inputs are remainders modulo this; 0: real numbers */
    int narrow; /* integers may be places: below this; 0: of any size */
    bool tame;  /* and so may real numbers: all in [-1, 1)            */
    double *at; /* corners and jumps of the functions of both models  */
    size_t nat;
    /* what input i is compared with, where it has as many elements; NULL: nothing */
    fac_tensor **beside;
} fac_trial;

/* Data that were given are one round. */
static inline int fac_rounds_wanted(const fac_trial *t, int usual) {
    if (t->o->n) return 1;
    return t->o->rounds > 0 ? t->o->rounds : usual;
}

/* ---- compare.c ---- */

/* at: the first that differs; pair: its two numbers, in words.  unbounded: differences that no
 * finite bound says anything of; they are not in count.  sizes: the tensors have other sizes, in
 * words, which counts as one difference; "": the same. */
typedef struct fac_difference {
    int64_t at, count, unbounded;
    double worst, ratio, elements;
    char pair[64], sizes[80];
} fac_difference;
/* Numbers below the smallest normal one may become 0 on one of two ways: so far two results may be
 * apart for that alone. */
static const double FAC_UNDERFLOW = 0x1p-100;
/* |a - b| <= atol + rtol |b| + ea + eb, element by element, added to what *d has; ea and eb may be
 * NULL.  An infinite number is equal to itself alone; integers of 64 bits, which doubles do not
 * hold, to themselves alone where nothing is allowed. */
fac_status fac_compare(const fac_tensor *a, const fac_tensor *b, const fac_tensor *ea,
                       const fac_tensor *eb, double rtol, double atol, fac_difference *d,
                       fac_error *err);
/* The numbers of a tensor from element `from` on as doubles. */
void fac_tensor_doubles(const fac_tensor *t, int64_t from, int64_t n, double *to);

/* ---- ready.c: the graph of one side, as it was given, made ready to be compared ---- */
fac_status fac_trial_ready(const fac_trial *t, const fac_graph *g, fac_graph **out);

/* ---- magnitude.c: how large numbers can become ---- */

bool fac_reads_data(const fac_node *n, int i); /* read for its numbers, not as a shape or a place */
bool fac_multiplies(const fac_node *n);        /* operands 0 and 1, and adds                      */
/* What an op that adds and multiplies (FAC_OP_RING) makes of operands up to these, at most. */
double fac_ring_bound(const fac_node *n, const double *in);
/* Whether it is certain that no sum, product or growing function of g outgrows its type on the
 * trial's inputs. */
fac_status fac_stays_finite(const fac_trial *t, const fac_graph *g, bool *yes);

/* ---- overflow.c ---- */
/* Runs g on the trial's inputs; what: the first node whose numbers outgrew their type, or "". */
fac_status fac_find_overflow(const fac_trial *t, const fac_graph *g, char *what, size_t size);

/* ---- probe.c: values known by a few numbers ---- */

/* A copy of g with one output, f32[*count]: of each value the mean of its squares, and its mean
 * weighted by random numbers along each of its axes.  Values that are equal give equal numbers;
 * others hardly.  Small, so the planner keeps no value for it. */
fac_graph *fac_probe(const fac_graph *g, fac_value *const v[], size_t n, int64_t *count);
/* Whether the numbers of two values of these dims are equal, up to this part of their size. */
bool fac_probe_equal(const double *a, const double *b, int rank, double room);
static inline int fac_probe_size(const fac_value *v) { return 1 + v->type.dims.n; }

/* ---- pairs.c: which values of a are which values of b ---- */

typedef struct fac_pair {
    fac_value *a, *b;
} fac_pair;
/* Values that hold equal numbers, in the order of both graphs.  The caller frees *out with
 * fac_release. */
fac_status fac_find_pairs(fac_trial *t, const fac_graph *a, const fac_graph *b, double room,
                          fac_pair **out, size_t *n);

/* ---- first.c: where it begins ---- */
fac_status fac_find_first(fac_trial *t);

/* ---- local.c: bounds from pair to pair ---- */
/* false in *can: there are no pairs but the outputs, or a rounding error is unknown, so nothing is
 * said here. */
fac_status fac_verify_local(fac_trial *t, int rounds, bool *can);

/* ---- trial.c: running models ---- */
fac_status fac_trial_program(const fac_trial *t, const fac_graph *g, fac_program **out);
/* One run on the trial's inputs, which become the types of g. */
fac_status fac_trial_run(const fac_trial *t, const fac_graph *g, fac_program *p, fac_tensor *out[]);
/* All rounds of s->run from the first on, into s->out. */
fac_status fac_trial_rounds(fac_trial *t, fac_verify_side *s, int first, int rounds);
void fac_side_done(fac_verify_side *s); /* forgets what ran and its results */
/* Runs g once on tensors of the trial's inputs; out[] has g->noutputs places, all NULL. */
fac_status fac_trial_once(const fac_trial *t, const fac_graph *g, fac_tensor *out[]);
void fac_drop_tensors(fac_tensor *t[], size_t n);

/* ---- verify.c, for the others ---- */
bool fac_may_be_alike(const fac_value *x, const fac_value *y); /* of the same sizes */
void fac_verdict_unbounded(fac_verdict *v, const char *name, const fac_difference *d);
void fac_verdict_say(fac_verdict *v, fac_sameness same, const char *format, ...) FAC_PRINTF(3, 4);

/* ---- the graphs that run ---- */

/* widen.c: all floats but codes as f32 or f64; false: there are bodies, which keep their types. */
bool fac_can_widen(const fac_graph *g);
fac_graph *fac_widen(const fac_graph *g, fac_dtype to);

/* narrow.c: ops between casts that a file's lack of a type made, in their own type. */
fac_graph *fac_narrow(const fac_graph *g);

/* canonical.c: in the smallest ops.  fac_define takes g and frees it. */
enum { FAC_DEFINED = 8 }; /* results of a node that has such a form */
/* How far numbers are computed before: integers alone; floats too, as exporters do, which rounds;
 * and batch norms and factors are put into the weights before them, as simplifying does.  OPEN: and
 * ops with a formula of their own that a file may hold written out (dft, qlinear_add) are written
 * out. */
typedef enum fac_form {
    FAC_FORM_EXACT,
    FAC_FORM_FOLDED,
    FAC_FORM_ABSORBED,
    FAC_FORM_OPEN,
    FAC_FORM_OPEN_FOLDED,
    FAC_FORMS
} fac_form;
/* Whether g has an op that OPEN writes out. */
bool fac_can_open(const fac_graph *g);
fac_graph *fac_canonical(const fac_graph *g, fac_form form);
fac_graph *fac_define(fac_graph *g);
/* For fac_pass_fold.  Integers always: sizes and axes.  Floats would be rounded, which their
 * remainders are not. */
fac_status fac_fold_whole(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                          fac_error *err);

/* abstract.c: a canonical model on whole numbers modulo a prime. lost: the first node whose sums
 * may not be exact, or that nothing is known of; "" if there is none. */
typedef struct fac_abstract_stat {
    int prime;
    char lost[200];
} fac_abstract_stat;
fac_graph *fac_abstract(const fac_graph *g, int prime, fac_abstract_stat *stat);

/* unlike.c: node becomes one that remainders do not show and the other canonical model lacks, or
 * NULL; false: no memory.  And the type of floats that end earlier in one of two models, or
 * NULL. */
bool fac_verify_unlike(const fac_graph *a, const fac_graph *b, const fac_node **node);
const char *fac_verify_other_floats(const fac_graph *a, const fac_graph *b);

/* ---- exact.c ---- */
typedef enum fac_exactness {
    FAC_EXACT_EQUAL,
    FAC_EXACT_UNEQUAL,
    FAC_EXACT_LOST,
    FAC_EXACT_EMPTY
} fac_exactness;
typedef struct fac_exact {
    fac_exactness is;
    fac_form form;
    char why[400];
    double elements;
    int rounds;
} fac_exact;
fac_status fac_verify_exact(fac_trial *t, int rounds, fac_exact *out);

/* canonical.c: in the smallest ops, in the types that it has, so that it rounds as it did. */
fac_graph *fac_written_out(const fac_graph *g);

/* ---- structure.c: whether both models are one graph ---- */
fac_status fac_verify_structure(const fac_trial *t, bool *same);

/* ---- data.c ---- */
/* AGREES: within the tolerance; slight: but not within 1e-6 of f64.  UNCLEAR: f32 differs, and f64
 * cannot be asked. */
typedef enum fac_agreement {
    FAC_DATA_AGREES,
    FAC_DATA_DIFFERS,
    FAC_DATA_UNCLEAR,
    FAC_DATA_EMPTY
} fac_agreement;
/* outgrown: rounds that say nothing: see overflow.c. */
typedef struct fac_data {
    fac_agreement is;
    bool slight, f64;
    int rounds, outgrown;
} fac_data;
/* Fills the verdict's numbers, and why where they differ. */
fac_status fac_verify_data(fac_trial *t, fac_data *out);
/* data_closer.c.  Where outputs agree: whether they change alike from one input to another, in f64;
 * says so in the verdict where not. */
fac_status fac_verify_closer(fac_trial *t, bool *differs);
/* Multiply-adds of one run. */
double fac_macs(const fac_graph *g);

/* ---- whole.c ---- */
/* Of each output: no float leads to it, in neither model.  NULL: no memory; fac_release. */
bool *fac_whole_outputs(const fac_graph *a, const fac_graph *b);

/* ---- inputs.c ---- */
/* Of each kind of real inputs in turn: see there. */
enum { FAC_INPUT_KINDS = 8 };
fac_status fac_trial_inputs(fac_trial *t, int round);
const char *fac_inputs_word(const fac_trial *t, int round);
/* Collects t->at from both models. */
fac_status fac_trial_steps(fac_trial *t);

/* ---- reach.c: which sides of corners and jumps inputs came to ---- */
typedef struct fac_reach fac_reach;
/* Makes the smallest and largest number before each such function the last output of g: f32 or f64.
 * */
fac_status fac_reach_watch(const fac_graph *g, fac_reach **out, fac_graph **watched,
                           fac_error *err);
void fac_reach_look(fac_reach *r, const fac_tensor *numbers);
/* Adds in words what was not reached, at most size bytes in all. */
void fac_reach_say(const fac_reach *r, const char *model, char *to, size_t size);
void fac_reach_free(fac_reach *r);

/* bound.c: g with bounds of rounding errors as further outputs: error_at[k], of as many as g has
 * outputs, becomes the place of that of output k, or -1 where it is exact.  coarse: parameters of
 * 16 bits stand for numbers that were rounded to them.  *unknown: an op whose error is not known,
 * or NULL. */
fac_graph *fac_error_bounds(const fac_graph *g, bool coarse, int *error_at, const char **unknown);

/* ---- what both ask of a node ---- */

/* Products of one element of the result. */
static inline double fac_product_depth(const fac_node *n) {
    const fac_dims *w = &n->in[1]->type.dims;
    double k = 1;
    const bool transposed =
        n->op->layer == FAC_CLASS_CONV_TRANSPOSE; /* its weights are Cin, Cout, ... */
    if (transposed || n->op->layer == FAC_CLASS_CONV)
        for (int i = 0; i < w->n; i++) k *= i == transposed ? 1 : (double)w->d[i];
    else if (FAC_IS(n, gemm))
        k = (double)n->in[0]->type.dims.d[!fac_attr_flag(n, "trans_a")];
    else
        k = (double)n->in[0]->type.dims.d[n->in[0]->type.dims.n - 1];
    return k;
}

static inline bool fac_is_float(const fac_value *v) {
    return fac_dtype_get(v->type.dtype)->kind == 'f';
}
#endif
