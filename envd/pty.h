/* Pseudo terminals: opening a pair and its window size. No processes. */
#ifndef ENVD_PTY_H
#define ENVD_PTY_H

#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "envd/users.h"

/* Both are close-on-exec; the master is non-blocking. The slave belongs to the user. */
int pty_open(const struct user *u, uint32_t cols, uint32_t rows, int *master, int *slave,
    struct err *e) MUST_USE;
/* The foreground process gets SIGWINCH when the size changes. */
int pty_resize(int master, uint32_t cols, uint32_t rows, struct err *e) MUST_USE;

#endif
