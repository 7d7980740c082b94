/* Doubly linked lists: <sys/queue.h> TAILQ plus the safe loop that glibc leaves out. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <sys/queue.h>

#define TAILQ_FOREACH_SAFE(var, head, field, tvar)                                                 \
	for ((var) = TAILQ_FIRST(head); (var) && ((tvar) = TAILQ_NEXT(var, field), 1);             \
	     (var) = (tvar))

#endif
