/*
 * Exchanges on two curl multis. An op moves WAITING → RUNNING → ENDED, or to DEAD when it was
 * cancelled; only turn() adds handles to curl and takes cancelled ones away. Must not know
 * Kubernetes.
 */
#include "kube/kube_http.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kube/kube_client.h"
#include "kube/kube_metrics.h"

#define IDLE_HANDLES_MAX 64 /* easy handles kept for reuse, per lane */
#define CONN_MAX_AGE_S 80L  /* below the 90 s after which an API server closes idle ones */
#define STREAM_BUF (64 * 1024L)
#define USER_TIMEOUT_MS 30000 /* unacknowledged data: the peer is gone */
#define USER_AGENT "agent-sandbox/" AGENT_SANDBOX_VERSION

enum op_state { OP_WAITING = 0, OP_RUNNING, OP_ENDED, OP_DEAD };

TAILQ_HEAD(op_list, kube_op);

/* One curl multi. */
struct multi {
	CURLM *curl;
	struct timer timer;
	struct kube_http *h;
	bool kick; /* handles were added */
};

struct lane {
	struct op_list waiting, running;
	size_t n_waiting, n_running, max;
	CURL *idle[IDLE_HANDLES_MAX];
	size_t n_idle;
	struct multi *multi;
};

struct kube_http {
	struct loop *loop;
	const struct kube_config *config;
	struct multi calls, streams;
	struct lane lane[KUBE_LANE_COUNT];
	struct op_list dead;
	struct defer turn;
	bool in_curl; /* one of curl's functions is on the stack */
	bool in_end;  /* an on_end is on the stack */
};

/* A socket that curl wants watched. */
struct curl_watch {
	struct event ev;
	struct multi *m;
};

struct kube_op {
	TAILQ_ENTRY(kube_op) link;
	struct kube_http *h;
	enum op_state state;
	enum kube_lane lane;
	struct kube_op_ops ops;
	void *arg;
	char *method, *url, *body;
	size_t body_len;
	struct curl_slist *headers;
	int64_t connect_timeout;
	struct timer deadline;
	CURL *easy;
	struct strbuf answer;
	bool opened;  /* stream with a 2xx head */
	bool refused; /* the line was full */
	char errbuf[CURL_ERROR_SIZE];
};

/* The process's only curl_global_init: a second one elsewhere would come first and keep curl on
 * malloc. curl counts the calls; kube_http_free undoes one. */
static void
global_init(void)
{
	BUG_ON(curl_global_init_mem(
	           CURL_GLOBAL_DEFAULT, xmalloc, xfree, xrealloc, xstrdup, xcalloc) != CURLE_OK);
}

/* --- ops --- */

static void
op_free(struct kube_op *op)
{
	BUG_ON(op->easy != NULL);
	timer_stop(&op->deadline);
	curl_slist_free_all(op->headers);
	strbuf_done(&op->answer);
	xfree(op->method);
	xfree(op->url);
	xfree(op->body);
	xfree(op);
}

/* Out of the line or the running list. */
static void
op_unlink(struct kube_op *op)
{
	struct lane *lane = &op->h->lane[op->lane];

	if (op->state == OP_WAITING) {
		TAILQ_REMOVE(&lane->waiting, op, link);
		lane->n_waiting--;
	} else {
		BUG_ON(op->state != OP_RUNNING);
		TAILQ_REMOVE(&lane->running, op, link);
		lane->n_running--;
	}
}

/* Takes the easy handle out of curl and keeps it for the next op. Not inside curl. */
static void
op_release_easy(struct kube_op *op)
{
	struct lane *lane = &op->h->lane[op->lane];
	CURL *easy = op->easy;

	if (easy == NULL)
		return;
	op->easy = NULL;
	BUG_ON(op->h->in_curl);
	op->h->in_curl = true;
	BUG_ON(curl_multi_remove_handle(lane->multi->curl, easy) != CURLM_OK);
	op->h->in_curl = false;
	/* What pointed into op must not stay behind. */
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
	if (lane->n_idle < IDLE_HANDLES_MAX)
		lane->idle[lane->n_idle++] = easy;
	else
		curl_easy_cleanup(easy);
}

