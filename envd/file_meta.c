/* See file_meta.h. */
#include "envd/file_meta.h"

#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

#define HEADER "X-Metadata-"
#define PREFIX "user.e2b."
#define NAMES_MAX 65536 /* the kernel's limit for a list of names */

static bool
printable(struct strv s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < 0x20 || s.p[i] > 0x7e)
			return false;
	}
	return true;
}

static int
take_field(json_t *m, struct strv key, struct strv value, size_t *total, struct err *e)
{
	char name[FILE_META_KEY_MAX + 1];

	if (key.n == 0 || key.n > FILE_META_KEY_MAX)
		return err_set(e, ERR_INVALID,
		    "invalid metadata: a key has more than %d bytes or none", FILE_META_KEY_MAX);
	if (!printable(key) || !printable(value))
		return err_set(e, ERR_INVALID, "invalid metadata: only printable ASCII is allowed");
	for (size_t i = 0; i < key.n; i++)
		name[i] = (char)(key.p[i] >= 'A' && key.p[i] <= 'Z' ? key.p[i] + 32 : key.p[i]);
	name[key.n] = '\0';
	if (json_object_get(m, name)) /* the first one counts */
		return 0;
	*total += strlen(PREFIX) + key.n + value.n;
	if (*total > FILE_META_TOTAL_MAX)
		return err_set(e, ERR_INVALID, "invalid metadata: more than %d bytes in total",
		    FILE_META_TOTAL_MAX);
	json_set(m, name, json_stringn(value.p ? value.p : "", value.n));
	return 0;
}

int
file_meta_parse(const struct http_head *h, json_t **ret, struct err *e)
{
	json_t *m = NULL;
	size_t total = 0;

	for (unsigned i = 0; i < h->n; i++) {
		struct strv name = h->field[i].name;
		struct strv key = { name.p + strlen(HEADER), name.n - strlen(HEADER) };

		if (name.n < strlen(HEADER) ||
		    !strv_caseeq((struct strv){ name.p, strlen(HEADER) }, STRV(HEADER)))
			continue;
		if (m == NULL)
			m = json_object();
		if (take_field(m, key, h->field[i].value, &total, e) == -1) {
			json_decref(m);
			return -1;
		}
	}
	*ret = m;
	return 0;
}

json_t *
file_meta_read(const char *path)
{
	ssize_t n = listxattr(path, NULL, 0);
	char *names CLEANUP(xfreep) = NULL;
	json_t *m = NULL;

	if (n <= 0 || n > NAMES_MAX)
		return NULL;
	names = xmalloc((size_t)n + 1);
	n = listxattr(path, names, (size_t)n);
	for (char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
		char value[FILE_META_TOTAL_MAX + 1];
		ssize_t len;

		if (strncmp(p, PREFIX, strlen(PREFIX)) != 0)
			continue;
		len = getxattr(path, p, value, sizeof(value) - 1);
		if (len < 0)
			continue;
		value[len] = '\0';
		if (m == NULL)
			m = json_object();
		json_set_str(m, p + strlen(PREFIX), value);
	}
	return m;
}

static void
remove_others(int fd, const json_t *meta)
{
	ssize_t n = flistxattr(fd, NULL, 0);
	char *names CLEANUP(xfreep) = NULL;

	if (n <= 0 || n > NAMES_MAX)
		return;
	names = xmalloc((size_t)n + 1);
	n = flistxattr(fd, names, (size_t)n);
	for (char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
		if (strncmp(p, PREFIX, strlen(PREFIX)) == 0 &&
		    json_object_get(meta, p + strlen(PREFIX)) == NULL)
			(void)!fremovexattr(fd, p);
	}
}

void
file_meta_write(int fd, const json_t *meta)
{
	const char *key;
	json_t *v;

	remove_others(fd, meta);
	json_object_foreach ((json_t *)(uintptr_t)meta, key, v) {
		char name[sizeof(PREFIX) + FILE_META_KEY_MAX];

		snprintf(name, sizeof(name), "%s%s", PREFIX, key);
		(void)!fsetxattr(fd, name, json_string_value(v), json_string_length(v), 0);
	}
}
