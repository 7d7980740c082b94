/*
 * Heads as the gateway forwards them: always written anew from the parsed fields (nothing of the
 * peer's raw bytes passes), without hop-by-hop fields, forwarding claims of the client and the
 * traffic token. Pure: heads in, text out.
 */
#ifndef APISERVER_GW_HEADERS_H
#define APISERVER_GW_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "http/http1.h"

/* A plain growing buffer. Its size is bounded by what is put in: a head that passed the parser's
 * limits, plus what its user adds. */
struct gw_buf {
	char *p;
	size_t n, cap;
};
/* Room for n more bytes behind b->n; returns where they go. */
char *gw_buf_room(struct gw_buf *b, size_t n);
void gw_buf_add(struct gw_buf *b, const void *p, size_t n);
void gw_buf_done(struct gw_buf *b); /* accepts a zeroed one */

struct gw_request_opts {
	struct strv path, tail;     /* the target is path + tail */
	bool drop_port_param;       /* leave the query's `port` parameters out */
	struct strv host;           /* as the sandbox sees it */
	struct strv forwarded_host; /* what the client said, when host hides it; p NULL: none */
	struct strv prefix;         /* what was cut off the path; n 0: nothing */
	bool upgrade;               /* pass Upgrade on */
};
/* Replaces what b holds by the head for the sandbox, blank line included. */
void gw_put_request(
    struct gw_buf *b, const struct http_head *h, const struct gw_request_opts *opts);

/* How the end of a body is told to the client. */
enum gw_framing {
	GW_FRAME_NONE = 0, /* there is no body */
	GW_FRAME_LENGTH,
	GW_FRAME_CHUNKED,
	GW_FRAME_CLOSE
};
/* minor: the client's version. */
enum gw_framing gw_response_framing(const struct http_head *h, int minor);

struct gw_response_opts {
	enum gw_framing framing;
	int minor;         /* of the client */
	bool keep;         /* the client's connection stays open */
	bool head_request; /* a Content-Length describes what GET would bring */
	const char *date;  /* added when the sandbox gave none; NULL: never */
};
/* Appends the final or 1xx head for the client, blank line included. */
void gw_put_response(
    struct gw_buf *b, const struct http_head *h, const struct gw_response_opts *opts);

/* "<hex>\r\n"; returns its length. */
#define GW_CHUNK_LINE_MAX 20
size_t gw_chunk_line(char out[GW_CHUNK_LINE_MAX], size_t n);

#endif
