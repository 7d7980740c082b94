/* See path.h. */
#include "envd/path.h"

#include <limits.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/str.h"

/* Drops the last component of an absolute text. */
static void
cut_last(struct strbuf *b)
{
	while (b->n > 0 && b->p[b->n - 1] != '/')
		b->n--;
	if (b->n > 0)
		b->n--;
	if (b->p)
		b->p[b->n] = '\0';
}

static int
clean(const char *dir, const char *path, bool dots, char **ret, struct err *e)
{
	struct strbuf b;

	strbuf_init(&b, PATH_MAX - 1);
	for (int i = 0; i < 2; i++) {
		struct strv rest = strv_of(i == 0 ? dir : path);

		while (rest.n > 0) {
			struct strv part = strv_cut(rest, '/', &rest);

			if (part.n == 0 || strv_is(part, "."))
				continue;
			if (dots && strv_is(part, "..")) {
				cut_last(&b);
				continue;
			}
			strbuf_addc(&b, '/');
			strbuf_addv(&b, part);
		}
	}
	if (b.n == 0)
		strbuf_addc(&b, '/');
	if (b.failed) {
		strbuf_done(&b);
		return err_set(e, ERR_INVALID, "path is too long");
	}
	return strbuf_take(&b, ret, e);
}

int
path_resolve(const char *path, const struct user *u, const char *workdir, char **ret, struct err *e)
{
	if (path[0] == '\0' && workdir[0] != '\0')
		path = workdir;
	if (path[0] == '/')
		return clean("", path, false, ret, e);
	if (path[0] == '~') {
		if (path[1] != '\0' && path[1] != '/')
			return err_set(e, ERR_INVALID,
			    "cannot expand user-specific home dir in path '" PATH_SHOWN "'", path);
		path++;
	}
	return clean(u->home, path, true, ret, e);
}

const char *
path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] != '\0' ? slash + 1 : path;
}

char *
path_dir(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path)
		return xstrdup("/");
	return xmemdup0(path, (size_t)(slash - path));
}

char *
path_join(const char *dir, const char *name)
{
	size_t n = strlen(dir), m = strlen(name);
	bool slash = n > 0 && dir[n - 1] == '/';
	char *p = xmalloc(n + m + 2);

	snprintf(p, n + m + 2, "%s%s%s", dir, slash ? "" : "/", name);
	return p;
}
