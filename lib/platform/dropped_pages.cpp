// Pages that read as zero after they are given back. Only Linux gives this call that meaning.
#include <sys/mman.h>
#include <unistd.h>
#ifndef __linux__
#error
#endif

int main() { return madvise(nullptr, static_cast<unsigned long>(sysconf(_SC_PAGESIZE)), MADV_DONTNEED); }
