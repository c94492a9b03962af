/* facula train: the progress line, the lines of epochs, the summary. */
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "json.h"
#include "train.h"

static volatile sig_atomic_t interrupted;

static void note(int sig) {
    (void)sig;
    interrupted = 1;
}

void train_catch_interrupt(void) {
    struct sigaction a = { .sa_handler = note, .sa_flags = SA_RESETHAND };      /* a second Ctrl-C ends the process at once */
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

static void clear_line(void) {
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

static void line(const fac_progress *p) {
    enum { WIDTH = 20 };
    int full = p->steps ? (int)(WIDTH * p->step / p->steps) : 0;
    double eta = p->step && p->images_per_s > 0 ? (double)(p->steps - p->step) * (double)p->batch.samples / p->images_per_s : 0;
    fprintf(stderr, "\r\033[Kepoch %lld/%lld [%.*s%*s] step %lld  loss %.4f  accuracy %.2f %%  %.0f images/s  ETA %.0f s",
            (long long)p->epoch + 1, (long long)p->epochs, full, "####################", WIDTH - full, "", (long long)p->step,
            p->train.loss, 100 * p->train.accuracy, p->images_per_s, eta);
    fflush(stderr);
}

static cJSON *epoch_object(const fac_progress *p) {
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "epoch", (double)p->epoch + 1);
    cJSON_AddNumberToObject(j, "step", (double)p->step);
    json_number(j, "train_loss", p->train.loss, 9);
    json_number(j, "train_accuracy", p->train.accuracy, 9);
    json_number(j, "test_loss", p->test->loss, 9);
    json_number(j, "test_accuracy", p->test->accuracy, 9);
    json_number(j, "lr", p->lr, 9);
    json_number(j, "seconds", p->seconds, 6);
    json_number(j, "images_per_s", p->images_per_s, 6);
    return j;
}

static void print_line(cJSON *j, FILE *to) {
    char *text = cJSON_PrintUnformatted(j);
    if (text) fprintf(to, "%s\n", text);
    fflush(to);
    free(text);
}

bool train_progress(void *view, const fac_progress *p) {
    train_view *v = view;
    if (!p->test) {
        double t = now();
        if (isatty(STDERR_FILENO) && t - v->last > 0.1) {
            v->last = t;
            line(p);
        }
        return !interrupted;
    }
    cJSON *j = epoch_object(p);
    clear_line();
    if (v->log) print_line(j, v->log);
    if (v->json) print_line(j, stdout);
    else if (p->epochs <= 50 || (p->epoch + 1) % (p->epochs / 20) == 0)         /* of many epochs only some */
        printf("epoch %3lld/%lld   loss %.4f  accuracy %6.2f %%   test loss %.4f  accuracy %6.2f %%   %.0f images/s  %.1f s\n",
               (long long)p->epoch + 1, (long long)p->epochs, p->train.loss, 100 * p->train.accuracy,
               p->test->loss, 100 * p->test->accuracy, p->images_per_s, p->seconds);
    fflush(stdout);
    cJSON_Delete(j);
    return !interrupted;
}

int train_summary(const train_view *v, const fac_train_result *r, const char *dir) {
    clear_line();
    if (r->stopped) {
        fprintf(stderr, "facula: stopped after %lld steps", (long long)r->steps);
        if (dir) fprintf(stderr, "; go on with: facula train --resume %s", dir);
        fputc('\n', stderr);
        return EXIT_FAILED;
    }
    if (v->json) {
        cJSON *j = cJSON_CreateObject();
        json_number(j, "test_accuracy", r->test.accuracy, 9);
        json_number(j, "test_loss", r->test.loss, 9);
        cJSON_AddNumberToObject(j, "epochs", (double)r->epochs);
        cJSON_AddNumberToObject(j, "steps", (double)r->steps);
        json_number(j, "seconds", r->seconds, 6);
        json_number(j, "images_per_s", r->images_per_s, 6);
        print_line(j, stdout);
        cJSON_Delete(j);
        return EXIT_OK;
    }
    printf("test accuracy %.2f %% (%lld samples, loss %.4f) after %lld epochs, %lld steps; %.1f s, %.0f images/s\n",
           100 * r->test.accuracy, (long long)r->test.samples, r->test.loss, (long long)r->epochs,
           (long long)r->steps, r->seconds, r->images_per_s);
    if (dir) printf("weights: %s/model.safetensors\n", dir);
    return EXIT_OK;
}
