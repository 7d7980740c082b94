/* TLS under the server, with certificates made here and OpenSSL's own client. */
#include "http_rig.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

static char dir[64], cert_file[96], key_file[96];
static struct tls_server *tls;

static void
write_pem(const char *path, X509 *cert, EVP_PKEY *key)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	if (cert)
		assert_int_equal(PEM_write_X509(f, cert), 1);
	if (key)
		assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
}

/* A self-signed pair with that common name; either file may be left out. */
static void
make_pair(const char *name, bool write_cert, bool write_key)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_NAME *n = X509_get_subject_name(x);

	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x, n);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	if (write_cert)
		write_pem(cert_file, x, NULL);
	if (write_key)
		write_pem(key_file, NULL, key);
	X509_free(x);
	EVP_PKEY_free(key);
}

static int
setup(void **state)
{
	struct err e;

	rig_setup(state);
	snprintf(dir, sizeof(dir), "/tmp/tls_test_XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(cert_file, sizeof(cert_file), "%s/cert", dir);
	snprintf(key_file, sizeof(key_file), "%s/key", dir);
	make_pair("first", true, true);
	assert_ok(e, tls_server_new(cert_file, key_file, &tls, &e));
	return 0;
}

static void
start(void)
{
	struct err e;

	rig_start();
	assert_ok(e, http_server_listen(rig.s, "127.0.0.1:0", tls, &rig.port, &e));
}

static int
teardown(void **state)
{
	rig_teardown(state);
	tls_server_free(tls);
	tls = NULL;
	unlink(cert_file);
	unlink(key_file);
	rmdir(dir);
	return 0;
}

/* --- a client --- */

struct client {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
};

/* Repeats an SSL call while it has to wait. */
#define ssl_wait(c, call)                                                                          \
	({                                                                                         \
		int r_, e_;                                                                        \
		int64_t end_ = clock_mono() + WAIT_MAX;                                            \
		do {                                                                               \
			r_ = (call);                                                               \
			e_ = SSL_get_error((c)->ssl, r_);                                          \
			if (r_ <= 0)                                                               \
				net_turn(rig.l);                                                   \
		} while (r_ <= 0 && (e_ == SSL_ERROR_WANT_READ || e_ == SSL_ERROR_WANT_WRITE) &&   \
		    clock_mono() < end_);                                                          \
		r_;                                                                                \
	})

/* Returns what SSL_connect does. */
static int
client_open(struct client *c, int max_version)
{
	static const unsigned char alpn[] = "\x02h2\x08http/1.1";

	c->ctx = SSL_CTX_new(TLS_client_method());
	if (max_version)
		SSL_CTX_set_max_proto_version(c->ctx, max_version);
	SSL_CTX_set_security_level(
	    c->ctx, 0); /* old versions are refused by the server, not here */
	SSL_CTX_set_mode(
	    c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	c->ssl = SSL_new(c->ctx);
	c->fd = net_connect(rig.port);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_alpn_protos(c->ssl, alpn, sizeof(alpn) - 1);
	return ssl_wait(c, SSL_connect(c->ssl));
}

static void
client_close(struct client *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	close(c->fd);
}

static void
client_send(struct client *c, const void *p, size_t n)
{
	size_t sent = 0;

	while (sent < n) {
		int r = ssl_wait(c, SSL_write(c->ssl, (const char *)p + sent, (int)(n - sent)));

		assert_true(r > 0);
		sent += (size_t)r;
	}
}

/* Reads until text came (1) or the end (0: close_notify, -1: anything else). */
static int
client_read(struct client *c, struct strbuf *b, const char *text)
{
	static char buf[65536];

	for (;;) {
		int r = ssl_wait(c, SSL_read(c->ssl, buf, sizeof(buf)));

		if (r <= 0)
			return SSL_get_error(c->ssl, r) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
		strbuf_add(b, buf, (size_t)r);
		if (text && memmem(b->p, b->n, text, strlen(text)))
			return 1;
	}
}

#define SEND(c, text) client_send(c, text, strlen(text))
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

TEST(requests_over_tls)
{
	const unsigned char *alpn;
	unsigned alpn_len;
	struct client c;
	struct strbuf b;

	start();
	strbuf_init(&b, 10000);
	assert_int_equal(client_open(&c, 0), 1);
	assert_string_equal(SSL_get_version(c.ssl), "TLSv1.3");
	SSL_get0_alpn_selected(c.ssl, &alpn, &alpn_len);
	assert_strv(((struct strv){ (const char *)alpn, alpn_len }), "http/1.1");
	SEND(&c, GET("/") GET("/404"));
	assert_int_equal(client_read(&c, &b, "404"), 1);
	SEND(&c, GET("/stream"));
	assert_int_equal(client_read(&c, &b, "0\r\n\r\n"), 1);
	/* A half-closed client gets its answer, then the server's end. */
	SEND(&c, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc" GET("/close"));
	SSL_shutdown(c.ssl);
	assert_int_equal(client_read(&c, &b, NULL), 0);
	assert_has(b.p, "3\r\nabc\r\n0\r\n\r\n");
	assert_has(b.p, "Connection: close\r\n\r\nclose");
	assert_int_equal(strncmp(b.p, "HTTP/1.1 200 OK\r\n", 17), 0);
	client_close(&c);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	strbuf_done(&b);
}

TEST(old_version)
{
	struct client c;
	struct strbuf b;

	start();
	strbuf_init(&b, 1000);
	assert_int_equal(client_open(&c, TLS1_2_VERSION), 1);
	assert_string_equal(SSL_get_version(c.ssl), "TLSv1.2");
	SEND(&c, GET("/"));
	assert_int_equal(client_read(&c, &b, "ok"), 1);
	client_close(&c);
	assert_int_equal(client_open(&c, TLS1_1_VERSION), -1);
	client_close(&c);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	strbuf_done(&b);
}

TEST(big_bodies)
{
	size_t n = 3 * 1024 * 1024;
	char *data = xmalloc(n);
	struct client c;
	struct strbuf b;

	start();
	for (size_t i = 0; i < n; i++)
		data[i] = (char)('a' + i % 23);
	strbuf_init(&b, 8 * 1024 * 1024);
	assert_int_equal(client_open(&c, 0), 1);
	SEND(&c, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 3145728\r\n\r\n");
	client_send(&c, data, n);
	rig_wait_log(" end; ");
	assert_int_equal(rig.body, n);
	/* Back: more than the kernel takes, in odd pieces, kept as pending between. */
	http_reply_start(rig.held, 200, NULL, 0, (int64_t)n);
	for (size_t at = 0, piece = 1; at < n; at += piece, piece = piece * 3 % 50000 + 1) {
		if (piece > n - at)
			piece = n - at;
		http_reply_write(rig.held, data + at, piece);
		for (int i = 0; sock_pending(http_req_sock(rig.held)) > 0 && i < 100000; i++) {
			char buf[16384];
			int r = SSL_read(c.ssl, buf, sizeof(buf));

			if (r > 0)
				strbuf_add(&b, buf, (size_t)r);
			loop_once(rig.l, false);
		}
	}
	http_reply_end(rig.held);
	while (b.n < n + 10 || memcmp(b.p + b.n - 10, data + n - 10, 10) != 0)
		assert_int_equal(client_read(&c, &b, ""), 1);
	assert_memory_equal(b.p + b.n - n, data, n);
	client_close(&c);
	strbuf_done(&b);
	xfree(data);
}

/* A record that is larger than what one read takes at a time, many of them at once. */
TEST(nothing_stays_in_openssl)
{
	static char block[16384];
	struct client c;

	start();
	memset(block, 'x', sizeof(block));
	assert_int_equal(client_open(&c, 0), 1);
	SEND(&c, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 163850\r\n\r\n");
	for (int i = 0; i < 10; i++)
		client_send(&c, block, sizeof(block));
	client_send(&c, block, 10);
	rig_wait_log(" end; ");
	assert_int_equal(rig.body, 163850);
	client_close(&c);
}

TEST(plain_text_and_silence)
{
	struct strbuf b;
	int fd;

	rig.conf.head_timeout = MILLIS(60);
	start();
	strbuf_init(&b, 1000);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, GET("/"));
	net_read_until(rig.l, fd, &b, NULL); /* an alert at most */
	if (b.n > 0)
		assert_has_not(b.p, "HTTP");
	close(fd);
	fd = net_connect(rig.port);
	strbuf_reset(&b);
	assert_int_equal(net_read_until(rig.l, fd, &b, NULL), 0);
	close(fd);
	fd = net_connect(rig.port);
	net_send_text(rig.l, fd, "\x16\x03\x01");
	net_read_until(rig.l, fd, &b, NULL);
	close(fd);
	turn_until(rig.l, http_server_conns(rig.s) == 0);
	assert_string_equal(rig_log(), "");
	strbuf_done(&b);
}

static void
check_name(const char *want)
{
	struct client c;
	char name[64] = "";
	X509 *x;

	assert_int_equal(client_open(&c, 0), 1);
	x = SSL_get1_peer_certificate(c.ssl);
	X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof(name));
	assert_string_equal(name, want);
	X509_free(x);
	client_close(&c);
}

TEST(certificates_rotate)
{
	struct client old;
	struct strbuf b;
	struct err e;

	start();
	strbuf_init(&b, 1000);
	check_name("first");
	assert_int_equal(client_open(&old, 0), 1);
	assert_ok(e, tls_server_refresh(tls, &e)); /* nothing new */
	/* Half of a rotation: the old pair stays, and the next look sees the whole. */
	make_pair("second", true, false);
	assert_fails(e, ERR_INVALID, tls_server_refresh(tls, &e));
	check_name("first");
	assert_fails(e, ERR_INVALID, tls_server_refresh(tls, &e));
	make_pair("third", true, true);
	assert_ok(e, tls_server_refresh(tls, &e));
	check_name("third");
	/* Connections keep what they have. */
	SEND(&old, GET("/"));
	assert_int_equal(client_read(&old, &b, "ok"), 1);
	client_close(&old);
	unlink(key_file);
	assert_fails(e, ERR_INVALID, tls_server_refresh(tls, &e));
	check_name("third");
	strbuf_done(&b);
}

TEST(bad_files)
{
	struct tls_server *t;
	struct err e;
	FILE *f;

	assert_fails(e, ERR_INVALID, tls_server_new("/nonexistent", key_file, &t, &e));
	assert_has(e.msg, "/nonexistent");
	assert_fails(e, ERR_INVALID, tls_server_new(cert_file, "/nonexistent", &t, &e));
	f = fopen(cert_file, "w");
	fputs("no certificate", f);
	fclose(f);
	assert_fails(e, ERR_INVALID, tls_server_new(cert_file, key_file, &t, &e));
	tls_server_free(NULL);
}

int
main(void)
{
#define S(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		S(requests_over_tls),
		S(old_version),
		S(big_bodies),
		S(nothing_stays_in_openssl),
		S(plain_text_and_silence),
		S(certificates_rotate),
		S(bad_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
