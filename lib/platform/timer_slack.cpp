// Setting how late the kernel may wake a thread.
#include <sys/prctl.h>

int main() { return prctl(PR_SET_TIMERSLACK, 1UL); }
