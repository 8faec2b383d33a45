// nginx with a configuration of the tests' own, in a temporary folder and on a free port of 127.0.0.1. It ends with the
// test program, however that ends.
#pragma once

#include <string>

#include <sys/types.h>

#include "cache_refresh/temporary_folder.hpp"

namespace cache_refresh_test {

class nginx_server {
 public:
  // False, and one line says why: nginx is not installed.
  static bool installed();

  // `locations`: what stands in its server { … }. ROOT is the folder "www", which is empty. To be made by the main
  // thread.
  explicit nginx_server(std::string locations);
  ~nginx_server();
  nginx_server(const nginx_server&) = delete;
  nginx_server& operator=(const nginx_server&) = delete;

  std::string url(const std::string& path) const;
  void write(const std::string& name, const std::string& text) const;
  void remove(const std::string& name) const;

  // So many requests in its log whose line contains this. The line: status, method, address, condition.
  std::size_t requests(const std::string& part) const;

  void kill();   // with SIGKILL
  void start();  // returns when it takes connections
  // It neither answers nor closes connections, but the kernel takes new ones.
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
