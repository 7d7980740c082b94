/*
 * Gives back memory that only the start needed: pages of libraries and tables that were touched
 * while linking and initialising, and free heap. They come back by themselves when they are used
 * again, so this is for once, after the start, not for the hot path.
 */
#ifndef BASE_TRIM_H
#define BASE_TRIM_H

#include <stddef.h>

/* Returns the bytes of mappings that were let go of; 0 where /proc is not readable. */
size_t trim_memory(void);

#endif
