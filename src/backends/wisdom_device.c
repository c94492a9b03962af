/* The wisdom of a device: what the user measured, before what the library brings along
 * (shipped.wisdom). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/packed.h"
#include "backends/wisdom.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "shipped_wisdom.h"

bool fac_wisdom_path(char *to, size_t size) {
    const char *own = getenv("FACULA_WISDOM"), *data = getenv("XDG_DATA_HOME"),
               *home = getenv("HOME");
    int n = 0;
    if (own)
        n = snprintf(to, size, "%s", own);
    else if (data && *data)
        n = snprintf(to, size, "%s/facula/wisdom", data);
    else if (home && *home)
        n = snprintf(to, size, "%s/.local/share/facula/wisdom", home);
    return n > 0 && (size_t)n < size;
}

static size_t line_length(const char *line) { return strcspn(line, "\n"); }

static const char *after_part(const char *s, size_t length) {
    return s + length + strspn(s + length, ", ");
}

/* Every part of the line is one of the key's, in their order, and the first of both is the same. */
static bool names(const char *line, size_t length, const char *key) {
    const char *part = line + strlen("device "), *end = line + length;
    if (part >= end) return false;
    for (bool first = true; part < end; first = false) {
        size_t n = strcspn(part, ",\n"), have = 0;
        if (n > (size_t)(end - part)) n = (size_t)(end - part);
        for (; *key; key = after_part(key, have)) {
            have = strcspn(key, ",");
            if ((have == n && !memcmp(key, part, n)) || first) break;
        }
        if (!*key || have != n || memcmp(key, part, n)) return false;
        key = after_part(key, have);
        part += n;
        while (part < end && (*part == ',' || *part == ' ')) part++;
    }
    return true;
}

fac_status fac_wisdom_pick(const char *text, const char *key, fac_wisdom **out, fac_error *err) {
    fac_text picked = { 0 };
    bool ours = false, some = false;
    fac_text_print(&picked, "%s\ndevice %s\n", FAC_WISDOM_HEADING, key);
    for (const char *line = text; *line;) {
        const size_t n = line_length(line);
        if (!strncmp(line, "device ", 7))
            ours = names(line, n, key);
        else if (ours && n)
            fac_text_print(&picked, "%.*s\n", (int)n, line), some = true;
        line += n + (line[n] != 0);
    }
    fac_status status = FAC_OK;
    if (picked.failed)
        status = fac_raise_memory(err, "wisdom");
    else if (some)
        status = fac_wisdom_parse("shipped wisdom", picked.s, picked.n, out, err);
    fac_text_free(&picked);
    return status;
}

static fac_status read_own(fac_device *d, fac_error *err) {
    char usual[4096];
    const char *path = d->opts.wisdom;
    if (!path) {
        if (!fac_wisdom_path(usual, sizeof usual) || access(usual, F_OK)) return FAC_OK;
        path = usual;
    }
    fac_status status = fac_wisdom_load(path, &d->wisdom, err);
    return status ? fac_raise_in(err, status, "wisdom of the device %s", d->name) : FAC_OK;
}

fac_status fac_device_ship(fac_device *d, const char *text, fac_error *err) {
    fac_wisdom *shipped = NULL;
    fac_wisdom_entry known;
    fac_status status = fac_wisdom_pick(text, d->key, &shipped, err);
    if (!shipped) return status;
    if (!d->wisdom) {
        d->wisdom = shipped;
        return FAC_OK;
    }
    for (size_t i = 0; !status && i < fac_wisdom_count(shipped); i++) {
        const fac_wisdom_entry e = fac_wisdom_at(shipped, i);
        if (!fac_wisdom_find(d->wisdom, e.device, e.problem, &known))
            status = fac_wisdom_put(d->wisdom, &e, err);
    }
    fac_wisdom_free(shipped);
    return status;
}

fac_status fac_device_settle(fac_device *d, fac_error *err) {
    snprintf(d->key, sizeof d->key, "%s, %s%s%s", d->backend->name, d->about, *d->model ? ", " : "",
             d->model);
    for (char *c = d->key; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
    FAC_TRY(fac_packed_open(d, err));
    if (d->opts.wisdom && !*d->opts.wisdom) return FAC_OK;
    FAC_TRY(read_own(d, err));
    return fac_device_ship(d, fac_shipped_wisdom, err);
}

const char *fac_device_key(const fac_device *d) { return d->key; }
