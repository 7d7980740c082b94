/* Random UUIDs (version 4) from libuuid; apart from rand.c so that envd does not link it. */
#include <uuid/uuid.h>

#include "rand.h"

void
rand_uuid(char out[UUID_TEXT])
{
	uuid_t id;

	uuid_generate_random(id);
	uuid_unparse_lower(id, out);
}
