#include "t.h"

#include "envd/path.h"
#include "envd/users.h"

static char passwd[64], group[64];

static void
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int
setup(void **state)
{
	snprintf(passwd, sizeof(passwd), "/tmp/users_test.%d.p", getpid());
	snprintf(group, sizeof(group), "/tmp/users_test.%d.g", getpid());
	put(passwd,
	    "# comment\nroot:x:0:0:root:/root:/bin/bash\nbad line\nbad:x:y:z::/:\n"
	    "user:x:1001:1002:A User,,,:/home/u:/bin/zsh\nlast:x:7:8::/l:/bin/sh");
	put(group,
	    "root:x:0:\nusers:x:1002:\ndocker:x:20:foo,user\nsudo:x:27:user\ndup:x:20:user\n"
	    "nouser:x:30:user2,us\n");
	*state = users_new(passwd, group);
	return 0;
}

static int
teardown(void **state)
{
	users_free(*state);
	unlink(passwd);
	unlink(group);
	return 0;
}

static void
finds_a_user(void **state)
{
	struct user *u;
	struct err e;

	assert_ok(e, users_find(*state, "user", &u, &e));
	assert_int_equal(u->uid, 1001);
	assert_int_equal(u->gid, 1002);
	assert_string_equal(u->home, "/home/u");
	assert_string_equal(u->shell, "/bin/zsh");
	assert_int_equal(u->n_groups, 3);
	assert_int_equal(u->groups[0], 1002);
	assert_int_equal(u->groups[1], 20);
	assert_int_equal(u->groups[2], 27);
	user_free(u);
	assert_ok(e, users_find(*state, "last", &u, &e));
	assert_int_equal(u->uid, 7);
	user_free(u);
}

static void
does_not_find(void **state)
{
	struct user *u = NULL;
	struct err e;

	assert_fails(e, ERR_NOT_FOUND, users_find(*state, "bad", &u, &e));
	assert_fails(e, ERR_NOT_FOUND, users_find(*state, "1001", &u, &e));
	assert_fails(e, ERR_NOT_FOUND, users_find(*state, "", &u, &e));
	assert_string_equal(e.msg, "user: unknown user ");
	assert_null(u);
}

static void
names_of_ids(void **state)
{
	char name[USERS_NAME_MAX];

	users_user_name(*state, 1001, name);
	assert_string_equal(name, "user");
	users_user_name(*state, 4711, name);
	assert_string_equal(name, "4711");
	users_user_name(*state, 0, name);
	assert_string_equal(name, "root");
	users_group_name(*state, 27, name);
	assert_string_equal(name, "sudo");
	users_group_name(*state, 999, name);
	assert_string_equal(name, "999");
}

static void
changes_are_seen_at_once(void **state)
{
	struct user *u;
	struct err e;

	assert_fails(e, ERR_NOT_FOUND, users_find(*state, "new", &u, &e));
	put(passwd, "new:x:5:6::/n:/bin/sh\n");
	assert_ok(e, users_find(*state, "new", &u, &e));
	user_free(u);
}

static void
convention_when_there_are_no_files(void **state UNUSED)
{
	struct users *none = users_new("/nonexistent/p", "/nonexistent/g");
	char name[USERS_NAME_MAX];
	struct user *u;
	struct err e;

	assert_ok(e, users_find(none, "root", &u, &e));
	assert_int_equal(u->uid, 0);
	assert_string_equal(u->home, "/root");
	user_free(u);
	users_user_name(none, 1000, name);
	assert_string_equal(name, "user");
	users_free(none);
}

static void
resolve(const char *path, const char *workdir, const char *want)
{
	char home[] = "/home/u";
	struct user u = { .home = home };
	struct err e;
	char *got;

	assert_ok(e, path_resolve(path, &u, workdir, &got, &e));
	assert_string_equal(got, want);
	xfree(got);
}

TEST(paths)
{
	char home[] = "/home/u", longest[5000], *got = NULL;
	struct user u = { .home = home };
	struct err e;

	resolve("", "", "/home/u");
	resolve("", "/work", "/work");
	resolve("", "work", "/home/u/work");
	resolve("a/b", "/work", "/home/u/a/b");
	resolve("a//b/./c/", "", "/home/u/a/b/c");
	resolve("../x", "", "/home/x");
	resolve("../../../..", "", "/");
	resolve("~", "", "/home/u");
	resolve("~/x", "/work", "/home/u/x");
	resolve("/a/../b//c/", "", "/a/../b/c");
	resolve("/", "", "/");
	assert_fails(e, ERR_INVALID, path_resolve("~bob/x", &u, "", &got, &e));
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_fails(e, ERR_INVALID, path_resolve(longest, &u, "", &got, &e));
	assert_null(got);
}

TEST(parts_of_paths)
{
	char *p = path_dir("/a/b/c");

	assert_string_equal(p, "/a/b");
	xfree(p);
	p = path_dir("/a");
	assert_string_equal(p, "/");
	xfree(p);
	p = path_join("/", "a");
	assert_string_equal(p, "/a");
	xfree(p);
	p = path_join("/a", "b");
	assert_string_equal(p, "/a/b");
	xfree(p);
	assert_string_equal(path_base("/a/b"), "b");
	assert_string_equal(path_base("/"), "/");
}

#define S(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
T_MAIN(S(finds_a_user), S(does_not_find), S(names_of_ids), S(changes_are_seen_at_once),
    T(convention_when_there_are_no_files), T(paths), T(parts_of_paths))
