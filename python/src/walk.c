/* Going back through recorded calls: nodes in the reverse order of their making, sums of what comes
 * into each result, and the gradients of leaves.  A node is one of ours (node.c) or an object of
 * Python's with the same methods (custom functions). */
#include "node.h"

enum { NO_PLACE = -1 };

/* Objects to places, open addressing. */
typedef struct Table {
    PyObject **key;
    Py_ssize_t *place;
    size_t room, n;
} Table;

typedef struct Visit {
    PyObject *node, *inputs; /* owned; inputs: a tuple */
    Py_ssize_t first;        /* of its results in `arriving` */
    int nout;
} Visit;

typedef struct Walk {
    bool create, retain;
    PyObject *wanted; /* {(id of a node, result): [place...]} */
    PyObject *found;  /* {place: gradient} */
    PyObject *leaves; /* [(leaf, gradient)...] */
    Table nodes, leaf_places;
    Visit *visit; /* as they were found */
    Py_ssize_t n, room;
    Py_ssize_t *order; /* of them: each before all that read its results */
    Py_ssize_t norder;
    PyObject **arriving; /* a gradient for each result, or NULL */
    Py_ssize_t results;
} Walk;

/* ---- tables ---- */

static size_t slot_of(const Table *t, const PyObject *key) {
    size_t i = (size_t)(((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u) & (t->room - 1);
    while (t->key[i] && t->key[i] != key) i = (i + 1) & (t->room - 1);
    return i;
}

static Py_ssize_t look_up(const Table *t, const PyObject *key) {
    if (!t->room) return NO_PLACE;
    const size_t i = slot_of(t, key);
    return t->key[i] ? t->place[i] : NO_PLACE;
}

static void free_table(Table *t) {
    PyMem_Free(t->key);
    PyMem_Free(t->place);
}

static bool put(Table *t, PyObject *key, Py_ssize_t place) {
    if (2 * (t->n + 1) > t->room) {
        Table wider = { .room = t->room ? 2 * t->room : 64, .n = t->n };
        wider.key = PyMem_Calloc(wider.room, sizeof *wider.key);
        wider.place = PyMem_Calloc(wider.room, sizeof *wider.place);
        if (!wider.key || !wider.place) {
            free_table(&wider);
            return PyErr_NoMemory() != NULL;
        }
        for (size_t i = 0; i < t->room; i++) {
            if (!t->key[i]) continue;
            const size_t to = slot_of(&wider, t->key[i]);
            wider.key[to] = t->key[i];
            wider.place[to] = t->place[i];
        }
        free_table(t);
        *t = wider;
    }
    const size_t i = slot_of(t, key);
    t->key[i] = key;
    t->place[i] = place;
    t->n++;
    return true;
}

/* ---- which nodes there are ---- */

static bool results_of(PyObject *node, int *out) {
    if (py_is_node(node)) {
        *out = ((NodeObject *)node)->f->nout;
        return true;
    }
    PyObject *n = PyObject_GetAttrString(node, "outputs");
    *out = n ? (int)PyLong_AsLong(n) : -1;
    Py_XDECREF(n);
    return !PyErr_Occurred();
}

static PyObject *inputs_of(PyObject *node) {
    if (py_is_node(node)) {
        PyObject *inputs = ((NodeObject *)node)->inputs;
        return inputs ? Py_NewRef(inputs) : PyTuple_New(0);
    }
    PyObject *list = PyObject_GetAttrString(node, "inputs"),
             *tuple = list ? PySequence_Tuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

/* Its place, or NO_PLACE after an exception. */
static Py_ssize_t add_node(Walk *w, PyObject *node) {
    if (w->n == w->room) {
        const Py_ssize_t room = w->room ? 2 * w->room : 64;
        Visit *wider = PyMem_Realloc(w->visit, (size_t)room * sizeof *wider);
        if (wider) w->visit = wider;
        Py_ssize_t *order = wider ? PyMem_Realloc(w->order, (size_t)room * sizeof *order) : NULL;
        if (!order) {
            PyErr_NoMemory();
            return NO_PLACE;
        }
        w->order = order;
        w->room = room;
    }
    Visit v = { .first = w->results };
    if (!results_of(node, &v.nout) || !(v.inputs = inputs_of(node))) return NO_PLACE;
    v.node = Py_NewRef(node);
    w->visit[w->n] = v;
    w->results += v.nout;
    if (!put(&w->nodes, node, w->n++)) return NO_PLACE;
    return w->n - 1;
}

/* What a gradient goes on to, borrowed: the node that made input i, or NULL. */
static PyObject *leads_to(const Visit *v, Py_ssize_t i) {
    PyObject *x = PyTuple_GetItem(v->inputs, i);
    if (!py_is_tensor(x) || !((TensorObject *)x)->requires_grad) return NULL;
    return ((TensorObject *)x)->node;
}

typedef struct Level {
    Py_ssize_t place, next; /* a node, and the input to look at next */
} Level;

/* Depth first; a node is entered into the order after all that it reads. */
static bool go_through(Walk *w, Level **stack, Py_ssize_t *room) {
    Py_ssize_t depth = 1;
    while (depth) {
        Level *top = &(*stack)[depth - 1];
        if (top->next == PyTuple_Size(w->visit[top->place].inputs)) {
            w->order[w->norder++] = top->place;
            depth--;
            continue;
        }
        PyObject *child = leads_to(&w->visit[top->place], top->next++);
        if (!child || look_up(&w->nodes, child) != NO_PLACE) continue;
        const Py_ssize_t place = add_node(w, child);
        if (place == NO_PLACE) return false;
        if (depth == *room) {
            Level *wider = PyMem_Realloc(*stack, (size_t)(2 * *room) * sizeof *wider);
            if (!wider) return PyErr_NoMemory() != NULL;
            *stack = wider;
            *room *= 2;
        }
        (*stack)[depth++] = (Level){ place, 0 };
    }
    return true;
}

static bool find_nodes(Walk *w, PyObject *outputs) {
    Py_ssize_t room = 64;
    Level *stack = PyMem_Malloc((size_t)room * sizeof *stack);
    bool ok = stack != NULL;
    for (Py_ssize_t i = 0; ok && i < PyList_Size(outputs); i++) {
        PyObject *node = ((TensorObject *)PyList_GetItem(outputs, i))->node;
        if (!node || look_up(&w->nodes, node) != NO_PLACE) continue;
        const Py_ssize_t place = add_node(w, node);
        stack[0] = (Level){ place, 0 };
        ok = place != NO_PLACE && go_through(w, &stack, &room);
    }
    PyMem_Free(stack);
    if (ok) ok = (w->arriving = PyMem_Calloc((size_t)w->results + 1, sizeof *w->arriving));
    if (!ok && !PyErr_Occurred()) PyErr_NoMemory();
    return ok;
}

/* ---- gradients on their way ---- */

static PyObject *sum(PyObject *a, PyObject *b) {
    static const fac_op *add;
    PyObject *both[] = { a, b };
    if (!add) add = fac_op_find("add");
    return py_apply_op(add, NULL, 0, 2, both);
}

static bool give_leaf(Walk *w, PyObject *x, PyObject *g) {
    const Py_ssize_t at = look_up(&w->leaf_places, x);
    PyObject *before = at == NO_PLACE ? NULL : PyTuple_GetItem(PyList_GetItem(w->leaves, at), 1);
    PyObject *all = before ? sum(before, g) : Py_NewRef(g);
    PyObject *pair = all ? PyTuple_Pack(2, x, all) : NULL;
    Py_XDECREF(all);
    if (!pair) return false;
    if (before) return PyList_SetItem(w->leaves, at, pair) == 0;
    const bool ok =
        !PyList_Append(w->leaves, pair) && put(&w->leaf_places, x, PyList_Size(w->leaves) - 1);
    Py_DECREF(pair);
    return ok;
}

static bool give(Walk *w, PyObject *o, PyObject *g) {
    TensorObject *x = (TensorObject *)o;
    if (!x->node) return !x->requires_grad || give_leaf(w, o, g);
    const Py_ssize_t place = look_up(&w->nodes, x->node);
    if (place == NO_PLACE) return true;
    PyObject **to = &w->arriving[w->visit[place].first + x->index];
    PyObject *all = *to ? sum(*to, g) : Py_NewRef(g);
    if (!all) return false;
    Py_XDECREF(*to);
    *to = all;
    return true;
}

/* Functions of the user's look at a gradient, and may change it; takes g. */
static PyObject *through_hooks(PyObject *hooks, PyObject *g) {
    PyObject *list = PySequence_List(hooks);
    for (Py_ssize_t i = 0; list && g && i < PyList_Size(list); i++) {
        PyObject *y = PyObject_CallFunctionObjArgs(PyList_GetItem(list, i), g, NULL);
        if (y == Py_None) {
            Py_DECREF(y);
            continue;
        }
        Py_DECREF(g);
        g = y;
    }
    if (!list) Py_CLEAR(g);
    Py_XDECREF(list);
    return g;
}

static PyObject *hooked(PyObject *node, int k, PyObject *g) {
    PyObject *hooks = py_is_node(node) ? Py_XNewRef(((NodeObject *)node)->hooks)
                                       : PyObject_GetAttrString(node, "hooks");
    if (!hooks && PyErr_Occurred()) Py_CLEAR(g);
    PyObject *number = g && hooks && hooks != Py_None ? PyLong_FromLong(k) : NULL;
    PyObject *list = number ? PyDict_GetItemWithError(hooks, number) : NULL;
    if (list) g = through_hooks(list, g);
    Py_XDECREF(number);
    Py_XDECREF(hooks);
    if (g && PyErr_Occurred()) Py_CLEAR(g);
    return g;
}

/* Whoever asked for the gradient of this result gets it. */
static bool note_wanted(Walk *w, PyObject *node, int k, PyObject *g) {
    if (!PyDict_Size(w->wanted)) return true;
    PyObject *key = Py_BuildValue("(Ni)", PyLong_FromVoidPtr(node), k);
    PyObject *places = key ? PyDict_GetItemWithError(w->wanted, key) : NULL;
    bool ok = !PyErr_Occurred();
    for (Py_ssize_t i = 0; ok && places && i < PyList_Size(places); i++)
        ok = !PyDict_SetItem(w->found, PyList_GetItem(places, i), g);
    Py_XDECREF(key);
    return ok;
}

/* A list of what comes into the results; *any: is there something? */
static PyObject *take_arriving(Walk *w, const Visit *v, bool *any) {
    PyObject *list = PyList_New(v->nout);
    *any = false;
    for (int k = 0; list && k < v->nout; k++) {
        PyObject *g = w->arriving[v->first + k];
        w->arriving[v->first + k] = NULL;
        if (g && (!(g = hooked(v->node, k, g)) || !note_wanted(w, v->node, k, g))) {
            Py_XDECREF(g);
            Py_CLEAR(list);
            break;
        }
        *any = *any || g;
        PyList_SetItem(list, k, g ? g : Py_NewRef(Py_None));
    }
    return list;
}

static PyObject *vjp_of(const Walk *w, PyObject *node, PyObject *incoming) {
    if (py_is_node(node)) return py_node_vjp(node, incoming, w->create);
    PyObject *y = PyObject_CallMethod(node, "vjp", "OO", incoming, w->create ? Py_True : Py_False);
    PyObject *list = y ? PySequence_List(y) : NULL;
    Py_XDECREF(y);
    return list;
}

static bool release(PyObject *node) {
    if (py_is_node(node)) {
        py_node_release(node);
        return true;
    }
    PyObject *done = PyObject_CallMethod(node, "release", NULL);
    Py_XDECREF(done);
    return done;
}

/* What nothing else holds goes now, not at the end of the walk. */
static bool leave(const Walk *w, Visit *v) {
    const bool ok = w->retain || release(v->node);
    Py_CLEAR(v->inputs);
    return ok;
}

static bool visit(Walk *w, Visit *v) {
    bool any;
    PyObject *incoming = take_arriving(w, v, &any);
    if (!incoming) return false;
    PyObject *grads = any ? vjp_of(w, v->node, incoming) : NULL;
    Py_DECREF(incoming);
    if (!grads) return !any;
    const Py_ssize_t n = PyTuple_Size(v->inputs), m = PyList_Size(grads);
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < n && i < m; i++) {
        PyObject *x = PyTuple_GetItem(v->inputs, i), *g = PyList_GetItem(grads, i);
        if (g == Py_None || !py_is_tensor(x) || !((TensorObject *)x)->requires_grad) continue;
        ok = give(w, x, g);
    }
    Py_DECREF(grads);
    return ok && leave(w, v);
}

static void end(Walk *w) {
    for (Py_ssize_t i = 0; w->arriving && i < w->results; i++) Py_XDECREF(w->arriving[i]);
    for (Py_ssize_t i = 0; i < w->n; i++) {
        Py_XDECREF(w->visit[i].node);
        Py_XDECREF(w->visit[i].inputs);
    }
    PyMem_Free(w->arriving);
    PyMem_Free(w->visit);
    PyMem_Free(w->order);
    free_table(&w->nodes);
    free_table(&w->leaf_places);
}

/* walk(results, their gradients, create_graph, retain_graph, wanted): ([(leaf, gradient)...],
 * {place: gradient}). */
static PyObject *walk(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *outputs, *grads, *wanted;
    int create, retain;
    if (!PyArg_ParseTuple(args, "O!O!ppO!:walk", &PyList_Type, &outputs, &PyList_Type, &grads,
                          &create, &retain, &PyDict_Type, &wanted))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(outputs); i++)
        if (!py_is_tensor(PyList_GetItem(outputs, i)) || i >= PyList_Size(grads) ||
            !py_is_tensor(PyList_GetItem(grads, i))) {
            PyErr_SetString(PyExc_TypeError, "walk: a gradient for each result was expected");
            return NULL;
        }
    Walk w = { .create = create, .retain = retain, .wanted = wanted };
    w.found = PyDict_New();
    w.leaves = PyList_New(0);
    bool ok = w.found && w.leaves && find_nodes(&w, outputs);
    for (Py_ssize_t i = 0; ok && i < PyList_Size(outputs); i++)
        ok = give(&w, PyList_GetItem(outputs, i), PyList_GetItem(grads, i));
    for (Py_ssize_t i = w.norder; ok && i-- > 0;) ok = visit(&w, &w.visit[w.order[i]]);
    end(&w);
    PyObject *both = ok ? PyTuple_Pack(2, w.leaves, w.found) : NULL;
    Py_XDECREF(w.leaves);
    Py_XDECREF(w.found);
    return both;
}

PyMethodDef py_walk_methods[] = { { "walk", walk, METH_VARARGS,
                                    "(results, gradients, create_graph, retain_graph, wanted): "
                                    "gradients of leaves and of what is "
                                    "wanted." },
                                  { 0 } };
