/* What the verbs of the command share.  One file per verb; each ends in a `verb`. */
#ifndef FACULA_CLI_H
#define FACULA_CLI_H
#include <stdbool.h>
#include <stdio.h>
#include "facula/facula.h"
#include "out.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* ---- verbs ---- */

typedef enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_INT,
    OPTION_REAL,
    OPTION_LIST,
    OPTION_STEP,
    OPTION_OUT,
    OPTION_OUTS
} option_kind;
typedef struct list {
    const char **at;
    int n;
} list;
/* What is to be done, in the order of the command line: an option with value NULL takes none. */
typedef struct ordered {
    const char *name, *text;
} ordered;
typedef struct ordered_list {
    ordered *at;
    int n;
} ordered_list;

/* One row of a verb's options: parsing, checking and help come from it.  to: bool, const char *,
 * long, double, list, ordered_list.  OPTION_OUT and OPTION_OUTS are text and list of files that the
 * verb writes: FILE or NAME=FILE.  What *to holds before the parsing is the default, so a number
 * that cannot be given may stand for "not given"; where every number can be given, option_given()
 * tells. */
typedef struct option {
    const char *name; /* "--threads" */
    option_kind kind;
    void *to;
    const char *value, *help; /* "N", "how many threads; default: one a core" */
    const char
        *range; /* of a number, as an interval: "[1, 256]", "(0, inf)"; NULL: any finite one */
} option;
#define OPTION_COUNT                                                                               \
    "[1, 1000000000]" /* of things that there is at least one of, and that fit into an int */
#define OPTION_TALLY "[0, 1000000000]"

typedef struct verb {
    const char *name, *summary, *usage; /* usage: "facula run MODEL [INPUT...] [options]" */
    const char *more;                   /* text after the options in `facula help VERB`, or NULL */
    const char *examples;               /* one a line, each without the word facula */
    void (*list)(void);                 /* prints tables after that, or NULL */
    const option *options;              /* ends with a NULL name, or NULL */
    int (*run)(list args);              /* what is left of the command line; an exit code */
} verb;
extern const verb *const verbs[]; /* main.c; NULL-terminated */
const verb *verb_find(const char *name);

/* Splits argv into options (written to their targets) and args.  An exit code, or -1 to go on.
 * `--help` prints help. */
int options_parse(const verb *v, int argc, char **argv, list *args);
bool option_given(const void *to); /* the option with this target stood on the command line */
bool option_takes(const option *o, double x); /* a number in its range */

/* ---- help.c ---- */

void verb_help(const verb *v, FILE *to);
/* For verb.list: a name in so many columns with text beside it, and text as verb.more has it. */
void help_row(const char *name, int room, const char *text);
void help_paragraphs(const char *text);

/* ---- given.c: exit codes ---- */

/* These options, NULL after the last one, would do nothing: the first that was given is refused,
 * with why: "goes with --profile". */
int options_idle(const verb *v, const char *const *names, const char *why);
/* The same of all others. */
int options_only(const verb *v, const char *const *names, const char *why);
extern const char *const device_names[]; /* where no device works; --memory-limit does */
/* Arguments of which the least, such as files, may not be empty. */
enum { ANY_NUMBER = 1 << 30 };
int arguments_fit(const verb *v, list args, int least, int most, const char *question);

/* "s" after the name of things, unless there is exactly one. */
static inline const char *plural(double n) { return n == 1 ? "" : "s"; }
/* text, if it is on; else nothing. */
static inline const char *text_if(bool on, const char *text) { return on ? text : ""; }
/* text, or what stands for it where it is NULL. */
static inline const char *text_or(const char *text, const char *otherwise) {
    return text ? text : otherwise;
}

/* ---- words.c ---- */

const char *loss_text(double loss, char to[24]); /* "0.1234", "3.4e+38" */
const char *shell_word(const char *text, char *to,
                       size_t size); /* quoted, where sh would read it otherwise */
const char *folder_name(
    const char *path); /* without slashes at its end; lives as long as the process */

/* ---- errors: one line on stderr ---- */

int fail(const fac_error *err); /* EXIT_FAILED */
int fail_text(const char *format, ...) FAC_PRINTF(1, 2);
int usage_text(const char *format, ...) FAC_PRINTF(1, 2); /* EXIT_USAGE */
fac_status out_of_memory(fac_error *err);                 /* FAC_E_NOMEM, and says so */
int usage_error(const verb *v, const char *format, ...)
    FAC_PRINTF(2, 3); /* EXIT_USAGE, with a hint at help */

/* ---- terminal.c ---- */

bool colour(void); /* stdout is a terminal that wants colour (NO_COLOR is honoured) */
bool unicode(
    void); /* stdout shows more than ASCII: the locale says so, or a terminal that denies nothing */
int columns(void);                  /* width of the terminal, 80 when it is none */
#define bytes_text fac_bytes_text   /* "12.4 MB" */
#define count_text fac_count_text   /* "1.82 G"  */
#define digits_text fac_digits_text /* "1,814,073,344" */
void table_row(FILE *to, const int *widths, int n, ...); /* text cells; negative width: left */
const char *end_of(const char *name, int width); /* what fits of a long name: its end says more */
void progress(const char *what, long done, long total,
              double since); /* a line with rate and ETA; done == total clears it */
double now(void);
double median_of(double *times, int n); /* and sorts them; n: 1 or more */

/* ---- folder.c: functions that make one return an exit code ---- */

int folder_make(const char *path);   /* and those above it; one that is there is fine */
int folders_above(const char *path); /* those of a file's path */
bool is_folder(const char *path);    /* also through links; false: something else, or nothing */

