/* A client of `facula serve`: whole answers, as bytes; texts are found by their marks. */
#ifndef FACULA_TESTS_OPENAI_CLIENT_H
#define FACULA_TESTS_OPENAI_CLIENT_H
#include <stdio.h>
#include <string.h>
#include "http_client.h"

static int port; /* of the server that is asked */
enum { ROOM = 1 << 18 };

static inline int post(const char *path, const char *body) {
    char head[512];
    const int s = http_connect(port);
    const int n = snprintf(head, sizeof head,
                           "POST %s HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                           path, port, strlen(body));
    http_put(s, head, (size_t)n);
    http_put(s, body, strlen(body));
    return s;
}

/* The status; the answer in `to`. */
static inline int ask(const char *path, const char *body, char to[ROOM]) {
    int status = 0;
    const int s = post(path, body);
    http_get(s, to, ROOM);
    close(s);
    sscanf(to, "HTTP/1.1 %d", &status);
    return status;
}

/* What follows each "NAME":" up to the next quote, joined. */
static inline void join(const char *from, const char *name, char to[ROOM]) {
    char mark[32];
    size_t n = 0;
    snprintf(mark, sizeof mark, "\"%s\":\"", name);
    for (const char *s = from; (s = strstr(s, mark));) {
        s += strlen(mark);
        for (; *s && *s != '"'; s++) {
            to[n++] = *s;
            if (*s == '\\') to[n++] = *++s;
        }
    }
    to[n] = 0;
}
#endif