static void
op_end(struct kube_op *op, const struct kube_answer *a)
{
	struct kube_http *h = op->h;

	BUG_ON(h->in_end);
	timer_stop(&op->deadline);
	op_unlink(op);
	op->state = OP_ENDED;
	op_release_easy(op);
	h->in_end = true;
	op->ops.on_end(op, a, op->arg);
	h->in_end = false;
	op_free(op);
	loop_defer(h->loop, &h->turn); /* someone in line may start */
}

static void
on_deadline(void *arg)
{
	struct kube_op *op = arg;
	struct kube_answer a = { .status = 0 };

	err_set(&a.err, ERR_TIMEOUT, "no complete answer in time");
	op_end(op, &a);
}

void
kube_op_cancel(struct kube_op *op)
{
	struct kube_http *h = op->h;

	BUG_ON(op->state == OP_DEAD || op->state == OP_ENDED);
	timer_stop(&op->deadline);
	op_unlink(op);
	op->state = OP_DEAD;
	TAILQ_INSERT_TAIL(&h->dead, op, link);
	loop_defer(h->loop, &h->turn);
}

char *
kube_op_take_body(struct kube_op *op)
{
	char *body = op->body;

	BUG_ON(op->state != OP_ENDED);
	op->body = NULL;
	return body;
}

struct kube_op *
kube_op_start(
    struct kube_http *h, const struct kube_op_req *req, const struct kube_op_ops *ops, void *arg)
{
	struct lane *lane = &h->lane[req->lane];
	struct kube_op *op = xcalloc(1, sizeof(*op));

	op->h = h;
	op->lane = req->lane;
	op->ops = *ops;
	op->arg = arg;
	op->method = xstrdup(req->method);
	op->url = xstrdup(req->url);
	op->body = req->body;
	op->body_len = req->body_len;
	op->connect_timeout = req->connect_timeout;
	strbuf_init(&op->answer, req->max_answer);
	for (const char *const *p = req->headers; p != NULL && *p != NULL; p++)
		op->headers = curl_slist_append(op->headers, *p);
	if (op->body != NULL) /* no round trip before a long body */
		op->headers = curl_slist_append(op->headers, "Expect:");
	timer_init(&op->deadline, h->loop, on_deadline, op);
	if (req->timeout > 0)
		timer_start(&op->deadline, req->timeout);
	op->refused = lane->n_waiting >= KUBE_WAITING_MAX;
	TAILQ_INSERT_TAIL(&lane->waiting, op, link);
	lane->n_waiting++;
	loop_defer(h->loop, &h->turn);
	return op;
}

/* --- what curl calls --- */

