/* E2B's routes, one line each. */
#include "apiserver/e2b.h"

const struct route e2b_routes[] = {
	{ HTTP_POST, "/sandboxes", ROUTE_BODY | ROUTE_UNDO, e2b_create, "create a sandbox" },
	{ HTTP_POST, "/v2/sandboxes", ROUTE_BODY | ROUTE_UNDO, e2b_create_v2,
	    "create a sandbox, server's defaults" },
	{ HTTP_GET, "/sandboxes", 0, e2b_list, "list running sandboxes" },
	{ HTTP_GET, "/v2/sandboxes", 0, e2b_list_v2, "list sandboxes, filtered and paged" },
	{ HTTP_GET, "/sandboxes/{id}", 0, e2b_get, "one sandbox" },
	{ HTTP_DELETE, "/sandboxes/{id}", 0, e2b_kill, "kill a sandbox" },
	{ HTTP_POST, "/sandboxes/{id}/timeout", ROUTE_BODY, e2b_set_timeout, "set the end time" },
	{ HTTP_POST, "/sandboxes/{id}/connect", ROUTE_BODY, e2b_connect, "extend or resume" },
	{ HTTP_POST, "/v2/sandboxes/{id}/connect", ROUTE_BODY_OPTIONAL, e2b_connect_v2,
	    "extend or resume" },
	{ HTTP_POST, "/sandboxes/{id}/pause", ROUTE_BODY_OPTIONAL, e2b_pause, "pause a sandbox" },
};
const size_t e2b_routes_n = ARRAY_LEN(e2b_routes);
