/* PyTorch's files.
 *
 * Since 1.6: a zip archive with NAME/data.pkl, a pickle of the object, and NAME/data/KEY, one file
 * for each storage. Before: five pickles one after the other (a magic number, a version, facts of
 * the machine, the object, the list of storage keys), then for each key the number of elements as
 * int64 and the elements.
 *
 * Dicts in dicts become names with dots.  Tensors that share a storage there share one here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/table.h"
#include "tensor/pickle/pickle.h"
#include "tensor/pickle/pickle_global.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

enum { DEPTH = 32 }; /* of dicts in dicts */

typedef struct reader {
    fac_weights *w;
    fac_error *err;
    fac_arena arena;
    fac_table storages; /* key -> fac_tensor *: all of a storage, one-dimensional */
    fac_table sections; /* key -> fac_section *: of the archive */
    const fac_zip *zip; /* NULL: the storages are there from the start */
    size_t prefix;      /* of the entries' names: bytes of "NAME/" */
    const char *pickle_name;
    fac_text name; /* of the value at hand */
} reader;

static void close_reader(reader *r) {
    for (size_t i = 0; i < r->storages.room; i++) fac_tensor_free(r->storages.slots[i].value);
    for (size_t i = 0; i < r->sections.room; i++) {
        const fac_section *s = r->sections.slots[i].value;
        if (s) fac_file_free(s->file);
    }
    fac_table_free(&r->storages);
    fac_table_free(&r->sections);
    fac_text_free(&r->name);
    fac_arena_free(&r->arena);
}

/* ---- storages ---- */

/* The elements at `at` of the section become the storage that s names. */
static fac_status add_storage(reader *r, const fac_pickle_value *s, const fac_section *from,
                              size_t at) {
    fac_type type = { s->dtype, { 1, { s->i } } };
    size_t bytes = fac_type_bytes(&type);
    fac_tensor *t;
    if (bytes == SIZE_MAX || at > from->size || bytes > from->size - at)
        return fac_raise(r->err, FAC_E_FORMAT,
                         "storage %.40s should have %" PRId64
                         " elements of %s: the file is too short",
                         s->text, s->i, fac_dtype_get(s->dtype)->name);
    FAC_TRY(fac_tensor_from_file(from->file, from->at + at, type, NULL, &t, r->err));
    if (fac_table_put(&r->storages, s->text, t)) return FAC_OK;
    fac_tensor_free(t);
    return fac_raise_memory(r->err, "a PyTorch file");
}

/* Each entry is unpacked once, however many tensors are made of it. */
static fac_status open_storage(reader *r, const fac_pickle_value *s, const fac_section **out) {
    if ((*out = fac_table_get(&r->sections, s->text))) return FAC_OK;
    char *file = fac_arena_print(&r->arena, "%.*sdata/%s", (int)r->prefix, r->pickle_name, s->text);
    fac_section *section = fac_arena_alloc(&r->arena, 1, sizeof *section);
    if (!file || !section) return fac_raise_memory(r->err, "a PyTorch file");
    const fac_zip_entry *e = fac_zip_find(r->zip, file);
    if (!e) return fac_raise(r->err, FAC_E_FORMAT, "%.200s: is missing", file);
    FAC_TRY(fac_zip_read(r->zip, e, section, r->err));
    *out = section;
    if (fac_table_put(&r->sections, s->text, section)) return FAC_OK;
    fac_file_free(section->file);
    return fac_raise_memory(r->err, "a PyTorch file");
}

static fac_status unzip_storage(reader *r, const fac_pickle_value *s) {
    const fac_section *section;
    FAC_TRY(open_storage(r, s, &section));
    return add_storage(r, s, section, 0);
}

