/* See users.h. Lines that are not well formed are skipped, as the C library does. */
#include "envd/users.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fsutil.h"
#include "base/str.h"

#define CONVENTION_ID 1000
#define CONVENTION_HOME "/home/user"
#define NAME_KEPT MILLIS(100)

/* One text file, whole, and what identifies its content. */
struct table {
	const char *path;
	char *text;
	size_t n;
	struct file_stamp stamp;
	/* The last name that was asked for: listings ask for the same one many times. */
	char last_name[USERS_NAME_MAX];
	uint32_t last_id;
	int64_t last_at; /* 0: none */
};

struct users {
	struct table passwd, group;
};

/* A line of either file, borrowed from the text. */
struct line {
	struct strv name, gecos, home, shell, members;
	uint32_t id, gid;
};

struct users *
users_new(const char *passwd, const char *group)
{
	struct users *u = xcalloc(1, sizeof(*u));

	u->passwd.path = passwd;
	u->group.path = group;
	return u;
}

void
users_free(struct users *u)
{
	if (u == NULL)
		return;
	xfree(u->passwd.text);
	xfree(u->group.text);
	xfree(u);
}

/* A missing or unreadable file is an empty one. */
static struct strv
table_text(struct table *t)
{
	if (file_changed(t->path, &t->stamp) || t->text == NULL) {
		xfree(t->text);
		t->text = NULL;
		t->n = 0;
		if (file_read(t->path, USERS_FILE_MAX, &t->text, &t->n, NULL) == -1)
			t->text = xstrdup("");
	}
	return (struct strv){ t->text, t->n };
}

static bool
parse_id(struct strv s, uint32_t *ret)
{
	uint64_t v;

	if (strv_u64(s, UINT32_MAX - 1, &v) == -1)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* name:password:uid:gid:gecos:home:shell */
static bool
passwd_line(struct strv s, struct line *l)
{
	struct strv uid, gid;

	l->name = strv_cut(s, ':', &s);
	strv_cut(s, ':', &s);
	uid = strv_cut(s, ':', &s);
	gid = strv_cut(s, ':', &s);
	l->gecos = strv_cut(s, ':', &s);
	l->home = strv_cut(s, ':', &s);
	l->shell = s;
	return l->name.n > 0 && l->name.p[0] != '#' && parse_id(uid, &l->id) &&
	    parse_id(gid, &l->gid);
}

/* name:password:gid:member,member */
static bool
group_line(struct strv s, struct line *l)
{
	struct strv gid;

	l->name = strv_cut(s, ':', &s);
	strv_cut(s, ':', &s);
	gid = strv_cut(s, ':', &s);
	l->members = s;
	return l->name.n > 0 && l->name.p[0] != '#' && parse_id(gid, &l->id);
}

typedef bool (*line_parser)(struct strv s, struct line *l);

/* Takes the next good line out of *rest. */
static bool
next_line(struct strv *rest, line_parser parse, struct line *l)
{
	while (rest->n > 0) {
		struct strv s = strv_cut(*rest, '\n', rest);

		*l = (struct line){ 0 };
		if (parse(strv_trim(s), l))
			return true;
	}
	return false;
}

static bool
find_user(struct users *u, const char *name, struct line *l)
{
	struct strv rest = table_text(&u->passwd);

	while (next_line(&rest, passwd_line, l)) {
		if (strv_is(l->name, name))
			return true;
	}
	return false;
}

static void
add_group(struct user *r, gid_t gid)
{
	for (size_t i = 0; i < r->n_groups; i++) {
		if (r->groups[i] == gid)
			return;
	}
	if (r->n_groups < USERS_GROUPS_MAX)
		r->groups[r->n_groups++] = gid;
}

static void
find_groups(struct users *u, struct user *r)
{
	struct strv rest = table_text(&u->group);
	struct line l;

	r->groups = xcalloc(USERS_GROUPS_MAX, sizeof(*r->groups));
	add_group(r, r->gid);
	while (next_line(&rest, group_line, &l)) {
		while (l.members.n > 0) {
			if (strv_is(strv_cut(l.members, ',', &l.members), r->name))
				add_group(r, l.id);
		}
	}
	r->groups = xrealloc(r->groups, r->n_groups * sizeof(*r->groups));
}

/* The two users that every sandbox has, whatever its image says. */
static bool
by_convention(const char *name, struct line *l)
{
	*l = (struct line){ .shell = STRV("/bin/sh") };
	if (strcmp(name, "root") == 0) {
		l->home = STRV("/root");
		return true;
	}
	if (strcmp(name, "user") != 0)
		return false;
	l->id = l->gid = CONVENTION_ID;
	l->home = STRV(CONVENTION_HOME);
	if (access(CONVENTION_HOME, F_OK) == -1) {
		(void)!mkdir("/home", 0755);
		if (mkdir(CONVENTION_HOME, 0755) == 0)
			(void)!chown(CONVENTION_HOME, l->id, l->gid);
	}
	return true;
}

int
users_find(struct users *u, const char *name, struct user **ret, struct err *e)
{
	struct line l;
	struct user *r;

	if (!find_user(u, name, &l) && !by_convention(name, &l))
		return err_set(e, ERR_NOT_FOUND, "user: unknown user %.64s", name);
	r = xcalloc(1, sizeof(*r));
	r->name = xstrdup(name);
	r->uid = l.id;
	r->gid = l.gid;
	r->home = l.home.n > 0 ? strv_dup(l.home) : xstrdup("/");
	r->shell = strv_dup(l.shell);
	find_groups(u, r);
	*ret = r;
	return 0;
}

void
user_free(struct user *u)
{
	if (u == NULL)
		return;
	xfree(u->name);
	xfree(u->home);
	xfree(u->shell);
	xfree(u->groups);
	xfree(u);
}

struct user *
user_dup(const struct user *u)
{
	struct user *r = xcalloc(1, sizeof(*r));

	*r = *u;
	r->name = xstrdup(u->name);
	r->home = xstrdup(u->home);
	r->shell = xstrdup(u->shell);
	r->groups = xcalloc(u->n_groups, sizeof(*u->groups));
	memcpy(r->groups, u->groups, u->n_groups * sizeof(*u->groups));
	return r;
}

static void
name_of(struct table *t, line_parser parse, uint32_t id, char *out)
{
	struct strv text = STRV_NONE;
	struct line l;

	if (t->last_at != 0 && t->last_id == id && clock_mono() - t->last_at < NAME_KEPT) {
		memcpy(out, t->last_name, USERS_NAME_MAX);
		return;
	}
	if (id == 0 || id == CONVENTION_ID)
		snprintf(out, USERS_NAME_MAX, "%s", id == 0 ? "root" : "user");
	else
		snprintf(out, USERS_NAME_MAX, "%u", id);
	text = table_text(t);
	while (next_line(&text, parse, &l)) {
		if (l.id == id) {
			snprintf(out, USERS_NAME_MAX, STRV_FMT, STRV_ARG(l.name));
			break;
		}
	}
	memcpy(t->last_name, out, USERS_NAME_MAX);
	t->last_id = id;
	t->last_at = clock_mono();
}

void
users_user_name(struct users *u, uid_t uid, char *out)
{
	name_of(&u->passwd, passwd_line, uid, out);
}

void
users_group_name(struct users *u, gid_t gid, char *out)
{
	name_of(&u->group, group_line, gid, out);
}
