/* Graphs of many tasks for tests, made by public calls: Spindle's examples and random ones. */
#ifndef HBP_TESTS_GRAPHS_H
#define HBP_TESTS_GRAPHS_H

#include "base/rng.h"
#include "test.h"

static inline hbp_graph *new_graph(hbp_context *context)
{
    hbp_graph *graph = NULL;
    OK(context, hbp_graph_create(context, &graph));
    return graph;
}

/* Adds `count` operators in a chain; returns the first's number. Further fields: `fields`, or NULL. */
static inline int32_t add_chain(hbp_context *context, hbp_graph *graph, const hbp_operator *fields,
                                const char *name, const char *type, const char *task, int64_t count)
{
    hbp_operator o = {.struct_size = sizeof o};
    if (fields)
        o = *fields;
    o.name = name;
    o.type = type;
    o.task = task;
    int32_t first = -1;
    OK(context, hbp_graph_add_operators(context, graph, &o, count, &first));
    return first;
}

/* A profile of a / n + b ns on 1, 2, 4, ... most_gpus. */
static inline int32_t add_falling_profile(hbp_context *context, hbp_graph *graph, int64_t a, int64_t b,
                                          int32_t most_gpus)
{
    int32_t gpus[32], points = 0, profile = -1;
    int64_t ns[32];
    for (int64_t n = 1; n <= most_gpus; n *= 2, points++) {
        gpus[points] = (int32_t)n;
        ns[points] = a / n + b;
    }
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, points, &profile));
    return profile;
}

/* Section 3.1's example, 17 operators that come to seven MetaOps on two levels: audio [8, 229, 768] A B C and
 * text [8, 77, 768] D E feed a language model [8, 512, 1024] F G H; text [4, 77, 768] I J, vision [4, 257,
 * 768] K L and vision [4, 197, 768] M N feed another, [4, 512, 1024] O P Q. Operators are added in this
 * order, one by one; layers at the same place of one type share their weights. Times fall up to 8 GPUs. */
static inline hbp_graph *page_graph(hbp_context *context)
{
    static const struct {
        const char *type, *task, *names;
        int64_t batch, sequence, width, work_us;
    } chains[] = {{"audio", "audio-language", "ABC", 8, 229, 768, 4000},
                  {"text", "audio-language", "DE", 8, 77, 768, 1500},
                  {"lm", "audio-language", "FGH", 8, 512, 1024, 12000},
                  {"text", "vision-language", "IJ", 4, 77, 768, 800},
                  {"vision", "vision-language", "KL", 4, 257, 768, 2500},
                  {"vision", "vision-language", "MN", 4, 197, 768, 2000},
                  {"lm", "vision-language", "OPQ", 4, 512, 1024, 6000}};
    hbp_graph *graph = new_graph(context);
    int32_t first[7], last[7];
    for (int c = 0; c < 7; c++) {
        hbp_operator o = {.struct_size = sizeof o};
        o.profile = add_falling_profile(context, graph, chains[c].work_us * 1000, 50000, 8);
        o.batch = chains[c].batch;
        o.sequence = chains[c].sequence;
        o.width = chains[c].width;
        o.split = 12;
        o.output_bytes = 2 * o.batch * o.sequence * o.width;
        o.activation_bytes = 16 * o.output_bytes;
        o.state_bytes = 12 * o.width * o.width * 4;
        o.sharded_bytes = 3 * o.state_bytes;
        o.gradient_bytes = o.state_bytes / 2;
        for (int k = 0; chains[c].names[k]; k++) {
            char name[2] = {chains[c].names[k], '\0'}, weights[32];
            snprintf(weights, sizeof weights, "%s.%d", chains[c].type, k);
            o.parameters = weights;
            last[c] = add_chain(context, graph, &o, name, chains[c].type, chains[c].task, 1);
            if (k)
                OK(context, hbp_graph_add_edge(context, graph, last[c] - 1, last[c], -1));
            else
                first[c] = last[c];
        }
    }
    for (int c = 0; c < 7; c++)
        if (c != 2 && c != 6)
            OK(context, hbp_graph_add_edge(context, graph, last[c], first[c < 2 ? 2 : 6], -1));
    return graph;
}

