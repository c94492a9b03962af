/* See files.h. */
#include "files.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct known {
    dev_t device;
    ino_t number;
} known;
static struct {
    known *at;
    int n, room;
} inputs; /* of this command line */
static struct {
    char **at;
    int n;
} models; /* those whose files beside are not known yet */

/* ---- inputs ---- */

static bool identify(const char *path, known *out) {
    struct stat s;
    if (stat(path, &s) || !S_ISREG(s.st_mode)) return false;
    *out = (known){ s.st_dev, s.st_ino };
    return true;
}

static bool same(const known *a, const known *b) {
    return a->device == b->device && a->number == b->number;
}

static int keep(const known *k) {
    if (inputs.n == inputs.room) {
        const int room = inputs.room ? 2 * inputs.room : 16;
        known *more = realloc(inputs.at, (size_t)room * sizeof *more);
        if (!more) return fail_text("out of memory");
        inputs.at = more;
        inputs.room = room;
    }
    inputs.at[inputs.n++] = *k;
    return EXIT_OK;
}

/* Files beside a model are parts of it.  Which ones, its contents say: read when the first output
 * is there already. */
static void add_beside(void *self, const char *location) {
    char path[PATH_MAX];
    const char *from = self, *slash = strrchr(from, '/');
    const int folder = slash ? (int)(slash - from) + 1 : 0;
    known k;
    const int n = snprintf(path, sizeof path, "%.*s%s", folder, from, location);
    if (n < (int)sizeof path && identify(path, &k)) keep(&k);
}

static void look_beside(void) {
    for (int i = 0; i < models.n; i++) {
        /* what is wrong with a model is said later */
        fac_onnx_beside(models.at[i], add_beside, models.at[i], NULL);
        free(models.at[i]);
    }
    models.n = 0;
}

static int keep_model(const char *path) {
    char **more = realloc(models.at, (size_t)(models.n + 1) * sizeof *more);
    if (more) models.at = more;
    char *copy = more ? strdup(path) : NULL;
    if (!copy) return fail_text("out of memory");
    models.at[models.n++] = copy;
    return EXIT_OK;
}

static int add_path(const char *path) {
    known k;
    if (!identify(path, &k)) return EXIT_OK;
    const int code = keep(&k);
    return !code && ends_with(path, ".onnx") ? keep_model(path) : code;
}

/* "x.npy", "x.npz:NAME", "MODEL,OUT=IN": up to each place where a path may end. */
static int add_begin(const char *text) {
    char path[PATH_MAX];
    const size_t ends[] = { strlen(text), strcspn(text, ","), strcspn(text, ":") };
    int code = EXIT_OK;
    for (int k = 0; k < 3 && !code; k++) {
        if (!ends[k] || ends[k] >= sizeof path) continue;
        memcpy(path, text, ends[k]);
        path[ends[k]] = 0;
        code = add_path(path);
    }
    return code;
}

/* Whatever word of the command line names a file is taken for an input: so no option can be
 * forgotten. */
static int add_word(const char *word) {
    int code = add_begin(word);
    for (const char *s = word; !code && (s = strchr(s, '='));) code = add_begin(++s);
    return code;
}

static int add_option(const option *row) {
    int code = EXIT_OK;
    const char *text = row->kind == OPTION_TEXT ? *(const char **)row->to : NULL;
    if (text) return add_word(text);
    if (row->kind == OPTION_LIST) {
        const list *l = row->to;
        for (int i = 0; i < l->n && !code; i++) code = add_word(l->at[i]);
    }
    if (row->kind == OPTION_STEP) {
        const ordered_list *l = row->to;
        for (int i = 0; i < l->n && !code; i++)
            if (l->at[i].text) code = add_word(l->at[i].text);
    }
    return code;
}

/* ---- outputs ---- */

bool is_input(const char *path) {
    known k;
    if (!identify(path, &k)) return false;
    look_beside();
    for (int i = 0; i < inputs.n; i++)
        if (same(&k, &inputs.at[i])) return true;
    return false;
}

int output_check(const char *path) {
    char beside[PATH_MAX];
    const int n = snprintf(beside, sizeof beside, "%s.data", path);
    if (is_input(path)) return fail_text("%s: " INPUT_TOO, path);
    const bool possible = n < (int)sizeof beside && ends_with(path, ".onnx");
    return possible && is_input(beside) ? fail_text("%s: " INPUT_TOO, beside) : EXIT_OK;
}

/* Where a file is or will be, without links; false for what is no file, such as a device, and for
 * folders that are missing. */
static bool place_of(const char *path, char place[PATH_MAX]) {
    struct stat s;
    char folder[PATH_MAX];
    if (!stat(path, &s)) return S_ISREG(s.st_mode) && realpath(path, place);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int length = slash ? (int)(slash - path) + 1 : 1;
    const int n = snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
    if (n >= (int)sizeof folder || !realpath(folder, place)) return false;
    const size_t used = strlen(place);
    return (size_t)snprintf(place + used, PATH_MAX - used, "/%s", name) < PATH_MAX - used;
}

bool same_file(const char *a, const char *b) {
    char x[PATH_MAX], y[PATH_MAX];
    return place_of(a, x) && place_of(b, y) && !strcmp(x, y);
}

static int check_list(const list *l) {
    int code = EXIT_OK;
    for (int i = 0; i < l->n && !code; i++) {
        const char *equals = strchr(l->at[i], '='), *path = equals ? equals + 1 : l->at[i];
        code = output_check(path);
        for (int k = 0; k < i && !code; k++) {
            const char *before = strchr(l->at[k], '=');
            if (before && same_file(before + 1, path))
                code = fail_text("%s: two outputs cannot go to one file", path);
        }
    }
    return code;
}

static int check_option(const option *row) {
    if (row->kind == OPTION_OUTS) return check_list(row->to);
    const char *path = row->kind == OPTION_OUT ? *(const char **)row->to : NULL;
    return path ? output_check(path) : EXIT_OK;
}

int files_check(const verb *v, list args) {
    int code = EXIT_OK;
    for (int i = 0; i < args.n && !code; i++) code = add_word(args.at[i]);
    for (const option *row = v->options; row && row->name && !code; row++) code = add_option(row);
    for (const option *row = v->options; row && row->name && !code; row++) code = check_option(row);
    return code;
}

/* ---- writing ---- */

int file_write(const char *path, const void *data, size_t bytes) {
    fac_error err = { 0 };
    return fac_file_write(path, data, bytes, &err) ? fail(&err) : EXIT_OK;
}

int file_write_text(const char *path, const char *text) {
    return file_write(path, text, strlen(text));
}

int path_join(char *to, size_t size, const char *dir, const char *name, const char *ending) {
    const int n = snprintf(to, size, "%s/%s%s", dir, name, ending);
    return n >= 0 && (size_t)n < size ? EXIT_OK : fail_text("%s: a path that is too long", dir);
}