/* A tensor that says its type itself, over a storage of bytes. */
static fac_status typed_tensor(reader *r, const fac_pickle_value *v, fac_tensor **out) {
    const fac_pickle_tensor *t = v->tensor;
    const fac_type type = { v->dtype, t->dims };
    const size_t each = (size_t)fac_dtype_get(type.dtype)->block_bytes;
    size_t at, end;
    const fac_section *section;
    if (!r->zip)
        return fac_raise(r->err, FAC_E_UNSUPPORTED,
                         "a tensor of %s in the container before PyTorch 1.6",
                         fac_dtype_get(type.dtype)->name);
    FAC_TRY(open_storage(r, t->storage, &section));
    const bool fits = fac_size_mul((size_t)t->offset, each, &at) &&
                      fac_size_add(at, fac_window_bytes(&type, t->stride, 0), &end) &&
                      end <= section->size;
    if (!fits)
        return fac_raise(r->err, FAC_E_FORMAT, "reaches outside its storage %.40s",
                         t->storage->text);
    return fac_tensor_from_file(section->file, section->at + at, type, t->stride, out, r->err);
}

static fac_status tensor_of(reader *r, const fac_pickle_value *v, fac_tensor **out) {
    const fac_pickle_tensor *t = v->tensor;
    const fac_pickle_value *s = t->storage;
    if (strlen(s->text) != s->n)
        return fac_raise(r->err, FAC_E_FORMAT, "a storage key with a zero byte");
    if (v->dtype != FAC_NONE) return typed_tensor(r, v, out);
    if (r->zip && !fac_table_get(&r->storages, s->text)) FAC_TRY(unzip_storage(r, s));
    fac_tensor *all = fac_table_get(&r->storages, s->text);
    if (!all) return fac_raise(r->err, FAC_E_FORMAT, "storage %.40s is missing", s->text);
    if (all->type.dtype != s->dtype || all->type.dims.d[0] != s->i)
        return fac_raise(r->err, FAC_E_FORMAT, "storage %.40s has two different types", s->text);
    return fac_tensor_view(all, t->dims, t->stride, t->offset, out, r->err);
}

/* ---- the tree ---- */

static const char *name_of(const reader *r) {
    return r->name.n ? r->name.s : "tensor";
} /* the file is one and nothing else */

static fac_status add_tensor(reader *r, const fac_pickle_value *v) {
    fac_tensor *t;
    fac_error why = { 0 }, *err = r->err;
    const char *name = name_of(r);
    r->err = &why;
    const fac_status status = tensor_of(r, v, &t);
    r->err = err;
    if (status == FAC_E_UNSUPPORTED)
        return fac_weights_skip(r->w, name, strlen(name), why.text, err);
    if (status) return fac_raise(err, status, "%.200s: %s", name, why.text);
    return fac_weights_add(r->w, name, strlen(name), t, err);
}

/* What would be a tensor, but for elements or a form that we have not. */
static fac_status skip_tensor(reader *r, const fac_pickle_value *v) {
    const char *name = name_of(r);
    return fac_weights_skip(r->w, name, strlen(name), v->text, r->err);
}

/* Keys are texts, or numbers in optimizer states; what has another key has no name. */
static fac_status push_key(reader *r, const fac_pickle_value *key, bool *named) {
    char digits[24];
    const char *text = key->text;
    size_t n = key->n;
    *named = key->kind == FAC_PICKLE_TEXT || key->kind == FAC_PICKLE_INT;
    if (key->kind == FAC_PICKLE_INT) {
        n = (size_t)snprintf(digits, sizeof digits, "%" PRId64, key->i);
        text = digits;
    }
    if (!*named) return FAC_OK;
    if (r->name.n + n + 1 > FAC_NAME)
        return fac_raise(r->err, FAC_E_FORMAT, "a name of more than %d bytes", FAC_NAME);
    if (memchr(text, 0, n))
        return fac_raise(r->err, FAC_E_FORMAT, "%.200s: a name with a zero byte", text);
    if (r->name.n) fac_text_add(&r->name, ".");
    fac_text_add_bytes(&r->name, text, n);
    return r->name.failed ? fac_raise_memory(r->err, "a PyTorch file") : FAC_OK;
}

