/* facula version, facula zoo: what there is. */
#include "facula/op.h"
#include "json.h"

static const char sanitizer[] =
#if defined(__SANITIZE_ADDRESS__)
    "address sanitizer";
#elif defined(__SANITIZE_THREAD__)
    "thread sanitizer";
#else
    "";
#endif

static const struct {
    const char *name, *version, *use;
} found[] = {
#ifdef FAC_HAVE_PNG
    { "libpng", FAC_HAVE_PNG, "PNG images" },
#else
    { "libpng", NULL, "PNG images: install libpng-dev and build again" },
#endif
#ifdef FAC_HAVE_TURBOJPEG
    { "turbojpeg", FAC_HAVE_TURBOJPEG, "JPEG images" },
#else
    { "turbojpeg", NULL, "JPEG images: install libturbojpeg0-dev and build again" },
#endif
#ifdef FAC_HAVE_ZLIB
    { "zlib", FAC_HAVE_ZLIB, "compressed .npz" },
#else
    { "zlib", NULL, "compressed .npz: install zlib1g-dev and build again" },
#endif
#ifdef FAC_HAVE_CAIRO
    { "cairo", FAC_HAVE_CAIRO, "charts as PNG" },
#else
    { "cairo", NULL, "charts as PNG: install libcairo2-dev and build again" },
#endif
#ifdef FAC_HAVE_OPENCL
    { "opencl", FAC_HAVE_OPENCL, "devices (the library is looked for when one is opened)" },
#else
    { "opencl", NULL, "devices: install opencl-c-headers and build again" },
#endif
};
enum { FOUND = sizeof found / sizeof *found };

static struct { bool json; } o;
static const option options[] = {
    { "--json", OPTION_FLAG, &o.json, NULL, "print JSON, as docs/JSON.md describes" }, { 0 }
};

static int count_ops(void) {
    int n = 0;
    while (fac_ops[n]) n++;
    return n;
}

static void version_print(const char *cpu) {
    printf("facula %s\n\n", FACULA_VERSION);
    printf("built      %s, C%ld%s%s\n", __VERSION__, __STDC_VERSION__ / 100 % 100,
           *sanitizer ? ", " : "", sanitizer);
    for (int i = 0; i < FOUND; i++)
        printf("%-10s %-10s %s\n", found[i].name, found[i].version ? found[i].version : "not found",
               found[i].use);
    printf("cpu        %s\nops        %d\n", cpu, count_ops());
}

static int version_json(const char *cpu) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", FACULA_VERSION);
    cJSON_AddStringToObject(root, "compiler", __VERSION__);
    cJSON_AddStringToObject(root, "sanitizer", sanitizer);
    cJSON_AddStringToObject(root, "cpu", cpu);
    cJSON_AddNumberToObject(root, "ops", count_ops());
    cJSON *all = cJSON_AddArrayToObject(root, "libraries");
    for (int i = 0; i < FOUND; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", found[i].name);
        cJSON_AddItemToObject(one, "version",
                              found[i].version ? cJSON_CreateString(found[i].version)
                                               : cJSON_CreateNull());
        cJSON_AddStringToObject(one, "use", found[i].use);
        cJSON_AddItemToArray(all, one);
    }
    return json_print(root);
}

static int version(list args) {
    fac_device *d;
    fac_error err = { 0 };
    if (args.n) return usage_error(verb_find("version"), "it takes no arguments");
    if (fac_device_open("cpu", NULL, &d, &err)) return fail(&err);
    int code = EXIT_OK;
    if (o.json)
        code = version_json(fac_device_about(d));
    else
        version_print(fac_device_about(d));
    fac_device_free(d);
    return code;
}
const verb verb_version = {
    .name = "version",
    .summary = "print the version, what was found when it was built, and CPU features",
    .usage = "facula version",
    .options = options,
    .examples = "version",
    .run = version
};

static int zoo_json(void) {
    cJSON *root = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(root, "models");
    for (const fac_zoo *z = fac_zoo_models; z->name; z++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", z->name);
        cJSON_AddStringToObject(one, "about", z->help);
        cJSON_AddNumberToObject(one, "channels", z->channels);
        cJSON_AddNumberToObject(one, "height", z->height);
        cJSON_AddNumberToObject(one, "width", z->width);
        cJSON_AddNumberToObject(one, "classes", z->classes);
        cJSON_AddStringToObject(one, "preset", z->preset);
        cJSON_AddItemToArray(all, one);
    }
    return json_print(root);
}

static int zoo(list args) {
    if (args.n) return usage_error(verb_find("zoo"), "it takes no arguments");
    if (o.json) return zoo_json();
    for (const fac_zoo *z = fac_zoo_models; z->name; z++)
        printf("zoo:%-18s %dx%dx%d -> %-5d %s\n", z->name, z->channels, z->height, z->width,
               z->classes, z->help);
    return EXIT_OK;
}
const verb verb_zoo = {
    .name = "zoo",
    .summary = "list the networks that facula can build itself",
    .usage = "facula zoo",
    .options = options,
    .examples = "zoo\nzoo --json",
    .run = zoo,
    .more = "Each is a model for every verb: `facula run zoo:NAME --weights FILE photo.jpg`."
};
