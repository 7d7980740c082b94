/*
 * Initialising envd in a sandbox's pod: builds the /init body from the sandbox (its data, its
 * sealed secrets, its derived token), posts it, repeats while envd is not listening yet, and
 * afterwards records the incarnation in the `ready` annotation. Both programs do it: the apiserver
 * for whoever waits, the controller for what a dead apiserver left half done. Doing it twice is
 * harmless: same token, same values.
 */
#ifndef DOMAIN_SANDBOX_INIT_H
#define DOMAIN_SANDBOX_INIT_H

#include <stdint.h>

#include "base/bug.h"
#include "base/err.h"
#include "domain/sandbox.h"
#include "domain/token.h"
#include "kube/kube_client.h"

struct sandbox_init;

/* Pauses between tries while the connection is refused, doubling from the first to the last. */
#define INIT_RETRY_FIRST MILLIS(5)
#define INIT_RETRY_LAST MILLIS(250)

struct sandbox_init_conf {
	struct kube *kube;
	const char *ns;
	const struct install_key *key;
	int64_t deadline; /* loop time */
};

/* s and p are borrowed during the call only. fn runs once: e NULL when envd has taken it (the
 * `ready` write has been started, not awaited). ERR_CONFLICT: envd knows a newer generation;
 * ERR_UNAUTHORIZED: it belongs to somebody else. */
struct sandbox_init *sandbox_init_start(const struct sandbox_init_conf *conf,
    const struct sandbox *s, const struct pod *p, void (*fn)(const struct err *e, void *arg),
    void *arg);
/* fn does not run any more. Accepts NULL. */
void sandbox_init_cancel(struct sandbox_init *i);

#endif
