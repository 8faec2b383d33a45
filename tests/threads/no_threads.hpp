// Makes it impossible to start threads.
#pragma once

#include <cstddef>

#if defined(__GLIBC__)

#include <pthread.h>

namespace rondo::test {

/// During its lifetime no thread can be started, because its stack would be larger than the address space.
class no_threads {
 public:
  no_threads() {
    pthread_getattr_default_np(&usual_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~no_threads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }
  no_threads(const no_threads&) = delete;
  no_threads& operator=(const no_threads&) = delete;

 private:
  pthread_attr_t usual_;
};

}  // namespace rondo::test

#endif
