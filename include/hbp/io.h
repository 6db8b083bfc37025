/* libhbp-io: files and probes. Everything here is in a library of its own, which links zlib, expat and,
 * unless it was built without, hwloc; libhbp needs none of them.
 *
 * Files are written atomically (a temporary file beside, fsync, rename); on failure nothing is left. A
 * symbolic link stays: what it leads to is written, and made where it is not there. A pipe, a device and what
 * is open already (/dev/stdout) are written in place, and keep what was written before a failure. What is
 * read is not trusted: HBP_E_FORMAT names the byte, line or field and what is wrong there, HBP_E_VERSION a
 * later format, HBP_E_SYSTEM carries the system's reason.
 *
 * Stability: stable; probes are advanced and may change. */
#ifndef HBP_IO_H
#define HBP_IO_H

#include <stdint.h>

#include "hbp/epoch.h"
#include "hbp/pattern.h"
#include "hbp/tasks.h"
#include "hbp/vlm.h"

HBP_BEGIN_DECLS

/* ---- Lengths ---- */

/* How to read a file of lengths. Columns are those of CSV or of MDS shards, or fields of JSON. */
typedef struct hbp_lengths_load_options {
    uint32_t struct_size;
    const char *format;        /* "npy", "text", "csv", "jsonl", "idx", "mds"; NULL: from the content and the
                                  name */
    const char *column;        /* of the length; NULL: "length", then "len", "tokens", "num_tokens"; of shards
                                  also "input_ids", or the only array */
    const char *count_column;  /* CSV: of a histogram's counts; NULL: "count" where present; "": none */
    const char *loss_column;   /* of loss tokens; NULL: none */
    const char *link_column;   /* values that link samples; NULL: none */
    const char *vision_column; /* of vision units, in `vision_path` where one is given; NULL: none, or there
                                  "vision", then "images", "num_images", "tiles" */
    const char *modality_column; /* of modalities; NULL: none */
    const char *vision_path; /* a second file with a number of vision units per sample, in any of the formats,
                                as many as there are lengths; 0 is allowed. NULL: none */
    int32_t shifted_loss;    /* [flag] as in hbp_lengths_options */
} hbp_lengths_load_options;

/* Reads .npy (1-D integers), text (one length a line, # comments), CSV (comma, tab or semicolon; with a
 * header, or bare lengths, or bare "length,count"), JSON lines, Megatron or DeepSpeed .idx (a sample is a
 * sequence), and MDS, the index.json of a MosaicML StreamingDataset, or its folder, with the shards that it
 * names beside it; each plain, gzipped or, in a build with zstd, compressed with that, in a window of at most
 * 128 MiB; "-" is standard input. An array, of JSON or of shards, counts its elements, so "input_ids" gives
 * the length and "images" the vision units; an empty link, null or none, is -1, and empty vision units are 0.
 * A column of bytes in shards is named with the type of its tokens, "tokens:int64". Memory is bounded by the
 * lengths held, not by the file. Returns HBP_E_FORMAT with line or byte offset, HBP_E_VERSION for a version
 * of .npy, .idx or MDS it does not know, HBP_E_SYSTEM when a file cannot be read, HBP_E_INVALID when
 * `vision_path` holds more or fewer numbers than there are lengths, and the errors of hbp_lengths_create_*,
 * with the line. Thread: one per context. */
HBP_API hbp_status hbp_lengths_load(hbp_context *context, const char *path,
                                    const hbp_lengths_load_options *options, hbp_lengths **out);

/* ---- Models ---- */

/* Reads a Hugging Face config.json: `json` [bytes] of text, or a file. Knows llama, mistral, mixtral, qwen2,
 * qwen3, qwen2_moe, qwen3_moe, deepseek_v2, deepseek_v3, gpt2, gpt_neox, gemma, gemma2, gemma3_text and
 * cohere by `model_type`; another type is read as llama when it has llama's keys. HBP_E_FORMAT names the
 * missing or wrong key, or the key by which the model is no decoder of equal layers that attend to all
 * before: sliding windows, state-space, recurrent or linear layers, encoders. A path may be a folder's that
 * holds config.json, a checkout's. Behind a file that ends in .json, or a folder, may stand fields to
 * replace, as hbp_model_create_variant takes them: "config.json,layers=4". */