static int
status_of(CURL *easy)
{
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static bool
is_success(int status)
{
	return status >= 200 && status < 300;
}

static size_t
on_write(char *p, size_t size, size_t count, void *arg)
{
	struct kube_op *op = arg;
	size_t n = size * count;

	if (op->state == OP_DEAD)
		return CURL_WRITEFUNC_ERROR;
	if (op->opened) {
		op->ops.on_bytes(p, n, op->arg);
	} else {
		strbuf_add(&op->answer, p, n);
		/* Of a refused stream the status is enough. */
		if (op->answer.failed && op->lane != KUBE_LANE_STREAM)
			return CURL_WRITEFUNC_ERROR;
	}
	return op->state == OP_DEAD ? CURL_WRITEFUNC_ERROR : n;
}

/* Only set for streams: the empty line ends a head, maybe an interim one. */
static size_t
on_header(char *p, size_t size, size_t count, void *arg)
{
	struct kube_op *op = arg;
	size_t n = size * count;

	if (op->state == OP_DEAD)
		return CURL_WRITEFUNC_ERROR;
	if (op->opened || (*p != '\r' && *p != '\n') || !is_success(status_of(op->easy)))
		return n;
	op->opened = true;
	if (op->ops.on_open != NULL)
		op->ops.on_open(op->arg);
	return op->state == OP_DEAD ? CURL_WRITEFUNC_ERROR : n;
}

static int
on_sockopt(void *arg UNUSED, curl_socket_t fd, curlsocktype purpose UNUSED)
{
	unsigned ms = USER_TIMEOUT_MS;

	/* Best effort: without it a dead peer is found by keepalive and our own timers. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	return CURL_SOCKOPT_OK;
}

static void check_done(struct multi *m);

static void
multi_action(struct multi *m, curl_socket_t fd, int what)
{
	int running;

	BUG_ON(m->h->in_curl);
	m->h->in_curl = true;
	BUG_ON(curl_multi_socket_action(m->curl, fd, what, &running) != CURLM_OK);
	m->h->in_curl = false;
	check_done(m);
}

static void
on_fd(evutil_socket_t fd, short what, void *arg)
{
	struct multi *m = ((struct curl_watch *)arg)->m; /* the call below may free it */
	int mask = 0;

	if (what & EV_READ)
		mask |= CURL_CSELECT_IN;
	if (what & EV_WRITE)
		mask |= CURL_CSELECT_OUT;
	multi_action(m, fd, mask);
}

static void
on_multi_timer(void *arg)
{
	multi_action(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int
on_want_socket(CURL *easy UNUSED, curl_socket_t fd, int what, void *arg, void *watch_arg)
{
	struct multi *m = arg;
	struct curl_watch *w = watch_arg;
	short events = EV_PERSIST;

	if (w != NULL)
		event_del(&w->ev);
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(m->curl, fd, NULL);
		xfree(w);
		return 0;
	}
	if (w == NULL) {
		w = xcalloc(1, sizeof(*w));
		w->m = m;
		curl_multi_assign(m->curl, fd, w);
	}
	if (what & CURL_POLL_IN)
		events |= EV_READ;
	if (what & CURL_POLL_OUT)
		events |= EV_WRITE;
	BUG_ON(event_assign(&w->ev, loop_base(m->h->loop), fd, events, on_fd, w) == -1);
	BUG_ON(event_add(&w->ev, NULL) == -1);
	return 0;
}

static int
on_want_timer(CURLM *curl UNUSED, long ms, void *arg)
{
	struct multi *m = arg;

	if (ms < 0)
		timer_stop(&m->timer);
	else
		timer_start(&m->timer, MILLIS(ms));
	return 0;
}

/* --- easy handles --- */

/* What never changes in a lane's life. CURLOPT failures here mean a libcurl without the option. */
static void
set_common(CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 15L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_sockopt);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, USER_AGENT);
}

static void
set_blob(CURL *easy, CURLoption option, char *pem)
{
	/* Not copied: config outlives every handle. */
	struct curl_blob blob = { .data = pem, .flags = CURL_BLOB_NOCOPY };

	if (pem == NULL)
		return;
	blob.len = strlen(pem);
	curl_easy_setopt(easy, option, &blob);
}

static void
set_api_server(CURL *easy, const struct kube_config *config)
{
	if (config->ca_pem != NULL) {
		set_blob(easy, CURLOPT_CAINFO_BLOB, config->ca_pem);
		/* Else the system's folder is trusted beside the blob. */
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	if (config->insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	set_blob(easy, CURLOPT_SSLCERT_BLOB, config->cert_pem);
	set_blob(easy, CURLOPT_SSLKEY_BLOB, config->key_pem);
	curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, CONN_MAX_AGE_S);
}

static CURL *
easy_new(struct kube_http *h, enum kube_lane lane)
{
	CURL *easy = curl_easy_init();

	BUG_ON(easy == NULL);
	set_common(easy);
	if (lane == KUBE_LANE_PLAIN) {
		/* A pod's address may be another pod's a second later. */
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		return easy;
	}
	set_api_server(easy, h->config);
	if (lane == KUBE_LANE_STREAM) {
		curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
		curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, STREAM_BUF);
	}
	return easy;
}

