/* facula/op.h: for writers of ops and passes.  UNSTABLE tier: the structs are visible and may grow.
 *
 * An op is one const fac_op.  There is no registry to join: fac_emit() takes the descriptor itself,
 * so an op of your own program is as good as a built-in one.  The table of built-in ops serves only
 * names: ONNX, the CLI, the bindings. */
#ifndef FACULA_OP_H
#define FACULA_OP_H

#include "facula/op_facts.h"
#include "facula/op_onnx.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_op fac_op;
typedef struct fac_node fac_node;

/* How early a value can be computed: see program.h. */
typedef enum fac_time { FAC_COMPILE, FAC_PREPARE, FAC_RUN } fac_time;

typedef enum fac_leaf {
    FAC_NOT_LEAF,
    FAC_INPUT,
    FAC_PARAM,
    FAC_STATE,
    FAC_CONST,
    FAC_POISON
} fac_leaf;

/* Small integer contents: numbers, and below 0 either a number or a symbol, as `symbolic` bit k
 * says of v[k]. */
enum { FAC_KNOWN = 16 };
typedef struct fac_contents {
    int n;
    unsigned symbolic;
    int64_t v[FAC_KNOWN];
} fac_contents;

/* How much of a type is known.  FAC_ASSUMED: other sizes may give other dims, even another number
 * of them (squeeze drops an open dim that is 1), here and after it.  FAC_RANKLESS: a run decides
 * how many dims there are (Ifs); type.dims is one nameless size then, which stands for any dims. */
typedef enum fac_guess { FAC_CERTAIN, FAC_ASSUMED, FAC_RANKLESS } fac_guess;

typedef struct fac_use fac_use;
struct fac_use {
    fac_node *node;
    int input;
    fac_use *next;
}; /* node->in[input] is the value */

struct fac_value { /* read only; passes change graphs through graph.h */
    fac_type type;
    fac_node *node; /* what makes it, NULL for a leaf */
    int index;      /* which output of node           */
    fac_leaf leaf;
    fac_time time;
    const char *name;
    fac_tensor *tensor;  /* parameters and constants       */
    fac_value *next;     /* parameters: fac_update         */
    fac_contents *known; /* NULL when nothing is known     */
    fac_use *uses;       /* newest first; outputs and updates of the graph are not listed */
    fac_graph *graph;
    uint32_t id;     /* unique in its graph; grows     */
    uint32_t roots;  /* how many outputs and updates it is; fac_output, fac_update and fac_replace
                        count */
    fac_guess guess; /* set by infer where a type may turn out otherwise; those that read it have it
                        as well */
    void *mark;      /* for the pass at hand           */
};

struct fac_node {
    const fac_op *op;
    const void *attrs;  /* op->attrs_size bytes, defaults filled in */
    fac_graph *body[2]; /* closed graphs: branches, loop body, the ops of a fused node, or an
                           epilogue: its input 0 is the op's own output 0, the others are the inputs
                           after the op's ports (in[nports..]) */
    int nin, nout; /* in[] is filled up with NULL to the number of the op's ports: in[k] of any port
                      may be read */
    int nports;    /* inputs of the op itself; nin - nports belong to the epilogue */
    fac_value **in; /* NULL: an optional input that is absent */
    fac_value **out;
    fac_graph *graph;
    uint32_t id; /* grows; never reused */
    uint16_t
        stage; /* 0; a recomputed copy has its own number, and CSE does not merge across stages */
    const char *name, *scope; /* from the ONNX file, from fac_graph_push; may be NULL */
    const char *origin; /* its name in the ONNX file, letter by letter; NULL: it is from no file */
    fac_node *next, *prev; /* in the order of building, which fac_replace keeps topological */
    uint64_t order;        /* grows along next           */
    void *mark;            /* for the pass at hand       */
};

/* ---- tables of a descriptor ---- */