/* Figure 5a: three MetaOps of one level for 4 GPUs, 8, 12 and 6 operators long; C* = 1 s with n* = 1.9, 1.5
 * and .6 asks for times of .22 and .12 s, .1183 and .0683 s on 1 and 2 GPUs, and .1 s on 1. */
static inline hbp_graph *figure_graph(hbp_context *context)
{
    static const struct {
        const char *name;
        int64_t count, points, ns[2];
    } chains[] = {{"first", 8, 2, {220000000, 120000000}},
                  {"second", 12, 2, {118333333, 68333333}},
                  {"third", 6, 1, {100000000, 0}}};
    static const int32_t gpus[] = {1, 2};
    hbp_graph *graph = new_graph(context);
    for (int c = 0; c < 3; c++) {
        hbp_operator o = {.struct_size = sizeof o};
        OK(context, hbp_graph_add_profile(context, graph, gpus, chains[c].ns, chains[c].points, &o.profile));
        o.degrees = HBP_DEGREES_PROFILED;
        o.state_bytes = 1000000;
        o.activation_bytes = 500000;
        o.output_bytes = 1000;
        add_chain(context, graph, &o, chains[c].name, chains[c].name, chains[c].name, chains[c].count);
    }
    return graph;
}

/* How large random graphs get. */
typedef struct graph_sizes {
    int32_t tasks;     /* 1..tasks; 0: 6 */
    int32_t encoders;  /* of a task, 1..encoders; 0: 3 */
    int32_t heads;     /* 0..heads; 0: 2 */
    int32_t chain;     /* operators, 1..chain; 0: 6 */
    int32_t most_gpus; /* profiled; 0: 8 */
    int32_t all_tasks; /* nonzero: exactly `tasks` tasks */
} graph_sizes;

static inline int64_t random_between(hbp__rng *rng, int64_t least, int64_t most)
{
    return least + (int64_t)hbp__rng_below(rng, (uint64_t)(most - least) + 1);
}

/* Times a / n + b ns with noise of up to `noise` percent, so that they rise here and there, from `least` GPUs
 * to at most `most`: on powers of two times `least`, or on all numbers. */
static inline int32_t add_random_profile(hbp_context *context, hbp_graph *graph, hbp__rng *rng, int32_t least,
                                         int32_t most)
{
    int32_t gpus[256], profile = -1;
    int64_t ns[256], points = 0;
    int64_t a = random_between(rng, 1000, 2000000) * (random_between(rng, 0, 3) ? 1 : 10);
    int64_t b = random_between(rng, 0, 3) ? random_between(rng, 0, a / 10) : 0;
    int64_t noise = random_between(rng, 0, 2) ? random_between(rng, 0, 15) : 0;
    int64_t all = random_between(rng, 0, 2) == 0;
    int64_t last = least * random_between(rng, 1, most / least);
    last = random_between(rng, 0, 1) ? most : last;
    for (int64_t n = least; n <= last && points < 256; n = all ? n + 1 : 2 * n, points++) {
        gpus[points] = (int32_t)n;
        ns[points] = (a / n + b + 1) * random_between(rng, 100 - noise, 100 + noise) / 100 + 1;
    }
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, points, &profile));
    return profile;
}

/* A random kind of operator, with a profile that suits it: least_gpus 1, 2 or 4, batch a multiple of it. */
static inline void random_operator(hbp_context *context, hbp_graph *graph, hbp__rng *rng, int32_t most_gpus,
                                   hbp_operator *o)
{
    static const int32_t least[] = {1, 1, 1, 1, 2, 4};
    *o = (hbp_operator){.struct_size = sizeof *o};
    o->least_gpus = least[hbp__rng_below(rng, 6)];
    while (o->least_gpus > most_gpus)
        o->least_gpus /= 2;
    o->batch = o->least_gpus * (random_between(rng, 0, 1) ? random_between(rng, 1, 12) : 16);
    o->sequence = random_between(rng, 1, 512);
    o->width = 64 * random_between(rng, 1, 16);
    o->split = random_between(rng, 0, 1) ? random_between(rng, 1, 12) : 1;
    o->degrees = random_between(rng, 0, 3) ? HBP_DEGREES_DIVISORS : HBP_DEGREES_PROFILED;
    o->profile = add_random_profile(context, graph, rng, o->least_gpus, most_gpus);
    o->state_bytes = random_between(rng, 0, 1) * random_between(rng, 1, 1 << 28);
    o->sharded_bytes = random_between(rng, 0, 1) * random_between(rng, 1, 1 << 28);
    o->activation_bytes = random_between(rng, 0, 3) ? random_between(rng, 1, 1 << 28) : 0;
    o->output_bytes = random_between(rng, 0, 3) ? random_between(rng, 1, 1 << 24) : 0;
    o->gradient_bytes = o->state_bytes / 4;
}

