/* facula/backend.h: for writers of devices and kernels.  UNSTABLE tier.
 *
 * A backend is memory, one queue, and a list of solvers.  A solver is one way to do one kind of
 * node; whether a backend supports a node is whether one of its solvers takes it.  The reference
 * kernels are the last solver of the cpu backend. */
#ifndef FACULA_BACKEND_H
#define FACULA_BACKEND_H

#include <stddef.h>
#include <string.h>
#include "facula/device.h"
#include "facula/op.h"
#include "facula/tune.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* A node without its data: all that a solver may choose by, all that wisdom is keyed by.  Printed
 * and read as
 *   conv2d(f32[8,64,56,56], f32[64,64,3,3], f32[64]) pad=1,1,1,1 {relu}
 * which is also the argument of `facula bench`, and a test case.  An absent input is "-"; known
 * contents of a FAC_HOST input are written i64{2,3}; a body is the text of fac_body_print. */
typedef struct fac_operand {
    fac_type type; /* FAC_NONE: absent or unused */
    fac_layout layout;
    fac_time time;
    const fac_contents *known; /* of FAC_HOST inputs          */
} fac_operand;
typedef struct fac_solver fac_solver;
typedef struct fac_problem {
    const fac_node *node; /* op, attrs, bodies, nports; never its neighbours */
    fac_precision precision;
    int nin, nout;
    fac_operand *in, *out;
    int variant; /* which of the solver's variants is asked for; 0 = its own choice */
    /* For the solver: itself, whose `how` tells members of a family apart; while make() works, what
     * offer() left as its draft, and whose that is (fac_draft_take).  See fac_solver_offer,
     * fac_solver_make. */
    const fac_solver *solver;
    const void *draft;
    struct fac_offer *offered;
} fac_problem;

typedef struct fac_span {
    void *memory;
    size_t at;
} fac_span; /* a place in device memory, byte offset; NULL: absent */

/* What offer() worked out, for make(): data without pointers into the problem's operands, which
 * make() sees in another place; the node stays.  FAC_DRAFT(o, type) is its place in an offer; a
 * larger type does not compile.  What is larger, or owns something, is fac_offer_keep's. */
enum { FAC_OFFER_PACKED = 8, FAC_DRAFT_BYTES = 4096 };
typedef union fac_draft {
    unsigned char bytes[FAC_DRAFT_BYTES];
    double number;
    int64_t whole;
    void *pointer;
} fac_draft;
#define FAC_DRAFT(o, type)                                                                         \
    ((type *)(void *)&(o)->draft.bytes[0 * sizeof(char[FAC_DRAFT_BYTES >= sizeof(type) ? 1 : -1])])

typedef struct fac_offer {
    double seconds; /* estimate                                        */
    size_t work;    /* scratch bytes                                   */
    bool own;       /* scratch is each thread's own: no value lies there, see arena.c */
    size_t packed[FAC_OFFER_PACKED]; /* bytes of in[i] after pack(); 0 = takes it as it is */

    /* For tuning; zero says nothing.  A solver with parameters of its own (tiles, schedules) that
     * no estimate settles for sure numbers their combinations 1 .. variants for the problem at
     * hand; asked with p->variant = k it offers combination k, or refuses.  make() finds the number
     * in the problem, and pack_key holds it where the packed form depends on it. version: raised
     * when what was measured is no longer true (a new kernel, other variants): older wisdom is
     * ignored. */
    int variants, version;

    void *kept; /* the draft instead, see fac_offer_keep; `drop` frees what it owns */
    void (*drop)(void *kept);
    bool lost;       /* there was no memory for it */
    fac_draft draft; /* (optional) */
} fac_offer;

/* Memory for a draft of any size, zeroed, to be filled by offer(); NULL when there is none, and
 * then offer() refuses.  drop (optional) frees what the draft owns besides, before the draft itself
 * is freed; it must take a draft that is only zeroes. */
void *fac_offer_keep(fac_offer *o, size_t bytes, void (*drop)(void *kept));
/* Frees the kept draft, if there is one that make() did not take. */
void fac_offer_drop(fac_offer *o);
/* For make(): the kept draft is its own from now on: done() frees what it owns, and then the draft
 * itself by fac_release. */
void *fac_draft_take(const fac_problem *p);

struct fac_solver {
    const char *name; /* "conv2d/direct": unique in its backend          */
    const fac_op *op; /* the op it solves; NULL = looks for itself       */
    int rank;        /* its place among the solvers: of equal estimates the lowest rank is taken  */
    const void *how; /* which of a family that shares functions; they know what it points to */

    /* Can it?  It gets the layouts as they are (plain contiguous for inputs and outputs unless
     * something else is there; the outputs' halo is the one their readers would like) and may write
     * the ones it wants; the planner prices the conversion. Saying yes is a promise to handle
     * exactly this problem, strides and body included. */
    bool (*offer)(fac_device *d, fac_problem *p, fac_offer *o);

