// A function that is called in a child created by fork().
#include <pthread.h>
#include <unistd.h>

int main() { return pthread_atfork(nullptr, nullptr, nullptr) + (fork() == 0); }
