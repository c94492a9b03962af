/* Statements of rules and replacements: like a line of graph text, with names that mean what was
 * matched.
 *
 *   y, i = op(x, -, 0.5, f32{1,2}) stride=2,2 pad=$p like c       names on the left; attributes as
 *       text, from a
 *                                                                 variable, or those of c
 *   y = x                                                         the same value by another name
 *   relu clip(_, 0, 6)                                            without names: _ is what came
 *       before
 *
 * In a pattern an operand may also be _ (anything), 0.5~1e-3 (a constant within this relative
 * distance) or {1,2} (a constant list), and * says that other attributes do not matter. */
#ifndef FACULA_EDIT_STATEMENT_H
#define FACULA_EDIT_STATEMENT_H
#include "base/table.h"
#include "edit/cursor.h"
#include "graph/graph_internal.h"

typedef enum fac_term_kind {
    FAC_TERM_NAME,
    FAC_TERM_ANY,
    FAC_TERM_ABSENT,
    FAC_TERM_NUMBERS,
    FAC_TERM_VARIABLE
} fac_term_kind;
enum { FAC_TERM_NUMBERS_MOST = 16 };
typedef struct fac_term {
    fac_term_kind kind;
    const char *name; /* NAME and VARIABLE ("$p": p) */
    fac_dtype dtype;  /* NUMBERS: FAC_NONE when none is written */
    bool scalar;
    int n;
    double v[FAC_TERM_NUMBERS_MOST], tolerance; /* relative; < 0: none was given */
    int slot;                                   /* NAME in a pattern: which of its values */
    fac_place at;
} fac_term;

typedef struct fac_setting {
    const fac_attr *attr;
    const char *variable; /* NULL: the value is in attrs */
    int slot;             /* of the variable in a pattern */
    fac_place at;
} fac_setting;

typedef struct fac_statement {
    const char **results;
    int nresults;     /* 0: it becomes _ */
    const fac_op *op; /* NULL: an alias of args[0] */
    fac_term *args;
    int nargs;
    fac_setting *settings;
    int nsettings;
    bool any; /* a pattern: other attributes do not matter */
    const char *like;
    void *attrs; /* of the op: what is written, zero elsewhere */
    fac_place at;
} fac_statement;

typedef struct fac_statements {
    fac_statement *at;
    size_t n, room;
} fac_statements;

/* One statement up to the end of its line (';' ends one too); chains become several.  pattern: what
 * only patterns may say. */
fac_status fac_statement_read(fac_cursor *c, bool pattern, fac_statements *to);
/* A text with nothing but statements. */
fac_status fac_statements_read(fac_cursor *c, fac_statements *to);

/* Whom the names of a replacement belong to. */
typedef struct fac_names {
    void *self;
    fac_value *(*value)(void *self, const char *name); /* NULL: nobody's */
    /* The contents of an attribute variable; false: there is none. */
    bool (*attr)(void *self, const char *name, const fac_attr **attr, const void **at);
    const fac_node *(*node)(void *self, const char *name);
} fac_names;

/* Builds them into g; defined: name -> value, to which results are added ("_" too).  An error of g
 * is put into err, with the statement's place, and stays g's. */
fac_status fac_statements_build(const fac_statements *s, const char *file, fac_graph *g,
                                const fac_names *names, fac_table *defined, fac_error *err);
#endif
