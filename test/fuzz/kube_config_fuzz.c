/* A kubeconfig, and every text in it as a quantity. Files named inside are looked for in a folder
 * that does not exist. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "kube/kube_config.h"
#include "kube/kube_obj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
quantity(struct strv s)
{
	int64_t milli = -1, units = -1;
	int a = kube_obj_milli(s, &milli), b = kube_obj_units(s, &units);

	BUG_ON((a == 0) != (milli >= 0) || (b == 0) != (units >= 0));
	BUG_ON(a == 0 && b == -1); /* thousandths that fit mean that units fit */
	BUG_ON(a == 0 && (units != milli / 1000 && units != milli / 1000 + 1));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strv text = { (const char *)data, size };
	struct strv rest = text, line;
	struct kube_config *c = NULL;
	struct err e = { .code = ERR_NONE };

	/* An absolute name could be a device. */
	if (size > 0 && memmem(data, size, ": /", 3) == NULL &&
	    memmem(data, size, "\"/", 2) == NULL && memmem(data, size, "'/", 2) == NULL) {
		if (kube_config_parse(text, "/nonexistent", &c, &e) == 0)
			BUG_ON(c->server == NULL);
		else
			BUG_ON(e.code == ERR_NONE || c != NULL);
		kube_config_free(c);
	}
	while (rest.n > 0) {
		line = strv_cut(rest, ' ', &rest);
		quantity(line);
	}
	return 0;
}