HBP_API hbp_status hbp_model_create_config(hbp_context *context, const char *json, int64_t bytes,
                                           hbp_model **out);
HBP_API hbp_status hbp_model_load(hbp_context *context, const char *path, hbp_model **out);

/* Makes what a text of a user's names: what hbp_model_create_preset takes, or a path of hbp_model_load that
 * ends in .json, has a slash or is a folder's. A preset's name goes before a folder's. */
HBP_API hbp_status hbp_model_create_text(hbp_context *context, const char *text, hbp_model **out);

/* ---- Machines ---- */

/* What a probe looks at. */
enum { HBP_PROBE_THIS_MACHINE = 0, HBP_PROBE_XML_FILE = 1, HBP_PROBE_SYNTHETIC = 2 };

/* Probes by hwloc: this machine, a file of hwloc's XML (`text` is its path), or a synthetic description
 * (`text`). An NVIDIA GPU that is recognised gets the numbers of its preset; a machine without any has
 * gpus_per_node 0, which hbp_cost_create refuses. GPUs are those the PCI bus shows, also where a container
 * may use fewer. An XML file is read without hwloc, whose reader is not safe; a synthetic string may describe
 * at most 4,096 processing units. Built without hwloc, as in wheels, XML files alone are read, and the others
 * are HBP_E_SYSTEM. hwloc takes its memory from malloc; what the other functions promise where
 * malloc fails is not promised here: hwloc may then crash, and release 2.9.0 of it was seen to keep 1.3 KB a
 * probe. Probe once, and give ranks the saved profile. */
HBP_API hbp_status hbp_machine_probe(hbp_context *context, int32_t type, const char *text, hbp_machine **out);

/* The profile file of the project: JSON, an object {value, source} for each field, or a value alone, and
 * lists of measured collectives and rates. A value is a number or a text with a unit, as hbp_read_quantity
 * takes it: "80GiB". Behind a file that ends in .json may stand a number of nodes, and fields to replace:
 * "profile.json:8,cores=96". Saved atomically. A library from before there were rates and spreads reads such
 * a profile and leaves them out. */
HBP_API hbp_status hbp_machine_load(hbp_context *context, const char *path, hbp_machine **out);
HBP_API hbp_status hbp_machine_save(hbp_context *context, const hbp_machine *machine, const char *path);

/* Makes what a text of a user's names: what hbp_machine_create_preset takes, or a path of hbp_machine_load
 * that has .json or a slash in it. */
HBP_API hbp_status hbp_machine_create_text(hbp_context *context, const char *text, hbp_machine **out);

/* Adds what nccl-tests printed (text of 2.13 to 2.19, or JSON v3; `data` [bytes]) for a collective over
 * `ranks` GPUs: fits latency + bytes / bandwidth by least squares and stores both. The text names no
 * collective, the caller does. */
HBP_API hbp_status hbp_machine_apply_nccl_tests(hbp_context *context, hbp_machine *machine,
                                                int32_t collective, int32_t ranks, const char *data,
                                                int64_t bytes);

/* Takes GPUs per node, NVLink and network bandwidth from NCCL's topology XML (NCCL_TOPO_DUMP_FILE). */
HBP_API hbp_status hbp_machine_apply_nccl_topology(hbp_context *context, hbp_machine *machine,
                                                   const char *xml, int64_t bytes);

/* ---- Costs ---- */

typedef struct hbp_cost_file_options {
    uint32_t struct_size;
    const char *model;   /* names kept in the file; NULL: those that the cost has, if any */
    const char *machine; /* the device whose times these are */
    const char *note;    /* for whoever reads the file; NULL: none */
} hbp_cost_file_options;

