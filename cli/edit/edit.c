/* facula edit: a model out of a model. */
#include <stdlib.h>
#include <string.h>
#include "edit.h"
#include "verdict.h"

static struct {
    const char *output, *weights, *memory;
    list shapes, inputs, outputs;
    ordered_list steps;
    edit_context context;
    long opset;
    bool verify, dry_run, show_meta, json;
} o;
#define STEP(name, value, help)                                                                    \
    { name, OPTION_STEP, &o.steps, value, help }
static const option options[] = {
    { "-o", OPTION_OUT, &o.output, "FILE.onnx", "where to write the result" },
    { "--input", OPTION_LIST, &o.inputs, "NAME",
      "before all steps, take the part that begins at this value, with --output; may be repeated" },
    { "--output", OPTION_LIST, &o.outputs, "NAME", "the part ends at this value; may be repeated" },
    STEP("--part", "A,B->C,D", "take the part between values"),
    STEP("--remove", "NODE", "remove nodes; the first input takes the place of the output"),
    STEP("--insert", "OPS@VALUE",
         "put ops after a value: relu@conv1, 'clip(_, 0, 6)@conv1->pool1' for one reader alone"),
    STEP("--replace", "NODE=OPS",
         "put other ops in place of nodes; _ is the first input, x0, x1, ... are all"),
    STEP("--replace-part", "A->B=MODEL", "put another model in place of the part between values"),
    STEP("--set", "'NODE ATTRS'", "change attributes: --set 'conv1 stride=2,2 pad=1,1,1,1'"),
    STEP("--rules", "FILE", "apply patterns and replacements until nothing matches"),
    STEP("--append", "MODEL[,OUT=IN]",
         "put another model after this one; OUT=IN says which output feeds which input"),
    STEP("--rename", "OLD=NEW", "give an input, output, parameter or value another name"),
    STEP("--add-output", "VALUE[=NAME]", "make a value an output"),
    STEP("--remove-output", "NAME", "remove an output, and what only it needs"),
    STEP("--input-shape", "NAME=DIMS",
         "sizes of an input: x=1x3x224x224; names are open sizes: x=Nx3x224x224"),
    STEP("--bind", "NAME=SIZE", "make an open size a number"),
    STEP("--batch", "N", "make the open first dim N, and all other open sizes 1"),
    STEP("--tensor", "NAME=FILE",
         "read a parameter, constant, input or value from .npy, .npz, .pb"),
    STEP("--restore", "FILE",
         "read parameters by their names from .npz, .safetensors, .pth or a model"),
    STEP("--strip", "N", "make tensors of N elements or more zeros that take no room"),
    STEP("--bake", NULL, "compute what depends on parameters alone, and keep it as parameters"),
    STEP("--simplify", NULL, "fold constants, drop what changes nothing, make equal nodes one"),
    STEP("--dtype", "TYPE", "convert floats to f32, f16, bf16 or f64"),
    { "--keep", OPTION_LIST, &o.context.keep, "NODE",
      "with --dtype: nodes that keep their types, such as op:softmax; may be repeated" },
    { "--keep-ports", OPTION_FLAG, &o.context.keep_ports, NULL,
      "with --dtype: inputs and outputs keep their types" },
    STEP("--reorder", NULL, "put nodes in an order that needs less memory (open sizes count as 1)"),
    STEP("--set-preset", "SPEC", "metadata: how photos are prepared, as --preset of `facula run`"),
    STEP("--set-labels", "FILE", "metadata: names of the classes, one per line, 1 MB at most"),
    STEP("--meta", "KEY=TEXT", "add or change metadata"),
    STEP("--delete-meta", "KEY", "delete metadata"),
    STEP("--producer", "TEXT", "name of the producer; \"\" deletes it"),
    STEP("--doc", "TEXT", "the model's doc string; \"\" deletes it"),
    STEP("--name", "TEXT", "name of the graph; \"\" deletes it"),
    { "--show-meta", OPTION_FLAG, &o.show_meta, NULL, "print the metadata of the result" },
    { "--opset", OPTION_INT, &o.opset, "N",
      "opset of FILE.onnx, 13 to 26; default 18, that of a later model, or the next one that has "
      "every op",
      "[13, 26]" },
    { "--verify", OPTION_FLAG, &o.verify, NULL,
      "check that the function is still the same, as `facula verify` does; if it is different, "
      "nothing is written" },
    { "--dry-run", OPTION_FLAG, &o.dry_run, NULL,
      "do all steps and print what they do, but write nothing" },
    { "--shape", OPTION_LIST, &o.shapes, "NAME=DIMS",
      "sizes of an input when the file is read: x=1x3x224x224" },
    { "--weights", OPTION_TEXT, &o.weights, "FILE", "for zoo:NAME" },
    LINK_ROOT_OPTION,
    { "--memory-limit", OPTION_TEXT, &o.memory, "SIZE",
      "most memory that this process may take, such as 2G" },
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" },
    { 0 }
};

