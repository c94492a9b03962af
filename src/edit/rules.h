/* Rules in memory.
 *
 *   rules.c      reading them, and what can be said to be wrong before any graph is seen
 *   condition.c  where
 *   match.c      does the pattern end at this node?
 *   rewrite.c    all rules on all nodes, until nothing matches */
#ifndef FACULA_EDIT_RULES_H
#define FACULA_EDIT_RULES_H
#include "edit/edit.h"
#include "edit/statement.h"

enum { FAC_RULE_NODES = 32, FAC_RULE_VALUES = 64, FAC_RULE_ATTRS = 32, FAC_RULE_GOALS = 256 };

typedef enum fac_relation {
    FAC_REL_TEST,
    FAC_REL_EQ,
    FAC_REL_NE,
    FAC_REL_LT,
    FAC_REL_LE,
    FAC_REL_GT,
    FAC_REL_GE,
    FAC_REL_IN
} fac_relation;
/* A side of a relation: numbers, or a function of a value or variable. */
typedef struct fac_rule_side {
    const char *function; /* "dim"; NULL: numbers, "$": a variable */
    int slot, n;          /* of the value or variable; how many numbers */
    double v[FAC_EDIT_NUMBERS];
} fac_rule_side;
typedef struct fac_condition {
    bool negated;
    fac_relation relation; /* TEST: left.function of slots[] */
    fac_rule_side left, right;
    int slots[8], nslots;
    fac_place at;
} fac_condition;

typedef struct fac_rule {
    const char *name, *file;
    fac_place at;
    fac_statements match, with; /* the pattern ends with its last statement */
    fac_condition *where;
    size_t nwhere, room_where;
    const char *value[FAC_RULE_VALUES], *attr[FAC_RULE_ATTRS]; /* names by slot */
    int maker[FAC_RULE_VALUES],
        output[FAC_RULE_VALUES]; /* the statement and its result; -1: any value */
    int nvalues, nattrs;
} fac_rule;

struct fac_rules {
    fac_arena arena;
    fac_rule **at;
    size_t n, room;
};

int fac_rule_value(const fac_rule *r, const char *name); /* the slot; -1: there is none */
int fac_rule_attr(const fac_rule *r, const char *name);

/* What the names of a pattern mean at a place in a graph. */
typedef struct fac_goal {
    const fac_term *term;
    fac_value *v;
} fac_goal;
typedef struct fac_match {
    const fac_rule *rule;
    fac_value *value[FAC_RULE_VALUES];
    const fac_node *node[FAC_RULE_NODES];
    const fac_attr *attr[FAC_RULE_ATTRS];
    const void *at[FAC_RULE_ATTRS];
    fac_goal goals[FAC_RULE_GOALS];
    int next, ngoals;
    int *budget; /* steps that are left: patterns with many commuting operands could try without end
                  */
} fac_match;

/* Readers of a value that are alive: counted by rewrite.c. */
static inline uintptr_t fac_rule_uses(const fac_value *v) { return (uintptr_t)v->mark; }
static inline bool fac_rule_dead(const fac_node *n) { return n->mark != NULL; }

bool fac_rule_matches(const fac_rule *r, const fac_node *root, fac_match *m);
bool fac_rule_holds(const fac_match *m); /* all conditions */
/* One line of conditions. */
fac_status fac_conditions_read(fac_cursor *c, fac_rule *r);
#endif
