/* Errors as one line on standard error. */
#include <stdarg.h>
#include "cli.h"

int fail(const fac_error *err) {
    return fail_text("%s", err->text[0] ? err->text : fac_status_name(err->status));
}

int fail_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "facula: ");
    out_list(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return EXIT_FAILED;
}

int usage_error(const verb *v, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "facula: ");
    out_list(stderr, format, args);
    if (v)
        fprintf(stderr, " (see `facula help %s`)\n", v->name);
    else
        fprintf(stderr, " (see `facula help`)\n");
    va_end(args);
    return EXIT_USAGE;
}

fac_status out_of_memory(fac_error *err) {
    *err = (fac_error){ .status = FAC_E_NOMEM, .text = "out of memory" };
    return err->status;
}

int usage_text(const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail_text("%s", text);
    return EXIT_USAGE;
}