static fac_status walk(reader *r, fac_pickle_value *v, int depth) {
    if (v->kind == FAC_PICKLE_TENSOR) return add_tensor(r, v);
    if (v->kind == FAC_PICKLE_OTHER) return v->i ? skip_tensor(r, v) : FAC_OK;
    if (v->kind != FAC_PICKLE_DICT) return FAC_OK; /* epochs, losses, names of architectures */
    if (v->visited)
        return fac_raise(r->err, FAC_E_FORMAT, "%.200s: a dict that occurs twice",
                         r->name.n ? r->name.s : "");
    if (depth > DEPTH)
        return fac_raise(r->err, FAC_E_FORMAT, "%.200s: more than %d dicts in one another",
                         r->name.s, DEPTH);
    v->visited = true;
    size_t length = r->name.n;
    for (size_t i = 0; i < v->n; i += 2) {
        bool named;
        fac_pickle_value *item = v->item[i + 1];
        if (item->kind != FAC_PICKLE_TENSOR && item->kind != FAC_PICKLE_DICT &&
            item->kind != FAC_PICKLE_OTHER)
            continue;
        FAC_TRY(push_key(r, v->item[i], &named));
        if (named) FAC_TRY(walk(r, item, depth + 1));
        r->name.n = length;
        if (r->name.s) r->name.s[length] = 0;
    }
    return FAC_OK;
}

/* A checkpoint is a dict that holds the state dict beside the optimizer's and others. */
static fac_status walk_root(reader *r, fac_pickle_value *root) {
    static const char *const inner[] = { "state_dict", "model_state_dict", "model" };
    for (size_t k = 0; root->kind == FAC_PICKLE_DICT && k < sizeof inner / sizeof *inner; k++) {
        fac_pickle_value *dict = fac_pickle_get(root, inner[k]);
        if (dict && dict->kind == FAC_PICKLE_DICT) return walk(r, dict, 0);
    }
    return walk(r, root, 0);
}

/* ---- the zip container ---- */

static const char pickle_file[] = "data.pkl";
enum { PICKLE_FILE = sizeof pickle_file - 1 };

const fac_zip_entry *fac_pth_find(const fac_zip *zip) {
    for (size_t i = 0; i < zip->n; i++) {
        const char *name = zip->entries[i].name;
        size_t n = strlen(name);
        if (n >= PICKLE_FILE && !strcmp(name + n - PICKLE_FILE, pickle_file) &&
            (n == PICKLE_FILE || name[n - PICKLE_FILE - 1] == '/'))
            return &zip->entries[i];
    }
    return NULL;
}

static fac_status check_byte_order(reader *r) {
    char *file = fac_arena_print(&r->arena, "%.*sbyteorder", (int)r->prefix, r->pickle_name);
    if (!file) return fac_raise_memory(r->err, "a PyTorch file");
    const fac_zip_entry *e = fac_zip_find(r->zip, file);
    fac_section s;
    if (!e) return FAC_OK;
    FAC_TRY(fac_zip_read(r->zip, e, &s, r->err));
    bool little = s.size >= 6 && !memcmp((const char *)fac_file_data(s.file) + s.at, "little", 6);
    fac_file_free(s.file);
    return little ? FAC_OK
                  : fac_raise(r->err, FAC_E_UNSUPPORTED, "a PyTorch file of a big-endian machine");
}

static fac_status read_zip(reader *r, const fac_zip_entry *e) {
    fac_section s;
    fac_pickle pickle;
    FAC_TRY(check_byte_order(r));
    FAC_TRY(fac_zip_read(r->zip, e, &s, r->err));
    fac_status status = fac_pickle_read(&r->arena, (const char *)fac_file_data(s.file) + s.at,
                                        s.size, &pickle, r->err);
    if (status)
        fac_raise_in(r->err, status, "%s", e->name);
    else
        status = walk_root(r, pickle.value);
    fac_file_free(s.file);
    return status;
}

fac_status fac_pth_read_zip(const fac_zip *zip, fac_weights *w, fac_error *err) {
    const fac_zip_entry *e = fac_pth_find(zip);
    reader r = { .w = w,
                 .err = err,
                 .zip = zip,
                 .prefix = strlen(e->name) - PICKLE_FILE,
                 .pickle_name = e->name };
    fac_status status = read_zip(&r, e);
    close_reader(&r);
    return status;
}

/* ---- the container before ---- */

/* The elements after their number, which is at *at; those of types that we have not are passed
 * over. */
