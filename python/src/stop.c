/* Ctrl-C in long work: Python's own handler only leaves a note that nothing reads before the work
 * is over.  While the main thread works, another handler stands before it and raises a flag, which
 * the device looks at between steps (facula/stop.h).  Where a program has a handler of its own,
 * Ctrl-C is that handler's affair and nothing is stopped. */
#include <pthread.h>
#include <signal.h>
#include "module.h"

static volatile sig_atomic_t asked;
static struct sigaction before;
static pthread_t main_thread;
static PyObject *getsignal, *default_handler;
static int depth; /* work of the main thread within work of its own */
static bool standing;

static void on_signal(int which, siginfo_t *info, void *context) {
    asked = 1;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(which, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(which);
}

bool py_stop_asked(void *none) {
    (void)none;
    return asked && pthread_equal(pthread_self(), main_thread);
}

/* Would Python raise KeyboardInterrupt? */
static bool raises(void) {
    PyObject *handler = PyObject_CallFunction(getsignal, "i", SIGINT);
    bool is = handler == default_handler;
    if (!handler) PyErr_Clear();
    Py_XDECREF(handler);
    return is;
}

void py_work_begin(void) {
    if (!pthread_equal(pthread_self(), main_thread) || depth++ || !raises()) return;
    struct sigaction ours = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigemptyset(&ours.sa_mask);
    asked = 0;
    standing = !sigaction(SIGINT, &ours, &before);
}

void py_work_end(fac_status status) {
    if (!pthread_equal(pthread_self(), main_thread) || --depth || !standing) return;
    struct sigaction now;
    standing = false;
    if (!sigaction(SIGINT, NULL, &now) && now.sa_sigaction == on_signal)
        sigaction(SIGINT, &before, NULL);
    if (asked && status) PyErr_CheckSignals();
    asked = 0;
}

int py_stop_init(PyObject *module) {
    (void)module;
    main_thread = pthread_self();
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *first = threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
    PyObject *ident = first ? PyObject_GetAttrString(first, "ident") : NULL;
    if (ident) main_thread = (pthread_t)PyLong_AsUnsignedLong(ident);
    PyObject *signals = ident ? PyImport_ImportModule("signal") : NULL;
    getsignal = signals ? PyObject_GetAttrString(signals, "getsignal") : NULL;
    default_handler = getsignal ? PyObject_GetAttrString(signals, "default_int_handler") : NULL;
    Py_XDECREF(threading);
    Py_XDECREF(first);
    Py_XDECREF(ident);
    Py_XDECREF(signals);
    return PyErr_Occurred() ? -1 : 0;
}