/* Writes every term and where it came from to `path` as JSON, atomically; doubles so that they are read back
 * bit for bit. `options` may be NULL. Thread: one per context. */
HBP_API hbp_status hbp_cost_save(hbp_context *context, const hbp_cost *cost, const char *path,
                                 const hbp_cost_file_options *options);

/* Reads it back; a cost that plans as the saved one does, sources included. Of a plan file: the cost that it
 * was saved with, whose terms' source is "plan file". HBP_E_FORMAT names the line or term, or a plan without
 * one, HBP_E_VERSION a later format. */
HBP_API hbp_status hbp_cost_load(hbp_context *context, const char *path, hbp_cost **out);

/* ---- Plans ---- */

typedef struct hbp_plan_file hbp_plan_file;

typedef struct hbp_plan_save_options {
    uint32_t struct_size;
    int32_t level;        /* [-1..9] zlib level 1..9; 0: 1; -1: stored */
    int64_t chunk_steps;  /* [0..INT64_MAX] most steps in a chunk; 0: 256, and fewer where a chunk would pass
                             64 KiB of columns */
    const hbp_cost *cost; /* written into the header when given */
    const char *note;     /* text for the header: command line, data set; NULL: none */
} hbp_plan_save_options;

/* Writes the plan to `path` atomically: a temporary file beside it, fsync, rename; on failure nothing is
 * left. Links, pipes and /dev/stdout: as every file (above). HBP_E_SYSTEM carries the system's reason.
 * Thread: one per context. */
HBP_API hbp_status hbp_plan_save(hbp_context *context, const hbp_plan *plan, const char *path,
                                 const hbp_plan_save_options *options);

/* Reads a whole plan, trusting nothing: HBP_E_FORMAT with the byte offset for a damaged file, HBP_E_VERSION
 * for a file of a later format. The digest is verified. */
HBP_API hbp_status hbp_plan_load(hbp_context *context, const char *path, hbp_plan **out);

/* Opens a plan file for reading single steps: header and index only. Thread: one at a time per file. */
HBP_API hbp_status hbp_plan_file_open(hbp_context *context, const char *path, hbp_plan_file **out);
HBP_API void hbp_plan_file_free(hbp_plan_file *file);

/* What the header says of the whole plan; `packs` and `samples` are the whole plan's counts. */
HBP_API hbp_status hbp_plan_file_get_summary(hbp_context *context, const hbp_plan_file *file,
                                             hbp_plan_summary *summary);

/* Nonzero: the plan is the data of a vision-language plan, which hbp_vlm_plan_load reads whole. */
HBP_API int32_t hbp_plan_file_has_vlm(const hbp_plan_file *file);

/* The cost that the plan was saved with (hbp_plan_save_options), an object of its own, to be freed. Sources
 * of its terms are "plan file". HBP_E_INVALID where it was saved without one; HBP_E_FORMAT names what is
 * wrong in it. Thread: one per context. */
HBP_API hbp_status hbp_plan_file_get_cost(hbp_context *context, const hbp_plan_file *file, hbp_cost **out);

/* The note that the plan was saved with, such as a command line; "" where there is none. The file's own.
 * Thread: shareable. */
HBP_API const char *hbp_plan_file_get_note(const hbp_plan_file *file);

/* Reads steps [first, first + count) as a plan of their own (its summary's first_step is `first`, its digest
 * its own); only the chunks that hold them are read. */
HBP_API hbp_status hbp_plan_file_read(hbp_context *context, hbp_plan_file *file, int64_t first, int64_t count,
                                      hbp_plan **out);

typedef struct hbp_trace_options {
    uint32_t struct_size;
    int64_t first_step;           /* [0..INT64_MAX] the first one shown */
    int64_t steps;                /* [0..INT64_MAX] shown; 0: all from there on */
    const hbp_timeline *timeline; /* plans: what was measured, beside what was predicted; NULL: that alone */
    const hbp_cost *cost; /* plans: the one it was made under, for the parts of each pack's time; NULL:
                             packs are shown whole */
} hbp_trace_options;

