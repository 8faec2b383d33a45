// What nearly every test includes, read by the compiler once for each suite. Each file includes what it uses all the
// same: one of CI's builds is made without this (-Db_pch=false).
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rondo/rondo.hpp>
