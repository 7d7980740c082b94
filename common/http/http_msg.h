/*
 * Pieces of HTTP messages: status texts, building heads, hop-by-hop fields, path cleaning. No I/O.
 */
#ifndef HTTP_MSG_H
#define HTTP_MSG_H

#include <stdbool.h>

#include "base/str.h"
#include "http/http1.h"

const char *http_status_text(int status); /* "Not Found"; "Unknown" for others */
const char *http_method_name(enum http_method m);
/* Connection, Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade (RFC
 * 9110 7.6.1) or named by this message's Connection field. */
bool http_is_hop_by_hop(const struct http_head *h, struct strv name);
/* "HTTP/1.1 200 OK\r\nDate: …\r\n"; the date text is cached per second. */
void http_put_status_line(struct strbuf *b, int status);
/* A name or value with CR, LF or NUL is dropped whole (BUG in our own code, attack in a peer's). */
void http_put_field(struct strbuf *b, struct strv name, struct strv value);
/* Decodes %XX, collapses "//", resolves "." and "..", drops a trailing "/" (not of "/" itself). For
 * comparing, never for forwarding. -1 on a bad escape or a NUL. */
int http_clean_path(struct strv path, struct strbuf *out) MUST_USE;

#endif
