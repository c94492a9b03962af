/* The recorder as the files of src/lazy see it.  All of it is under the recorder's lock but for
 * what is atomic and for what a value is born with. */
#ifndef FACULA_LAZY_INTERNAL_H
#define FACULA_LAZY_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include "facula/lazy.h"
#include "facula/program.h"
#include "graph/graph_internal.h"
#include "tensor/tensor_internal.h"

/* Why values were lost: one for all of a segment. */
typedef struct fac_failure {
    atomic_uint refs;
    fac_error error;
} fac_failure;

typedef enum fac_made_kind {
    FAC_MADE_TENSOR, /* a leaf with contents                                    */
    FAC_MADE_STATE,  /* a leaf that programs are bound to                       */
    FAC_MADE_NUMBER,
    FAC_MADE_INTS,
    FAC_MADE_ALIAS, /* what a state is, without its gradient: in[0]            */
    FAC_MADE_ROOM,  /* the first rows of a larger value; an op once it is read */
    FAC_MADE_OP,
    FAC_MADE_CUSTOM
} fac_made_kind;

/* Is a concat the beginning of what grows from segment to segment? */
typedef enum fac_grows { FAC_GROWS_NOT, FAC_GROWS_MAYBE, FAC_GROWS_NEVER } fac_grows;

typedef struct fac_made fac_made;

/* A value: one result of what made it, and a part of that. */
struct fac_lazy {
    fac_made *made;
    atomic_uint users;  /* references of the binding                               */
    uint32_t keeps;     /* histories that will read the contents                   */
    uint64_t epoch;     /* of the segment that `value` and `id` belong to          */
    fac_value *value;   /* NULL: not yet written out, or none                      */
    uint32_t id;        /* of the segment `epoch`, where it is made of calls       */
    fac_tensor *tensor; /* the contents; NULL: not there yet, or let go            */
    fac_type type;
    void *user;
    bool requires;      /* a gradient                                              */
    bool bound;         /* programs are, or were, bound to it                      */
    bool weight;        /* the segment's is                                        */
    uint64_t serial;    /* as a leaf; 0: not looked at yet (leaf_weights.c)             */
    uint32_t nexts;     /* states it was assigned to                               */
    fac_tensor *target; /* of the caller's: the contents go there                  */
};

/* What made values: a leaf or an op, with its history where gradients need it. */
struct fac_made {
    fac_recorder *r;
    atomic_uint refs;    /* cells with users, and histories that read it            */
    atomic_bool pending; /* listed by the recorder; never again once it is not      */
    fac_made_kind kind;
    int nout;
    int nin, nports;    /* of the history; nin 0: there is none                    */
    uint64_t serial;    /* grows                                                   */
    size_t place;       /* in the list of those pending                            */
    fac_lazy **in;      /* NULL: an absent input; one block with what follows      */
    uint64_t *versions; /* of the inputs that are states, as they were read        */
    const fac_op *op;
    void *attrs;
    const char *scope;
    fac_graph *body[2];
    fac_node *node; /* in the segment `epoch`                                  */
    uint64_t epoch;
    bool pooled;  /* its memory goes back to the recorder                    */
    bool kept;    /* the inputs and outputs that gradients read are counted  */
    bool used_up; /* there was a history                                     */
    uint64_t keep_in, keep_out;
    fac_failure *failure;
    double number;       /* FAC_MADE_NUMBER                                         */
    fac_lazy *next;      /* FAC_MADE_STATE: what was assigned, a user of it         */
    uint64_t assigned;   /* how often                                               */
    fac_lazy_grad *grad; /* FAC_MADE_CUSTOM                                         */
    fac_lazy *room;      /* FAC_MADE_ROOM: what it lies in, a user of it            */
    int axis;            /* of its rows, or of a concat's                           */
    bool zeros;          /* in the rest of the room                                 */
    fac_grows grows;
    void (*release)(void *self);
    void *self;
    fac_made *dead; /* the next one to be disposed of                          */
    fac_lazy cell[];
};

typedef struct fac_trash {
    void *what;
    void (*drop)(void *what);
} fac_trash;

typedef struct fac_family fac_family;
typedef struct fac_single fac_single;

/* Keys to pointers, open addressing. */
typedef struct fac_keys_slot {
    fac_hash key;
    void *value;
} fac_keys_slot;
typedef struct fac_keys {
    fac_keys_slot *slots;
    size_t room, n;
} fac_keys;

