/* The way to standard output and standard error, for all verbs.
 *
 * Names come from models, files and the command line, and may hold what steers a terminal.  So
 * formats are trusted and arguments are not: printf and fprintf are out_print here, which makes
 * each %s plain (fac_plain: one line, no control characters) where it goes to standard output or
 * standard error.  Other streams, such as a page in memory, get what they were given. */
#ifndef FACULA_CLI_OUT_H
#define FACULA_CLI_OUT_H
#include <stdarg.h>
#include <stdio.h>
#include "facula/status.h"

int out_print(FILE *to, const char *format, ...) FAC_PRINTF(2, 3);
int out_list(FILE *to, const char *format, va_list args);
int out_text(const char *text, FILE *to); /* lines and tabs stay; all else is made plain */
int out_line(const char *text);           /* one line on standard output, made plain */
int out_lines(const char *text);          /* out_text to standard output, and the end of the line */
int out_raw(const char *text, FILE *to);  /* as it is: what steers nothing, or is meant to */
int out_char(int c, FILE *to);            /* one of our own characters, as it is */

#define printf(...) out_print(stdout, __VA_ARGS__)
#define fprintf(...) out_print(__VA_ARGS__)
#define fputs(text, to) out_text(text, to)
#define puts(text) out_line(text)

/* Our own colours: the parameters of an SGR sequence such as "1;38;5;203", or "0" for plain again.
 * Nothing where there is no colour. */
void style(FILE *to, const char *code);
void clear_line(FILE *to); /* of a terminal: for lines that are written again */

/* First of all: streams that are closed must not become the next file that is opened. */
void out_begin(void);
/* Last of all: code, or EXIT_FAILED when standard output could not be written. */
int out_end(int code);
#endif
