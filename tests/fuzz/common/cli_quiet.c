/* For targets that compile files of the command: errors are formatted, so that a sanitizer sees
 * what they read, and not said. */
#include <stdarg.h>
#include <stdio.h>
#include "../../../cli/common/cli.h"

static void format_only(const char *format, va_list args) {
    char text[4096];
    vsnprintf(text, sizeof text, format, args);
}

int fail(const fac_error *err) { return fail_text("%s", err->text); }

int fail_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    format_only(format, args);
    va_end(args);
    return EXIT_FAILED;
}

int usage_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    format_only(format, args);
    va_end(args);
    return EXIT_USAGE;
}

int usage_error(const verb *v, const char *format, ...) {
    va_list args;
    (void)v;
    va_start(args, format);
    format_only(format, args);
    va_end(args);
    return EXIT_USAGE;
}

fac_status out_of_memory(fac_error *err) { return err->status = FAC_E_NOMEM; }

/* No verb is run. */
const verb *const verbs[] = { NULL };
const verb *verb_find(const char *name) {
    (void)name;
    return NULL;
}
