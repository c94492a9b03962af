/* facula/lazy.h: tensors that are computed on the first read, for bindings.
 *
 * A recorder belongs to one device.  fac_record() appends an op to its segment, a graph that grows
 * and computes nothing, and returns values.  fac_flush() computes the segment: the values that
 * are still held get contents, all else is fused away.  Segments that repeat are found again
 * by a key that grows while they are recorded, so a second identical step plans nothing.
 *
 * What a segment reads is an input of its program, or a state, which the program is bound to:
 * weights of a state are packed once.  A value made by fac_lazy_state() is a state, and so is what
 * a segment assigns to, and what came unchanged through two flushes.
 * Numbers (fac_lazy_number) are constants of a program until they change: then they are inputs.
 *
 * Eager: each op runs at once, by a program of one op that is kept by op, attributes and types.
 * Lazy and eager give the same results but for rounding inside of fused ops.
 *
 * Gradients: an op that reads a value which requires a gradient remembers its inputs, unless
 * FAC_RECORD_NO_GRAD is set.  fac_lazy_backward() goes back over that history and records the
 * gradients, like any op.  A flush in between keeps what the gradients will read.
 *
 * Values are counted.  All calls are thread safe; a recorder does one thing at a time, but eager
 * ops compute side by side.  fac_lazy_retain and fac_lazy_free never wait, nor does a call free
 * tensors of the caller while it holds the recorder: a release callback of fac_tensor_borrow may
 * wait for other threads that record. Errors: an op that refuses its inputs says so when it is
 * recorded, and the recorder is as before. A flush that fails names the op; the values of its
 * segment are lost, and reading one tells why. */
#ifndef FACULA_LAZY_H
#define FACULA_LAZY_H

#include "facula/device.h"
#include "facula/graph.h"
#include "facula/op.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_recorder fac_recorder;
typedef struct fac_lazy fac_lazy; /* a value: recorded, or there */

/* ---- recorders ---- */

typedef struct fac_recorder_opts { /* zero is the default everywhere                        */
    size_t cache_bytes;            /* programs kept, by the memory they hold; 0 = 1 GiB     */
    int most_nodes;                /* a longer segment is flushed by itself; 0 = 20,000     */
    bool eager;                    /* see fac_recorder_set_eager                            */
    fac_precision precision;       /* of products inside f32 ops                            */
} fac_recorder_opts;

/* opts may be NULL.  The device must outlive the recorder. */
fac_status fac_recorder_new(fac_device *device, const fac_recorder_opts *opts, fac_recorder **out,
                            fac_error *err);
/* What is recorded and not flushed is dropped.  Values must be gone; NULL is fine. */
void fac_recorder_free(fac_recorder *r);
/* The device that the recorder was made for. */
fac_device *fac_recorder_device(const fac_recorder *r);
/* From now on every op runs when it is recorded, or no longer.  What was recorded is flushed when
 * it is read. */
void fac_recorder_set_eager(fac_recorder *r, bool eager);
/* Whether each op runs when it is recorded. */
bool fac_recorder_eager(const fac_recorder *r);

/* Counts since fac_recorder_new, but for the last line, which is now.  Many programs for few
 * flushes: something changes that should not (a shape, an attribute, a state made anew in each
 * step). */
typedef struct fac_recorder_stat {
    uint64_t flushes, hits, planned;     /* segments; found again; planned                        */
    uint64_t recorded, now, now_planned; /* ops; of them eager ones; one-op programs made         */
    uint64_t states, inputs, numbers;    /* bound by identity; given to runs; of these, numbers   */
    size_t pending, programs, bytes;     /* ops not flushed; programs kept; what they hold        */
} fac_recorder_stat;
fac_recorder_stat fac_recorder_stats(fac_recorder *r);

/* Computes what is recorded.  Nothing to do is no error. */
fac_status fac_flush(fac_recorder *r, fac_error *err);
/* Drops programs that are kept; segments are planned anew. */
void fac_recorder_trim(fac_recorder *r);

/* ---- values ---- */

/* Contents that are there.  The value retains t; who writes to t flushes first. */
fac_status fac_lazy_of(fac_recorder *r, fac_tensor *t, fac_lazy **out, fac_error *err);
/* The same, as a state: weights, moments, counters.  Programs are bound to t, and fac_lazy_assign
 * writes to it. */
fac_status fac_lazy_state(fac_recorder *r, fac_tensor *t, fac_lazy **out, fac_error *err);
/* A scalar: learning rates, factors, steps.  A new value of it plans anew once. */
fac_status fac_lazy_number(fac_recorder *r, fac_dtype dtype, double x, fac_lazy **out,
                           fac_error *err);
/* A constant i64[n], part of every segment that reads it: shapes, axes, starts of slices. */
fac_status fac_lazy_ints(fac_recorder *r, int n, const int64_t *numbers, fac_lazy **out,
                         fac_error *err);

/* One reference more; returns x. */
fac_lazy *fac_lazy_retain(fac_lazy *x);
void fac_lazy_free(fac_lazy *x);           /* drops one reference; NULL is fine */
fac_type fac_lazy_type(const fac_lazy *x); /* sizes only: no symbols            */
/* The recorder that x belongs to. */
fac_recorder *fac_lazy_recorder(const fac_lazy *x);
bool fac_lazy_pending(const fac_lazy *x); /* not computed yet                  */
/* A pointer of the binding's, NULL at first; it stays when a value is only part of a history. */
void fac_lazy_set_user(fac_lazy *x, void *user);
/* What fac_lazy_set_user put, else NULL. */
void *fac_lazy_user(const fac_lazy *x);

