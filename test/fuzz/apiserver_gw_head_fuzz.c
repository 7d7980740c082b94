/*
 * A request head as a client may send it: routed, written anew, and read again. What the gateway
 * forwards must parse, must say the same about the body, must carry nothing that ends at the
 * gateway, and must never be one of envd's inner paths on envd's port.
 */
#include <stdlib.h>

#include "apiserver/gw_headers.h"
#include "apiserver/gw_route.h"
#include "base/bug.h"
#include "domain/names.h"
#include "http/http_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is forwarded to envd must not be reserved in any reading. */
static void
check_path(struct strv path)
{
	struct strbuf clean;

	strbuf_init(&clean, HTTP1_TARGET_MAX + 1);
	if (http_clean_path(path, &clean) == 0)
		BUG_ON(strv_is(strbuf_view(&clean), "/init"));
	strbuf_done(&clean);
}

static void
check_again(const struct gw_buf *out, bool chunked, int64_t length, bool upgrade, bool envd)
{
	struct http1 *p = http1_new(false);
	struct strv in = { out->p, out->n }, body;
	const struct http_head *h;

	BUG_ON(http1_next(p, &in, &body) != HTTP1_HEAD);
	h = http1_head(p);
	BUG_ON(in.n != 0 || h->minor != 1);
	BUG_ON(h->chunked != chunked || h->length != length);
	BUG_ON(h->upgrade && !upgrade);
	BUG_ON(http_head_get(h, GW_HEADER_TRAFFIC) || http_head_get(h, "te") ||
	    http_head_get(h, "x-forwarded-for") || http_head_get(h, "proxy-authorization"));
	if (envd)
		check_path(h->path);
	http1_free(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http1 *p = http1_new(false);
	struct strv in = { (const char *)data, size }, body;
	struct gw_buf out = { .p = NULL };
	const struct http_head *h = http1_head(p);
	struct gw_route route;
	struct strbuf clean;
	struct gw_hints hints;

	strbuf_init(&clean, HTTP1_TARGET_MAX + 1);
	if (http1_next(p, &in, &body) != HTTP1_HEAD)
		goto out;
	gw_route_find(STRV("my.domain"), h, &route);
	hints = gw_hints_of_head(h);
	if (route.how == GW_BY_NOTHING || route.fail != GW_FAIL_NONE)
		goto out;
	BUG_ON(route.path.n == 0 || route.port > 65535);
	if (route.port == ENVD_PORT && gw_route_reserved(route.path, &clean) != 0)
		goto out;
	gw_put_request(&out, h,
	    &(struct gw_request_opts){ .path = route.path,
	        .tail = route.tail,
	        .drop_port_param = route.drop_port_param,
	        .prefix = route.prefix,
	        .host = h->host.n > 0 ? h->host : STRV("localhost"),
	        .upgrade = h->upgrade });
	BUG_ON(gw_hints_want_page(&hints) !=
	    gw_hints_want_page(
	        &(struct gw_hints[]){ gw_hints_of_text((struct strv){ out.p, out.n }) }[0]));
	check_again(&out, h->chunked, h->length, h->upgrade, route.port == ENVD_PORT);
out:
	gw_buf_done(&out);
	strbuf_done(&clean);
	http1_free(p);
	return 0;
}
