// nginx with a configuration for the tests, in a temporary folder and on a free port of 127.0.0.1. It ends when the
// test program ends, however that happens.
#pragma once

#include <string>

#include <sys/types.h>

#include "cache_refresh/temporary_folder.hpp"

namespace cache_refresh_test {

class nginx_server {
 public:
  // Returns false, and prints one line that says why, if nginx is not installed.
  static bool installed();

  // `locations` is the content of its server { … }. ROOT stands for the folder "www", which is empty. Must be created
  // by the main thread.
  explicit nginx_server(std::string locations);
  ~nginx_server();
  nginx_server(const nginx_server&) = delete;
  nginx_server& operator=(const nginx_server&) = delete;

  std::string url(const std::string& path) const;
  void write(const std::string& name, const std::string& text) const;
  void remove(const std::string& name) const;

  // The number of requests in its log whose lines contain `part`. A line has status, method, address and condition.
  std::size_t requests(const std::string& part) const;

  void kill();   // with SIGKILL
  void start();  // returns when it accepts connections
  // Makes it neither answer nor close connections, while the kernel still accepts new ones.
  void hang();
  void go_on();

 private:
  bool run();

  temporary_folder folder_;
  std::string locations_;
  int port_ = 0;
  pid_t process_ = 0;
};

}  // namespace cache_refresh_test
