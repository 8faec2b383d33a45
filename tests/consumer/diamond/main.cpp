#include <iostream>
#include <string>

#include <rondo/manual_timer.hpp>

void left(rondo::scheduler& time, std::string& said);
void right(rondo::scheduler& time, std::string& said);

int main() {
  std::string said;
  rondo::manual_timer time;
  right(time, said);
  left(time, said);
  time.advance(std::chrono::milliseconds(2));
  std::cout << said << '\n';
  return said == "left right " ? 0 : 1;
}
