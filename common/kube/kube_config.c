/*
 * Reads the in-cluster configuration or a kubeconfig file. Knows files and formats; never opens a
 * connection and never runs a program.
 */
#include "kube/kube_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "base/yaml.h"

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define KUBECONFIG_MAX ((size_t)4 * 1024 * 1024)
#define PEM_MAX ((size_t)1024 * 1024)
#define TOKEN_MAX ((size_t)64 * 1024)
#define PATH_LEN_MAX 4096

void
kube_config_free(struct kube_config *c)
{
	if (c == NULL)
		return;
	xfree(c->server);
	xfree(c->ns);
	xfree(c->ca_pem);
	xfree(c->cert_pem);
	if (c->key_pem != NULL)
		explicit_bzero(c->key_pem, strlen(c->key_pem));
	xfree(c->key_pem);
	if (c->token != NULL)
		explicit_bzero(c->token, strlen(c->token));
	xfree(c->token);
	xfree(c->token_file);
	xfree(c);
}

static void
config_freep(struct kube_config **c)
{
	kube_config_free(*c);
}

/* dir/name, or name alone when it is absolute. */
static char *
path_in(const char *dir, const char *name)
{
	struct strbuf b;
	char *ret = NULL;

	if (name[0] == '/')
		return xstrdup(name);
	strbuf_init(&b, PATH_LEN_MAX);
	strbuf_addf(&b, "%s/%s", dir, name);
	if (strbuf_take(&b, &ret, NULL) == -1)
		return xstrdup(name);
	return ret;
}

/* Text of a file without blanks at its ends. */
static int
read_trimmed(const char *path, size_t max, char **ret, struct err *e)
{
	CLEANUP(xfreep) char *text = NULL;
	struct strv s;
	size_t n;

	if (file_read(path, max, &text, &n, e) == -1)
		return -1;
	s = (struct strv){ text, n };
	while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1]) != NULL)
		s.n--;
	if (s.n == 0 || memchr(s.p, '\0', s.n) != NULL || memchr(s.p, '\n', s.n) != NULL)
		return err_set(e, ERR_INVALID, "%s does not hold one line of text", path);
	*ret = strv_dup(s);
	return 0;
}

const char *
kube_config_token(struct kube_config *c, bool force)
{
	char *token = NULL;
	struct err ignored;

	if (c->token_file == NULL)
		return c->token;
	/* A file that cannot be read right now (kubelet swaps a symbolic link) leaves the old
	 * token in use; the server says 401 if that is too old. */
	if ((file_changed(c->token_file, &c->token_stamp) || force || c->token == NULL) &&
	    read_trimmed(c->token_file, TOKEN_MAX, &token, &ignored) == 0) {
		xfree(c->token);
		c->token = token;
	}
	return c->token;
}

int
kube_config_in_cluster(
    const char *dir, const char *host, const char *port, struct kube_config **ret, struct err *e)
{
	CLEANUP(config_freep) struct kube_config *c = xcalloc(1, sizeof(*c));
	CLEANUP(xfreep) char *ca = path_in(dir, "ca.crt");
	CLEANUP(xfreep) char *ns = path_in(dir, "namespace");
	struct strbuf b;
	struct err ignored;

	strbuf_init(&b, PATH_LEN_MAX);
	strbuf_addf(
	    &b, strchr(host, ':') != NULL ? "https://[%s]:%s" : "https://%s:%s", host, port);
	if (strbuf_take(&b, &c->server, e) == -1)
		return -1;
	if (file_read(ca, PEM_MAX, &c->ca_pem, NULL, e) == -1)
		return err_wrap(e, "service account");
	if (read_trimmed(ns, 256, &c->ns, &ignored) == -1)
		c->ns = NULL;
	c->token_file = path_in(dir, "token");
	if (kube_config_token(c, true) == NULL)
		return err_set(
		    e, ERR_INVALID, "the service account token %s cannot be read", c->token_file);
	*ret = c;
	c = NULL;
	return 0;
}

/* --- kubeconfig --- */

/* {name: …, <member>: {…}} with that name in an array; returns the inner object. */
static const json_t *
named(const json_t *tree, const char *list, const char *name, const char *member)
{
	const json_t *all = json_object_get(tree, list);

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *entry = json_array_get(all, i);
		const char *n = json_member_str(entry, "name");

		if (n != NULL && strcmp(n, name) == 0)
			return json_object_get(entry, member);
	}
	return NULL;
}

static int
decode_base64(const char *key, const char *text, char **ret, struct err *e)
{
	struct strv in = strv_of(text);
	unsigned char *out = xmalloc(in.n * 3 / 4 + 4);
	ptrdiff_t n = base64_decode(in, out);

	if (n < 0) {
		xfree(out);
		return err_set(e, ERR_INVALID, "%s is not base64", key);
	}
	out[n] = '\0';
	*ret = (char *)out;
	return 0;
}

/* <key>-data inline, or the file named by <key>; neither leaves *ret NULL. Inline wins. */
static int
data_or_file(const json_t *from, const char *dir, const char *key, char **ret, struct err *e)
{
	CLEANUP(xfreep) char *path = NULL;
	char data_key[64];
	const char *text;

	snprintf(data_key, sizeof(data_key), "%s-data", key);
	text = json_member_str(from, data_key);
	if (text != NULL && *text != '\0')
		return decode_base64(data_key, text, ret, e);
	text = json_member_str(from, key);
	if (text == NULL || *text == '\0')
		return 0;
	path = path_in(dir, text);
	return file_read(path, PEM_MAX, ret, NULL, e);
}

