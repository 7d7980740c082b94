/*
 * Three one-object caches (a field selector on the name) feed parsers; each parser replaces one
 * value. See settings.h.
 */
#include "domain/settings.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "domain/names.h"
#include "kube/kube_cache.h"

struct settings {
	struct settings_conf conf;
	struct kube_cache *configmap, *keys, *install;
	struct templates *templates;
	struct blueprint *blueprint;
	struct keyring *keyring;
	struct install_key key;
	bool announced;
};

static void
problem(struct settings *s, const char *what, const struct err *e)
{
	if (s->conf.on_problem != NULL)
		s->conf.on_problem(what, e, s->conf.arg);
}

static void
announce(struct settings *s)
{
	if (s->announced || !settings_ready(s))
		return;
	s->announced = true;
	if (s->conf.on_ready != NULL)
		s->conf.on_ready(s->conf.arg);
}

static void
take_templates(struct settings *s, const char *text)
{
	struct templates *t;
	struct err e;

	if (templates_parse(strv_of(text), &t, &e) == -1) {
		problem(s, CONFIG_TEMPLATES, &e);
		return;
	}
	templates_free(s->templates);
	s->templates = t;
}

static void
take_blueprint(struct settings *s, const char *text)
{
	struct blueprint *b;
	struct err e;

	if (blueprint_compile(strv_of(text), &b, &e) == -1) {
		problem(s, CONFIG_BLUEPRINT, &e);
		return;
	}
	if (blueprint_check(b, &e) == -1) {
		problem(s, CONFIG_BLUEPRINT, &e);
		blueprint_free(b);
		return;
	}
	blueprint_free(s->blueprint);
	s->blueprint = b;
}

/* Decodes data[entry] of a Secret into new memory, or NULL when it is absent or no base64. */
static char *
secret_entry(const json_t *obj, const char *entry, size_t *n)
{
	const char *text = json_member_str(json_get_obj(obj, "data"), entry);
	unsigned char *out;
	ptrdiff_t len;

	if (text == NULL)
		return NULL;
	out = xmalloc(strlen(text) + 4);
	len = base64_decode(strv_of(text), out);
	if (len < 0) {
		xfree(out);
		return NULL;
	}
	out[len] = '\0';
	*n = (size_t)len;
	return (char *)out;
}

static void
take_keys(struct settings *s, const json_t *obj)
{
	struct keyring *k;
	struct err e;
	size_t n = 0;
	char *text = secret_entry(obj, SECRET_KEYS_ENTRY, &n);

	if (keyring_parse(
	        (struct strv){ text, n }, s->conf.system_token, s->conf.raw_tokens, &k, &e) == -1) {
		problem(s, SECRET_KEYS_ENTRY, &e);
	} else {
		keyring_free(s->keyring);
		s->keyring = k;
	}
	xfree(text);
}

static void
take_install_key(struct settings *s, const json_t *obj)
{
	struct err e;
	size_t n = 0;
	char *raw = secret_entry(obj, SECRET_INSTALL_ENTRY, &n);

	if (raw == NULL) {
		err_set(&e, ERR_INVALID, "the Secret has no entry '%s'", SECRET_INSTALL_ENTRY);
		problem(s, SECRET_INSTALL_ENTRY, &e);
		return;
	}
	if (install_key_set(&s->key, (struct strv){ raw, n }, &e) == -1)
		problem(s, SECRET_INSTALL_ENTRY, &e);
	explicit_bzero(raw, n);
	xfree(raw);
}

/* The caches hold the object's JSON as it is: it is one small object each. */
static void *
keep_json(const json_t *obj, struct err *e UNUSED, void *arg UNUSED)
{
	return json_deep_copy(obj);
}

static void
drop_json(void *obj)
{
	json_decref(obj);
}

static void
on_configmap(enum kube_change what, void *old UNUSED, void *obj, void *arg)
{
	struct settings *s = arg;
	const json_t *data = json_get_obj(obj, "data");
	const char *templates = json_member_str(data, CONFIG_TEMPLATES);
	const char *blueprint = json_member_str(data, CONFIG_BLUEPRINT);

	if (what == KUBE_DELETED)
		return; /* the last good version stays in use */
	if (templates != NULL)
		take_templates(s, templates);
	if (blueprint != NULL)
		take_blueprint(s, blueprint);
	announce(s);
}

static void
on_keys(enum kube_change what, void *old UNUSED, void *obj, void *arg)
{
	struct settings *s = arg;

	if (what == KUBE_DELETED)
		return;
	take_keys(s, obj);
	announce(s);
}

static void
on_install(enum kube_change what, void *old UNUSED, void *obj, void *arg)
{
	struct settings *s = arg;

	if (what == KUBE_DELETED)
		return;
	take_install_key(s, obj);
	announce(s);
}

static struct kube_cache *
watch_one(struct settings *s, const struct kube_res *res, const char *name,
    void (*on_change)(enum kube_change, void *, void *, void *))
{
	struct strbuf field;
	struct kube_cache *c;

	strbuf_init(&field, 512);
	strbuf_addf(&field, "metadata.name=%s", name);
	c = kube_cache_new(s->conf.kube,
	    &(struct kube_cache_conf){ .res = res,
	        .ns = s->conf.ns,
	        .field_selector = field.p,
	        .decode = keep_json,
	        .release = drop_json,
	        .on_change = on_change,
	        .arg = s });
	strbuf_done(&field);
	return c;
}

struct settings *
settings_new(const struct settings_conf *conf)
{
	struct settings *s = xcalloc(1, sizeof(*s));

	s->conf = *conf;
	s->configmap = watch_one(s, &KUBE_CONFIGMAPS, conf->configmap, on_configmap);
	s->install = watch_one(s, &KUBE_SECRETS, conf->install_secret, on_install);
	if (conf->keys_secret != NULL)
		s->keys = watch_one(s, &KUBE_SECRETS, conf->keys_secret, on_keys);
	return s;
}

void
settings_free(struct settings *s)
{
	if (s == NULL)
		return;
	kube_cache_free(s->configmap);
	kube_cache_free(s->install);
	kube_cache_free(s->keys);
	templates_free(s->templates);
	blueprint_free(s->blueprint);
	keyring_free(s->keyring);
	install_key_done(&s->key);
	xfree(s);
}

bool
settings_ready(const struct settings *s)
{
	return s->templates != NULL && s->blueprint != NULL && s->key.known &&
	    (s->conf.keys_secret == NULL || s->keyring != NULL);
}

const struct templates *
settings_templates(const struct settings *s)
{
	return s->templates;
}

const struct blueprint *
settings_blueprint(const struct settings *s)
{
	return s->blueprint;
}

const struct keyring *
settings_keyring(const struct settings *s)
{
	return s->keyring;
}

const struct install_key *
settings_install_key(const struct settings *s)
{
	return &s->key;
}
