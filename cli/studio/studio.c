/* facula studio: the playground, until Ctrl-C. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli.h"

static struct {
    long port, threads;
    bool open, no_open;
    const char *device, *watch, *data;
} o;

static const option options[] = {
    { "--port", OPTION_INT, &o.port, "N", "port to listen on; default: any that is free",
      "[0, 65535]" },
    { "--open", OPTION_FLAG, &o.open, NULL, "open the page in the browser (xdg-open)" },
    { "--no-open", OPTION_FLAG, &o.no_open, NULL, "only print the address; the default" },
    { "--data", OPTION_TEXT, &o.data, "DIR",
      "where data sets are: MNIST's four files, in DIR or DIR/mnist, for the page Images (default: "
      "Debian's Fashion-MNIST); train.tsv and dev.tsv of SST-2, in DIR, DIR/sst2 or DIR/text/sst2, "
      "for the page Text" },
    { "--watch", OPTION_TEXT, &o.watch, "DIR",
      "show the trainings in this folder and its subfolders, live" },
    { "--device", OPTION_TEXT, &o.device, "NAME",
      "first device of the page Points: cpu (default) or opencl" },
    { "--threads", OPTION_INT, &o.threads, "N",
      "cpu threads; default 1, which is fastest for small networks, and one per core for the pages "
      "Images and Text",
      "[1, 256]" },
    { 0 }
};

/* A child that is nobody's: the browser goes on when the studio ends. */
static void open_browser(const char *address) {
    const pid_t child = fork();
    if (!child) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (!fork()) execlp("xdg-open", "xdg-open", address, (char *)NULL);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    else
        fprintf(stderr, "facula: cannot open the browser\n");
}

/* Signals are waited for, not handled, so they are blocked before any thread begins. */
static int wait_for_end(const sigset_t *ends) {
    int sig = 0;
    while (sigwait(ends, &sig)) {}
    return 128 + sig;
}

static bool is_model(const char *name) {
    if (!strncmp(name, "zoo:", 4)) name += 4;
    return fac_zoo_find(name) || !access(name, R_OK);
}

static int run(list args) {
    fac_error err = { 0 };
    fac_studio *s;
    sigset_t ends;
    const int wrong = arguments_fit(verb_find("studio"), args, 0, 1, "");
    if (wrong) return wrong;
    if (args.n && !is_model(args.at[0]))
        return fail_text("%s: %s; a name of the zoo begins with zoo:", args.at[0], strerror(errno));
    if (o.open && o.no_open)
        return usage_error(verb_find("studio"), "--open or --no-open, not both");
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    const fac_studio_opts opts = { .port = (int)o.port,
                                   .device = o.device,
                                   .threads = (int)o.threads,
                                   .watch = o.watch,
                                   .data = o.data,
                                   .model = args.n ? args.at[0] : NULL };
    if (fac_studio_open(&opts, &s, &err)) return fail(&err);
    printf("%s\n", fac_studio_address(s));
    fflush(stdout);
    if (o.open) open_browser(fac_studio_address(s));
    const int code = wait_for_end(&ends);
    fac_studio_close(s);
    return code;
}

const verb verb_studio = {
    .name = "studio",
    .summary = "open a playground in the browser: networks learn while you watch",
    .usage = "facula studio [MODEL] [options]",
    .options = options,
    .examples = "studio --open\nstudio model.onnx --port 8000\nstudio --watch runs",
    .run = run,
    .more =
        "MODEL is FILE.onnx or zoo:NAME; the page Graph shows it first.  A model that takes "
        "waveforms also\nclassifies sounds on the page Sound.\n\nThe studio prints an address "
        "on this machine, with a key that appears nowhere else, and serves until\nCtrl-C.  From "
        "another machine, run ssh -L PORT:127.0.0.1:PORT HOST and open the same address "
        "there.\nSee docs/STUDIO.md."
};