static int
read_cluster(const json_t *cluster, const char *dir, struct kube_config *c, struct err *e)
{
	const char *server = json_member_str(cluster, "server");
	size_t n;

	if (server == NULL ||
	    (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0))
		return err_set(e, ERR_INVALID, "the cluster has no server URL");
	if (json_object_get(cluster, "tls-server-name") != NULL)
		return err_set(e, ERR_UNSUPPORTED, "tls-server-name is not supported");
	if (json_object_get(cluster, "proxy-url") != NULL)
		return err_set(e, ERR_UNSUPPORTED, "proxy-url is not supported");
	c->server = xstrdup(server);
	for (n = strlen(c->server); n > 0 && c->server[n - 1] == '/'; n--)
		c->server[n - 1] = '\0';
	c->insecure = json_get_bool(cluster, "insecure-skip-tls-verify", false);
	return data_or_file(cluster, dir, "certificate-authority", &c->ca_pem, e);
}

static int
read_user(const json_t *user, const char *dir, struct kube_config *c, struct err *e)
{
	static const char *const plugins[] = { "exec", "auth-provider", "username" };
	const char *token = json_member_str(user, "token");
	const char *file = json_member_str(user, "tokenFile");

	for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
		if (json_object_get(user, plugins[i]) != NULL)
			return err_set(e, ERR_UNSUPPORTED,
			    "the user authenticates by \"%s\", which is not supported: give a "
			    "token or a client certificate",
			    plugins[i]);
	}
	if (data_or_file(user, dir, "client-certificate", &c->cert_pem, e) == -1 ||
	    data_or_file(user, dir, "client-key", &c->key_pem, e) == -1)
		return -1;
	if ((c->cert_pem == NULL) != (c->key_pem == NULL))
		return err_set(e, ERR_INVALID, "client certificate and key must come together");
	if (file != NULL && *file != '\0') { /* as client-go: the file wins */
		c->token_file = path_in(dir, file);
		if (kube_config_token(c, true) == NULL)
			return err_set(
			    e, ERR_INVALID, "the token file %s cannot be read", c->token_file);
	} else if (token != NULL && *token != '\0') {
		if (strpbrk(token, "\r\n") != NULL)
			return err_set(e, ERR_INVALID, "the token has more than one line");
		c->token = xstrdup(token);
	}
	return 0;
}

static int
read_context(const json_t *tree, const char *dir, struct kube_config *c, struct err *e)
{
	const char *name = json_member_str(tree, "current-context");
	const char *cluster_name, *user_name, *ns;
	const json_t *context, *cluster, *user;

	if (name == NULL || *name == '\0')
		return err_set(e, ERR_INVALID, "there is no current-context");
	context = named(tree, "contexts", name, "context");
	if (context == NULL)
		return err_set(e, ERR_INVALID, "there is no context \"%s\"", name);
	cluster_name = json_member_str(context, "cluster");
	cluster = cluster_name != NULL ? named(tree, "clusters", cluster_name, "cluster") : NULL;
	if (cluster == NULL)
		return err_set(e, ERR_INVALID, "context \"%s\" has no cluster", name);
	user_name = json_member_str(context, "user");
	user = user_name != NULL ? named(tree, "users", user_name, "user") : NULL;
	if (user == NULL && user_name != NULL && *user_name != '\0')
		return err_set(e, ERR_INVALID, "there is no user \"%s\"", user_name);
	ns = json_member_str(context, "namespace");
	if (ns != NULL && *ns != '\0')
		c->ns = xstrdup(ns);
	if (read_cluster(cluster, dir, c, e) == -1)
		return err_wrap(e, "cluster \"%s\"", cluster_name);
	if (user != NULL && read_user(user, dir, c, e) == -1)
		return err_wrap(e, "user \"%s\"", user_name);
	return 0;
}

int
kube_config_parse(struct strv text, const char *dir, struct kube_config **ret, struct err *e)
{
	CLEANUP(config_freep) struct kube_config *c = xcalloc(1, sizeof(*c));
	CLEANUP(json_unrefp) json_t *tree = NULL;

	if (yaml_parse(text, KUBECONFIG_MAX, &tree, e) == -1)
		return -1;
	if (read_context(tree, dir, c, e) == -1)
		return -1;
	*ret = c;
	c = NULL;
	return 0;
}

static int
load_file(const char *path, struct kube_config **ret, struct err *e)
{
	CLEANUP(xfreep) char *text = NULL;
	CLEANUP(xfreep) char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	size_t n;

	if (slash == NULL) {
		xfree(dir);
		dir = xstrdup(".");
	} else {
		*slash = '\0';
	}
	if (file_read(path, KUBECONFIG_MAX, &text, &n, e) == -1)
		return -1;
	if (kube_config_parse((struct strv){ text, n }, dir, ret, e) == -1)
		return err_wrap(e, "%s", path);
	return 0;
}

int
kube_config_load(const char *kubeconfig, struct kube_config **ret, struct err *e)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	const char *home = getenv("HOME");
	CLEANUP(xfreep) char *path = NULL;

	if (kubeconfig != NULL && *kubeconfig != '\0')
		return load_file(kubeconfig, ret, e);
	if (host != NULL && *host != '\0') {
		if (port == NULL || *port == '\0')
			port = "443";
		return kube_config_in_cluster(SERVICE_ACCOUNT_DIR, host, port, ret, e);
	}
	if (home == NULL)
		return err_set(
		    e, ERR_INVALID, "not in a cluster, and neither KUBECONFIG nor HOME is set");
	path = path_in(home, ".kube/config");
	return load_file(path, ret, e);
}