    /* Everything that can be done before data: kernels, tables.  p is the problem as accepted, with
     * all layouts settled; it lives as long as the plan.  Freed by done(). */
    fac_status (*make)(fac_device *d, const fac_problem *p, void **plan, fac_error *err);
    void (*done)(fac_device *d, void *plan); /* (optional) */

    /* in[input] (contiguous, plain) into the form run() wants: at prepare time for a parameter,
     * kept by the device under (contents, solver, pack key) and shared; a step of each run when the
     * program updates it. (optional) The key must hold all that the packed form depends on, and not
     * the batch size. */
    uint64_t (*pack_key)(const void *plan, int input);
    fac_status (*pack)(const void *plan, fac_device *d, int input, fac_span from, fac_span to,
                       fac_error *err);

    /* Submits the work.  Re-entrant: the plan is const, all that changes is in the spans.  Span k
     * is where the storage of operand k begins; its layout's offset counts from there.  The halos
     * of the outputs hold their zeros already. */
    fac_status (*run)(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                      fac_span work, fac_error *err);
};

/* Asks a solver for an offer, which it fills in from zero (but the draft).  An offer that was made
 * holds memory until fac_solver_make or fac_offer_drop; one that was refused holds none. */
static inline bool fac_solver_offer(const fac_solver *s, fac_device *d, fac_problem *p,
                                    fac_offer *o) {
    memset(o, 0, offsetof(fac_offer, draft));
    p->solver = s;
    if (s->offer(d, p, o)) return true;
    fac_offer_drop(o);
    return false;
}

/* Lets it make its plan for the problem as it accepted it, by that offer, whose draft ends here. */
static inline fac_status fac_solver_make(const fac_solver *s, fac_device *d, fac_problem *p,
                                         fac_offer *o, void **plan, fac_error *e) {
    p->solver = s;
    p->offered = o;
    p->draft = o->kept ? o->kept : (void *)&o->draft;
    const fac_status status = s->make(d, p, plan, e);
    p->draft = NULL;
    p->offered = NULL;
    fac_offer_drop(o);
    return status;
}

/* Packs inputs of many steps at once, for solvers that it takes: a step of training packs all of
 * its weights. A job: the input of the solver's plan is source `from` of the run, and its packed
 * form begins at byte `to` of the one memory of all results.  The jobs do not depend on each other,
 * and live as long as the plan. */
typedef struct fac_pack_job {
    const fac_solver *solver;
    const void *plan;
    fac_type type;
    int input, from;
    size_t to;
} fac_pack_job;
typedef struct fac_packer {
    bool (*takes)(const fac_solver *s);
    fac_status (*make)(fac_device *d, const fac_pack_job *jobs, int n, void **plan, fac_error *err);
    void (*done)(fac_device *d, void *plan);
    fac_status (*run)(const void *plan, fac_device *d, const fac_span *from, fac_span to,
                      fac_error *err);
} fac_packer;

/* One command that a device did: step as named by fac_backend.step; groups 0: a copy, no kernel. */
typedef struct fac_command {
    const char *step;
    char name[40];
    double start, end;
    size_t groups, items;
} fac_command;

/* Work that nothing waits for soon, beside the other work of a run.  What a thread submits between
 * begin and end comes after all that was submitted before, and beside what is submitted later, up
 * to meet: what follows that comes after all of it.  Only one thread at a time has this; of another
 * one all of it runs in the order of the calls. */
typedef struct fac_beside {
    bool (*able)(fac_device *d);
    fac_status (*begin)(fac_device *d, fac_error *err);
    fac_status (*end)(fac_device *d, fac_error *err);
    fac_status (*meet)(fac_device *d, fac_error *err);
} fac_beside;

/* Many steps in one launch: a persistent kernel, whose groups of items stay and meet between
 * levels.  Steps of one level do not depend on each other and may run at once; a level sees all
 * that the levels before it have written. A job's operands are `nin` inputs, `nout` outputs and one
 * scratch, from number `at` of the relay's on.  Solvers that a relay takes have no run of their
 * own: what is alone becomes a relay of one job.  jobs[] and the plans in it live as long as the
 * plan. */
typedef struct fac_relay_job {
    const fac_solver *solver;
    const void *plan;
    int level, at, nin, nout;
} fac_relay_job;
typedef struct fac_relay {
    bool (*takes)(const fac_solver *s);
    int most; /* jobs of one relay at most */
    /* Seconds: of a relay besides its jobs, as their solvers estimate them, and of every other step
     * besides its solver's estimate. They decide where relays are worth it. */
    double start, gap;
    fac_status (*make)(fac_device *d, const fac_relay_job *jobs, int n, void **plan,
                       fac_error *err);
    void (*done)(fac_device *d, void *plan);
    /* Jobs first .. first + n - 1; operands: of all jobs. */
    fac_status (*run)(const void *plan, fac_device *d, const fac_span *operands, int first, int n,
                      fac_error *err);
} fac_relay;