/* A call of a body (calls.c): its inputs are numbers in `read`, its results are numbered on. */
typedef struct fac_body_call {
    fac_lazy_body *body;
    size_t read;
    uint32_t first;
} fac_body_call;

/* A leaf i64[n] of equal numbers, for those of a segment that ask for the same. */
enum { FAC_COUNTS = 4 };
typedef struct fac_count {
    int n;
    int64_t number;
    fac_lazy *cell;
} fac_count;

struct fac_recorder {
    fac_device *device;
    fac_recorder_opts opts;
    pthread_mutex_t lock;
    atomic_bool eager;
    _Atomic(fac_made *) dead; /* pushed by those who must not wait                       */
    fac_trash *trash;         /* freed when the lock is not held                         */
    size_t ntrash, room_trash;
    /* the segment: a graph, or calls alone */
    fac_graph *g;         /* NULL: nothing is recorded but calls                     */
    fac_body_call *calls; /* none where there is a graph                             */
    uint32_t *read;       /* the numbers of their inputs; 0: not read                */
    size_t ncalls, room_calls, nread, room_read, call_nodes;
    uint32_t ids;     /* numbers given out                                       */
    fac_graph *spare; /* one whose memory the next segment takes                 */
    fac_made *unused; /* of one result, whose memory the next ones take          */
    size_t nunused;
    uint64_t epoch;
    fac_hash key; /* of its leaves, at the end of its nodes, too             */
    fac_made **pending;
    size_t npending, room_pending;
    fac_lazy **leaves, **assigned; /* users of them                               */
    size_t nleaves, room_leaves, nassigned, room_assigned;
    fac_count counts[FAC_COUNTS];
    fac_lazy **by_id; /* value id -> the first cell that has it                  */
    size_t room_by_id;
    int walking; /* no flush by itself meanwhile                            */
    uint64_t serials;
    fac_keys families; /* programs of segments, the least recently used last      */
    fac_family *newest, *oldest;
    size_t bytes;
    fac_keys singles; /* programs of one op                                      */
    fac_keys saves;   /* what gradients read                                     */
    fac_keys forms;   /* which numbers changed in segments of the same ops       */
    fac_keys weights; /* which leaves came unchanged to the same segment         */
    fac_recorder_stat stat;
};

/* ---- recorder.c ---- */
void fac_recorder_hold(fac_recorder *r);
void fac_recorder_let_go(fac_recorder *r);
/* Freed when the lock is not held any more. */
void fac_recorder_later(fac_recorder *r, void *what, void (*drop)(void *what));

/* ---- keys.c ---- */
void *fac_keys_get(const fac_keys *k, fac_hash key);
bool fac_keys_put(fac_keys *k, fac_hash key, void *value); /* NULL takes it out */
void fac_keys_free(fac_keys *k);
void fac_keys_clear(fac_keys *k, void (*drop)(void *value));

/* ---- value.c ---- */
/* nout cells, each without a user; refs 0. */
fac_made *fac_made_new(fac_recorder *r, fac_made_kind kind, int nout);
fac_made *fac_made_again(fac_recorder *r, fac_made_kind kind, int nout); /* with the lock */
void fac_made_drop_unused(fac_recorder *r);
void fac_made_retain(fac_made *m);
void fac_made_free(fac_made *m);     /* with the lock */
fac_lazy *fac_lazy_use(fac_lazy *x); /* with the lock: also of a cell without users */
void fac_lazy_unuse(fac_lazy *x);    /* with the lock                               */
void fac_lazy_unassign(fac_made *state);
void fac_made_drain(fac_recorder *r);
fac_status fac_made_list(fac_made *m, fac_error *err); /* as pending                    */
void fac_made_forget(fac_made *m); /* its history, which may be used up           */
fac_status fac_lazy_lost(const fac_lazy *x, fac_error *err);
fac_status fac_lazy_number_tensor(fac_lazy *x, fac_error *err); /* of FAC_MADE_NUMBER      */
void fac_failure_free(fac_failure *f);
/* Contents of x, after a flush if need be; borrowed. */
fac_status fac_lazy_fetch(fac_lazy *x, fac_tensor **out, fac_error *err);
static inline bool fac_lazy_recorded(const fac_lazy *x) {
    return (x->value || x->id) && x->epoch == x->made->r->epoch && !x->tensor;
}