enum { /* fac_port.takes */
       FAC_FLOATS = 1,
       FAC_INTS = 2,
       FAC_BOOLS = 4,
       FAC_TEXTS = 8,
       FAC_NUMBERS = FAC_FLOATS | FAC_INTS,
       FAC_BLOCKS = 16, /* weights in blocks (FAC_Q4_0 ...): only where a port says so */
       FAC_SMALL = 32,  /* floats of 8 bits, anything of 4 or 2: only stored           */
       FAC_ANY = 15 | FAC_SMALL
};
enum { /* fac_port.is */
       FAC_OPTIONAL =
           1, /* may be absent (inputs) or unused at no cost (outputs: argmax indices, 1/sigma) */
       FAC_VARIADIC = 2, /* the last port, repeated, at least once */
       FAC_SHAPE_ONLY =
           4, /* only the shape is read: does not keep the data alive; gone after compile       */
       FAC_HOST = 8, /* a small integer input (rank <= 1) that steers shapes: infer and kernels read
                        it through fac_known; a program binds its contents before it plans */
       FAC_INTERNAL = 16, /* an output that ONNX does not have */
       FAC_INDEX = 32     /* of a mover: not moved but read by move(), as int64_t     */
};
typedef struct fac_port {
    const char *name;
    unsigned takes, is;
} fac_port; /* tables end with { 0 } */

typedef enum fac_attr_kind {
    FAC_A_INT,
    FAC_A_REAL,
    FAC_A_FLAG,
    FAC_A_ENUM,
    FAC_A_DTYPE,
    FAC_A_DIMS,
    FAC_A_TEXT,
    FAC_A_REALS
} fac_attr_kind;
typedef struct fac_attr { /* fields: int64_t, double, bool, int, fac_dtype, fac_dims, const char *,
                             fac_reals   */
    const char *name;
    fac_attr_kind kind;
    size_t at;                  /* offsetof(attrs struct, field) */
    int count;                  /* array length of INT and REAL; 0 = one */
    double zero_means;          /* INT and REAL: what 0 stands for; filled in by fac_emit */
    double min, max;            /* INT and REAL: allowed after that; both 0 = any         */
    const char *const *choices; /* FAC_A_ENUM: NULL-terminated */
    const char *help;
} fac_attr;

/* An elementwise op as one C expression of x (y, z) and of its attributes P(0), P(1)...: the loops
 * for the element types and the text for OpenCL.  The attrs struct of a map holds doubles only, in
 * the order of the table.  An absent optional input is not passed: give such ops an infer that
 * refuses it, or an expansion. All loops: out[i] = f(in[0][i], in[1][i], ...), unit stride; a flag
 * result is 0 or 1 in the loop's own type. */
enum { FAC_ISA_BASE, FAC_ISA_AVX2, FAC_ISA_AVX512, FAC_ISAS };
typedef void fac_loop(size_t n, const void *const *in, const double *p, void *out);
typedef struct fac_map {
    int inputs;
    const char *text;
    fac_loop *f32[FAC_ISAS], *f64[FAC_ISAS]; /* NULL: integers only */
    fac_loop *i64, *u64; /* i64 NULL: floats only; u64 NULL: i64 serves        */
} fac_map;

/* What a reference kernel sees: contiguous, row-major, in one of two types.  The driver converts
 * every dtype and stride to this and back, wrapping integers, so a kernel is the formula and
 * nothing else. */
typedef struct fac_array {
    fac_type type; /* the dtype is the one outside               */
    double *f;     /* floats                                     */
    int64_t *i;    /* integers and bool; u64 by bit pattern      */
    const char *
        *t;  /* texts, of ops that are FAC_OP_TEXTS: those of a result are borrowed from inputs */
} fac_array; /* an absent input or unused output: f, i and t NULL, dtype FAC_NONE */
typedef struct fac_ref {
    const void *attrs;
    int nin, nout;
    const fac_array *in;
    fac_array *out;
} fac_ref;

/* What a mover sees: dims of everything, contents only of FAC_INDEX and FAC_HOST inputs (as .i). */
typedef struct fac_move {
    const void *attrs;
    int nin, output;
    const fac_array *in;
    fac_dims out;
} fac_move;

typedef struct fac_cost {
    double macs, other, read, written;
} fac_cost; /* multiply-adds; other operations; bytes */

/* Where the elements of a value lie; offsets and strides in elements.
 * Plain: element (i0, i1, ...) lies at offset + sum i_k stride_k.
 * Blocked (block > 0): offset + sum over k of i_k stride_k, but for `axis` (i / block) stride + i %
 * block; what lies in the lanes after the last channel is undefined and must not matter.  halo:
 * that many zeros really lie around each plane of the last two dims (offset is the plane's own
 * first element, so strides reach over them). */