/* ---- device.c, model.c, inputs.c ---- */

typedef struct device_options {
    const char *device, *isa;
    long threads;
    const char *memory_limit, *wisdom;
    bool cache_packed;
} device_options;
#define DEVICE_OPTIONS(o)                                                                          \
    { "--device", OPTION_TEXT, &(o).device, "NAME",                                                \
      "cpu (default), opencl, opencl:N, opencl:NAME: see `facula devices`" },                      \
        { "--threads",                                                                             \
          OPTION_INT,                                                                              \
          &(o).threads,                                                                            \
          "N",                                                                                     \
          "cpu threads, 1 to 256; default: one per core",                                          \
          "[1, 256]" },                                                                            \
        { "--isa", OPTION_TEXT, &(o).isa, "NAME",                                                  \
          "cpu: no instruction set above avx512, avx2, neon or portable" },                        \
        { "--memory-limit", OPTION_TEXT, &(o).memory_limit, "SIZE",                                \
          "most memory that this process may take, such as 2G; with opencl, that the device "      \
          "may" },                                                                                 \
        { "--wisdom", OPTION_TEXT, &(o).wisdom, "FILE",                                            \
          "choices measured by `facula tune`; default: FACULA_WISDOM, else "                       \
          "~/.local/share/facula/wisdom; \"\" for none" },                                         \
    {                                                                                              \
        "--cache-packed", OPTION_FLAG, &(o).cache_packed, NULL,                                    \
            "keep packed weights on disk for the next start"                                       \
    }
int device_open(const device_options *o,
                fac_device **out); /* EXIT_OK or an exit code; applies the memory limit */
/* A driver may end the process that asks it (PoCL does where it finds no /sys), so a child asks
 * first.  The signal, or 0. */
int device_ends_process(const char *name);
int memory_limit(const char *text); /* the same, alone */
/* --precision: how products inside f32 ops are made, or mixed precision: most of the model in this
 * type.  NULL, "default": as it is. */
typedef struct numerics {
    fac_precision products;
    fac_dtype mixed;
} numerics;
bool precision_parse(const char *name, numerics *out);
int precision_read(const verb *v, const char *name, numerics *out); /* EXIT_OK or an exit code */
/* The graph becomes its form in mixed precision, where that is asked for. */
int precision_apply(const numerics *p, fac_graph **g);
#define PRECISION_HELP                                                                             \
    "f32 products: default (errors of 1e-5), highest (3e-6), high (TF32) or medium (bf16); "       \
    "bf16 or f16: mixed precision"
#define PRECISION_NAMES "default, highest, high, medium, bf16 or f16"

typedef struct model {
    fac_graph *graph;
    const fac_zoo *zoo; /* of a zoo: model  */
    fac_weights *weights;
    bool random;      /* weights are random */
    const char *path; /* of its file, the caller's; NULL: of a zoo */
} model;
extern const char *link_root; /* --link-root: where links of external data may lead to */
#define LINK_ROOT_OPTION                                                                           \
    {                                                                                              \
        "--link-root", OPTION_TEXT, &link_root, "DIR",                                             \
            "external data of a model may be symbolic links to files below this folder"            \
    }
/* path: an ONNX file, the text of `facula show`, or zoo:NAME.  shapes: "x=1x3x224x224" or
 * "1x3x224x224" for the first input. */
int model_load(const char *path, const char *weights, const list *shapes, long seed, model *out);
/* The same for those who only look: nodes of an ONNX file that cannot be built are `opaque` (see
 * facula/onnx.h). */
int model_look(const char *path, const char *weights, const list *shapes, long seed, model *out);
void model_free(model *m);
/* --rest: what weights become that a scheme of few bits leaves; false: neither int8 nor float. */
bool rest_chosen(const char *text, bool *bytes);
/* Such weights as bytes, in a copy that takes the place of *g. */
int with_byte_weights(fac_graph **g);
/* "1x3x224x224" */
bool dims_parse(const char *text, fac_dims *out);
/* The same of a type; "unknown" when it is. */
const char *type_dims(const fac_graph *g, const fac_type *t, char *to, size_t size);
#define dims_text fac_dims_text

/* Sizes for the open dims of an input: 1, or batch for the first. */
fac_type input_type(const fac_value *input, const list *shapes, long batch);
/* --batch, 0 when it was not given, is for open dims: an error where the first dim of each of the
 * first n inputs is fixed, unless it is this size anyway. */
int batch_fits(const fac_graph *g, int n, long batch);
/* Uniform in [-1, 1) for floats, 0 and 1 for bool, 0..9 for integers. */
fac_status tensor_random(fac_type type, uint64_t seed, uint64_t stream, fac_tensor **out,
                         fac_error *err);
/* .npy, .npz (its only or first entry; FILE.npz:NAME for another), ONNX TensorProto .pb */
fac_status tensor_load(const char *path, fac_tensor **out, fac_error *err);
/* Room for so many tensors, none of them there yet; NULL: no memory.  tensors_free frees the
 * tensors and the room. */
fac_tensor **tensors_new(int n);
void tensors_free(fac_tensor **all, int n);
fac_status tensor_save(const fac_tensor *t, const char *name, const char *path,
                       fac_error *err);               /* by the ending */
bool ends_with(const char *path, const char *ending); /* in any case: ".npy", ".NPY" */
bool called_image(const char *path);                  /* by its ending: ".jpg" */
bool is_image(const char *path);                      /* or by its contents */
#endif
