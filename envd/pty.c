/* See pty.h. The slave is opened through the master (TIOCGPTPEER), so no /dev/pts path is needed;
 * kernels and sandboxes without that ioctl get the path. */
#include "envd/pty.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SIZE_MAX_SHOWN 65535u

static int
open_slave(int master)
{
	int flags = O_RDWR | O_NOCTTY | O_CLOEXEC, fd, unlock = 0;
	unsigned n;
	char path[32];

	if (ioctl(master, TIOCSPTLCK, &unlock) == -1)
		return -1;
	fd = ioctl(master, TIOCGPTPEER, flags);
	if (fd != -1)
		return fd;
	if (ioctl(master, TIOCGPTN, &n) == -1)
		return -1;
	snprintf(path, sizeof(path), "/dev/pts/%u", n);
	return open(path, flags);
}

int
pty_open(const struct user *u, uint32_t cols, uint32_t rows, int *master, int *slave, struct err *e)
{
	int m = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), s;

	if (m == -1)
		return err_errno(e, ERR_IO, "open /dev/ptmx");
	s = open_slave(m);
	if (s == -1) {
		err_errno(e, ERR_IO, "open terminal");
		close(m);
		return -1;
	}
	if (pty_resize(m, cols, rows, e) == -1) {
		close(m);
		close(s);
		return -1;
	}
	(void)!fchown(s, u->uid, (gid_t)-1);
	*master = m;
	*slave = s;
	return 0;
}

int
pty_resize(int master, uint32_t cols, uint32_t rows, struct err *e)
{
	struct winsize ws = {
		.ws_col = (unsigned short)(cols > SIZE_MAX_SHOWN ? SIZE_MAX_SHOWN : cols),
		.ws_row = (unsigned short)(rows > SIZE_MAX_SHOWN ? SIZE_MAX_SHOWN : rows),
	};

	if (ioctl(master, TIOCSWINSZ, &ws) == -1)
		return err_errno(e, ERR_IO, "set terminal size");
	return 0;
}
