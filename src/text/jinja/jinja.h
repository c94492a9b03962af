/* Chat templates: the part of Jinja (https://jinja.palletsprojects.com) that they use, as
 * transformers sets it up: trim_blocks, lstrip_blocks, break and continue, no escaping.
 *
 * Texts know of each byte where it is from, so that what a message says is told from what the
 * template says, through every filter and slice. */
#ifndef FACULA_TEXT_JINJA_H
#define FACULA_TEXT_JINJA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "facula/tokenizer.h"

/* Where a byte is from: the template, a message, a message of the system. */
enum { FAC_JINJA_TEMPLATE, FAC_JINJA_MESSAGE, FAC_JINJA_SYSTEM };

typedef enum fac_jinja_kind {
    FAC_JINJA_UNDEFINED,
    FAC_JINJA_NONE,
    FAC_JINJA_BOOL,
    FAC_JINJA_INT,
    FAC_JINJA_FLOAT,
    FAC_JINJA_TEXT,
    FAC_JINJA_LIST,
    FAC_JINJA_TUPLE,
    FAC_JINJA_DICT,
    FAC_JINJA_NAMESPACE,
    FAC_JINJA_MACRO,
    FAC_JINJA_FUNCTION
} fac_jinja_kind;

typedef struct fac_jinja_node fac_jinja_node;
typedef struct fac_jinja_scope fac_jinja_scope;
typedef struct fac_jinja_list fac_jinja_list;
typedef struct fac_jinja_dict fac_jinja_dict;

/* n bytes; from: of each byte where it is from, NULL: all are the template's. */
typedef struct fac_jinja_text {
    const char *s, *from;
    size_t n;
} fac_jinja_text;

typedef struct fac_jinja_value {
    fac_jinja_kind kind;
    union {
        int64_t i; /* and of a truth value */
        double f;
        fac_jinja_text text;
        const char *name; /* of a function, and of what is undefined */
        fac_jinja_list *list;
        fac_jinja_dict *dict;
        struct {
            const fac_jinja_node *node;
            fac_jinja_scope *scope;
        } macro;
    };
} fac_jinja_value;

struct fac_jinja_list {
    fac_jinja_value *at;
    size_t n, room;
};
struct fac_jinja_dict { /* in the order of their coming */
    fac_jinja_list keys, values;
};

/* ---- syntax ---- */
typedef enum fac_jinja_what { /* statements, then expressions */
                              FAC_JINJA_PLAIN,
                              FAC_JINJA_PRINT,
                              FAC_JINJA_FOR,
                              FAC_JINJA_IF,
                              FAC_JINJA_SET,
                              FAC_JINJA_CAPTURE,
                              FAC_JINJA_DEFINE,
                              FAC_JINJA_BREAK,
                              FAC_JINJA_CONTINUE,
                              FAC_JINJA_GROUP,
                              FAC_JINJA_CONST,
                              FAC_JINJA_NAME,
                              FAC_JINJA_ITEMS,
                              FAC_JINJA_PAIRS,
                              FAC_JINJA_ATTRIBUTE,
                              FAC_JINJA_INDEX,
                              FAC_JINJA_SLICE,
                              FAC_JINJA_CALL,
                              FAC_JINJA_FILTER,
                              FAC_JINJA_TEST,
                              FAC_JINJA_AND,
                              FAC_JINJA_OR,
                              FAC_JINJA_NOT,
                              FAC_JINJA_NEGATE,
                              FAC_JINJA_MATH,
                              FAC_JINJA_COMPARE,
                              FAC_JINJA_CHOICE,
                              FAC_JINJA_ARGUMENT
} fac_jinja_what;

/* What a, b, c and the lists hold:
 *   PRINT a; FOR target a, over b, if c, body, other; IF a, body, other; SET target a, b;
 *   CAPTURE target a, body, FILTERs b without their first value; DEFINE name, items (ARGUMENTs
 *   whose a is the default), body; GROUP body; ITEMS items, tuple; PAIRS items, key and value in
 *   turn; ATTRIBUTE a, name; INDEX a, b; SLICE a, from b, to c, step d; CALL a, items (ARGUMENTs);
 *   FILTER and TEST a, name, items; MATH and COMPARE name is the sign, a, b; CHOICE if a then b
 *   else c. */
struct fac_jinja_node {
    fac_jinja_what what;
    int line;
    bool tuple, elif; /* elif: other is one statement IF */
    const char *name;
    fac_jinja_value value;
    fac_jinja_node *a, *b, *c, *d, *items, *body, *other, *next;
};

/* ---- lex.c ---- */
typedef enum fac_jinja_sign {
    FAC_JINJA_OVER, /* of the template */
    FAC_JINJA_CLOSE,
    FAC_JINJA_WORD,
    FAC_JINJA_NUMBER,
    FAC_JINJA_QUOTED,
    FAC_JINJA_MARK
} fac_jinja_sign;

