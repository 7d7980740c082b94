/*
 * Gateway: traffic of clients to ports of sandboxes, on the API's own listeners. Owns recognising
 * such requests, finding the pod, upstream connections, the relay in both directions and its
 * failures. Reads the view; writes nothing to Kubernetes (waking a sandbox is asked of the service
 * through `wake`).
 *
 * Contract: E2B's data plane (addressing forms and precedence, failure bodies) and RFC 9110/9112
 * for intermediaries.
 */
#ifndef APISERVER_GATEWAY_H
#define APISERVER_GATEWAY_H

#include <stdbool.h>

#include "base/loop.h"
#include "base/metrics.h"
#include "domain/sandbox_view.h"
#include "domain/token.h"
#include "http/http_server.h"

struct gateway;

struct gateway_conf {
	struct loop *loop;
	const struct sandbox_view *view;
	const struct install_key *key; /* for traffic tokens; may change in place */
	struct metrics *metrics;
	const char *domain; /* SANDBOX_DOMAIN without port, "" none; only for hosts sandbox.<domain>
	                       and api.<domain> */
	/* Asks that a paused sandbox with auto-resume be started. fn runs later, exactly once
	 * unless cancelled: e NULL = it runs. NULL conf member: never resume. Returns a handle for
	 * wake_cancel. */
	void *(*wake)(
	    struct strv id, void (*fn)(const struct err *e, void *arg), void *fn_arg, void *arg);
	void (*wake_cancel)(void *handle, void *arg);
	/* Looks once for a sandbox that the view does not know (made by another replica a moment
	 * ago) and puts it into the view if it is there. fn runs later, exactly once unless
	 * cancelled. NULL: never. */
	void *(*look)(struct strv id, void (*fn)(void *fn_arg), void *fn_arg, void *arg);
	void (*look_cancel)(void *handle, void *arg);
	/* Bytes moved for a sandbox (at most once a second per sandbox). May be NULL. */
	void (*activity)(struct strv id, void *arg);
	void *arg;
};

struct gateway *gateway_new(const struct gateway_conf *conf);
void gateway_free(struct gateway *g);

/* Is this request sandbox traffic? By first host label "<port>-<id>[-x]", by the two routing
 * headers on a host that is localhost, an IP, sandbox.<domain>, api.<domain> or any host without
 * such a label, or by the path prefixes /sandboxes/router/{id}/{port}/ and /sandbox/{name}/. A
 * request for the API's own paths is never taken for it. */
bool gateway_wants(const struct gateway *g, const struct http_head *h);
/* Takes the request over and answers it, whatever happens. h is the head that gateway_wants has
 * just said true to (what it found is used). */
void gateway_handle(struct gateway *g, struct http_req *r, const struct http_head *h);

#endif