typedef struct fac_layout {
    int64_t offset, stride[FAC_DIMS];
    int axis, block, halo;
} fac_layout;

typedef struct fac_case {
    const char *problem;
    double lo, hi, tolerance;
} fac_case; /* "softmax(f32[2,5]) axis=1" */

/* ---- the descriptor ---- */

struct fac_op {
    const char *name, *doc;
    const fac_port *in, *out; /* NULL: none */
    const fac_attr *attrs;    /* NULL: none */
    size_t attrs_size;
    unsigned is; /* FAC_OP_... */

    /* Output types from input types.  false after fac_fail(). */
    bool (*infer)(fac_node *n);
    /* One of these gives it a meaning, in this order of preference. */
    const fac_map *map;
    /* out[to] = in[*input][from], or zero when it returns false. */
    bool (*move)(const fac_move *m, const int64_t *to, int *input, int64_t *from);
    fac_status (*ref)(const fac_ref *r, fac_error *err);
    /* For what no plan can foresee: texts that are made, sizes that only the contents tell.  It
     * runs at a cut, on tensors in host memory, NULL where an input is absent, and makes those of
     * out[], of which it owns none after an error.  infer gives open sizes symbols. */
    fac_status (*host)(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                       fac_error *err);
    /* Simpler ops that mean the same: meaning, gradient and kernels of an op that has none of its
     * own; of one with a meaning, what runs where no kernel takes it.  n has no epilogue. */
    void (*expand)(const fac_node *n, fac_value *out[]);
    /* How many nodes that makes; 0: it cannot be expanded (a loop whose trip count is data).  NULL:
     * it always can, into few. */
    int64_t (*expands)(const fac_node *n);
    /* out's layout from in[0]'s when no data needs to move; false if it must.  Makes the op a view.
     */
    bool (*view)(const fac_node *n, const fac_layout *in, fac_layout *out);
    /* dx[i] from dy[], as ops; only where fac_needs(n, i).  dy[i] NULL: that output was not used.
     */
    void (*grad)(const fac_node *n, fac_value *const dy[], fac_value *dx[]);
    /* Whether grad() copes with this node and these dy; false: its expansion does.  NULL: it always
     * does. */
    bool (*grads)(const fac_node *n, fac_value *const dy[]);
    void (*cost)(const fac_node *n,
                 fac_cost *cost); /* NULL: bytes of all operands, no multiply-adds */
    const fac_onnx *onnx;         /* ends with { 0 } */
    bool (*save)(const fac_onnx_writer *w,
                 const fac_node *n); /* into ONNX; NULL: see fac_onnx_plain */
    const fac_case *cases;           /* ends with { 0 } */

    /* What facula/report/verify.h asks.
     * The same function in the smallest ops (sums, products, exp...): models are compared as these.
     * An out[0] that is left NULL says that this node has no smaller form. */
    void (*define)(const fac_node *n, fac_value *out[]);
    /* Where the function of input 0 has corners, jumps or becomes flat: at[0..returned), rising. */
    int (*steps)(const fac_node *n, double at[]);

    fac_layer_class layer;
    const char *torch; /* what PyTorch's users call such a layer; NULL: its own name */
    fac_images images;
    fac_mixed mixed;
    fac_rounding rounding;
};
enum { FAC_STEPS = 4 };
enum {                      /* fac_op.is */
       FAC_OP_NO_GRAD = 1,  /* says so on purpose  */
       FAC_OP_DYNAMIC = 2,  /* its output shape is known only after it ran (nonzero, nms, if)  */
       FAC_OP_INPLACE = 4,  /* may write output 0 over an input of the same type that died there  */
       FAC_OP_PARTS = 2048, /* output 0 is input 0 with parts replaced, and may be written over it,
                               and only over it; so may further outputs over their inputs */
       FAC_OP_BARRIER = 8,  /* never folded, merged or moved across a stage (all_reduce)  */
       FAC_OP_KNOWS = 16,   /* its infer sets known contents: run it again when more is known   */
       FAC_OP_BODIES = 32,  /* its bodies are its meaning (if, loop, fused), not an epilogue  */
       FAC_OP_RING = 128,   /* adds and multiplies: exact modulo a prime             */
       FAC_OP_PICKS = 256,  /* compares: gives some of its numbers, sizes, 0 or 1    */
       FAC_OP_INVERSE = 512,    /* 1 / x                                                 */
       FAC_OP_TYPED = 1 << 13,  /* its floats keep their types: it reads bits, or is of f32 alone */
       FAC_OP_OPAQUE = 1 << 15, /* an operator of a file that facula does not know          */
       FAC_OP_GROWS = 4096,     /* infinite at finite numbers only where these are large */
       FAC_OP_TEXTS = 1024,     /* ref reads and gives texts as they are (fac_array.t)   */
       FAC_OP_FLOW = 64 /* with FAC_OP_BODIES: they are graphs of their own, each with an input for
                           each input of the node (call, if, loop, scan); passes take the node for
                           one that must be expanded */
};

