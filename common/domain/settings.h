/*
 * The installation's live settings, watched: templates, blueprint and runtime configuration from
 * the ConfigMap, API keys and the installation key from Secrets. A new version that does not parse
 * is refused (on_problem) and the last good one stays in use. Values are borrowed for the current
 * turn only: a later change frees them.
 */
#ifndef DOMAIN_SETTINGS_H
#define DOMAIN_SETTINGS_H

#include <stdbool.h>

#include "base/err.h"
#include "domain/blueprint.h"
#include "domain/template.h"
#include "domain/tenant.h"
#include "domain/token.h"
#include "kube/kube_client.h"

struct settings;

struct settings_conf {
	struct kube *kube;
	const char *ns, *configmap, *install_secret;
	const char *keys_secret;               /* NULL: this program needs no API keys */
	const char *system_token, *raw_tokens; /* migration variables; "" none */
	/* Everything that is needed has been seen once and was good. May be NULL. */
	void (*on_ready)(void *arg);
	/* What was refused, and why. what is the key in the ConfigMap or Secret. */
	void (*on_problem)(const char *what, const struct err *e, void *arg);
	void *arg;
};

struct settings *settings_new(const struct settings_conf *conf);
void settings_free(struct settings *s);
bool settings_ready(const struct settings *s);
/* NULL until the first good version. */
const struct templates *settings_templates(const struct settings *s);
const struct blueprint *settings_blueprint(const struct settings *s);
const struct keyring *settings_keyring(const struct settings *s);
/* Not `known` at first; its address never changes. */
const struct install_key *settings_install_key(const struct settings *s);

#endif
