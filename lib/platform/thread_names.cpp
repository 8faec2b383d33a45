// Names of at most 15 characters, for any thread.
#include <pthread.h>
#ifndef __linux__
#error
#endif

int main() { return pthread_setname_np(pthread_self(), "name"); }