static void
set_request(CURL *easy, struct kube_op *op)
{
	curl_easy_setopt(easy, CURLOPT_URL, op->url);
	if (op->body != NULL) {
		curl_easy_setopt(easy, CURLOPT_POST, 1L);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)op->body_len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, op->body);
	} else {
		curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	}
	if (strcmp(op->method, "HEAD") == 0)
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, op->method);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, op->headers);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(op->connect_timeout / NS_PER_MS));
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, op->errbuf);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, op);
	if (op->lane == KUBE_LANE_STREAM) /* without a function curl takes headers for body */
		curl_easy_setopt(easy, CURLOPT_HEADERDATA, op);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, op);
}

static void
op_run(struct kube_op *op)
{
	struct kube_http *h = op->h;
	struct lane *lane = &h->lane[op->lane];

	op_unlink(op);
	TAILQ_INSERT_TAIL(&lane->running, op, link);
	lane->n_running++;
	op->state = OP_RUNNING;
	op->easy = lane->n_idle > 0 ? lane->idle[--lane->n_idle] : easy_new(h, op->lane);
	set_request(op->easy, op);
	h->in_curl = true;
	BUG_ON(curl_multi_add_handle(lane->multi->curl, op->easy) != CURLM_OK);
	h->in_curl = false;
	lane->multi->kick = true;
}

/* --- ends --- */

/* Had the connection (TLS included) come to be? If not, nothing of the request was sent. */
static bool
was_connected(const struct kube_op *op)
{
	curl_off_t us = 0;
	bool tls = strncmp(op->url, "https:", 6) == 0;

	curl_easy_getinfo(
	    op->easy, tls ? CURLINFO_APPCONNECT_TIME_T : CURLINFO_CONNECT_TIME_T, &us);
	return us > 0;
}

static void
transport_err(const struct kube_op *op, CURLcode code, struct err *e)
{
	const char *text = op->errbuf[0] != '\0' ? op->errbuf : curl_easy_strerror(code);

	if (op->answer.failed && op->lane != KUBE_LANE_STREAM)
		err_set(e, ERR_TOO_LARGE, "the answer is longer than %zu bytes", op->answer.max);
	else if (!was_connected(op))
		err_set(e, ERR_UNAVAILABLE, "not connected: %s", text);
	else
		err_set(e, ERR_IO, "the connection broke: %s", text);
}

static void
op_done(struct kube_op *op, CURLcode code)
{
	struct kube_answer a = { .status = 0 };
	curl_off_t after = 0;

	if (code != CURLE_OK) {
		transport_err(op, code, &a.err);
	} else {
		a.status = status_of(op->easy);
		a.body = strbuf_view(&op->answer);
		if (!is_success(a.status))
			curl_easy_getinfo(op->easy, CURLINFO_RETRY_AFTER, &after);
		if (after > 0)
			a.retry_after = after > 3600 ? 3600 : (int)after;
	}
	op_end(op, &a);
}

static void
check_done(struct multi *m)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(m->curl, &left)) != NULL) {
		char *private = NULL;
		struct kube_op *op;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &private);
		op = (struct kube_op *)(void *)private;
		if (op->state == OP_RUNNING) /* a dead one is reaped by turn() */
			op_done(op, msg->data.result);
	}
}

/* --- the turn --- */

static void
reap_dead(struct kube_http *h)
{
	struct kube_op *op;

	while ((op = TAILQ_FIRST(&h->dead)) != NULL) {
		TAILQ_REMOVE(&h->dead, op, link);
		op_release_easy(op);
		op_free(op);
	}
}

static void
op_refuse(struct kube_op *op)
{
	static const char *const kinds[KUBE_LANE_COUNT] = {
		[KUBE_LANE_CALL] = "call",
		[KUBE_LANE_PLAIN] = "plain",
		[KUBE_LANE_STREAM] = "stream",
	};
	struct kube_answer a = { .status = 0 };

	err_set(&a.err, ERR_UNAVAILABLE, "more than %d calls wait", KUBE_WAITING_MAX);
	a.err.retry_after = 1;
	metric_add(&kube_refused_total, kinds[op->lane], 1);
	op_end(op, &a);
}

