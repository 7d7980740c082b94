/*
 * See multipart.h. The delimiter CRLF "--" boundary has its only CR at the front, so a match that
 * fails can only begin again at the byte that broke it: no general search is needed, and what was
 * held back is the delimiter's own beginning.
 */
#include "envd/multipart.h"

#include <string.h>

#include "base/alloc.h"

#define DELIM_EXTRA 4   /* CR LF - - */
#define LINE_END_MAX 64 /* blanks behind a delimiter */

enum mp_state {
	MP_CONTENT = 0, /* preamble or part content, looking for the delimiter */
	MP_AFTER,       /* behind a delimiter: end of line, or the final "--" */
	MP_HEAD,        /* header lines of a part */
	MP_EPILOGUE,    /* behind the last delimiter: ignored */
};

struct multipart {
	const struct multipart_cb *cb;
	void *arg;
	enum mp_state state;
	bool in_part; /* content is a part's, not the preamble */
	char delim[DELIM_EXTRA + MULTIPART_BOUNDARY_MAX];
	size_t delim_n, matched;
	size_t virtual_n; /* of what is matched: not from the content, but the line end before it */
	char after[LINE_END_MAX];
	size_t after_n;
	struct strbuf head;
	unsigned parts;
};

struct multipart *
multipart_new(struct strv boundary, const struct multipart_cb *cb, void *arg)
{
	struct multipart *m;

	if (boundary.n == 0 || boundary.n > MULTIPART_BOUNDARY_MAX ||
	    strv_chr(boundary, '\r') != -1 || strv_chr(boundary, '\n') != -1)
		return NULL;
	m = xcalloc(1, sizeof(*m));
	m->cb = cb;
	m->arg = arg;
	memcpy(m->delim, "\r\n--", DELIM_EXTRA);
	memcpy(m->delim + DELIM_EXTRA, boundary.p, boundary.n);
	m->delim_n = DELIM_EXTRA + boundary.n;
	m->matched = m->virtual_n = 2; /* the body begins at the start of a line */
	strbuf_init(&m->head, MULTIPART_HEAD_MAX);
	return m;
}

void
multipart_free(struct multipart *m)
{
	if (m == NULL)
		return;
	strbuf_done(&m->head);
	xfree(m);
}

static int
data(struct multipart *m, const char *p, size_t n, struct err *e)
{
	return m->in_part && n > 0 ? m->cb->on_data(m->arg, p, n, e) : 0;
}

/* What looked like (the beginning of) a delimiter is content. */
static int
no_delimiter(struct multipart *m, struct err *e)
{
	size_t from = m->virtual_n, n = m->matched;

	m->matched = m->virtual_n = 0;
	return data(m, m->delim + from, n - from, e);
}

/* Content up to the end of the input or of a delimiter. */
static int
take_content(struct multipart *m, struct strv *in, struct err *e)
{
	size_t i = 0, from = 0;

	while (i < in->n) {
		if (m->matched == 0) {
			const char *cr = memchr(in->p + i, '\r', in->n - i);

			i = cr ? (size_t)(cr - in->p) : in->n;
			if (data(m, in->p + from, i - from, e) == -1)
				return -1;
			from = i;
			if (cr == NULL)
				break;
		}
		if (in->p[i] != m->delim[m->matched]) {
			if (no_delimiter(m, e) == -1)
				return -1;
			continue;
		}
		i++;
		from = i;
		if (++m->matched == m->delim_n) {
			m->state = MP_AFTER;
			m->after_n = 0;
			break;
		}
	}
	*in = (struct strv){ in->p + i, in->n - i };
	return 0;
}

static int
part_end(struct multipart *m, struct err *e)
{
	bool was = m->in_part;

	m->in_part = false;
	return was ? m->cb->on_part_end(m->arg, e) : 0;
}

/* One byte behind a delimiter. */
static int
take_after(struct multipart *m, struct strv *in, struct err *e)
{
	const char *a = m->after;
	bool blank, maybe;
	size_t n;

	m->after[m->after_n++] = in->p[0];
	*in = (struct strv){ in->p + 1, in->n - 1 };
	n = m->after_n;
	if (n == 2 && a[0] == '-' && a[1] == '-') {
		m->state = MP_EPILOGUE;
		return part_end(m, e);
	}
	if (n >= 2 && a[n - 2] == '\r' && a[n - 1] == '\n') {
		m->state = MP_HEAD;
		strbuf_reset(&m->head);
		strbuf_adds(&m->head, "\r\n");
		return part_end(m, e);
	}
	blank = a[n - 1] == '\r' || a[n - 1] == ' ' || a[n - 1] == '\t';
	maybe = n == 1 ? blank || a[0] == '-' : blank && a[0] != '-' && a[n - 2] != '\r';
	if (maybe && n < LINE_END_MAX)
		return 0;
	/* a longer line that begins like a delimiter; its last byte is looked at anew */
	if (no_delimiter(m, e) == -1 || data(m, a, n - 1, e) == -1)
		return -1;
	m->state = MP_CONTENT;
	*in = (struct strv){ in->p - 1, in->n + 1 };
	return 0;
}

/* The value of one header in "\r\nName: value\r\n…\r\n\r\n". */
static struct strv
header_value(struct strv head, const char *name)
{
	while (head.n > 0) {
		struct strv line = strv_cut(head, '\n', &head), value;
		struct strv key = strv_cut(line, ':', &value);

		if (strv_caseis(strv_trim(key), name)) {
			if (value.n > 0 && value.p[value.n - 1] == '\r')
				value.n--;
			return strv_trim(value);
		}
	}
	return STRV("");
}

static int
take_head(struct multipart *m, struct strv *in, struct err *e)
{
	while (in->n > 0) {
		strbuf_addc(&m->head, in->p[0]);
		*in = (struct strv){ in->p + 1, in->n - 1 };
		if (m->head.failed)
			return err_set(e, ERR_INVALID, "multipart: headers of a part are too long");
		if (m->head.n < 4 || memcmp(m->head.p + m->head.n - 4, "\r\n\r\n", 4) != 0)
			continue;
		if (++m->parts > MULTIPART_PARTS_MAX)
			return err_set(e, ERR_INVALID, "multipart: too many parts");
		m->state = MP_CONTENT;
		m->in_part = true;
		/* an empty part's delimiter may follow at once, its CRLF is the head's last */
		m->matched = m->virtual_n = 2;
		return m->cb->on_part(
		    m->arg, header_value(strbuf_view(&m->head), "Content-Disposition"), e);
	}
	return 0;
}

int
multipart_feed(struct multipart *m, const char *p, size_t n, struct err *e)
{
	struct strv in = { p, n };
	int r = 0;

	while (r == 0 && in.n > 0 && m->state != MP_EPILOGUE) {
		switch (m->state) {
		case MP_CONTENT:
			r = take_content(m, &in, e);
			break;
		case MP_AFTER:
			r = take_after(m, &in, e);
			break;
		case MP_HEAD:
			r = take_head(m, &in, e);
			break;
		case MP_EPILOGUE:
			break;
		}
	}
	return r;
}

int
multipart_finish(struct multipart *m, struct err *e)
{
	if (m->state != MP_EPILOGUE)
		return err_set(e, ERR_INVALID, "multipart: unexpected end of the body");
	return 0;
}
