/* Graph text: the pieces that whole graphs, bodies and problems are printed and read with.
 *
 *   operand  = name | %7 | - (absent) | literal
 *   type     = f32[N,3,224]                              a size, a symbol, "a symbol", or ?2
 *            (nameless)
 *   literal  = 0.5                                       a scalar of the type of the call's first
 *            operand that is no literal | f32(0.5) | i64{3,N} | f32[2,2]{1,2,3,4}   scalar, vector,
 *            anything
 *   call     = op(operand, ...) stride=2,2 flag {body} */
#ifndef FACULA_GRAPH_FORMAT_H
#define FACULA_GRAPH_FORMAT_H
#include "graph/build.h"
#include "graph/lexer.h"

/* Constants of at most so many elements are part of the text with their contents, others as "const
 * w f32[1000]". */
enum { FAC_LITERAL = 16 };

/* ---- printing ---- */

typedef struct fac_printer fac_printer;
struct fac_printer {
    fac_text *to;
    const fac_graph *g;
    uint32_t *fresh; /* of symbol k: its number in this text, 0 before it appears; NULL: fresh ones
                        by name */
    uint32_t nfresh;
    bool body; /* inside one: flags as name=1 */
    /* Operand i of n, which is there and no literal. */
    void (*operand)(fac_printer *p, const fac_node *n, int i);
    const void *self;
};

void fac_print_type(fac_printer *p, const fac_type *type);
bool fac_literal_fits(const fac_value *v); /* a constant whose contents belong into the text */
void fac_print_literal(fac_printer *p, const fac_value *v); /* with its type */
/* "conv2d(x, w) pad=1,1,1,1 {relu}" */
void fac_print_call(fac_printer *p, const fac_node *n);
/* Operands without absent ones at the end, which need not be written. */
int fac_operands(const fac_node *n);
void fac_print_arguments(fac_printer *p, const fac_node *n); /* "x, w, -" */
void fac_print_tail(fac_printer *p, const fac_node *n);      /* attributes and bodies */

/* What fac_graph_write writes, which the caller frees. */
fac_status fac_graph_text(const fac_graph *g, fac_text *to, fac_error *err);

/* ---- reading ---- */

typedef struct fac_reader fac_reader;
struct fac_reader {
    fac_lexer *l;
    fac_graph *g;
    bool body;
    fac_table literals; /* equal text in one graph is one constant */
    const fac_op *op;   /* of the call at hand, and which operand */
    int operand;
    /* The value of a name, or of what begins with % or _. */
    fac_status (*name)(fac_reader *r, fac_value **out);
    /* What a type without contents stands for. */
    fac_status (*typed)(fac_reader *r, const fac_type *type, fac_value **out);
    void *self;
};

fac_status fac_read_type(fac_lexer *l, fac_graph *g, fac_type *out);
/* A type with or without contents; *out NULL when there are none. */
fac_status fac_read_literal(fac_reader *r, fac_type *type, fac_value **out);
/* The tensor of a type without contents. */
fac_status fac_read_zeros(fac_lexer *l, const fac_type *type, fac_tensor **out);
/* fac_graph_read for text of strangers: parameters and constants of at most `most` bytes together
 * are made, whatever their types say. */
fac_status fac_graph_read_within(FILE *from, size_t most, fac_graph **out, fac_error *err);
/* A number, which is the whole text, as a constant scalar of this type. */
fac_status fac_read_number(fac_reader *r, const char *text, size_t n, fac_dtype dtype,
                           fac_value **out);
/* implied (may be NULL): the operand of a call without parentheses. */
fac_status fac_read_call(fac_reader *r, fac_value *implied, fac_node **out);
/* A body up to '}' or the end; g holds its inputs and no nodes. */
fac_status fac_read_body(fac_lexer *l, fac_graph *g);
fac_status fac_read_operand(fac_reader *r, fac_value **out); /* numbers must have a type */
/* The error of a graph under construction becomes that of the text. */
fac_status fac_lex_graph(fac_lexer *l, const fac_graph *g);
#endif
