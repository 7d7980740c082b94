/* See process.h: who runs, and who ended lately. */
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "envd/process_priv.h"

#define OOM_STEP 100 /* commands are killed before us */
#define OOM_MAX 1000

struct proc_table *
proc_table_new(struct app *a)
{
	struct proc_table *t = xcalloc(1, sizeof(*t));
	int adj = spawn_oom_get() + OOM_STEP;

	t->app = a;
	t->oom_adj = adj < 0 ? 0 : adj > OOM_MAX ? OOM_MAX : adj;
	TAILQ_INIT(&t->live);
	TAILQ_INIT(&t->ended);
	return t;
}

static void
free_list(struct process_list *list)
{
	struct process *p;

	while ((p = TAILQ_FIRST(list)) != NULL)
		proc_close(p);
}

void
proc_table_free(struct proc_table *t)
{
	if (t == NULL)
		return;
	free_list(&t->live);
	free_list(&t->ended);
	xfree(t);
}

void
proc_table_add(struct proc_table *t, struct process *p)
{
	TAILQ_INSERT_HEAD(&t->live, p, link);
	t->n_live++;
}

void
proc_table_remove(struct proc_table *t, struct process *p)
{
	if (p->in_ended) {
		TAILQ_REMOVE(&t->ended, p, link);
		t->n_ended--;
	} else {
		TAILQ_REMOVE(&t->live, p, link);
		t->n_live--;
	}
}

void
proc_table_move(struct proc_table *t, struct process *p)
{
	proc_table_remove(t, p);
	p->in_ended = true;
	TAILQ_INSERT_HEAD(&t->ended, p, link);
	if (++t->n_ended > PROC_ENDED_MAX)
		proc_close(TAILQ_LAST(&t->ended, process_list));
}

static struct process *
find(struct process_list *list, uint32_t pid, const char *tag)
{
	struct process *p;

	TAILQ_FOREACH (p, list, link) {
		if (p->state == PROC_STARTING || p->internal)
			continue;
		if (tag ? p->tag && strcmp(p->tag, tag) == 0 : (uint32_t)p->pid == pid)
			return p;
	}
	return NULL;
}

struct process *
proc_table_find(struct proc_table *t, uint32_t pid, const char *tag)
{
	struct process *p = find(&t->live, pid, tag);

	return p ? p : find(&t->ended, pid, tag);
}

void
proc_table_each(struct proc_table *t, void (*fn)(const struct process *p, void *arg), void *arg)
{
	struct process *p;

	TAILQ_FOREACH_REVERSE(p, &t->live, process_list, link)
	{
		if ((p->state == PROC_RUNNING || p->state == PROC_DRAINING) && !p->internal)
			fn(p, arg);
	}
}

int
proc_table_oom_adj(const struct proc_table *t)
{
	return t->oom_adj;
}
