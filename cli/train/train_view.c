/* facula train: the line while it runs, the lines of epochs, the end. */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "json.h"
#include "run/picture.h"
#include "train_view.h"

static volatile sig_atomic_t interrupted;

static void note(int sig) { interrupted = sig; }

void train_catch_interrupt(void) {
    struct sigaction a = { .sa_handler = note,
                           .sa_flags =
                               SA_RESETHAND }; /* a second Ctrl-C ends the process at once */
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

/* Who cannot send a signal, such as `facula studio`, leaves a file in the folder. */
static void look_for_stop(train_view *v, double t) {
    char path[4096];
    if (!v->dir || t - v->looked < 0.2) return;
    v->looked = t;
    snprintf(path, sizeof path, "%s/stop", v->dir);
    if (!unlink(path)) interrupted = SIGINT;
}

int train_view_open(train_view *v, bool resume) {
    char path[4096];
    if (v->dir && snprintf(path, sizeof path, "%s/stop", v->dir) > 0)
        unlink(path); /* of another time */
    int code = train_log_open(v, resume);
    return code || !v->tensorboard ? code : train_events_open(v);
}

void train_view_close(train_view *v) {
    train_events_close(v, false);
    train_log_close(v);
}

static void clear_own_line(void) {
    if (isatty(STDERR_FILENO)) clear_line(stderr);
}

static const char *unit(const train_view *v) {
    if (v->train->sequences) return "tokens/s";
    return v->train->bytes ? "images/s" : "samples/s";
}

static const char *duration(double seconds, char *to, size_t size) {
    long s = seconds > 0 && seconds < 1e9 ? lround(seconds) : 0;
    if (s < 60)
        snprintf(to, size, "%ld s", s);
    else if (s < 3600)
        snprintf(to, size, "%ld:%02ld min", s / 60, s % 60);
    else
        snprintf(to, size, "%ld:%02ld h", s / 3600, s / 60 % 60);
    return to;
}

/* "epoch 3/10 ████▌  step 1204/9380  loss 0.3214  accuracy 88.41 %  ETA 34 s  9812 images/s  lr
 * 0.0021": the bar takes what room the numbers leave, and numbers that have none are left out, the
 * last ones first. */
static void line(const train_view *v, const fac_progress *p) {
    enum { PARTS = 6, LONGEST = 24, SHORTEST = 8, AROUND = 3 };
    char head[48], part[PARTS][64], left[24], loss[24], blocks[BAR_BYTES(LONGEST)];
    int64_t done = p->step - v->first;
    double eta = done > 0 ? p->seconds / (double)done * (double)(p->steps - p->step) : 0;
    snprintf(head, sizeof head, "epoch %lld/%lld ", (long long)p->epoch + 1, (long long)p->epochs);
    snprintf(part[0], sizeof *part, "step %lld/%lld", (long long)p->step, (long long)p->steps);
    snprintf(part[1], sizeof *part, "  loss %s", loss_text(p->train.loss, loss));
    snprintf(part[2], sizeof *part, "  accuracy %.2f %%", 100 * p->train.accuracy);
    snprintf(part[3], sizeof *part, "  ETA %s", duration(eta, left, sizeof left));
    snprintf(part[4], sizeof *part, "  %.0f %s", p->images_per_s, unit(v));
    snprintf(part[5], sizeof *part, "  lr %.2g", p->lr);
    int room = columns() - 1 - (int)strlen(head) - SHORTEST - AROUND, n = 0;
    while (n < PARTS && room >= (int)strlen(part[n])) room -= (int)strlen(part[n++]);
    int width = room + SHORTEST < LONGEST ? room + SHORTEST : LONGEST;
    double share = p->steps ? (double)p->step / (double)p->steps : 0;
    fprintf(stderr, "\r\033[K%s", head);
    if (width >= SHORTEST && unicode() && colour()) {
        fprintf(stderr, "\033[38;5;39;48;5;237m%s\033[0m  ", bar(share, width, blocks));
    } else if (width >= SHORTEST) {
        int full = (int)(share * (width - 2));
        fprintf(stderr, "[%.*s%*s]  ", full, "########################", width - 2 - full, "");
    }
    for (int k = 0; k < n; k++) fprintf(stderr, "%s", part[k]);
    fflush(stderr);
}

/* Of language models: what a token costs, and how sure that is. */
static void look_line(const train_view *v, const fac_progress *p) {
    char loss[24], test[24];
    printf("step %*lld/%lld   loss %s   test loss %s ± %.4f  perplexity %.2f   "
           "%6.0f %s  %5.1f s\n",
           snprintf(NULL, 0, "%lld", (long long)p->steps), (long long)p->step, (long long)p->steps,
           loss_text(p->train.loss, loss), loss_text(p->test->loss, test), p->test->error,
           exp(p->test->loss), p->images_per_s, unit(v), p->seconds);
    fflush(stdout);
}

static void epoch_line(const train_view *v, const fac_progress *p) {
    if (v->train->sequences) {
        look_line(v, p);
        return;
    }
    if (p->epochs > 50 && (p->epoch + 1) % (p->epochs / 20)) return; /* of many epochs only some */
    int digits = snprintf(NULL, 0, "%lld", (long long)p->epochs);
    char loss[24], test[24];
    printf("epoch %*lld/%lld   loss %s  accuracy %6.2f %%   test loss %s  accuracy %6.2f %%   "
           "%6.0f %s  %5.1f s\n",
           digits, (long long)p->epoch + 1, (long long)p->epochs, loss_text(p->train.loss, loss),
           100 * p->train.accuracy, loss_text(p->test->loss, test), 100 * p->test->accuracy,
           p->images_per_s, unit(v), p->seconds);
    fflush(stdout);
}

bool train_progress(void *view, const fac_progress *p) {
    train_view *v = view;
    double row[LOG_COLUMNS], t = now();
    if (!p->test) {
        if (train_log_step(v, p)) train_events_step(v, p);
        look_for_stop(v, t);
        if (isatty(STDERR_FILENO) && t - v->last > 0.1) {
            v->last = t;
            line(v, p);
        }
        return !interrupted && !v->lost;
    }
    train_log_row(v, p, row);
    clear_own_line();
    train_log_epoch(v, row);
    if (v->json)
        train_log_print(row);
    else
        epoch_line(v, p);
    train_events_epoch(v, row);
    return !interrupted && !v->lost;
}

static int print_json(const train_view *v, const fac_train_result *r) {
    cJSON *j = cJSON_CreateObject();
    json_number(j, "test_accuracy", r->test.accuracy, 9);
    json_number(j, "test_loss", r->test.loss, 9);
    if (v->train->sequences) json_number(j, "test_loss_error", r->test.error, 6);
    cJSON_AddNumberToObject(j, "epochs", (double)r->epochs);
    cJSON_AddNumberToObject(j, "steps", (double)r->steps);
    json_number(j, "seconds", r->seconds, 6);
    json_number(j, "images_per_s", r->images_per_s, 6);
    return json_line(j);
}

static int text_summary(const train_view *v, const fac_train_result *r) {
    char word[4096], loss[24];
    printf(
        "test loss %s ± %.4f (perplexity %.2f, %lld tokens) after %lld step%s; %.1f s, %.0f %s\n",
        loss_text(r->test.loss, loss), r->test.error, exp(r->test.loss), (long long)r->test.samples,
        (long long)r->steps, plural((double)r->steps), r->seconds, r->images_per_s, unit(v));
    if (!v->dir) return EXIT_OK;
    const char *dir = shell_word(v->dir, word, sizeof word);
    char other[4096];
    const char *base = v->adapted ? shell_word(v->adapted, other, sizeof other) : dir;
    printf("go on with a text: facula generate %s%s%s \"TEXT\"   curves: facula plot %s\n", base,
           text_if(v->adapted, " --lora "), text_if(v->adapted, dir), dir);
    return EXIT_OK;
}

int train_summary(train_view *v, const fac_train_result *r) {
    char word[4096], loss[24];
    clear_own_line();
    train_events_close(v, !r->stopped);
    if (r->stopped) {
        fprintf(stderr, "facula: stopped after %lld step%s", (long long)r->steps,
                plural((double)r->steps));
        if (v->dir)
            fprintf(stderr, "; go on with: facula train --resume %s",
                    shell_word(v->dir, word, sizeof word));
        fputc('\n', stderr);
        return v->lost ? EXIT_FAILED : 128 + interrupted; /* as a shell says it */
    }
    int code = train_report(v);
    if (!code && v->show > 0 && !v->json) code = train_gallery(v, v->show);
    if (code || v->json) return code ? code : print_json(v, r);
    if (v->train->sequences) return text_summary(v, r);
    printf("test accuracy %.2f %% (%lld sample%s, loss %s) after %lld epoch%s, %lld step%s; %.1f "
           "s, %.0f %s\n",
           100 * r->test.accuracy, (long long)r->test.samples, plural((double)r->test.samples),
           loss_text(r->test.loss, loss), (long long)r->epochs, plural((double)r->epochs),
           (long long)r->steps, plural((double)r->steps), r->seconds, r->images_per_s, unit(v));
    if (v->dir)
        printf("weights: %s/model.safetensors   curves: facula plot %s\n", v->dir,
               shell_word(v->dir, word, sizeof word));
    return EXIT_OK;
}
