/* Letting go of start-up memory: it is less afterwards, and everything still works. */
#include "t.h"
#include "base/trim.h"

static long
rss_kb(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kb = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	fclose(f);
	return kb;
}

TEST(file_pages_go_and_come_back)
{
	long before = rss_kb();
	char *text = xstrdup("still here");

	assert_true(trim_memory() > 0);
	assert_true(rss_kb() < before);
	assert_string_equal(text, "still here");
	assert_true(trim_memory() > 0); /* twice does no harm */
	xfree(text);
}

T_MAIN(T(file_pages_go_and_come_back))