extern const fac_op *const fac_ops[]; /* built in, sorted by name; NULL-terminated */
/* ONNX operators that are read as several ops, so that they belong to none: lists of spellings with
 * a load(), each ended by { 0 }.  NULL-terminated. */
extern const fac_onnx *const fac_onnx_readers[];
const fac_op *fac_op_find(const char *name); /* NULL if there is none */
/* Is op one of these, up to NULL? */
bool fac_op_is_one_of(const fac_op *op, const fac_op *const *ops);
/* The name of the port that an input belongs to, the last one's for all that are beyond it; NULL:
 * it belongs to the epilogue, or the op has no ports. */
const char *fac_port_name(const fac_node *n, int input);

/* ---- inside an op file ---- */

/* Builds a node and returns its first output, or the poison value.  The graph is that of the
 * inputs; in[i] NULL is an absent input.  attrs NULL: all zero, which means defaults. */
fac_value *fac_emit(const fac_op *op, const void *attrs, int n, fac_value *const in[]);
/* The same with a graph (for ops without inputs), bodies and epilogue inputs: in[nports..n) feed
 * body 0's inputs 1.. */
fac_value *fac_emit_body(fac_graph *g, const fac_op *op, const void *attrs, int n, int nports,
                         fac_value *const in[], fac_graph *then_body, fac_graph *else_body);

/* The same by name, for the CLI, the bindings, ONNX and the tests: attrs as text, "stride=2,2
 * pad=1,1,1,1" or NULL. */
fac_value *fac_apply(fac_graph *g, const fac_op *op, const char *attrs, int n,
                     fac_value *const in[]);

/* Records an error of this node; the text is led by scope, op and the types of all inputs.  Returns
 * false. */
bool fac_fail(fac_node *n, fac_status status, const char *format, ...) FAC_PRINTF(3, 4);

/* For an op whose last output port is FAC_VARIADIC (split, if): its infer says how many outputs
 * there are in all, before it touches n->out.  false after an error.  Until then there is one for
 * each port. */
bool fac_node_outputs(fac_node *n, int count);

/* What is known of the contents of a small integer value (rank <= 1, at most FAC_KNOWN elements)
 * while the graph is built: numbers and symbols.  This is how Shape -> Gather -> Concat -> Reshape
 * folds before any size is known. false: nothing is known, or v is NULL. */
bool fac_known(const fac_value *v, fac_contents *contents);
/* Known and free of symbols. */
bool fac_known_numbers(const fac_value *v, fac_contents *contents);
/* Says what is known of v's contents; called by infer functions.  They are copied. */
void fac_knows(fac_value *v, const fac_contents *contents);
bool fac_needs(const fac_node *n, int input); /* fac_grad wants this one */

/* Common infer functions and helpers. */
bool fac_infer_same(fac_node *n);      /* out[*] = in[0]                                          */
bool fac_infer_broadcast(fac_node *n); /* all inputs one dtype, NumPy broadcasting */
bool fac_infer_compare(fac_node *n); /* the same, the result is bool                             */
bool fac_broadcast(fac_node *n, const fac_dims *a, const fac_dims *b,
                   fac_dims *out);    /* false after fac_fail; symbols allowed */
int fac_axis(int64_t axis, int rank); /* -1 -> rank - 1; -1 when it is out of range               */
extern const fac_port fac_ports_x[], fac_ports_xy[], fac_ports_xyz[], fac_ports_num_x[],
    fac_ports_num_xy[], fac_ports_bool_x[], fac_ports_bool_xy[], fac_ports_any_x[],
    fac_ports_any_xy[], fac_ports_y[];

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
