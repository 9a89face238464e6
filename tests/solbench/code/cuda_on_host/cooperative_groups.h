// A cluster whose blocks share one copy of shared memory: every block's address is the same.
#pragma once

#include "cuda_runtime.h"

namespace cooperative_groups {

struct Cluster {
  void barrier_arrive() const {}
  void barrier_wait() const { on_host::yield(on_host::At::CLUSTER); }
  void sync() const { barrier_wait(); }
  template <class T>
  T* map_shared_rank(T* address, int) const {
    return address;
  }
};

inline Cluster this_cluster() { return {}; }

}  // namespace cooperative_groups
