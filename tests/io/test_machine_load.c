#include "failing.h"
#include "files.h"
#include "hbp/io.h"

#include <unistd.h>

#include "data/machine/machine.h"

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_machine *machine;
    hbp_status status = hbp_machine_create_text(context, user, &machine);
    hbp_machine_free(machine);
    return status;
}

/* A profile stands where a preset may, with the same behind it. */
START_TEST(nodes_and_fields_stand_behind_a_profile)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    char folder[64], path[80], text[160];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/a:1,b.json", folder);
    OK(context, hbp_machine_create_preset(context, "h100:2", &machine));
    OK(context, hbp_machine_save(context, machine, path));
    hbp_machine_free(machine);
    static const struct {
        const char *rest;
        int32_t nodes, cores;
    } rows[] = {{"", 2, 0}, {":8", 8, 0}, {":8,cores=96", 8, 96}, {",nodes=3,cores=5", 3, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "%s%s", path, rows[i].rest);
        OK(context, hbp_machine_create_text(context, text, &machine));
        ck_assert_int_eq(machine->fields.nodes, rows[i].nodes);
        ck_assert_int_eq(machine->fields.cores, rows[i].cores);
        ck_assert_str_eq(hbp_machine_get_source(machine, "nodes"), "given");
        hbp_machine_free(machine);
        OK(context, hbp_machine_load(context, text, &machine));
        ck_assert_int_eq(machine->fields.nodes, rows[i].nodes);
        hbp_machine_free(machine);
    }
    snprintf(text, sizeof text, "%s:8,hbm_bytes=141GB,network_bytes_per_s=400Gb/s", path);
    OK(context, hbp_machine_create_text(context, text, &machine));
    ck_assert_int_eq(machine->fields.hbm_bytes, INT64_C(141000000000));
    ck_assert_double_eq(machine->fields.network_bytes_per_s, 50e9);
    hbp_machine_free(machine);
    failing_sweep(create_once, text);
    OK(context,
       hbp_machine_create_text(context, "h100:4,network_bytes_per_s=400Gb/s", &machine)); /* no path */
    ck_assert_int_eq(machine->fields.nodes, 4);
    hbp_machine_free(machine);
    static const struct {
        const char *rest, *message;
    } wrongs[] = {{":0", "`nodes` is 0; it must be in 1..268435455"},
                  {":", "nodes is ''; it must be a number in 1..268435455"},
                  {":2x", "nodes is '2x'; it must be a number"},
                  {":8,nodes=4", "nodes is given twice"},
                  {",core=4", "there is no field 'core'; the nearest is 'cores'"},
                  {":8,", "'' is not FIELD=VALUE"},
                  {",cores=-1", "cores is -1; it must be finite and at least 0"}};
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        snprintf(text, sizeof text, "%s%s", path, wrongs[i].rest);
        FAILS(context, HBP_E_INVALID, wrongs[i].message, hbp_machine_create_text(context, text, &machine));
        ck_assert_ptr_null(machine);
        ck_assert_ptr_nonnull(strstr(hbp_context_message(context), "a:1,b.json"));
    }
    unlink(path);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_is_none_is_answered)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    FAILS(context, HBP_E_INVALID, "no machine preset 'h10'; the nearest is 'h100'; there are a100-40",
          hbp_machine_create_text(context, "h10:4", &machine));
    FAILS(context, HBP_E_SYSTEM, "cannot open no.json: No such file or directory",
          hbp_machine_create_text(context, "no.json:8", &machine));
    FAILS(context, HBP_E_SYSTEM, "cannot open nowhere/m: No such file or directory",
          hbp_machine_create_text(context, "nowhere/m", &machine));
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_machine_create_text(context, NULL, &machine));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_machine_create_text(context, "h100", NULL));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("machine_load", nodes_and_fields_stand_behind_a_profile, what_is_none_is_answered)
