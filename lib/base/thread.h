/* Starting a thread of the library's own. */
#ifndef HBP_BASE_THREAD_H
#define HBP_BASE_THREAD_H

#include <pthread.h>

/* Starts run(argument) on a thread that blocks every signal: the host's signals are for the host's threads.
 * Zero when there is no thread to be had. */
int hbp__thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
