/*
 * Stands in for the C library's name resolution in the static program. libevent refers to it, but
 * envd never resolves a name; the C library's own would bring NSS, which a static program cannot
 * load, and a quarter of the program's size.
 */
#include <netdb.h>
#include <stddef.h>

#include "base/bug.h"

int
getaddrinfo(const char *node UNUSED, const char *service UNUSED,
    const struct addrinfo *hints UNUSED, struct addrinfo **ret UNUSED)
{
	return EAI_FAIL;
}

void
freeaddrinfo(struct addrinfo *list UNUSED)
{
}

const char *
gai_strerror(int code UNUSED)
{
	return "names are not resolved here";
}

struct servent *
getservbyname(const char *name UNUSED, const char *proto UNUSED)
{
	return NULL;
}

struct protoent *
getprotobynumber(int proto UNUSED)
{
	return NULL;
}