/* Writes a Chrome trace (opens in Perfetto; docs: traces) of the plan's steps: a process for each node, a
 * thread for each rank with its packs, its waiting and what ends a step, and a thread of the steps; gzipped
 * where `path` ends in ".gz", as all traces. With the cost each pack has its parts: computation, all-to-all,
 * ZeRO and overhead; HBP_E_INVALID names the pack for which it predicts another time. With a timeline every
 * rank is there twice, as predicted and as measured; steps that the timeline lacks are shown as predicted
 * alone, both begin at 0 with the first step shown, and HBP_E_INVALID names the row by which timeline and
 * plan do not match (another SP degree, first rank, number of samples or of ranks, a pack twice). `options`
 * may be NULL. Atomic. Thread: one per context. */
HBP_API hbp_status hbp_plan_trace(hbp_context *context, const hbp_plan *plan, const char *path,
                                  const hbp_trace_options *options);

/* Writes the plan as JSON, atomically. Thread: one per context. */
HBP_API hbp_status hbp_plan_write_json(hbp_context *context, const hbp_plan *plan, const char *path);

/* ---- Timelines ---- */

/* A timeline file is CSV: comment lines "# device: ...", "# date: ...", "# ranks: N", a header of column
 * names in any order, a line a pack; samples, start_ns, communication_ns and peak_bytes may be absent, times
 * and sizes may have other units (docs: timeline file). Saved atomically; HBP_E_FORMAT names line and column.
 */
HBP_API hbp_status hbp_timeline_load(hbp_context *context, const char *path, hbp_timeline **out);
HBP_API hbp_status hbp_timeline_save(hbp_context *context, const hbp_timeline *timeline, const char *path);

/* ---- Layers ---- */

/* Reads layers from CSV or JSON lines with columns named as in hbp_layer_columns (`forward_us`, `forward_ms`
 * and the like are converted; `type` is a number or language, vision, fixed); others are passed over, unless
 * they end in a unit and so look misspelt. HBP_E_FORMAT with the line. Thread: one per context. */
HBP_API hbp_status hbp_layers_load(hbp_context *context, const char *path, hbp_layers **out);

/* ---- Pipeline runs ---- */

/* Writes the run to a file, whole or not at all; reads one (docs: files of one object), of which nothing
 * is believed: HBP_E_FORMAT names the byte and what is wrong there, HBP_E_VERSION a newer format. A loaded
 * run is like any other. O(operations). Thread: one per context. */
HBP_API hbp_status hbp_pipeline_run_save(hbp_context *context, const hbp_pipeline_run *run, const char *path);
HBP_API hbp_status hbp_pipeline_run_load(hbp_context *context, const char *path, hbp_pipeline_run **out);

/* Writes the run as a Chrome trace (chrome://tracing, Perfetto): a row for each stage, an event for each
 * operation. Whole or not at all. O(operations). Thread: one per context. */
HBP_API hbp_status hbp_pipeline_run_trace(hbp_context *context, const hbp_pipeline_run *run,
                                          const char *path);

/* Writes all of it as JSON, under the keys of its file. Whole or not at all. O(operations). */
HBP_API hbp_status hbp_pipeline_run_write_json(hbp_context *context, const hbp_pipeline_run *run,
                                               const char *path);

/* ---- Vision-language plans ---- */

/* Writes the plan file of the data (hbp_plan_save) with the rest in its header: stages, recomputation,
 * layers, and what the steps' times follow from (docs: file format). hbp_plan_load and hbp_plan_file_open
 * read the data as they do any plan's. `options` may be NULL. Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_save(hbp_context *context, const hbp_vlm_plan *plan, const char *path,
                                     const hbp_plan_save_options *options);

/* Reads such a file whole, trusting nothing: HBP_E_FORMAT with the byte offset for a damaged file or one of a
 * plan alone, HBP_E_VERSION for a file of a later format. */
