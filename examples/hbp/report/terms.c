/* The words that a page uses and a reader may not know, each with what it means: docs/glossary.md has the
 * same texts, and tests/whole/report.py holds them against each other. */
#include <ctype.h>
#include <string.h>

#include "report.h"

/* A term, the words that it explains, each with a bar behind it, and what it means. */
static const struct {
    const char *term;
    const char *words;
    const char *meaning;
} terms[] = {
    {"pack", "pack|", "samples run as one sequence; attention stays inside each"},
    {"rank", "rank|", "one GPU of the run; its place in the plan is its number"},
    {"SP degree", "SP|", "how many ranks share the tokens of a pack; at SP 1 a pack is one rank's"},
    {"micro-batch", "micro-batch|",
     "packs run side by side, one on every SP group; gradients add up over micro-batches"},
    {"step", "step|", "micro-batches between two optimiser updates"},
    {"group", "group|", "packs of one length, SP degree and number of recomputed layers, of many steps"},
    {"composition", "random|stratified|hierarchy|",
     "how samples come into steps: drawn at random, stratified (each step a small copy of the epoch; "
     "in plans by patterns its share of all packs in the order of their times), hierarchy (packs of one "
     "group)"},
    {"mixture distance", "mixture distance|",
     "how far a step's share of tokens by length is from the epoch's, 0 to 1"},
    {"lockstep set", "lockstep|",
     "ranks that wait for each other in every micro-batch; ranks of different sets meet at the end of the "
     "step"},
    {"padding pack", "padding|", "an empty pack: the rank takes part in collectives with no loss tokens"},
    {"recomputed layers", "recomputed|layers recomputed|",
     "layers that keep only their input and run forward again in the backward pass"},
    {"all-to-all", "all-to-all|",
     "what the ranks of an SP group exchange around attention, in which each has all tokens of some heads"},
    {"once a micro-batch", "once a micro-batch|",
     "what a micro-batch takes whatever it holds: ZeRO traffic that computation does not hide, launches"},
    {"once a step", "once a step|",
     "what a step takes behind its micro-batches: the optimiser's update, gradients and weights "
     "reduced and gathered then"},
    {"ZeRO", "ZeRO|",
     "weights, gradients and optimiser states spread over data-parallel ranks, gathered layer by layer"},
    {"idle", "idle|", "share of the time in micro-batches, or until the last slice ends, that ranks wait"},
    {"cost", "cost|cost model|",
     "the model of a pack's time and bytes: terms of its tokens, of the squares of its samples' lengths, of "
     "vision units, recomputation, communication"},
    {"bound", "bound|",
     "a time that no plan under the same conditions can beat; the gap is how far a plan is above it"},
    {"replica", "replica|", "one of the copies of a model that share the samples of a step"},
    {"stage", "stage|", "consecutive layers on one pipeline rank; cuts are where stages begin"},
    {"bubble", "bubble|", "time a stage waits in 1F1B"},
    {"MetaOp", "MetaOp|", "a chain of operators of one type and size"},
    {"slice", "slice|", "so many operators of a MetaOp on a set of ranks"},
    {"digest", "digest|", "a hash of everything a plan says: equal on all ranks, or they disagree"},
};

/* Whether `text` has the word, alone or as a plural; one that begins a sentence as well. */
static int has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = text; *at; at++) {
        const char *end = at + length;
        if ((at[0] != word[0] && at[0] != toupper((unsigned char)word[0])) ||
            strncmp(at + 1, word + 1, length - 1) != 0)
            continue;
        if (strncmp(end, "es", 2) == 0 && !isalpha((unsigned char)end[2]))
            end += 2;
        else if (*end == 's')
            end++;
        if (!isalnum((unsigned char)*end) &&
            (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '-')))
            return 1;
    }
    return 0;
}

/* Whether the texts of a value, which a reader sees, have the word. */
static int uses(json_t *value, const char *word, size_t length)
{
    size_t i;
    const char *key;
    json_t *one;
    if (json_is_string(value))
        return has_word(json_string_value(value), word, length);
    json_array_foreach(value, i, one)
    {
        if (uses(one, word, length))
            return 1;
    }
    json_object_foreach(value, key, one)
    {
        int is_text = strcmp(key, "id") != 0 && strcmp(key, "type") != 0 && strcmp(key, "mode") != 0 &&
                      strcmp(key, "colour") != 0 && strcmp(key, "unit") != 0;
        if (is_text && uses(one, word, length))
            return 1;
    }
    return 0;
}

/* What page/timeline.js writes into the picture of a step. */
static json_t *words_of_steps(const cli *c, const json_t *page)
{
    json_t *words = json_array(), *picture;
    hbp_plan_summary s = {.struct_size = sizeof s};
    size_t i;
    json_array_foreach(json_object_get(page, "pictures"), i, picture)
    {
        const char *mode = json_string_value(json_object_get(picture, "mode"));
        if (mode && strcmp(mode, "plan") == 0)
            json_array_append_new(words, json_string("SP, pack, micro-batch, recomputed layers"));
    }
    if (c->plan && hbp_plan_get_summary(c->context, c->plan, &s) >= 0 && s.padding_packs)
        json_array_append_new(words, json_string("padding"));
    return words;
}

void report_terms(const cli *c, json_t *page)
{
    json_t *of_steps = words_of_steps(c, page), *list = json_array();
    json_t *all[] = {json_object_get(page, "lead"), json_object_get(page, "facts"),
                     json_object_get(page, "pictures"), of_steps};
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        int is_used = 0;
        for (const char *word = terms[i].words, *bar = strchr(word, '|'); bar && !is_used;
             word = bar + 1, bar = strchr(word, '|'))
            for (size_t k = 0; k < sizeof all / sizeof *all; k++)
                is_used |= uses(all[k], word, (size_t)(bar - word));
        if (is_used)
            json_array_append_new(list, json_pack("[s,s]", terms[i].term, terms[i].meaning));
    }
    json_decref(of_steps);
    json_object_set_new(page, "terms", list);
}