static void
start_waiting(struct lane *lane)
{
	struct kube_op *op;

	/* Refused ones are at the end. on_end may add more, which the next turn refuses. */
	for (size_t n = lane->n_waiting; n > KUBE_WAITING_MAX; n--) {
		op = TAILQ_LAST(&lane->waiting, op_list);
		if (op == NULL || !op->refused)
			break;
		op_refuse(op);
	}
	while (lane->n_running < lane->max && (op = TAILQ_FIRST(&lane->waiting)) != NULL)
		op_run(op);
}

/* Lets new ones send now rather than by a zero timer in the next turn. */
static void
multi_kick(struct multi *m)
{
	if (!m->kick)
		return;
	m->kick = false;
	multi_action(m, CURL_SOCKET_TIMEOUT, 0);
}

static void
turn(void *arg)
{
	struct kube_http *h = arg;

	reap_dead(h);
	for (size_t i = 0; i < KUBE_LANE_COUNT; i++)
		start_waiting(&h->lane[i]);
	multi_kick(&h->calls);
	multi_kick(&h->streams);
}

/* --- whole --- */

static void
multi_init(struct multi *m, struct kube_http *h)
{
	m->h = h;
	m->curl = curl_multi_init();
	BUG_ON(m->curl == NULL);
	timer_init(&m->timer, h->loop, on_multi_timer, m);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, on_want_socket);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, on_want_timer);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	/* Idle ones stay open, as many as a burst may have made. */
	curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, (long)KUBE_CALLS_MAX);
	curl_multi_setopt(m->curl, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
}

int
kube_http_new(
    struct loop *l, const struct kube_config *config, struct kube_http **ret, struct err *e)
{
	struct kube_http *h;

	if (curl_version_info(CURLVERSION_NOW)->version_num < 0x075500)
		return err_set(e, ERR_UNSUPPORTED, "libcurl is older than 7.85");
	global_init();
	h = xcalloc(1, sizeof(*h));
	h->loop = l;
	h->config = config;
	TAILQ_INIT(&h->dead);
	defer_init(&h->turn, turn, h);
	multi_init(&h->calls, h);
	multi_init(&h->streams, h);
	for (size_t i = 0; i < KUBE_LANE_COUNT; i++) {
		TAILQ_INIT(&h->lane[i].waiting);
		TAILQ_INIT(&h->lane[i].running);
		h->lane[i].multi = i == KUBE_LANE_STREAM ? &h->streams : &h->calls;
	}
	h->lane[KUBE_LANE_CALL].max = KUBE_CALLS_MAX;
	h->lane[KUBE_LANE_PLAIN].max = KUBE_PLAIN_MAX;
	h->lane[KUBE_LANE_STREAM].max = SIZE_MAX;
	*ret = h;
	return 0;
}

static void
lane_done(struct lane *lane)
{
	struct kube_op *op;

	while ((op = TAILQ_FIRST(&lane->waiting)) != NULL)
		kube_op_cancel(op);
	while ((op = TAILQ_FIRST(&lane->running)) != NULL)
		kube_op_cancel(op);
}

void
kube_http_free(struct kube_http *h)
{
	if (h == NULL)
		return;
	BUG_ON(h->in_curl || h->in_end);
	for (size_t i = 0; i < KUBE_LANE_COUNT; i++)
		lane_done(&h->lane[i]);
	reap_dead(h);
	loop_undefer(h->loop, &h->turn);
	for (size_t i = 0; i < KUBE_LANE_COUNT; i++) {
		while (h->lane[i].n_idle > 0)
			curl_easy_cleanup(h->lane[i].idle[--h->lane[i].n_idle]);
	}
	curl_multi_cleanup(h->calls.curl); /* closes connections, so it may call on_want_socket */
	curl_multi_cleanup(h->streams.curl);
	timer_stop(&h->calls.timer);
	timer_stop(&h->streams.timer);
	xfree(h);
	curl_global_cleanup();
}