typedef struct fac_jinja_reading {
    fac_arena *arena;
    char *s; /* the template, with one kind of line ends */
    size_t n, at;
    int line, depth, open; /* open: brackets */
    fac_jinja_sign sign;
    fac_jinja_value value; /* of a number or a quoted text */
    const char *word;      /* of a word or a mark */
    bool block;            /* within {% %}, not {{ }} */
    fac_jinja_node spare;  /* instead of a node, once it failed */
    fac_status status;
    fac_error *err;
} fac_jinja_reading;

enum fac_jinja_piece { FAC_JINJA_PIECE_TEXT, FAC_JINJA_PIECE_VALUE, FAC_JINJA_PIECE_BLOCK };
/* The next piece of a template: a text, or the beginning of a tag, whose first sign is read. */
enum fac_jinja_piece fac_jinja_next_piece(fac_jinja_reading *r, fac_jinja_text *text);
fac_jinja_text fac_jinja_raw(fac_jinja_reading *r); /* after {% raw: up to the end of endraw */
void fac_jinja_next(fac_jinja_reading *r);          /* the next sign of a tag */
bool fac_jinja_is(const fac_jinja_reading *r, fac_jinja_sign sign, const char *word);
void fac_jinja_wrong(fac_jinja_reading *r, const char *what);

/* ---- parse.c, expression.c ---- */
fac_jinja_node *fac_jinja_parse(fac_jinja_reading *r); /* its body */
/* many: with commas it is a tuple. */
fac_jinja_node *fac_jinja_expression(fac_jinja_reading *r, bool many, bool choice);
fac_jinja_node *fac_jinja_target(fac_jinja_reading *r);
fac_jinja_node *fac_jinja_filters(fac_jinja_reading *r, fac_jinja_node *a);
fac_jinja_node *fac_jinja_node_new(fac_jinja_reading *r, fac_jinja_what what);
const char *fac_jinja_word(fac_jinja_reading *r);
bool fac_jinja_take(fac_jinja_reading *r, const char *mark); /* and where it is there */
void fac_jinja_want(fac_jinja_reading *r, const char *mark);

/* ---- running ---- */
typedef struct fac_jinja_out {
    char *s, *from;
    size_t n, room;
} fac_jinja_out;

typedef struct fac_jinja_run {
    fac_arena *arena;
    fac_jinja_scope *scope;
    fac_jinja_out *out;
    size_t bytes; /* that were taken so far */
    int64_t steps;
    int depth, line;
    fac_jinja_what leaves; /* BREAK or CONTINUE, which is under way; else 0 */
    bool refused;          /* by raise_exception */
    fac_status status;
    fac_error *err;
} fac_jinja_run;

enum { FAC_JINJA_ARGUMENTS = 16 };
typedef struct fac_jinja_arguments {
    fac_jinja_value at[FAC_JINJA_ARGUMENTS];
    const char *names[FAC_JINJA_ARGUMENTS]; /* NULL: by place */
    int n;
} fac_jinja_arguments;

typedef fac_jinja_value fac_jinja_filter(fac_jinja_run *r, fac_jinja_value v,
                                         const fac_jinja_arguments *a);

/* ---- value.c ---- */
void *fac_jinja_alloc(fac_jinja_run *r, size_t n, size_t size); /* NULL: r has failed */
/* Ends the run; *err says where. */
fac_jinja_value fac_jinja_fail(fac_jinja_run *r, fac_status status, const char *format, ...)
    FAC_PRINTF(3, 4);
fac_jinja_value fac_jinja_bool(bool x);
fac_jinja_value fac_jinja_int(int64_t x);
fac_jinja_value fac_jinja_string(const char *s); /* which stays */
fac_jinja_value fac_jinja_part(fac_jinja_text t, size_t from, size_t to);
fac_jinja_value fac_jinja_undefined(const char *name);
fac_jinja_value fac_jinja_new_list(fac_jinja_run *r, fac_jinja_kind kind);
fac_jinja_value fac_jinja_new_dict(fac_jinja_run *r, fac_jinja_kind kind);
void fac_jinja_add(fac_jinja_run *r, fac_jinja_list *to, fac_jinja_value v);
void fac_jinja_put(fac_jinja_run *r, fac_jinja_dict *to, fac_jinja_value key, fac_jinja_value v);
/* NULL: it has none. */
const fac_jinja_value *fac_jinja_get(fac_jinja_run *r, const fac_jinja_dict *d,
                                     fac_jinja_value key);
