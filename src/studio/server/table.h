/* The sessions of a studio, by names that nobody guesses.  Few may be open at once; one that nobody
 * uses ends. */
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
    pthread_cond_t wake; /* of the janitor */
    pthread_t janitor;
    bool stop;
    int64_t patience; /* nanoseconds without use until a session ends */
    table_entry of[TABLE_SESSIONS];
} table;

fac_status fac_sessions_start(table *t, int64_t patience_ns, fac_error *err);
void fac_sessions_stop(table *t); /* users must be gone */
/* Takes s over, also when it fails.  Where there is no room, one without a reader gives way, else
 * FAC_E_ARGUMENT. */
fac_status fac_sessions_add(table *t, session *s, char name[TABLE_NAME], fac_error *err);
/* A session by its name, until fac_sessions_leave; NULL: there is none. */
table_entry *fac_sessions_use(table *t, const char *name);
void fac_sessions_leave(table *t, table_entry *e);
void fac_sessions_end(table *t, const char *name);
void fac_sessions_end_all(table *t); /* readers get no more, at once */
#endif
