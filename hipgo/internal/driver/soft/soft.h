// What Go calls: softhip's control functions with the reason of a failure, which softhip keeps for each thread, in hand.
#ifndef SOFT_H
#define SOFT_H

#include <stddef.h>
#include <stdint.h>

int soft_open(const char *settings, char *why, size_t n);
void soft_close(void);
void *soft_find(void *context, const char *name);
int soft_do(const char *what, int queue, unsigned n, char *why, size_t room);
int soft_fault(const char *spec, char *why, size_t n);
int soft_kernel(const char *name, const char *so, const char *symbol, const unsigned *sizes, unsigned count, char *why, size_t n);
int soft_queue(uintptr_t stream);

#endif
