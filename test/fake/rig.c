/* See rig.h. */
#include "fake/rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/fsutil.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rand.h"

#define TURNS_MAX 20000
#define WALL_START SECONDS(1800000000)
#define BLUEPRINT "charts/agent-sandbox/files/blueprint.yaml"
#define REPLY_MAX (4 * 1024 * 1024)

static const char templates[] =
    "[{\"name\": \"base\", \"image\": \"example.org/base:1\", \"envd\": \"image\","
    "  \"envVars\": {\"FROM\": \"template\"}, \"metadata\": {\"made\": \"here\"}},"
    " {\"name\": \"plain\", \"image\": \"example.org/plain:1\", \"user\": \"me\","
    "  \"startCmd\": \"serve\", \"resources\": {\"cpuLimit\": \"1500m\", \"memoryLimit\": "
    "\"512Mi\"}}]";

void
rig_must(bool good, const char *what, const struct err *e)
{
	if (good)
		return;
	fprintf(stderr, "rig: %s%s%s\n", what, e != NULL ? ": " : "", e != NULL ? e->msg : "");
	BUG_ON(true);
}

void
rig_turns(struct rig *r, unsigned n)
{
	while (n-- > 0) {
		loop_once(r->loop, false);
		clock_fake_advance(MILLIS(1));
	}
}

void
rig_until(struct rig *r, const unsigned *done, unsigned n)
{
	for (unsigned i = 0; *done < n; i++) {
		rig_must(i < TURNS_MAX, "waited too long", NULL);
		rig_turns(r, 1);
	}
}

void
rig_advance(struct rig *r, int64_t ns)
{
	rig_turns(r, 20);
	clock_fake_advance(ns);
	rig_turns(r, 100);
}

/* --- a network of our own, where the system allows it: envd's port is a fixed one --- */

static void
own_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	static bool done;
	int fd;

	if (done || unshare(CLONE_NEWNET) == -1)
		return;
	done = true;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	rig_must(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0, "loopback", NULL);
	close(fd);
}

/* --- envd --- */

static void
on_init(struct http_req *q, struct strv body, void *arg)
{
	struct rig *r = arg;
	struct err e;

	r->inits++;
	json_decref(r->init);
	rig_must(json_parse(body, 1 << 20, &r->init, &e) == 0, "body of /init", &e);
	if (!r->envd_hold)
		http_reply(q, r->envd_status, NULL, 0, STRV_NONE);
}

static void
on_envd(struct http_req *q, const struct http_head *h, void *arg)
{
	rig_must(strv_is(h->path, "/init") && h->method == HTTP_POST, "envd was asked else", NULL);
	http_req_collect(q, 1 << 20, on_init, arg);
}

static void
start_envd(struct rig *r)
{
	char addr[32];
	struct err e;

	/* In a network that others use, too, the address is what differs. */
	(void)snprintf(r->envd_ip, sizeof(r->envd_ip), "127.%u.%u.%u", 1 + rand_below(250),
	    rand_below(250), 1 + rand_below(250));
	(void)snprintf(addr, sizeof(addr), "%s:%d", r->envd_ip, ENVD_PORT);
	r->envd_status = 204;
	rig_must(
	    http_server_new(r->loop, &(struct http_server_conf){ .on_request = on_envd, .arg = r },
	        &r->envd, &e) == 0 &&
	        http_server_listen(r->envd, addr, NULL, NULL, &e) == 0,
	    "envd", &e);
}

/* --- kubelet --- */

json_t *
rig_status_running(const struct rig *r, int restarts)
{
	char since[TIME_TEXT_MAX];

	time_format(clock_wall(), 0, since);
	return json_pack("{s:s, s:s, s:[{s:s, s:s}], s:[{s:s, s:i, s:{s:{s:s}}}]}", "phase",
	    "Running", "podIP", r->envd_ip, "conditions", "type", "Ready", "status", "True",
	    "containerStatuses", "name", "sandbox", "restartCount", restarts, "state", "running",
	    "startedAt", since);
}

json_t *
rig_status_waiting(const char *reason, const char *message)
{
	return json_pack("{s:s, s:[{s:s, s:i, s:{s:{s:s, s:s}}}]}", "phase", "Pending",
	    "containerStatuses", "name", "sandbox", "restartCount", 0, "state", "waiting", "reason",
	    reason, "message", message);
}