typedef struct fac_backend {
    unsigned api;                     /* FAC_BACKEND_API                                 */
    const char *name;                 /* "opencl"                                        */
    const fac_solver *const *solvers; /* by rank; NULL-terminated                        */

    fac_status (*open)(const char *which, const fac_device_opts *o, fac_device **out,
                       fac_error *err);
    void (*close)(fac_device *d);

    fac_status (*alloc)(fac_device *d, size_t bytes, void **memory, fac_error *err);
    void (*free)(fac_device *d, void *memory, size_t bytes);
    fac_status (*write)(fac_device *d, fac_span to, const void *from, size_t bytes, fac_error *err);
    fac_status (*read)(fac_device *d, fac_span from, void *to, size_t bytes,
                       fac_error *err); /* waits */
    fac_status (*copy)(fac_device *d, fac_span from, fac_span to, size_t bytes, fac_error *err);
    fac_status (*sync)(fac_device *d, fac_error *err);
    void *(*host)(fac_device *d,
                  void *memory); /* the host's view of it, NULL if there is none (optional) */

    /* All optional.  zero: fills with zero bytes.  settle: what make() of several plans only began
     * (compilers in threads) is done afterwards, or its error is told.  step: a step of this name
     * is submitted next (NULL: none), for errors that come later; the name lives until the next
     * sync.  reserved, trim: memory taken from the driver, and giving back what is not in use. */
    fac_status (*zero)(fac_device *d, fac_span at, size_t bytes, fac_error *err);
    fac_status (*settle)(fac_device *d, fac_error *err);
    void (*step)(fac_device *d, const char *name);
    size_t (*reserved)(fac_device *d);
    size_t (*trim)(fac_device *d);
    fac_status (*check)(fac_device *d, fac_error *err); /* NULL: a run tells all of its errors */
    void (*facts)(fac_device *d, fac_fact *tell, void *self);
    void (*paths)(fac_device *d, fac_fact *tell, void *self);
    /* Measures what facula/tune.h says (optional). */
    fac_status (*peaks)(fac_device *d, fac_peaks *out, fac_error *err);
    /* When commands ran, by the device's own clock (optional).  out NULL: from now on; else until
     * now: waits, and gives what was submitted in between, in order, to be freed by fac_release. In
     * between only one thread uses the device. */
    fac_status (*watch)(fac_device *d, fac_command **out, size_t *n, fac_error *err);
    /* Seconds to bring a value from one layout to another (optional: those of a cpu).
     * channels_last: images may have their channels side by side, so that the planner decides
     * between that and plain layouts for the whole graph (optional: no). */
    double (*reorder)(const fac_device *d, const fac_type *t);
    bool (*channels_last)(fac_device *d);
    const fac_packer *packer; /* NULL: steps are packed for one by one */
    const fac_beside *beside; /* NULL: all work is done in the order of the calls */
    const fac_relay *relay;   /* NULL: each step is a launch of its own */
} fac_backend;
enum { FAC_BACKEND_API = 4 };

extern const fac_backend
    *const fac_backends[]; /* of this build: cpu always, opencl if it was built in */

/* ---- problems ---- */

int fac_problem_print(const fac_problem *p, char *to, size_t size); /* as snprintf */
/* A graph with inputs x0, x1, ... (rank > 0 operands after the first are parameters w1, w2, ...
 * when `params`), the one node, and its outputs y0, y1, ...: with `params`, as in a network, not
 * the optional ones. */
fac_status fac_problem_graph(const char *text, bool params, fac_graph **out, fac_error *err);

/* How a device would do a problem: in how many steps (none: no data moves), and how many of them
 * its solvers leave to the reference kernels, or on other devices than the cpu, to the cpu. Nothing
 * is compiled or run. */
typedef struct fac_support {
    int steps, fallbacks;
} fac_support;
fac_status fac_problem_support(const char *problem, fac_device *d, fac_support *out,
                               fac_error *err);

/* ---- layouts ---- */

fac_layout fac_layout_plain(const fac_dims *dims); /* row-major, contiguous */
fac_layout fac_layout_channels_last(
    const fac_dims *dims); /* dim 1 after all others, dense; rank >= 2 */
/* Blocks of `block` neighbours along `axis` innermost, and a halo of zeros `halo` wide around
 * the dims after it. */
fac_layout fac_layout_blocked(const fac_dims *dims, int axis, int block, int halo);
bool fac_layout_is_plain(const fac_layout *l,
                         const fac_dims *dims); /* the one above, wherever it begins */
bool fac_layout_equal(const fac_layout *a, const fac_layout *b,
                      const fac_dims *dims); /* the same places */
size_t fac_layout_bytes(const fac_layout *l,
                        const fac_type *type); /* of the storage it needs, halo included */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