/* Contents, after a flush if need be; one reference is the caller's.  Of a state: its own tensor,
 * which the next assignment writes to. */
fac_status fac_lazy_tensor(fac_lazy *x, fac_tensor **out, fac_error *err);
/* Computes x into memory of the caller: `to` has x's type and is contiguous; see fac_tensor_lend.
 * x may share `to` afterwards, so whoever writes there changes x, too.  The memory may be that of
 * values which x is made from. */
fac_status fac_lazy_write(fac_lazy *x, fac_tensor *to, fac_error *err);
/* From now on the state is `next`, of the same type.  Whatever was recorded before sees the old
 * contents.  Nothing is remembered for gradients. */
fac_status fac_lazy_assign(fac_lazy *state, fac_lazy *next, fac_error *err);

/* ---- recording ---- */

enum {
    FAC_RECORD_NO_GRAD = 1, /* remember nothing for gradients                        */
    FAC_RECORD_NOW = 2      /* eager, whatever the recorder is                       */
};

/* Records op.  attrs: its struct, NULL for defaults.  in[i] NULL: an absent input.  out[0..nout)
 * receive the first outputs, each a reference of the caller's; nout may be less than the op has.
 * An input that steers shapes (FAC_HOST) and is not known yet is computed first, and so is a result
 * whose shape depends on data.  The inputs' recorder is r, else FAC_E_ARGUMENT. */
fac_status fac_record(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                      fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                      fac_error *err);
/* The same with attributes as text, "stride=2,2 pad=1,1,1,1" or NULL: see fac_apply. */
fac_status fac_record_text(fac_recorder *r, const fac_op *op, const char *attrs, int n,
                           fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                           fac_error *err);

/* Records whatever a builder emits: layers, losses, chains of ops.  build() gets the graph of the
 * segment and a graph value for each in[i] (NULL for NULL), puts graph values into y[0..nout), and
 * leaves errors in the graph; it does not record, and not name outputs or updates.  It may be
 * called twice, the first time with a graph that only tells what it does. */
typedef void fac_lazy_build(void *self, fac_graph *g, fac_value *const in[], fac_value *y[]);
fac_status fac_record_graph(fac_recorder *r, fac_lazy_build *build, void *self, int n,
                            fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                            fac_error *err);

/* A graph that a binding calls again and again: its types and its key are worked out once.  A call
 * costs its results and a few numbers, since no node is made where the segment was seen before. */
typedef struct fac_lazy_body fac_lazy_body;
/* A copy of g for this recorder, which is freed later than the body. g has results, and neither
 * parameters, states nor symbols. */
fac_status fac_lazy_body_new(fac_recorder *r, const fac_graph *g, fac_lazy_body **out,
                             fac_error *err);
/* Calls that were recorded go on without it; NULL is fine. */
void fac_lazy_body_free(fac_lazy_body *b);
/* Records b of in[], as many as the graph has inputs and of their types, NULL only where the graph
 * does not read one; out[] receives all its results.  Nothing is remembered for gradients. */
fac_status fac_record_body(fac_recorder *r, fac_lazy_body *b, fac_lazy *const in[], fac_lazy *out[],
                           fac_error *err);

/* ---- gradients ---- */

/* For leaves: values without a history.  A result requires a gradient when one of its inputs did.
 */
fac_status fac_lazy_require(fac_lazy *x, bool requires, fac_error *err);
/* Whether gradients go to x or through it. */
bool fac_lazy_requires(const fac_lazy *x);
/* Whether x has no history. */
bool fac_lazy_is_leaf(const fac_lazy *x);
/* The op that made x, as history knows it, "custom" or NULL for a leaf. */
const char *fac_lazy_made_by(const fac_lazy *x);
/* The same contents without a history. */
fac_status fac_lazy_detach(fac_lazy *x, fac_lazy **out, fac_error *err);

enum {
    FAC_BACKWARD_KEEP = 1,  /* the history stays, for another time                   */
    FAC_BACKWARD_RECORD = 2 /* gradients have a history, too; implies KEEP           */
};
/* grads[i] = the sum over k of d y[k] / d x[i], weighted by dy[k], of y[k]'s type (dy or dy[k]
 * NULL: y[k] is a scalar, and the weight 1).  grads[i] is NULL where no y depends on x[i]; else a
 * reference of the caller's.  x[] may be any values of the history. Errors: nothing requires a
 * gradient; the history was used up; an op has no gradient; a state that the gradient reads was
 * assigned since. */
fac_status fac_lazy_backward(int ny, fac_lazy *const y[], fac_lazy *const dy[], int n,
                             fac_lazy *const x[], fac_lazy *grads[], unsigned flags,
                             fac_error *err);
/* The leaves that require a gradient and that y[] was made from, in the order of their making: a
 * reference of the caller's for each of the first `most`; returns how many there are. */
size_t fac_lazy_leaves(int ny, fac_lazy *const y[], size_t most, fac_lazy *leaves[]);

/* A function of the binding's own.  out[k] has the contents of y[k]; to go back over it, grad()
 * gets dy[0..nout) (NULL: not used) and puts dx[0..n) (NULL: none), each a reference.  It is called
 * without the recorder being held and may record.  release(self), which may be NULL, is called when
 * the history goes, by any thread; not when this fails. */
typedef fac_status fac_lazy_grad(void *self, int nout, fac_lazy *const dy[], int n, fac_lazy *dx[],
                                 fac_error *err);
/* Records such a function; out[nout] are the caller's references. */
fac_status fac_record_custom(fac_recorder *r, int n, fac_lazy *const in[], int nout,
                             fac_lazy *const y[], fac_lazy_grad *grad, void (*release)(void *self),
                             void *self, fac_lazy *out[], fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