json_t *
rig_status_unschedulable(const char *message)
{
	return json_pack("{s:s, s:[{s:s, s:s, s:s, s:s}]}", "phase", "Pending", "conditions",
	    "type", "PodScheduled", "status", "False", "reason", "Unschedulable", "message",
	    message);
}

void
rig_pod(struct rig *r, const char *id, const char *name, json_t *status)
{
	cluster_put(r->cluster, "pods",
	    json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s}}, s:o}", "apiVersion", "v1", "kind", "Pod",
	        "metadata", "name", name, "labels", LABEL_OWNER, OWNER_VALUE, LABEL_ID, id,
	        "status", status));
}

/* A name of one of the sandbox's pods, or NULL. */
static const char *
pod_of(const struct rig *r, const char *id, char *name, size_t n)
{
	for (unsigned i = r->pods; i > 0; i--) {
		(void)snprintf(name, n, "sbx-%s-%u", id, i);
		if (cluster_get(r->cluster, "pods", name) != NULL)
			return name;
	}
	return NULL;
}

void
rig_pods_gone(struct rig *r, const char *id)
{
	char name[128];

	while (pod_of(r, id, name, sizeof(name)) != NULL)
		cluster_remove(r->cluster, "pods", name);
}

static void
new_pod(struct rig *r, const char *id)
{
	char name[128];

	(void)snprintf(name, sizeof(name), "sbx-%s-%u", id, ++r->pods);
	rig_pod(r, id, name, rig_status_running(r, 0));
}

static void
stop_pods(struct rig *r, const char *id)
{
	char name[128];

	if (!r->pods_linger)
		rig_pods_gone(r, id);
	else if (pod_of(r, id, name, sizeof(name)) != NULL)
		cluster_merge(r->cluster, "pods", name,
		    json_pack(
		        "{s:{s:s}}", "metadata", "deletionTimestamp", "2027-01-15T08:00:00Z"));
}

static void
on_write(const char *plural, const json_t *obj, bool deleted, void *arg)
{
	struct rig *r = arg;
	const char *id = json_member_str(json_get_obj(obj, "metadata.labels"), LABEL_ID);
	char name[128];

	if (strcmp(plural, "replicasets") != 0 || !r->kubelet)
		return;
	if (deleted || json_get_int(obj, "spec.replicas", 1) == 0)
		stop_pods(r, id);
	else if (pod_of(r, id, name, sizeof(name)) == NULL)
		new_pod(r, id);
}

/* --- start and stop --- */

static void
put_secret(struct rig *r, const char *name, const char *entry, const char *text)
{
	size_t n = strlen(text);
	CLEANUP(xfreep) char *coded = xmalloc(BASE64_LEN(n) + 1);

	base64_encode(text, n, coded);
	cluster_put(r->cluster, "secrets",
	    json_pack("{s:s, s:{s:s}, s:{s:s}}", "kind", "Secret", "metadata", "name", name, "data",
	        entry, coded));
}

static void
put_key(json_t *list, const char *key, const char *tenant, const char *role)
{
	unsigned char hash[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];

	crypto_sha256(strv_of(key), hash);
	hex_encode(hash, sizeof(hash), hex);
	json_array_append_new(list,
	    json_pack(
	        "{s:s, s:s, s:s, s:s}", "id", tenant, "tenant", tenant, "role", role, "hash", hex));
}

static void
put_settings(struct rig *r)
{
	CLEANUP(json_unrefp) json_t *keys = json_array();
	CLEANUP(xfreep) char *text = NULL, *blueprint = NULL;
	struct err e;

	put_key(keys, RIG_SYSTEM_KEY, "admin", "system");
	put_key(keys, RIG_KEY_A, "alice", "user");
	put_key(keys, RIG_KEY_B, "bob", "user");
	text = json_text(keys);
	put_secret(r, RIG_KEYS, SECRET_KEYS_ENTRY, text);
	put_secret(r, RIG_INSTALL, SECRET_INSTALL_ENTRY, "0123456789abcdef0123456789abcdef");
	rig_must(file_read(BLUEPRINT, 1 << 20, &blueprint, NULL, &e) == 0, BLUEPRINT, &e);
	cluster_put(r->cluster, "configmaps",
	    json_pack("{s:s, s:{s:s}, s:{s:s, s:s}}", "kind", "ConfigMap", "metadata", "name",
	        RIG_CONFIGMAP, "data", CONFIG_TEMPLATES, templates, CONFIG_BLUEPRINT, blueprint));
}

