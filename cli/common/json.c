/* See json.h. */
#include "json.h"
#include <string.h>
#include "files.h"

/* As cJSON prints it, but for what it leaves as it was: other control characters, and what turns
 * text around, by their numbers; bytes that are no UTF-8 as U+FFFD.  All of them stand in strings.
 * A byte becomes six at most. */
static char *escaped(const char *text) {
    char *all = malloc(6 * strlen(text) + 1), *to = all;
    for (size_t n; to && *text; text += n) {
        uint32_t c;
        n = fac_utf8(text, &c);
        const bool blank = c == '\n' || c == '\t', none = c == FAC_NO_LETTER && n == 1;
        if (blank || !(fac_steers(c) || none))
            to = mempcpy(to, text, n);
        else
            to += sprintf(to, "\\u%04x", (unsigned)c);
    }
    if (to) *to = 0;
    return all;
}

char *json_string(cJSON *j, bool pretty) {
    char *text = pretty ? cJSON_Print(j) : cJSON_PrintUnformatted(j);
    char *safe = text ? escaped(text) : NULL;
    cJSON_Delete(j);
    cJSON_free(text);
    if (!json_lost()) return safe;
    free(safe);
    return NULL;
}

/* With the end of the line. */
static char *text_of(cJSON *j, bool pretty) {
    char *text = json_string(j, pretty), *longer = text ? realloc(text, strlen(text) + 2) : NULL;
    if (longer) return strcat(longer, "\n");
    free(text);
    fail_text("out of memory");
    return NULL;
}

static int print(cJSON *j, bool pretty) {
    char *text = text_of(j, pretty);
    if (!text) return EXIT_FAILED;
    out_raw(text, stdout);
    free(text);
    return EXIT_OK;
}

int json_line(cJSON *j) { return print(j, false); }

int json_print(cJSON *j) {
    if (cJSON_IsObject(j) && !cJSON_HasObjectItem(j, "schema_version"))
        cJSON_AddNumberToObject(j, "schema_version", JSON_SCHEMA);
    return print(j, true);
}

int json_write(const char *path, cJSON *j, bool pretty) {
    char *text = text_of(j, pretty);
    if (!text) return EXIT_FAILED;
    const int code = file_write_text(path, text);
    free(text);
    return code;
}
