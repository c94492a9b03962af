/* How the differences of two models are found and told.
 *
 *   diff.c         the whole comparison, and nodes
 *   diff_leaf.c    inputs, parameters and states; outputs
 *   diff_node.c    attributes, and the order of nodes
 *   diff_say.c     types, contents and sources of values, and their words */
#ifndef FACULA_REPORT_DIFF_H
#define FACULA_REPORT_DIFF_H
#include "facula/report/diff.h"
#include "report/diff/match.h"

struct fac_differences {
    fac_arena memory;
    fac_change *changes;
    size_t n, room;
    fac_diff_totals totals;
};

typedef struct fac_teller {
    fac_match m;
    fac_diff_opts o;
    fac_differences *d;
    const fac_value *
        *real[2]; /* by id of a value that a removed or added node makes: what it was made from */
    bool *moved;  /* by place in b */
    fac_error *err;
} fac_teller;

/* ---- diff.c ---- */

/* One more change; takes the text. */
fac_status fac_tell(fac_teller *t, fac_change c, fac_text *text);

/* ---- diff_leaf.c ---- */

fac_status fac_tell_leaves(fac_teller *t, fac_change_of of, size_t na, fac_value *const *a,
                           size_t nb, fac_value *const *b);
fac_status fac_tell_outputs(fac_teller *t);

/* ---- diff_say.c ---- */

void fac_say(fac_text *to, const char *what); /* after "; " when something was said before */
bool fac_same_type(const fac_value *x, const fac_value *y);
void fac_say_types(fac_text *to, const fac_value *x, const fac_value *y);
void fac_say_value(const fac_value *v, fac_text *to);
/* Fills a real[] of the teller. */
void fac_find_real(const fac_diff_side *s, const fac_value **real);
/* Does y of b still come from where x of a came from, added and removed nodes left out? */
bool fac_same_source(const fac_teller *t, const fac_value *x, const fac_value *y);
void fac_say_source(fac_text *to, const fac_value *x, const fac_value *y);
/* Contents of two tensors of one shape: into the text and the change, when they differ. */
fac_status fac_tell_contents(const fac_teller *t, const fac_value *x, const fac_value *y,
                             fac_text *to, fac_change *c);

/* ---- diff_node.c ---- */

/* Attributes that are not the same in both: "stride=1,1 -> stride=2,2"; what is at its default says
 * so. */
void fac_diff_attrs(const fac_node *x, const fac_node *y, fac_text *to);

/* By place in b: nodes outside of the longest sequence of pairs that has one order in both.  False
 * when memory is gone. */
bool fac_diff_moved(const fac_match *m, bool *moved);
#endif
