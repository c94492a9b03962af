/* Names of tensors as names of files.  See files.h. */
#include <stdlib.h>
#include <string.h>
#include "files.h"

/* So that an ending fits, and what a file is called while it is written. */
enum { LONGEST = 160, ROOM = LONGEST + 32 };

/* ---- one name ---- */

/* What no file system forbids and no shell reads in another way than others do.  Letters beyond
 * ASCII stay. */
static bool fits(uint32_t c, int how) {
    if (c == '/') return how == NAMES_FOLDERS;
    return !fac_steers(c) && c != FAC_NO_LETTER && !(c < 0x80 && strchr(" \\:*?\"<>|", (int)c));
}

/* Names of devices of other systems, also with an ending. */
static bool is_device(const char *part, size_t n) {
    static const char *const names[] = { "con", "prn", "aux", "nul", "com", "lpt" };
    const size_t stem = strcspn(part, ".") < n ? strcspn(part, ".") : n;
    for (int k = 0; k < 6; k++) {
        const bool counted = k > 3 && stem == 4 && part[3] >= '0' && part[3] <= '9';
        if (!strncasecmp(part, names[k], 3) && (counted || (k < 4 && stem == 3))) return true;
    }
    return false;
}

/* Letter by letter; false when something of the name was lost in a way that the result alone does
 * not show. */
static bool spell(const char *name, int how, char to[ROOM]) {
    size_t n = 0, length;
    bool whole = true;
    for (; *name && n < LONGEST; name += length) {
        uint32_t c;
        length = fac_utf8(name, &c);
        const bool first = !n || to[n - 1] == '/', good = fits(c, how) && !(c == '.' && first);
        if (c == '/' && name[1] == '/') continue;
        if (good && n + length > LONGEST) break;
        if (good)
            memcpy(to + n, name, length);
        else
            to[n] = '_';
        n += good ? length : 1;
        whole &= c < 0x80; /* others have several forms that file systems may take for one */
    }
    to[n] = 0;
    return whole && !*name;
}

/* Puts a '_' before parts of a path that are empty or a device's name.  to has room for some. */
static void mend(char to[ROOM]) {
    size_t n = strlen(to), at = 0;
    for (;;) {
        const size_t length = strcspn(to + at, "/");
        const bool bad = !length || is_device(to + at, length);
        if (bad && n + 1 < ROOM) {
            memmove(to + at + 1, to + at, n + 1 - at);
            to[at] = '_';
            n++;
            at++;
        }
        at += length;
        if (!to[at]) return;
        at++;
    }
}

/* FNV-1a */
static uint32_t number_of(const char *name, uint32_t again) {
    uint32_t h = 2166136261u ^ again;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* ---- all of them ---- */

static bool taken(const file_names *s, const char *file) {
    for (int i = 0; i < s->n; i++)
        if (!strcasecmp(s->files[i], file)) return true;
    return false;
}

static bool reserve(file_names *s) {
    if (s->n < s->room) return true;
    const int room = s->room ? 2 * s->room : 16;
    char **names = realloc(s->names, (size_t)room * sizeof *names);
    if (names) s->names = names;
    char **files = names ? realloc(s->files, (size_t)room * sizeof *files) : NULL;
    if (files) s->files = files;
    if (files) s->room = room;
    return files != NULL;
}

const char *file_name(file_names *s, const char *name, int how) {
    char stem[ROOM], file[ROOM + 16];
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->names[i], name)) return s->files[i];
    if (!reserve(s)) return NULL;
    const char *from = name + strspn(name, "/"); /* all names of ONNX begin so, or none */
    const bool whole = spell(from, how, stem);
    mend(stem);
    snprintf(file, sizeof file, "%s", stem);
    for (uint32_t again = 0; (!whole && !again) || taken(s, file); again++)
        snprintf(file, sizeof file, "%s~%08x", stem, number_of(name, again));
    char *own_name = strdup(name), *own_file = strdup(file);
    if (!own_name || !own_file) {
        free(own_name);
        free(own_file);
        return NULL;
    }
    s->names[s->n] = own_name;
    s->files[s->n] = own_file;
    s->n++;
    return own_file;
}

bool file_name_ordinary(const char *name) {
    char file[ROOM];
    const bool whole = spell(name, NAMES_FLAT, file);
    mend(file);
    return whole && !strcmp(name, file);
}

void file_names_free(file_names *s) {
    for (int i = 0; i < s->n; i++) {
        free(s->names[i]);
        free(s->files[i]);
    }
    free(s->names);
    free(s->files);
    *s = (file_names){ 0 };
}
