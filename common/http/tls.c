/*
 * TLS for server sockets. Owns the SSL_CTX; the only file of the HTTP layer that knows OpenSSL. No
 * read-ahead: OpenSSL takes one record at a time out of the kernel and hands it out whole, so that
 * what it has not given yet is still announced by the level-triggered event.
 */
#include "http/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fsutil.h"

#define RECORD_MAX SSL3_RT_MAX_PLAIN_LENGTH /* 16 KiB */

struct tls_server {
	struct sock_layer layer; /* first: tls_server_layer */
	SSL_CTX *ctx;
	char *cert_file, *key_file;
	struct file_stamp cert_stamp, key_stamp;
};

_Static_assert(offsetof(struct tls_server, layer) == 0, "tls_server_layer casts");

static SSL *
ssl_of(struct sock *s)
{
	return s->io_state;
}

/* Turns the outcome of an SSL call into errno; 0 for an orderly end. */
static ssize_t
outcome(struct sock *s, int r)
{
	int error = SSL_get_error(ssl_of(s), r);

	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (error == SSL_ERROR_WANT_READ) {
		errno = EAGAIN;
	} else if (error == SSL_ERROR_WANT_WRITE) {
		s->io_want_write = true;
		errno = EAGAIN;
	} else if (error == SSL_ERROR_SYSCALL && errno != 0 && errno != EAGAIN) {
		/* errno tells */
	} else {
		errno = EPROTO;
	}
	return -1;
}

/* As many whole records as fit. */
static ssize_t
tls_read(struct sock *s, void *p, size_t n)
{
	size_t got = 0;

	while (n - got >= RECORD_MAX) {
		ssize_t end;
		int r;

		ERR_clear_error();
		errno = 0;
		r = SSL_read(ssl_of(s), (char *)p + got, (int)(n - got));
		if (r > 0) {
			got += (size_t)r;
			continue;
		}
		end = outcome(s, r);
		if (got == 0)
			return end;
		break; /* an end or an error comes again with the next call */
	}
	return (ssize_t)got;
}

/* The bytes of the iov behind `skip` in one piece of at most a record: where they lie if that is
 * one piece already, else copied together into buf. */
static struct iovec
gather(const struct iovec *iov, int n, size_t skip, char buf[RECORD_MAX])
{
	struct iovec out = { buf, 0 };

	for (int i = 0; i < n && out.iov_len < RECORD_MAX; i++) {
		size_t left = iov[i].iov_len, take;

		if (skip >= left) {
			skip -= left;
			continue;
		}
		left -= skip;
		take = left < RECORD_MAX - out.iov_len ? left : RECORD_MAX - out.iov_len;
		if (out.iov_len == 0 && (take == RECORD_MAX || i == n - 1))
			return (struct iovec){ (char *)iov[i].iov_base + skip, take };
		memcpy(buf + out.iov_len, (char *)iov[i].iov_base + skip, take);
		out.iov_len += take;
		skip = 0;
	}
	return out;
}

static ssize_t
tls_writev(struct sock *s, const struct iovec *iov, int n)
{
	static char buf[RECORD_MAX];
	size_t total = 0, sent = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	while (sent < total) {
		struct iovec piece = gather(iov, n, sent, buf);
		int r;

		ERR_clear_error();
		errno = 0;
		r = SSL_write(ssl_of(s), piece.iov_base, (int)piece.iov_len);
		if (r <= 0) {
			if (outcome(s, r) == -1 && errno == EAGAIN) {
				/* Writes wait for the fd by the pending output itself; waiting to
				 * read does not happen, since renegotiation is off. */
				s->io_want_write = false;
				if (sent > 0)
					break;
			} else if (sent > 0) {
				break; /* comes again with the rest */
			}
			return -1;
		}
		sent += (size_t)r;
	}
	return (ssize_t)sent;
}

static int
tls_handshake(struct sock *s)
{
	int r;

	ERR_clear_error();
	errno = 0;
	s->io_want_write = false;
	if (SSL_get_fd(ssl_of(s)) == -1 && SSL_set_fd(ssl_of(s), s->fd) != 1) {
		errno = EPROTO;
		return -1;
	}
	r = SSL_accept(ssl_of(s));
	if (r == 1)
		return 0;
	if (outcome(s, r) == 0)
		errno = EPROTO;
	return -1;
}