/* ---- segment.c ---- */
/* There is a graph afterwards, with all calls written out. */
fac_status fac_segment_open(fac_recorder *r, fac_error *err);
/* Drops what is recorded; values without contents are lost then, for this reason. */
void fac_segment_close(fac_recorder *r, const fac_error *why);
/* The graph value of x; one with contents gets a leaf. */
fac_status fac_segment_value(fac_lazy *x, fac_value **out, fac_error *err);
/* The same of a state, as it was before anything was assigned. */
fac_status fac_segment_leaf(fac_lazy *x, fac_value **out, fac_error *err);
/* Its nodes become part of the key. */
void fac_segment_fold(fac_recorder *r);
/* What the graph says of its last error, which is taken back. */
fac_status fac_segment_error(fac_recorder *r, fac_error *err);
/* Cells for the results of a node, pending, with one reference for the caller.  in: its inputs as
 * nin cells, NULL: those of its values. */
fac_status fac_segment_adopt(fac_recorder *r, fac_node *n, int nin, fac_lazy *const in[],
                             unsigned flags, fac_made **out, fac_error *err);
/* A user of the cell of v. */
fac_status fac_segment_take(fac_recorder *r, fac_value *v, fac_lazy **out, fac_error *err);

/* x as a leaf of the graph, which is listed already; its type is part of the key. */
fac_status fac_segment_place(fac_recorder *r, fac_lazy *x, fac_value **out, fac_error *err);
/* What a key says of a leaf. */
fac_hash fac_segment_leaf_key(fac_hash h, const fac_lazy *x);

/* x is that value of the segment. */
fac_status fac_segment_name(fac_recorder *r, fac_lazy *x, fac_value *v, fac_error *err);

/* ---- room.c: what grows ---- */
/* The first rows of `room` along an axis; zeros: the others are 0. */
fac_status fac_room_new(fac_recorder *r, fac_value *room, int axis, int64_t rows, bool zeros,
                        fac_lazy **out, fac_error *err);
/* Of FAC_MADE_ROOM: from now on a slice of the segment, as any op. */
fac_status fac_room_settle(fac_lazy *x, fac_error *err);
/* i64[n], an input of the segment, all of them number. */
fac_status fac_room_count(fac_recorder *r, int n, int64_t number, fac_value **out, fac_error *err);
void fac_room_forget_counts(fac_recorder *r);
/* Takes down whether m, made by n, may be the beginning of something that grows. */
void fac_room_note(fac_recorder *r, fac_made *m, const fac_node *n);
/* Does fac_room_record have to be asked about an op of these? */
bool fac_room_concerns(int n, fac_lazy *const in[], unsigned flags);

/* The same of what a builder emits, when that is one op. */
fac_status fac_room_record_graph(fac_recorder *r, fac_lazy_build *build, void *self, int n,
                                 fac_lazy *const in[], int nout, fac_lazy *out[], bool *done,
                                 fac_error *err);

/* ---- room_ops.c ---- */
/* Records an op of values with room, without reading all that lies in it; done: false where it
 * cannot. */
fac_status fac_room_record(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                           fac_lazy *const in[], int nout, fac_lazy *out[], bool *done,
                           fac_error *err);

/* ---- operands.c ---- */
enum { FAC_FEW_OPERANDS = 32 };
typedef struct fac_operands {
    fac_lazy *few[FAC_FEW_OPERANDS], **cell;          /* as they are recorded            */
    fac_lazy *own_few[FAC_FEW_OPERANDS], **own;       /* constants that were made for it */
    fac_value *few_values[FAC_FEW_OPERANDS], **value; /* after fac_operands_values       */
    void *many;
    int n;
} fac_operands;
/* Of a call, without the lock. */
fac_status fac_operands_check(const fac_recorder *r, const char *who, int n, fac_lazy *const in[],
                              int nout, fac_lazy *out[], fac_error *err);
/* Looks at what steers the shapes of op (may be NULL).  End it also when it fails. */
fac_status fac_operands_begin(fac_operands *o, const fac_op *op, int n, fac_lazy *const in[],
                              fac_error *err);
fac_status fac_operands_values(fac_operands *o, fac_error *err);
void fac_operands_end(fac_operands *o);

