/* What the gateway asks of the service: the functions of struct gateway_conf, with the app as their
 * arg. */
#ifndef APISERVER_GATEWAY_HOOKS_H
#define APISERVER_GATEWAY_HOOKS_H

#include "base/str.h"

void *gateway_hook_look(struct strv id, void (*fn)(void *fn_arg), void *fn_arg, void *app);
void gateway_hook_look_cancel(void *handle, void *app);

#endif
