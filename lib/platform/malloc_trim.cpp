// Links if the allocator gives freed memory back to the system when it is asked to.
#include <malloc.h>

int main() { return malloc_trim(0); }
