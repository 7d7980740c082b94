#include "t.h"

#include <sys/stat.h>
#include <time.h>

#include "kube/kube_config.h"

static char dir[] = "/tmp/kube_config_test.XXXXXX";

static void
put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int
make_dir(void **state UNUSED)
{
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
remove_dir(void **state UNUSED)
{
	char path[512];
	static const char *const names[] = { "ca.crt", "token", "namespace", "cert", "key",
		"config", "tok" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

#define HEAD                                                                                       \
	"apiVersion: v1\nkind: Config\ncurrent-context: two\n"                                     \
	"contexts:\n- name: one\n  context: {cluster: a, user: x}\n"                               \
	"- name: two\n  context: {cluster: b, user: y, namespace: team}\n"

TEST(inline_data)
{
	static const char text[] =
	    HEAD "clusters:\n- name: a\n  cluster: {server: \"https://a\"}\n- name: b\n  cluster:\n"
	         "    server: https://b:6443//\n    certificate-authority-data: Y2EgcGVt\n"
	         "users:\n- name: y\n  user:\n    client-certificate-data: Y2VydA==\n"
	         "    client-key-data: a2V5\n    token: abc\n";
	struct kube_config *c;
	struct err e;

	assert_ok(e, kube_config_parse(STRV(text), dir, &c, &e));
	assert_string_equal(c->server, "https://b:6443");
	assert_string_equal(c->ns, "team");
	assert_string_equal(c->ca_pem, "ca pem");
	assert_string_equal(c->cert_pem, "cert");
	assert_string_equal(c->key_pem, "key");
	assert_string_equal(kube_config_token(c, false), "abc");
	assert_string_equal(kube_config_token(c, true), "abc");
	assert_false(c->insecure);
	kube_config_free(c);
}

TEST(files_are_relative_to_the_config)
{
	struct kube_config *c;
	char path[256];
	struct err e;

	put("ca.crt", "CA\n");
	put("cert", "C\n");
	put("key", "K\n");
	put("tok", "t1\n");
	put("config",
	    HEAD "clusters:\n- name: b\n  cluster: {server: https://b, "
	         "certificate-authority: ca.crt, insecure-skip-tls-verify: true}\n"
	         "users:\n- name: y\n  user: {client-certificate: cert, client-key: key, "
	         "tokenFile: tok, token: unused}\n");
	snprintf(path, sizeof(path), "%s/config", dir);
	assert_ok(e, kube_config_load(path, &c, &e));
	assert_string_equal(c->ca_pem, "CA\n");
	assert_string_equal(c->cert_pem, "C\n");
	assert_string_equal(c->key_pem, "K\n");
	assert_true(c->insecure);
	assert_string_equal(kube_config_token(c, false), "t1");
	put("tok", "t-two\n");
	assert_string_equal(kube_config_token(c, false), "t-two");
	kube_config_free(c);
}

TEST(in_cluster_and_rotation)
{
	struct kube_config *c;
	char path[256];
	struct err e;

	put("ca.crt", "CA");
	put("token", "one");
	put("namespace", "prod\n");
	assert_ok(e, kube_config_in_cluster(dir, "10.96.0.1", "443", &c, &e));
	assert_string_equal(c->server, "https://10.96.0.1:443");
	assert_string_equal(c->ns, "prod");
	assert_string_equal(kube_config_token(c, false), "one");
	/* While the file is away the old token stays. */
	snprintf(path, sizeof(path), "%s/token", dir);
	unlink(path);
	assert_string_equal(kube_config_token(c, false), "one");
	put("token", "two!");
	assert_string_equal(kube_config_token(c, true), "two!");
	put("token", "two\nlines");
	assert_string_equal(kube_config_token(c, true), "two!");
	kube_config_free(c);
	assert_fails(e, ERR_INVALID, kube_config_in_cluster(dir, "h", "1", &c, &e));
	put("token", "x");
	assert_ok(e, kube_config_in_cluster(dir, "fd00::1", "443", &c, &e));
	assert_string_equal(c->server, "https://[fd00::1]:443");
	kube_config_free(c);
	kube_config_free(NULL);
}

TEST(refusals_say_why)
{
	static const struct {
		const char *text, *part;
		enum err_code code;
	} cases[] = {
		{ "{", "", ERR_INVALID },
		{ "{}", "current-context", ERR_INVALID },
		{ "current-context: zz", "zz", ERR_INVALID },
		{ HEAD, "no cluster", ERR_INVALID },
		{ HEAD "clusters: [{name: b, cluster: {server: b}}]\nusers: [{name: y, user: {}}]",
		    "server", ERR_INVALID },
		{ HEAD "clusters: [{name: b, cluster: {server: 'https://b'}}]", "user \"y\"",
		    ERR_INVALID },
		{ HEAD "clusters: [{name: b, cluster: {server: 'https://b', proxy-url: 'x'}}]\n"
		       "users: [{name: y, user: {}}]",
		    "proxy-url", ERR_UNSUPPORTED },
		{ HEAD "clusters: [{name: b, cluster: {server: 'https://b', "
		       "certificate-authority-data: '***'}}]\nusers: [{name: y, user: {}}]",
		    "base64", ERR_INVALID },
		{ HEAD "clusters: [{name: b, cluster: {server: 'https://b'}}]\n"
		       "users: [{name: y, user: {exec: {command: aws}}}]",
		    "\"exec\"", ERR_UNSUPPORTED },
		{ HEAD "clusters: [{name: b, cluster: {server: 'https://b'}}]\n"
		       "users: [{name: y, user: {auth-provider: {name: gcp}}}]",
		    "auth-provider", ERR_UNSUPPORTED },
		{ HEAD "clusters: [{name: b, cluster: {server: 'https://b'}}]\n"
		       "users: [{name: y, user: {client-key-data: a2V5}}]",
		    "together", ERR_INVALID },
		{ HEAD "clusters: [{name: b, cluster: {server: 'https://b'}}]\n"
		       "users: [{name: y, user: {token: \"a\\nb\"}}]",
		    "line", ERR_INVALID },
	};
	struct kube_config *c = NULL;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		memset(&e, 0, sizeof(e));
		assert_int_equal(kube_config_parse(strv_of(cases[i].text), dir, &c, &e), -1);
		assert_has(e.msg, cases[i].part);
		assert_int_equal(e.code, cases[i].code);
		assert_null(c);
	}
	assert_fails(e, ERR_NOT_FOUND, kube_config_load("/nowhere/config", &c, &e));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(inline_data),
		T(files_are_relative_to_the_config),
		T(in_cluster_and_rotation),
		T(refusals_say_why),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