static fac_status read_storage(reader *r, const fac_pickle_value *s, const fac_section *file,
                               size_t *at) {
    const fac_dtype_info *info = fac_dtype_get(s->dtype);
    const size_t each = s->dtype == FAC_NONE ? (size_t)fac_pickle_name_at(s->row)->bytes
                                             : (size_t)info->block_bytes;
    size_t bytes;
    *at += sizeof(int64_t);
    if (!fac_size_mul((size_t)s->i, each, &bytes) || *at > file->size || bytes > file->size - *at)
        return fac_raise(
            r->err, FAC_E_FORMAT,
            "storage %.40s should have %" PRId64 " elements of %s: the file is too short", s->text,
            s->i, s->dtype == FAC_NONE ? fac_pickle_name_at(s->row)->what : info->name);
    if (s->dtype != FAC_NONE) FAC_TRY(add_storage(r, s, file, *at));
    *at += bytes;
    return FAC_OK;
}

static fac_status read_storages(reader *r, const fac_pickle *object, const fac_pickle_value *keys,
                                const fac_section *file, size_t at) {
    fac_table named = { 0 };
    fac_status status = FAC_OK;
    bool fits = true;
    if (keys->kind != FAC_PICKLE_LIST)
        return fac_raise(r->err, FAC_E_FORMAT, "a PyTorch file without the list of its storages");
    for (fac_pickle_value *s = object->storages; s && fits; s = s->next)
        fits = fac_table_put(&named, s->text, s);
    if (!fits) status = fac_raise_memory(r->err, "a PyTorch file");
    for (size_t i = 0; i < keys->n && !status; i++) {
        const fac_pickle_value *key = keys->item[i], *s = key->kind == FAC_PICKLE_TEXT
                                                              ? fac_table_get(&named, key->text)
                                                              : NULL;
        int64_t elements = -1;
        if (s && at <= file->size - sizeof elements)
            memcpy(&elements, (const char *)fac_file_data(file->file) + at, sizeof elements);
        if (!s || fac_table_get(&r->storages, s->text)) {
            status =
                fac_raise(r->err, FAC_E_FORMAT, "a PyTorch file with a broken list of storages");
        } else if (elements != s->i) {
            status =
                fac_raise(r->err, FAC_E_FORMAT,
                          "storage %.40s should have %" PRId64 " elements, the file says %" PRId64,
                          s->text, s->i, elements);
        } else {
            status = read_storage(r, s, file, &at);
        }
    }
    fac_table_free(&named);
    return status;
}

static fac_status read_legacy(reader *r, fac_file *file) {
    enum { VERSION, MACHINE, OBJECT, KEYS, PICKLES };
    static const char magic[] =
        "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."; /* 0x1950a86a20f9469cfc6c */
    const char *p = fac_file_data(file);
    size_t size = fac_file_size(file), at = sizeof magic - 1;
    fac_pickle part[PICKLES];
    if (size < at || memcmp(p, magic, at))
        return fac_raise(r->err, FAC_E_FORMAT, "a pickle, but none of PyTorch");
    for (int k = 0; k < PICKLES; k++) {
        FAC_TRY(fac_pickle_read(&r->arena, p + at, size - at, &part[k], r->err));
        at += part[k].bytes;
    }
    if (part[VERSION].value->kind != FAC_PICKLE_INT || part[VERSION].value->i != 1001)
        return fac_raise(r->err, FAC_E_UNSUPPORTED, "a PyTorch file of another version");
    const fac_pickle_value *facts = part[MACHINE].value, *little = NULL;
    if (facts->kind == FAC_PICKLE_DICT) little = fac_pickle_get(facts, "little_endian");
    if (!little || little->kind != FAC_PICKLE_BOOL || !little->i)
        return fac_raise(r->err, FAC_E_UNSUPPORTED,
                         "a PyTorch file of a machine that is not little-endian");
    FAC_TRY(read_storages(r, &part[OBJECT], part[KEYS].value, &(fac_section){ file, 0, size }, at));
    return walk_root(r, part[OBJECT].value);
}

fac_status fac_pth_read_legacy(fac_file *file, fac_weights *w, fac_error *err) {
    reader r = { .w = w, .err = err };
    fac_status status = read_legacy(&r, file);
    close_reader(&r);
    return status;
}
