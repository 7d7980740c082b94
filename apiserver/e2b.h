/*
 * The E2B control plane, v1 and v2 (base path /e2b/v1, or the root). Routes in e2b_routes.c; each
 * file of handlers is one resource; wire shapes are in e2b_json.c alone.
 */
#ifndef APISERVER_E2B_H
#define APISERVER_E2B_H

#include "apiserver/api.h"

extern const struct route e2b_routes[];
extern const size_t e2b_routes_n;

#define E2B_TIMEOUT_V1 15 /* seconds, when a create names none (E2B's defaults) */
#define E2B_TIMEOUT_V2 300
#define E2B_LIST_MAX 100
#define E2B_METADATA_MAX ((size_t)64 * 1024) /* all keys and values of one sandbox */

void e2b_create(struct api_call *c);
void e2b_create_v2(struct api_call *c);
void e2b_get(struct api_call *c);
void e2b_kill(struct api_call *c);
void e2b_set_timeout(struct api_call *c);
void e2b_connect(struct api_call *c);
void e2b_connect_v2(struct api_call *c);
void e2b_pause(struct api_call *c);
void e2b_list(struct api_call *c);
void e2b_list_v2(struct api_call *c);

/* The sandbox id of a path: "<id>" or the old "<id>-<client>". False: the call was failed with 400.
 */
bool e2b_path_id(struct api_call *c, struct strv *id);
/* May a caller ask for so many seconds? -1, "never", is our extension. 0 is for the caller to
 * judge. */
int e2b_check_timeout(const struct conf *conf, int64_t timeout, struct err *e) MUST_USE;

#endif
