/* The sessions of a studio, by random names.  Only a few may be open at once; an unused one
 * ends. */
#ifndef FACULA_STUDIO_TABLE_H
#define FACULA_STUDIO_TABLE_H
#include <pthread.h>
#include "studio/server/session.h"

enum { TABLE_SESSIONS = 4, TABLE_NAME = 33 };

typedef struct table_entry {
    char name[TABLE_NAME];
    session *session;
    int users;
    bool over;
} table_entry;

typedef struct table {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* wakes the janitor */
    pthread_t janitor;
    bool stop;
    int64_t patience; /* nanoseconds without use until a session ends */
    table_entry of[TABLE_SESSIONS];
} table;

fac_status fac_sessions_start(table *t, int64_t patience_ns, fac_error *err);
void fac_sessions_stop(table *t); /* there must be no users */
/* Takes ownership of s, also after an error.  If the table is full, a session without a reader
 * ends; if all have readers, FAC_E_ARGUMENT. */
fac_status fac_sessions_add(table *t, session *s, char name[TABLE_NAME], fac_error *err);
/* A session by its name, in use until fac_sessions_leave; NULL: there is none. */
table_entry *fac_sessions_use(table *t, const char *name);
void fac_sessions_leave(table *t, table_entry *e);
void fac_sessions_end(table *t, const char *name);
void fac_sessions_end_all(table *t); /* readers get no more frames, at once */
#endif