/* Layers; -1: unknown.  An exit code. */
static int count_nodes(const fac_graph *g, int *n) {
    fac_error err = { 0 };
    fac_analysis *a = NULL;
    const fac_status status = fac_analyze(g, 1, &a, &err);
    *n = status ? -1 : fac_analysis_totals(a).layers;
    fac_analysis_free(a);
    return status == FAC_E_NOMEM ? fail(&err) : EXIT_OK;
}

/* ---- steps ---- */

static int all_steps(fac_graph **g, cJSON *json) {
    cJSON *rows = json ? cJSON_AddArrayToObject(json, "steps") : NULL;
    int before, code = count_nodes(*g, &before);
    for (int k = 0; k < o.steps.n && !code; k++) {
        const ordered *s = &o.steps.at[k];
        o.context.json = rows ? cJSON_CreateObject() : NULL;
        o.context.rest = s;
        o.context.nrest = o.steps.n - k;
        code = edit_step(&o.context, s, g);
        int after = 0;
        if (!code) code = count_nodes(*g, &after);
        if (rows) {
            cJSON_AddItemToArray(rows, o.context.json);
            cJSON_AddStringToObject(o.context.json, "step", s->name + 2);
            if (s->text) cJSON_AddStringToObject(o.context.json, "argument", s->text);
            cJSON_AddStringToObject(o.context.json, "what", o.context.what);
            if (after >= 0) cJSON_AddNumberToObject(o.context.json, "layers", after);
        } else if (!code) {
            printf("%-15s %s%s%s", s->name + 2, s->text ? s->text : "",
                   s->text && *o.context.what ? ": " : "", o.context.what);
            const bool counted = before >= 0 && after >= 0, silent = !s->text && !*o.context.what;
            if (counted && silent)
                printf("%d layer%s, %d before", after, plural(after), before);
            else if (counted && before != after)
                printf(" (%d layers, %d before)", after, before);
            putchar('\n');
        }
        before = after;
    }
    return code;
}

static int first_part(fac_graph **g) {
    fac_error err = { 0 };
    fac_graph *next = NULL;
    if (!o.outputs.n) return EXIT_OK;
    if (fac_graph_extract(*g, o.inputs.n, o.inputs.at, o.outputs.n, o.outputs.at, &next, &err))
        return fail(&err);
    fac_graph_free(*g);
    *g = next;
    return EXIT_OK;
}

/* ---- proof ---- */

/* A difference stops everything; what nobody could prove is written, and the exit code says so. */
static int prove(const fac_graph *a, const fac_graph *b, cJSON *json) {
    fac_device *device = NULL;
    fac_error err = { 0 };
    fac_verdict v = { .same = FAC_CANNOT_TELL };
    if (fac_device_open("cpu", NULL, &device, &err)) return verdict_error(fail(&err));
    const fac_status status =
        fac_verify(a, b, device, &(fac_verify_opts){ .mode = FAC_VERIFY_FULL }, &v, &err);
    fac_device_free(device);
    if (status) return verdict_error(fail(&err));
    const char *word = fac_sameness_word(v.same);
    if (json) {
        cJSON_AddStringToObject(json, "verified", word);
        cJSON_AddStringToObject(json, "proof", v.why);
    } else
        printf("%-15s %s: %s\n", "verify", word, v.why);
    return verdict_exit(v.same);
}

/* ---- writing ---- */

static void show_meta(const fac_graph *g, cJSON *json) {
    cJSON *to = json ? cJSON_AddObjectToObject(json, "metadata") : NULL;
    for (int k = 0; k < fac_graph_notes(g); k++) {
        const char *key = fac_graph_note_key(g, k);
        if (json)
            cJSON_AddStringToObject(to, key, fac_graph_note(g, key));
        else
            printf("%s = %s\n", key, fac_graph_note(g, key));
    }
    if (!json && !fac_graph_notes(g)) puts("no metadata");
}

/* The opset of a file, if it is one that is written and later than the usual one: its ops may have
 * no other spelling. */
static int opset_of(const char *path) {
    fac_onnx_about about;
    const size_t n = strlen(path);
    if (n < 5 || strcmp(path + n - 5, ".onnx") || fac_onnx_read_about(path, &about, NULL)) return 0;
    const char *own = strstr(about.opsets, "ai.onnx ");
    const long opset = own ? strtol(own + strlen("ai.onnx "), NULL, 10) : 0;
    return opset > FAC_ONNX_USUAL && opset <= FAC_ONNX_NEWEST ? (int)opset : 0;
}

