/*
 * TLS for server sockets, on OpenSSL 3: TLS 1.2 or newer, ALPN http/1.1 only. The HTTP server knows
 * it only as a sock_layer, so that a program that never makes a tls_server links no OpenSSL (envd).
 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "base/bug.h"
#include "base/err.h"
#include "http/sock.h"

struct tls_server;

/* Reads the PEM chain and key. tls_server_refresh re-reads them when the files changed; a broken
 * pair is an error and the old one stays in use. Connections keep what they started with. */
int tls_server_new(
    const char *cert_file, const char *key_file, struct tls_server **ret, struct err *e) MUST_USE;
int tls_server_refresh(struct tls_server *t, struct err *e) MUST_USE;
void tls_server_free(struct tls_server *t); /* accepts NULL */
/* Puts TLS under s, which must be initialised and not opened yet. */
int tls_server_attach(struct tls_server *t, struct sock *s, struct err *e) MUST_USE;
/* t as a layer for a listener: the first member of it. NULL stays NULL. */
static inline struct sock_layer *
tls_server_layer(struct tls_server *t)
{
	return (struct sock_layer *)(void *)t;
}

#endif
