/* Rates of one device: matrix products, attention, copies. Sizes grow until the time or the memory is spent;
 * the first is always measured. */
#include <math.h>

#include "probe/probing.h"

/* Work that is timed at one size; the pointers are of the device. */
typedef struct work {
    ex_device *device;
    int64_t size;
    ex_heads heads;
    ex_documents documents;
    int32_t borders[2];
    void *memory[7];
} work;

/* One kind of rate: what to allocate for a size, what to run, what one run does. */
typedef struct kind {
    int32_t rate;
    int64_t first, most; /* sizes */
    int64_t step;        /* factor from one to the next */
    double growth;       /* of the time, from one to the next */
    int64_t (*bytes)(const work *, int64_t size);
    int (*prepare)(ex_probing *, work *);
    void (*run)(void *user);
    double (*done)(const work *); /* flops or bytes of a run */
} kind;

static int64_t element(const work *w)
{
    return (int64_t)ex_type_bytes(w->device->type);
}

static int64_t gemm_bytes(const work *w, int64_t n)
{
    return 3 * n * n * element(w);
}

static int gemm_prepare(ex_probing *p, work *w)
{
    for (int i = 0; i < 3; i++)
        if (!(w->memory[i] = ex_probe_fill(p, w->size * w->size * element(w))))
            return -1;
    return 0;
}

static void gemm_run(void *user)
{
    work *w = user;
    w->device->ops->gemm(w->device, 0, 1, w->size, w->size, w->size, w->memory[0], w->memory[1], 0,
                         w->memory[2], 0);
}

static double gemm_done(const work *w)
{
    double n = (double)w->size;
    return 2 * n * n * n;
}

enum { QKV, OUT, D_OUT, D_QKV, LOG_SUMS, SCRATCH, BORDERS };

/* Of the parts in the order above, for s tokens. */
static void attention_parts(const work *w, int64_t s, int64_t *bytes)
{
    int64_t row = ((int64_t)w->heads.heads + 2 * w->heads.kv_heads) * w->heads.dim;
    int64_t wide = (int64_t)w->heads.heads * w->heads.dim;
    int64_t scratch = w->device->ops->attention_scratch(w->device, s, w->heads);
    bytes[QKV] = bytes[D_QKV] = s * row * element(w);
    bytes[OUT] = bytes[D_OUT] = s * wide * element(w);
    bytes[LOG_SUMS] = s * w->heads.heads * 4;
    bytes[SCRATCH] = scratch > 0 ? scratch : 4;
    bytes[BORDERS] = 8;
}

static int64_t attention_bytes(const work *w, int64_t s)
{
    int64_t bytes[BORDERS + 1], sum = 0;
    attention_parts(w, s, bytes);
    for (int i = 0; i <= BORDERS; i++)
        sum += bytes[i];
    return sum;
}

static int attention_prepare(ex_probing *p, work *w)
{
    int64_t bytes[BORDERS + 1];
    attention_parts(w, w->size, bytes);
    for (int i = 0; i <= BORDERS; i++)
        if (!(w->memory[i] = ex_probe_fill(p, bytes[i])))
            return -1;
    w->borders[0] = 0;
    w->borders[1] = (int32_t)w->size;
    w->device->ops->copy_in(w->device, w->memory[BORDERS], w->borders, (int64_t)sizeof w->borders);
    w->documents = (ex_documents){w->memory[BORDERS], w->borders, 1, (int32_t)w->size};
    return 0;
}

static void attention_run(void *user)
{
    work *w = user;
    void *const *m = w->memory;
    w->device->ops->attention(w->device, m[QKV], &w->documents, w->size, w->heads, m[OUT], m[LOG_SUMS]);
    w->device->ops->attention_back(w->device, m[QKV], m[OUT], m[D_OUT], m[LOG_SUMS], &w->documents, w->size,
                                   w->heads, m[D_QKV], m[SCRATCH]);
}

static double attention_done(const work *w)
{
    return 7. * (double)w->size * (double)w->size * w->heads.heads * w->heads.dim;
}

static int64_t copy_bytes(const work *w, int64_t bytes)
{
    (void)w;
    return 2 * bytes;
}

static int copy_prepare(ex_probing *p, work *w)
{
    for (int i = 0; i < 2; i++)
        if (!(w->memory[i] = ex_probe_fill(p, w->size)))
            return -1;
    return 0;
}

static void copy_run(void *user)
{
    work *w = user;
    w->device->ops->copy(w->device, w->memory[1], w->memory[0], w->size);
}

static double copy_done(const work *w)
{
    return 2. * (double)w->size;
}

static int measure_size(ex_probing *p, const kind *k, work *w, double budget_s, ex_probe_time *time)
{
    int status = k->prepare(p, w);
    if (status == 0)
        status = ex_probe_time_work(p, k->run, w, budget_s, time);
    for (size_t i = 0; i < sizeof w->memory / sizeof *w->memory; i++) {
        p->device->ops->release(p->device, w->memory[i]);
        w->memory[i] = NULL;
    }
    return status;
}

/* *best gets the highest rate, *last that of the largest size. */
static int measure(ex_probing *p, const kind *k, double budget_s, double *best, double *last)
{
    work w = {.device = p->device, .heads = p->heads};
    double begin = p->now(), longest = 0;
    for (int64_t size = k->first; size <= k->most; size *= k->step) {
        double spent = ex_probe_agree(p, p->now() - begin);
        if (ex_probe_check(p, HBP_OK))
            return -1;
        /* Two calls to warm up and three repeats of a call that takes so much longer. */
        int first = size == k->first;
        if (!first && (5 * longest * k->growth > budget_s - spent || k->bytes(&w, size) > p->room))
            break;
        ex_probe_time time;
        w.size = size;
        if (measure_size(p, k, &w, (budget_s - spent) / 6, &time))
            return -1;
        longest = time.seconds;
        *last = k->done(&w) / time.seconds;
        *best = fmax(*best, *last);
        hbp_machine_rate rate = {sizeof rate, k->rate, size, *last, time.spread, p->source};
        if (p->machine && ex_probe_check(p, hbp_machine_set_rate(p->context, p->machine, &rate)))
            return -1;
    }
    return 0;
}

int ex_probe_gemm(ex_probing *p, double budget_s)
{
    int host = p->device->host_memory;
    kind k = {HBP_RATE_GEMM, host ? 128 : 512, 16384, 2, 8, gemm_bytes, gemm_prepare, gemm_run, gemm_done};
    return measure(p, &k, budget_s, &p->best_gemm, &p->last_gemm);
}

int ex_probe_attention(ex_probing *p, double budget_s)
{
    int host = p->device->host_memory;
    kind k = {HBP_RATE_ATTENTION, host ? 128 : 512, 131072,        2, 4, attention_bytes,
              attention_prepare,  attention_run,    attention_done};
    return measure(p, &k, budget_s, &p->best_attention, &p->last_attention);
}

int ex_probe_copy(ex_probing *p, double budget_s)
{
    kind k = {HBP_RATE_COPY, 65536, p->largest, 4, 4, copy_bytes, copy_prepare, copy_run, copy_done};
    double best = 0;
    return measure(p, &k, budget_s, &best, &p->last_copy);
}
