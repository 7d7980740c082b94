/*
 * From a request head to "which sandbox, which port, which target": E2B's ways of addressing and
 * our two path prefixes, with their precedence. Pure: it knows no view and no connection.
 *
 * Precedence: host label, then routing headers, then path prefix. A host label wins over headers
 * that contradict it, so a header cannot redirect a request that names another sandbox.
 */
#ifndef APISERVER_GW_ROUTE_H
#define APISERVER_GW_ROUTE_H

#include <stdbool.h>

#include "apiserver/gw_errors.h"
#include "base/bug.h"
#include "base/str.h"
#include "http/http1.h"

#define GW_HEADER_ID "e2b-sandbox-id"
#define GW_HEADER_PORT "e2b-sandbox-port"
#define GW_HEADER_TRAFFIC "e2b-traffic-access-token"
#define GW_PREFIX_ID "/sandboxes/router/"
#define GW_PREFIX_NAME "/sandbox/"

enum gw_addressing {
	GW_BY_NOTHING = 0, /* not sandbox traffic */
	GW_BY_LABEL,       /* <port>-<id>[-x].<anything> */
	GW_BY_HEADERS,
	GW_BY_SHARED_HOST, /* headers on sandbox.<anything>: the sandbox sees the label form */
	GW_BY_PATH_ID,
	GW_BY_PATH_NAME
};

/* All slices point into the head. */
struct gw_route {
	enum gw_addressing how;
	enum gw_fail_kind fail; /* why it cannot be routed; NONE */
	struct strv id;         /* the name for GW_BY_PATH_NAME */
	int port;               /* 0: the template's (by name only) */
	struct strv path;       /* for the sandbox, still encoded */
	struct strv tail;       /* '?' and query as sent, or nothing */
	struct strv prefix;     /* what was cut off the path, or nothing */
	bool drop_port_param;   /* the query's `port` was meant for us */
	struct strv host_rest;  /* SHARED_HOST: what follows "sandbox." */
};

/* domain: the installation's, "" none. */
void gw_route_find(struct strv domain, const struct http_head *h, struct gw_route *ret);

/* Is this one of the paths on envd's port that only the control plane may call? The path is
 * compared decoded and cleaned; `clean` (the caller's, reset here) holds that form. 1 yes, 0 no, -1
 * the path cannot be decoded. */
int gw_route_reserved(struct strv path, struct strbuf *clean) MUST_USE;

#endif
