/* The first thing that went wrong on a rank. Devices and communicators are sticky: once failed, every further
 * call on them returns at once without an effect, and whoever walks the plan looks here between packs. */
#ifndef EX_BASE_FAULT_H
#define EX_BASE_FAULT_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ex_fault {
    int failed;
    char text[512]; /* one line that names the thing, the value and the limit */
} ex_fault;

/* Keeps the first message, formatted as printf does; later ones are dropped. Always returns -1. */
int ex_fail(ex_fault *fault, const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
