/* What a verb prints as JSON against what docs/JSON.md says of it.  usage: json_keys DOC VERB <JSON
 *
 * The section "## VERB" of the document has rows | `path.to.key` | type | ... |, where [] stands
 * for the items of a list and * for any key; a type is number, string, bool, list or object, "T or
 * null" where it may be null, and "T, optional" where it may be missing.  Each key that is printed
 * must be there with its type, and each key that is there must be printed, unless it is optional.
 */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, TEXT = 256 };
typedef struct row {
    char path[TEXT], type[TEXT];
    bool seen;
} row;
static row rows[ROWS];
static int nrows, bad;

/* The text between the nth pair of bars, without blanks and backticks around it. */
static void cell(const char *line, int n, char to[TEXT]) {
    for (; n-- && *line; line += *line == '|') line += strcspn(line + 1, "|") + 1;
    line += *line == '|';
    size_t length = strcspn(line, "|");
    while (length && strchr(" `", *line)) line++, length--;
    while (length && strchr(" `", line[length - 1])) length--;
    snprintf(to, TEXT, "%.*s", (int)length, line);
}

static bool read_rows(const char *path, const char *verb) {
    char line[4096], want[TEXT];
    FILE *f = fopen(path, "r");
    bool here = false;
    snprintf(want, sizeof want, "## %s\n", verb);
    while (f && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "## ", 3)) here = !strcmp(line, want);
        if (!here || strncmp(line, "| `", 3)) continue;
        if (nrows == ROWS) return false;
        cell(line, 0, rows[nrows].path);
        cell(line, 1, rows[nrows].type);
        nrows++;
    }
    if (f) fclose(f);
    return nrows > 0;
}

/* Whether a path is meant by a pattern, in which a * stands for one key of any text. */
static bool means(const char *pattern, const char *path) {
    for (; *pattern && *pattern != '*'; pattern++, path++)
        if (*pattern != *path) return false;
    if (!*pattern) return !*path;
    for (const char *p = path;; p++) {
        if (means(pattern + 1, p)) return true;
        if (!*p) return false;
    }
}

static const char *type_of(const cJSON *x) {
    return cJSON_IsNumber(x)   ? "number"
           : cJSON_IsString(x) ? "string"
           : cJSON_IsBool(x)   ? "bool"
           : cJSON_IsArray(x)  ? "list"
           : cJSON_IsObject(x) ? "object"
                               : "null";
}

static void look(const cJSON *x, const char *path) {
    char inner[2 * TEXT];
    int k = 0;
    while (*path && k < nrows && strcmp(rows[k].path, path))
        k++; /* the key itself, else a pattern */
    if (*path && k == nrows)
        for (k = 0; k < nrows && !means(rows[k].path, path); k++) {}
    if (*path && k == nrows) {
        printf("%s (%s) is printed, but not documented\n", path, type_of(x));
        bad++;
        return;
    }
    if (*path) {
        const char *type = type_of(x);
        rows[k].seen = true;
        if (!strstr(rows[k].type, type)) {
            printf("%s is a %s, documented as %s\n", path, type, rows[k].type);
            bad++;
        }
    }
    for (const cJSON *c = cJSON_IsObject(x) ? x->child : NULL; c; c = c->next) {
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", c->string);
        look(c, inner);
    }
    for (const cJSON *c = cJSON_IsArray(x) ? x->child : NULL; c; c = c->next) {
        snprintf(inner, sizeof inner, "%s[]", path);
        if (cJSON_IsObject(c) ||
            cJSON_IsArray(c)) { /* items are not documented themselves, their keys are */
            for (const cJSON *i = c->child; i && cJSON_IsObject(c); i = i->next) {
                snprintf(inner, sizeof inner, "%s[].%s", path, i->string);
                look(i, inner);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || !read_rows(argv[1], argv[2])) {
        fprintf(stderr, "%s has no rows of %s\n", argc > 1 ? argv[1] : "?",
                argc > 2 ? argv[2] : "?");
        return 2;
    }
    size_t n = 0, room = 1 << 22;
    char *text = malloc(room + 1);
    if (!text) return 2;
    n = fread(text, 1, room, stdin);
    text[n] = 0;
    const char *at = text;
    int values = 0;
    for (; *at; values++) { /* one value, or one a line */
        const char *end = NULL;
        cJSON *x = cJSON_ParseWithOpts(at, &end, 0);
        if (!x) {
            printf("not JSON: %.40s\n", at);
            bad++;
            break;
        }
        look(x, "");
        cJSON_Delete(x);
        for (at = end; isspace((unsigned char)*at);) at++;
    }
    for (int k = 0; k < nrows && values; k++)
        if (!rows[k].seen && !strstr(rows[k].type, "optional")) {
            printf("%s is documented, but not printed\n", rows[k].path);
            bad++;
        }
    if (!values) printf("nothing was printed\n");
    free(text);
    return bad || !values;
}