static int write_model(const fac_graph *g, const char *from, cJSON *json) {
    fac_error err = { 0 };
    fac_onnx_saved saved = { 0 };
    fac_onnx_save_opts opts = { .opset = o.opset ? (int)o.opset : opset_of(from), .saved = &saved };
    char bytes[32];
    fac_status status = fac_onnx_save(g, o.output, &opts, &err);
    if (status == FAC_E_UNSUPPORTED && !o.opset && opts.opset) {
        opts.opset = 0;
        status = fac_onnx_save(g, o.output, &opts, &err);
    }
    if (status) return fail(&err);
    if (!json) {
        printf("%s: opset %d, %d node%s, %d tensor%s, %s\n", o.output, saved.opset, saved.nodes,
               plural(saved.nodes), saved.tensors, plural(saved.tensors),
               bytes_text((double)saved.bytes, bytes, sizeof bytes));
        return EXIT_OK;
    }
    cJSON_AddStringToObject(json, "file", o.output);
    cJSON_AddNumberToObject(json, "opset", saved.opset);
    cJSON_AddNumberToObject(json, "nodes", saved.nodes);
    cJSON_AddNumberToObject(json, "tensors", saved.tensors);
    cJSON_AddNumberToObject(json, "bytes", (double)saved.bytes);
    return EXIT_OK;
}

/* With --verify, 1 is a verdict. */
static int failed(int code) { return o.verify ? verdict_error(code) : code; }

static int work(const char *path, const fac_graph *from, fac_graph **g, cJSON *json) {
    int code = first_part(g);
    if (!code) code = all_steps(g, json);
    if (code) return failed(code);
    if (o.show_meta) show_meta(*g, json);
    const int verdict = o.verify ? prove(from, *g, json) : EXIT_OK;
    if (verdict && verdict != EXIT_NO_DIFFERENCE) return verdict;
    if (o.output && !o.dry_run) code = write_model(*g, path, json);
    return code ? failed(code) : verdict;
}

static bool has_step(const char *name) {
    for (int k = 0; k < o.steps.n; k++)
        if (!strcmp(o.steps.at[k].name, name)) return true;
    return false;
}

static int run(list args) {
    const verb *self = verb_find("edit");
    model m = { 0 };
    const int wrong = arguments_fit(self, args, 1, 1, "which model?");
    if (wrong) return wrong;
    if (!o.output && !o.dry_run && !o.show_meta && !o.verify)
        return usage_error(self, "-o FILE.onnx: where to?");
    if (o.dry_run && !o.show_meta && !o.verify && !o.steps.n && !o.outputs.n)
        return usage_error(self, "--dry-run: there is no step to try");
    if (o.inputs.n && !o.outputs.n)
        return usage_error(self, "--input without --output: where does the part end?");
    if ((o.context.keep.n || o.context.keep_ports) && !has_step("--dtype"))
        return usage_error(self, "--keep and --keep-ports go with --dtype");
    int code = memory_limit(o.memory);
    if (!code) code = model_load(args.at[0], o.weights, &o.shapes, 0, &m);
    fac_graph *from = code ? NULL : fac_graph_inference(m.graph),
              *g = from ? fac_graph_clone(from) : NULL;
    cJSON *json = o.json ? cJSON_CreateObject() : NULL;
    if (json) cJSON_AddNumberToObject(json, "schema_version", 1);
    if (!code && !g) code = fail_text("out of memory");
    if (code)
        code = failed(code);
    else
        code = work(args.at[0], from, &g, json);
    if (json && (!code || code == EXIT_NO_DIFFERENCE))
        code = json_print(json) ? failed(EXIT_FAILED) : code;
    else
        cJSON_Delete(json);
    fac_graph_free(g);
    fac_graph_free(from);
    model_free(&m);
    return code;
}

const verb verb_edit = {
    .name = "edit",
    .summary = "change a model: nodes, parts, rules, names, sizes, types, weights, metadata",
    .usage = "facula edit MODEL -o OUT.onnx [steps and options]",
    .options = options,
    .examples = "edit model.onnx -o small.onnx --part 'input->pool5' --simplify\nedit model.onnx "
                "-o out.onnx --replace 'op:relu=clip(_, 0, 6)'\nedit model.onnx -o half.onnx "
                "--dtype f16 --keep-ports --verify",
    .run = run,
    .more = "Steps are done in the order given, and each prints what it did.\n\nA NODE is called "
            "by its name or that of a value it makes, by the scope it is in, by %7 as "
            "`facula\nshow` numbers values without a name, or as op:relu; * stands for any text, "
            "so a step may mean many\nnodes.  OPS are written as in `facula show`: 'clip(_, 0, "
            "6)', 'relu tanh', 't = exp(_); mul(t, _)'.\nRules are described in docs/ANALYSIS.md; "
            "examples/rules has some.\n\nExit code with --verify: " VERDICT_CODES ";\n"
            "0 and 4 write the file."
};
