/*
 * The apiserver without its process, on the rig: real settings, view, service and API. Requests
 * come from raw sockets.
 */
#ifndef FAKE_RIG_API_H
#define FAKE_RIG_API_H

#include "apiserver/app.h"
#include "fake/rig.h"

/* Everything is in sync when it returns. */
void rig_start(struct rig *r);
void rig_stop(struct rig *r);

struct reply {
	int status;
	char *head, *body; /* text */
	json_t *json;      /* of the body; NULL: it is none */
};
void reply_done(struct reply *p);
/* The value of a field of the head (copied to a static buffer), or NULL. */
const char *reply_field(const struct reply *p, const char *name);

/* One request on a connection of its own, with this key ("" none) and body (NULL none). */
struct reply rig_call(
    struct rig *r, const char *key, const char *method, const char *path, const char *body);
/* The two halves of it: send returns the socket. fields: more lines of the head, each with CRLF. */
int rig_send(struct rig *r, const char *key, const char *method, const char *path,
    const char *fields, const char *body);
struct reply rig_receive(struct rig *r, int fd, bool head_only);
/* Any bytes. */
int rig_send_raw(struct rig *r, const char *text);

#endif
