/* What the files of `facula summary` share. */
#ifndef FACULA_CLI_SUMMARY_H
#define FACULA_CLI_SUMMARY_H
#include "cli.h"

/* A module: its own layers, and the modules inside. */
typedef struct branch {
    char *name;             /* the last component of the path; of a call, its kind */
    const fac_layer *layer; /* the first layer of a leaf; NULL for a container */
    const fac_layer *final; /* the last layer inside: it makes what a container makes */
    const char *class;      /* of the module, where the model says it */
    const fac_idle *idle;   /* the module does nothing in a run; NULL: it does */
    int calls;              /* how often the leaf runs */
    double params, buffers, shared, macs, counted, activations, weights, read;
    struct branch *child, *last, *next;
    struct branch **slots; /* the children by name: a hash table of room places */
    size_t room, children;
} branch;

/* The tree of all layers; counted: the multiply-adds of `convention`.  NULL: memory. */
branch *tree_new(const fac_analysis *a, fac_convention convention);
void tree_free(branch *b);

/* The columns that --columns may name; false after a usage error was printed. */
bool tree_columns(const char *names, int *to, int *n);
void tree_print(const fac_analysis *a, const branch *root, long depth, const int *columns, int n);

/* "1,814,073,344" */
const char *digits_text(double x, char *to, size_t size);

/* summary_count.c: layers by kind ("Conv2d"), in the order of their first; returns how many kinds
 * there are.  A kind is an op or a module of PyTorch, and there are fewer of them than KINDS. */
enum { KINDS = 512 };
typedef struct kind_row {
    const char *kind;
    int layers;
    double params, count[FAC_CONVENTIONS];
} kind_row;
int kinds_collect(const fac_analysis *a, kind_row *rows);
/* Who counts what. */
void conventions_print(const fac_analysis *a);
#endif