const fac_jinja_value *fac_jinja_field(fac_jinja_run *r, const fac_jinja_dict *d, const char *key);
const char *fac_jinja_kind_name(fac_jinja_value v); /* as Python calls it */
bool fac_jinja_truth(fac_jinja_value v);
bool fac_jinja_equal(fac_jinja_run *r, fac_jinja_value a, fac_jinja_value b);
bool fac_jinja_step(fac_jinja_run *r);                /* false: it takes too long */
bool fac_jinja_read(fac_jinja_run *r, size_t n);      /* a step, and more for many bytes */
bool fac_jinja_number(fac_jinja_value v, double *to); /* false: it is none */
int fac_jinja_order(fac_jinja_run *r, fac_jinja_value a, fac_jinja_value b); /* as strcmp */
bool fac_jinja_has(fac_jinja_run *r, fac_jinja_value in, fac_jinja_value what);
/* What is looped over: the items of a list, the keys of a dict, the characters of a text. */
fac_jinja_list fac_jinja_each(fac_jinja_run *r, fac_jinja_value v);
size_t fac_jinja_length(fac_jinja_run *r, fac_jinja_value v);

/* ---- write.c ---- */
void fac_jinja_write(fac_jinja_run *r, fac_jinja_out *to, const char *s, const char *from,
                     size_t n);
void fac_jinja_print(fac_jinja_run *r, fac_jinja_out *to, fac_jinja_value v);
/* indent < 0: on one line. */
void fac_jinja_json(fac_jinja_run *r, fac_jinja_out *to, fac_jinja_value v, int indent);
fac_jinja_value fac_jinja_written(const fac_jinja_out *o); /* as a text */
fac_jinja_text fac_jinja_as_text(fac_jinja_run *r, fac_jinja_value v);

/* ---- json.c: `what` names the text where it is wrong ---- */
fac_jinja_value fac_jinja_from_json(fac_jinja_run *r, const char *text, const char *what);
/* The fields of an object into a dict; NULL: as names of the template. */
void fac_jinja_fields(fac_jinja_run *r, fac_jinja_dict *to, const char *text, const char *what);

/* ---- run.c, evaluate.c, math.c ---- */
struct fac_jinja_scope {
    fac_jinja_scope *up;
    fac_jinja_dict names;
};
void fac_jinja_execute(fac_jinja_run *r, const fac_jinja_node *body);
void fac_jinja_define(fac_jinja_run *r, const char *name, fac_jinja_value v);
fac_jinja_scope *fac_jinja_enter(fac_jinja_run *r, fac_jinja_scope *up); /* the scope till now */
bool fac_jinja_deeper(fac_jinja_run *r);                                 /* false: too deep */
fac_jinja_value fac_jinja_evaluate(fac_jinja_run *r, const fac_jinja_node *n);
fac_jinja_value fac_jinja_filtered(fac_jinja_run *r, const fac_jinja_node *filter,
                                   fac_jinja_value v);
fac_jinja_value fac_jinja_item(fac_jinja_run *r, fac_jinja_value of, fac_jinja_value key);
fac_jinja_value fac_jinja_math(fac_jinja_run *r, const char *sign, fac_jinja_value a,
                               fac_jinja_value b);
fac_jinja_value fac_jinja_slice(fac_jinja_run *r, fac_jinja_value of, const fac_jinja_value at[3]);

/* ---- filters.c, tests.c, texts.c, calls.c ---- */
/* The argument of that place or name; NULL: not given. */
const fac_jinja_value *fac_jinja_argument(const fac_jinja_arguments *a, int place,
                                          const char *name);
int64_t fac_jinja_count(fac_jinja_run *r, const fac_jinja_arguments *a, int place, const char *name,
                        int64_t otherwise);
fac_jinja_filter *fac_jinja_find_filter(const char *name); /* NULL: none that is known */
bool fac_jinja_test(fac_jinja_run *r, const char *name, fac_jinja_value v,
                    const fac_jinja_arguments *a);
/* A method of a text; a filter of the same name may be the same. */
fac_jinja_filter *fac_jinja_find_method(const char *name);
fac_jinja_value fac_jinja_call(fac_jinja_run *r, const fac_jinja_node *call,
                               const fac_jinja_arguments *a);
bool fac_jinja_is_function(const char *name);

/* ---- jinja.c ---- */
typedef struct fac_jinja_input {
    const fac_message *messages;
    int n;
    bool answer;
    const char *tools, *variables;   /* JSON: a list, an object; NULL: none */
    const char *const *more;         /* of each message an object; NULL: none */
    const char *bos, *eos, *unknown; /* tokens; NULL: there is none */
} fac_jinja_input;
typedef struct fac_jinja_result {
    const char *s, *from; /* in the arena */
    size_t n;
    bool system;  /* there is text of the system's message in it */
    bool refused; /* the template itself says no (FAC_E_ARGUMENT) */
} fac_jinja_result;
/* FAC_E_UNSUPPORTED: a part of Jinja that is not known; FAC_E_FORMAT: none of Jinja at all;
 * FAC_E_ARGUMENT: the template refuses these messages. */
fac_status fac_jinja_render(fac_arena *arena, const char *source, const fac_jinja_input *in,
                            fac_jinja_result *out, fac_error *err);
#endif