HBP_API hbp_status hbp_vlm_plan_load(hbp_context *context, const char *path, hbp_vlm_plan **out);

/* Writes a Chrome trace (opens in Perfetto; docs: traces) of the plan's steps: a process for each replica, a
 * row for each stage, an event for each forward and backward, a row of the steps. `options` may be NULL, and
 * its timeline and cost must be. Atomic.
 * Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_trace(hbp_context *context, const hbp_vlm_plan *plan, const char *path,
                                      const hbp_trace_options *options);

/* Writes the plan as JSON: its data as hbp_plan_write_json does, and "vlm" with all else under the keys of
 * its file. Whole or not at all. Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_write_json(hbp_context *context, const hbp_vlm_plan *plan, const char *path);

/* ---- Graphs ---- */

/* Files of graphs. */
enum { HBP_GRAPH_JSON = 0, HBP_GRAPH_MSGPACK = 1 };

/* Reads a graph from JSON or msgpack, distinguished by content (docs/explanation/tasks-file.md has the
 * format). HBP_E_FORMAT with the place, also for what the calls above refuse; HBP_E_VERSION. Saved
 * atomically, and read back the same; HBP_E_OVERFLOW for more than a file may hold. */
HBP_API hbp_status hbp_graph_load(hbp_context *context, const char *path, hbp_graph **out);
HBP_API hbp_status hbp_graph_save(hbp_context *context, const hbp_graph *graph, const char *path,
                                  int32_t format);

/* ---- Plans by patterns ---- */

/* Writes a plan by patterns, whole or not at all: a header of its numbers and its columns, deflated (docs:
 * files of one object). Reads one; nothing in the file is believed: HBP_E_FORMAT with the byte offset.
 * O(runs); what lockstep sets take is held against the steps by hbp_pattern_plan_validate alone. Thread: one
 * per context. */
HBP_API hbp_status hbp_pattern_plan_save(hbp_context *context, const hbp_pattern_plan *plan,
                                         const char *path);
HBP_API hbp_status hbp_pattern_plan_load(hbp_context *context, const char *path, hbp_pattern_plan **out);

/* ---- Task schedules ---- */

/* A file of msgpack: a header map, then the columns, with CRC and digest (docs: files of one object).
 * Saved atomically; what is read is not trusted: HBP_E_FORMAT with the offset, HBP_E_VERSION. */
HBP_API hbp_status hbp_task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule,
                                          const char *path);
HBP_API hbp_status hbp_task_schedule_load(hbp_context *context, const char *path, hbp_task_schedule **out);

/* Writes a Chrome trace (Perfetto opens it): a process per NVLink domain, a thread per rank, an event per
 * slice and rank, with the times of a run of this schedule (HBP_E_INVALID for another one's), or the
 * schedule's own where `run` is NULL. Saved atomically. */
HBP_API hbp_status hbp_task_schedule_trace(hbp_context *context, const hbp_task_schedule *schedule,
                                           const hbp_task_run *run, const char *path);

/* Writes all of it as JSON, under the keys of its file. Whole or not at all. O(rows). */
HBP_API hbp_status hbp_task_schedule_write_json(hbp_context *context, const hbp_task_schedule *schedule,
                                                const char *path);

/* ---- Task runs ---- */

/* Writes the run to a file, whole or not at all; reads one (docs: files of one object), of which nothing is
 * believed: HBP_E_FORMAT names the byte and what is wrong there, HBP_E_VERSION a newer format. Its
 * trace is hbp_task_schedule_trace. O(slices). Thread: one per context. */
HBP_API hbp_status hbp_task_run_save(hbp_context *context, const hbp_task_run *run, const char *path);
HBP_API hbp_status hbp_task_run_load(hbp_context *context, const char *path, hbp_task_run **out);

/* Writes all of it as JSON, under the keys of its file. Whole or not at all. O(slices). */
HBP_API hbp_status hbp_task_run_write_json(hbp_context *context, const hbp_task_run *run, const char *path);

HBP_END_DECLS

#endif