static void
tls_shutdown(struct sock *s)
{
	ERR_clear_error();
	SSL_shutdown(ssl_of(s));
}

static void
tls_free(struct sock *s)
{
	SSL_free(ssl_of(s));
	s->io_state = NULL;
}

static const struct sock_io tls_io = {
	.read = tls_read,
	.writev = tls_writev,
	.handshake = tls_handshake,
	.shutdown = tls_shutdown,
	.free = tls_free,
};

static int
fail_ssl(struct err *e, const char *what)
{
	char text[160] = "unknown error";
	unsigned long code = ERR_get_error();

	if (code != 0)
		ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	return err_set(e, ERR_INVALID, "%s: %s", what, text);
}

/* Only http/1.1 is spoken; a client that offers something else alone gets no answer to its ALPN. */
static int
on_alpn(SSL *ssl UNUSED, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
    unsigned in_len, void *arg UNUSED)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *found;

	if (SSL_select_next_proto(&found, out_len, ours, sizeof(ours) - 1, in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = found;
	return SSL_TLSEXT_ERR_OK;
}

static int
load_pair(const struct tls_server *t, SSL_CTX *ctx, struct err *e)
{
	if (SSL_CTX_use_certificate_chain_file(ctx, t->cert_file) != 1)
		return fail_ssl(e, t->cert_file);
	if (SSL_CTX_use_PrivateKey_file(ctx, t->key_file, SSL_FILETYPE_PEM) != 1)
		return fail_ssl(e, t->key_file);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return fail_ssl(e, "certificate and key do not fit");
	return 0;
}

static SSL_CTX *
context_new(const struct tls_server *t, struct err *e)
{
	static const unsigned char session_context[] = "agent-sandbox";
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	BUG_ON(ctx == NULL);
	if (load_pair(t, ctx, e) == -1 || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_options(ctx,
	    SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
	        SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx,
	    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	        SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_id_context(ctx, session_context, sizeof(session_context) - 1);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	return ctx;
}

static int
layer_attach(struct sock_layer *l, struct sock *s, struct err *e)
{
	return tls_server_attach(container_of(l, struct tls_server, layer), s, e);
}

int
tls_server_new(const char *cert_file, const char *key_file, struct tls_server **ret, struct err *e)
{
	struct tls_server *t = xcalloc(1, sizeof(*t));

	t->layer.attach = layer_attach;
	t->cert_file = xstrdup(cert_file);
	t->key_file = xstrdup(key_file);
	(void)file_changed(cert_file, &t->cert_stamp);
	(void)file_changed(key_file, &t->key_stamp);
	t->ctx = context_new(t, e);
	if (t->ctx == NULL) {
		tls_server_free(t);
		return -1;
	}
	*ret = t;
	return 0;
}

int
tls_server_refresh(struct tls_server *t, struct err *e)
{
	bool cert = file_changed(t->cert_file, &t->cert_stamp);
	bool key = file_changed(t->key_file, &t->key_stamp);
	SSL_CTX *ctx;

	if (!cert && !key)
		return 0;
	ctx = context_new(t, e);
	if (ctx == NULL) {
		/* Half of a rotation: look again next time, whatever the stamps say. */
		memset(&t->cert_stamp, 0, sizeof(t->cert_stamp));
		return -1;
	}
	SSL_CTX_free(t->ctx);
	t->ctx = ctx;
	return 0;
}

void
tls_server_free(struct tls_server *t)
{
	if (t == NULL)
		return;
	SSL_CTX_free(t->ctx);
	xfree(t->cert_file);
	xfree(t->key_file);
	xfree(t);
}

int
tls_server_attach(struct tls_server *t, struct sock *s, struct err *e)
{
	SSL *ssl = SSL_new(t->ctx);

	BUG_ON(s->state != SOCK_CLOSED);
	if (ssl == NULL)
		return fail_ssl(e, "SSL_new");
	s->io = &tls_io;
	s->io_state = ssl;
	return 0;
}