/* Adds a chain of task `task` with number `chain` there; weights are the type's, so shared between tasks,
 * about every second time. Returns its last operator, *first gets the first. */
static inline int32_t add_random_chain(hbp_context *context, hbp_graph *graph, hbp__rng *rng,
                                       const graph_sizes *sizes, int32_t task, int32_t chain, int32_t *first)
{
    static const char *const types[] = {"text", "vision", "audio", "depth", "lm"};
    hbp_operator o;
    char name[32], task_name[32], weights[32];
    const char *type = types[hbp__rng_below(rng, 5)];
    random_operator(context, graph, rng, sizes->most_gpus, &o);
    snprintf(name, sizeof name, "t%d.c%d", (int)task, (int)chain);
    snprintf(task_name, sizeof task_name, "task %d", (int)task);
    snprintf(weights, sizeof weights, "%s layers", type);
    o.parameters = random_between(rng, 0, 1) ? weights : NULL;
    int64_t count = random_between(rng, 1, sizes->chain);
    *first = add_chain(context, graph, &o, name, type, task_name, count);
    return *first + (int32_t)count - 1;
}

/* One to `tasks` tasks, each a few encoders, often what joins them, and heads; now and then an encoder that
 * also feeds a head, a head that waits for the one before, or an encoder that waits for the one before. Every
 * graph passes hbp_graph_validate, and every operator may run on least_gpus (1, 2 or 4) GPUs. */
static inline hbp_graph *random_graph(hbp_context *context, hbp__rng *rng, const graph_sizes *given)
{
    graph_sizes sizes = given ? *given : (graph_sizes){0};
    sizes.tasks = sizes.tasks ? sizes.tasks : 6;
    sizes.encoders = sizes.encoders ? sizes.encoders : 3;
    sizes.heads = sizes.heads ? sizes.heads : 2;
    sizes.chain = sizes.chain ? sizes.chain : 6;
    sizes.most_gpus = sizes.most_gpus ? sizes.most_gpus : 8;
    hbp_graph *graph = new_graph(context);
    int32_t tasks = sizes.all_tasks ? sizes.tasks : (int32_t)random_between(rng, 1, sizes.tasks);
    for (int32_t t = 0; t < tasks; t++) {
        int32_t encoders = (int32_t)random_between(rng, 1, sizes.encoders), chain = 0;
        int32_t heads = (int32_t)random_between(rng, 0, sizes.heads), joint = -1, head = -1, first;
        int32_t last[16];
        ck_assert_int_le(encoders, 16);
        for (int32_t e = 0; e < encoders; e++) {
            last[e] = add_random_chain(context, graph, rng, &sizes, t, chain++, &first);
            if (e && random_between(rng, 0, 7) == 0)
                OK(context, hbp_graph_add_edge(context, graph, last[e - 1], first, -1));
        }
        if (random_between(rng, 0, 3)) {
            joint = add_random_chain(context, graph, rng, &sizes, t, chain++, &first);
            for (int32_t e = 0; e < encoders; e++)
                OK(context, hbp_graph_add_edge(context, graph, last[e], first, -1));
        }
        for (int32_t h = 0; h < heads; h++) {
            int32_t before = head;
            head = add_random_chain(context, graph, rng, &sizes, t, chain++, &first);
            OK(context, hbp_graph_add_edge(context, graph, joint >= 0 ? joint : last[0], first, -1));
            if (before >= 0 && random_between(rng, 0, 3) == 0)
                OK(context, hbp_graph_add_edge(context, graph, before, first, random_between(rng, 0, 4096)));
            if (encoders > 1 && random_between(rng, 0, 3) == 0)
                OK(context, hbp_graph_add_edge(context, graph, last[encoders - 1], first, -1));
        }
    }
    OK(context, hbp_graph_validate(context, graph));
    return graph;
}

#endif