void
rig_world_start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	own_network();
	log_set_level(getenv("RIG_LOG") != NULL ? LOG_DEBUG : LOG_ERROR);
	clock_fake_start(SECONDS(1000), WALL_START);
	r->loop = loop_new();
	r->kubelet = true;
	r->cluster = cluster_new(r->loop);
	cluster_on_change(r->cluster, on_write, r);
	start_envd(r);
	put_settings(r);
}

void
rig_world_stop(struct rig *r)
{
	http_server_free(r->envd);
	cluster_free(r->cluster);
	json_decref(r->init);
	loop_free(r->loop);
	clock_fake_end();
}

/* --- objects --- */

static json_t *
parsed(const char *text)
{
	json_t *tree;
	struct err e;

	rig_must(json_parse(strv_of(text), REPLY_MAX, &tree, &e) == 0, text, &e);
	return tree;
}

static char *
data_of(const struct rig_sandbox *s)
{
	json_t *data = json_object();
	char *text;

	json_set(data, "metadata", parsed(s->metadata != NULL ? s->metadata : "{}"));
	json_set_str(data, "template", s->template != NULL ? s->template : "base");
	json_set_bool(data, "secure", s->secure);
	if (s->network != NULL)
		json_set(data, "network", parsed(s->network));
	text = json_text(data);
	json_decref(data);
	return text;
}

static json_t *
annotations_of(const struct rig_sandbox *s, const char *data)
{
	json_t *a = json_object();
	char now[TIME_TEXT_MAX], later[TIME_TEXT_MAX];

	time_format(clock_wall(), 6, now);
	time_format(clock_wall() + SECONDS(3600), 6, later);
	json_set_str(a, ANNOTATION_DATA, data);
	json_set_str(a, ANNOTATION_DESIRED, s->desired != NULL ? s->desired : "running");
	json_set_str(a, ANNOTATION_GENERATION, "1");
	json_set_str(a, ANNOTATION_STARTED, s->started != NULL ? s->started : now);
	json_set_str(a, ANNOTATION_END, s->end != NULL ? s->end : later);
	return a;
}

void
rig_sandbox(struct rig *r, const struct rig_sandbox *s)
{
	CLEANUP(xfreep) char *data = data_of(s);
	json_t *a = annotations_of(s, data);
	bool running = s->desired == NULL || strcmp(s->desired, "running") == 0;
	char name[64], ready[128], pod[128] = "";

	(void)snprintf(name, sizeof(name), "sbx-%s", s->id);
	if (running && !s->starting) {
		new_pod(r, s->id);
		(void)snprintf(pod, sizeof(pod), "sbx-%s-%u", s->id, r->pods);
		(void)snprintf(ready, sizeof(ready), "%s/0",
		    json_get_str(cluster_get(r->cluster, "pods", pod), "metadata.uid"));
		json_set_str(a, ANNOTATION_READY, ready);
	}
	cluster_put(r->cluster, "replicasets",
	    json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s, s:s, s:s}, s:o}, s:{s:i}}", "apiVersion",
	        "apps/v1", "kind", "ReplicaSet", "metadata", "name", name, "labels", LABEL_OWNER,
	        OWNER_VALUE, LABEL_ID, s->id, LABEL_TENANT, s->tenant != NULL ? s->tenant : "alice",
	        LABEL_TEMPLATE, s->template != NULL ? s->template : "base", "annotations", a,
	        "spec", "replicas", running));
	rig_turns(r, 10);
}

const char *
rig_annotation(const struct rig *r, const char *id, const char *name)
{
	char rs[64];

	(void)snprintf(rs, sizeof(rs), "sbx-%s", id);
	return json_member_str(
	    json_get_obj(cluster_get(r->cluster, "replicasets", rs), "metadata.annotations"), name);
}

const char *
rig_only_id(const struct rig *r)
{
	static char id[SANDBOX_ID_MAX + 1];
	const json_t *labels;

	rig_must(cluster_count(r->cluster, "replicasets") == 1, "not one sandbox", NULL);
	labels = json_get_obj(cluster_first(r->cluster, "replicasets"), "metadata.labels");
	(void)snprintf(id, sizeof(id), "%s", json_member_str(labels, LABEL_ID));
	return id;
}