/* ---- record.c ---- */
/* One op of plain inputs, one result. */
fac_status fac_record_held(fac_recorder *r, const fac_op *op, int n, fac_lazy *const in[],
                           unsigned flags, fac_lazy **out, fac_error *err);

fac_status fac_record_graph_held(fac_recorder *r, fac_lazy_build *build, void *self, int n,
                                 fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                                 fac_error *err);

/* ---- calls.c ---- */
/* Leaves and calls as nodes of the graph, which is empty. */
fac_status fac_calls_write_out(fac_recorder *r, fac_error *err);
void fac_calls_drop(fac_recorder *r);

/* ---- flush.c ---- */
fac_status fac_flush_held(fac_recorder *r, fac_error *err);

/* ---- leaf_weights.c ---- */
/* Which leaves of a segment of this structure its program is bound to. */
fac_status fac_leaf_find_weights(fac_recorder *r, fac_hash structure, fac_error *err);

/* ---- compile.c ---- */
/* One leaf of a segment, as its program takes it. */
typedef enum fac_leaf_kind {
    FAC_LEAF_IS_INPUT,
    FAC_LEAF_IS_STATE,
    FAC_LEAF_IS_NUMBER,
    FAC_LEAF_IS_FIXED
} fac_leaf_kind;
typedef struct fac_outputs {
    fac_lazy **cell; /* the first one of its value */
    uint32_t *of;    /* value id -> place + 1      */
    size_t n, room;
    bool numbered; /* by calls: `of` has cells' numbers instead of value ids */
} fac_outputs;
fac_status fac_compile(fac_recorder *r, fac_family *f, const fac_outputs *outs, fac_error *err);
fac_leaf_kind fac_leaf_role(const fac_lazy *leaf);

/* ---- family.c: programs of segments ---- */
struct fac_family {
    fac_hash key;
    fac_program *program;
    size_t bytes;
    int nnumbers;
    double *number;      /* as the program has them...             */
    bool *lifted;        /* ...but for those that it is given      */
    fac_tensor **states; /* it is bound to                         */
    size_t nstates;
    fac_family *newer, *older;
};
fac_family *fac_family_find(fac_recorder *r, fac_hash key); /* it is the newest now */
fac_status fac_family_new(fac_recorder *r, fac_hash key, int nnumbers, fac_family **out,
                          fac_error *err);
void fac_family_drop(fac_recorder *r, fac_family *f);
void fac_family_shrink(fac_recorder *r, const fac_family *keep); /* to the bytes allowed */
void fac_family_unbind(fac_recorder *r, const fac_tensor *state);

/* ---- numbers.c ---- */
int fac_numbers_count(const fac_recorder *r);
/* Is one that the program of f has as a constant another one now? */
bool fac_numbers_changed(const fac_recorder *r, const fac_family *f);
/* Says which numbers the program of f, which is to be made, is given: those that changed in
 * segments of the same ops, whatever their sizes. */
fac_status fac_numbers_lift(fac_recorder *r, fac_family *f, fac_error *err);

/* ---- eager.c ---- */
fac_status fac_eager(fac_recorder *r, const fac_op *op, const void *attrs, int n,
                     fac_lazy *const in[], unsigned flags, int nout, fac_lazy *out[],
                     fac_error *err);
void fac_singles_drop(fac_recorder *r);

/* ---- history.c ---- */
/* What made it is remembered: an op or more, and values that it read. */
static inline bool fac_made_has_history(const fac_made *m) {
    return m->nin && m->kind >= FAC_MADE_OP;
}
/* Does a node that reads these remember them? */
bool fac_history_wanted(int n, fac_lazy *const in[], unsigned flags);
/* Bodies are those of node (may be NULL), which also says how many inputs are its ports'. */
fac_status fac_history_note(fac_made *m, const fac_op *op, const void *attrs, const fac_node *node,
                            int nin, fac_lazy *const in[], fac_error *err);
/* Counts the contents that gradients of m read, once. */
fac_status fac_history_keep(fac_made *m, fac_error *err);
/* A node of the segment that is what m was, for its gradient; and when that was emitted: the
 * node's results become the contents that were kept. */
fac_status fac_history_node(fac_made *m, fac_node **out, fac_error *err);
fac_status fac_history_done(fac_made *m, fac_node *n, fac_error *err);
#endif
