/*
 * Create: resolve the template, render the object, POST it, wait for its start. Everything is
 * validated before anything is written.
 */
#include "apiserver/service.h"
#include "apiserver/service_op.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "domain/blueprint.h"

static const struct op_kind kind_create = { .name = "create" };

static int
check_template_ref(const struct templates *templates, const char *asked, const struct template **t,
    char **image, char *id, struct err *e)
{
	struct template_ref ref;

	if (template_ref_parse(strv_of(asked), &ref, e) == -1)
		return -1;
	memcpy(id, ref.name, sizeof(ref.name));
	if (templates_resolve(templates, strv_of(ref.name), t, image, e) == -1)
		return -1;
	if (ref.tag[0] == '\0')
		return 0;
	xfree(*image);
	*image = NULL;
	return err_set(
	    e, ERR_NOT_FOUND, "tag '%s' does not exist for template '%s'", ref.tag, ref.name);
}

/* Values that must not be readable in etcd. */
static int
seal(const struct service *s, const char *id, const struct template *t, const json_t *asked,
    char **ret, struct err *e)
{
	CLEANUP(json_unrefp) json_t *secrets = json_object();
	json_t *env = t->env_vars != NULL ? json_deep_copy(t->env_vars) : json_object();

	if (asked != NULL) {
		json_t *copy = json_deep_copy(asked);

		json_object_update(env, copy);
		json_decref(copy);
	}
	json_set(secrets, "envVars", env);
	return token_seal(settings_install_key(s->conf.settings), strv_of(id), secrets, ret, e);
}

static int
build(struct service_op *op, const struct create_request *req, json_t **rs, struct err *e)
{
	struct service *s = op->svc;
	const struct template *t;
	CLEANUP(xfreep) char *image = NULL, *sealed = NULL;
	char template_id[TEMPLATE_NAME_MAX + 1], name[SANDBOX_NAME_MAX + 8];
	int64_t now = clock_wall();
	struct sandbox_spec spec;

	if (!settings_ready(s->conf.settings))
		return err_set(e, ERR_UNAVAILABLE, "the server is starting");
	if (check_template_ref(settings_templates(s->conf.settings),
	        req->template_id != NULL ? req->template_id : s->conf.default_template, &t, &image,
	        template_id, e) == -1)
		return -1;
	if (seal(s, op->id, t, req->env_vars, &sealed, e) == -1)
		return -1;
	(void)snprintf(name, sizeof(name), "sbx-%s", op->id);
	spec = (struct sandbox_spec){ .id = op->id,
		.name = name,
		.tenant = req->tenant->name,
		.template = t,
		.template_id = template_id,
		.image = image,
		.metadata = req->metadata,
		.started = now,
		.end_at = req->timeout < 0 ? TIME_NEVER : now + SECONDS(req->timeout),
		.timeout = req->timeout,
		.on_end = req->on_end,
		.auto_resume = req->auto_resume,
		.secure = req->secure,
		.idle_after = req->idle_after,
		.network = req->network,
		.allow_internet = req->allow_internet,
		.mcp = req->mcp,
		.sealed = sealed };
	if (blueprint_render(settings_blueprint(s->conf.settings),
	        &(struct blueprint_env){
	            .ns = s->conf.ns, .envd_image = s->conf.envd_image, .rev = "" },
	        &spec, rs, e) == 0)
		return 0;
	if (e->code == ERR_INVALID)
		e->code = ERR_INTERNAL; /* the operator's mistake, not the caller's */
	return -1;
}

static void
on_undone(int status UNUSED, const json_t *obj UNUSED, const struct err *e UNUSED, void *arg UNUSED)
{
}

/* The answer was lost, so the object may be there (an unknown name that "exists" is our own, said
 * twice by the transport). Nobody will be told of it. Best effort: the controller ends what stays.
 */
static void
undo(struct service_op *op)
{
	const struct service *s = op->svc;
	char name[SANDBOX_NAME_MAX + 8];

	(void)snprintf(name, sizeof(name), "sbx-%s", op->id);
	kube_delete(s->conf.kube, &KUBE_REPLICASETS, s->conf.ns, name, NULL, on_undone, NULL);
}

static void
on_created(int status, const json_t *obj, const struct err *e, void *arg)
{
	struct service_op *op = arg;
	struct service *s = op->svc;
	struct sandbox_entry entry;

	op->call = NULL;
	if (e != NULL) {
		if (status == 0 || e->code == ERR_TIMEOUT || e->code == ERR_EXISTS)
			undo(op);
		op_kube_failed(op, e);
		return;
	}
	kube_cache_apply(sandbox_view_replicasets(s->conf.view), obj);
	op->created = true;
	if (op->fn == NULL) {
		op_abandon(op);
		return;
	}
	if (op_visible(op, &entry))
		op_event(s, entry.sandbox, false, "Created", "created on request");
	op_await_start(op);
}

struct service_op *
service_create(struct service *s, const struct create_request *req, service_fn fn, void *arg)
{
	char id[SANDBOX_ID_LEN + 1];
	struct service_op *op;
	CLEANUP(json_unrefp) json_t *rs = NULL;

	sandbox_id_new(id);
	op = op_new(s, &kind_create, req->tenant, strv_of(id), fn, arg);
	op->timeout = req->timeout;
	if (build(op, req, &rs, &op->early) == -1)
		return op; /* reported at the end of this turn */
	loop_undefer(s->conf.loop, &op->begin);
	op->call =
	    kube_create(s->conf.kube, &KUBE_REPLICASETS, s->conf.ns, rs, false, on_created, op);
	return op;
}
