#pragma once
// TCP sockets that wait for connections.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace assay::impl {

/// A socket that listens at `place` and closes on exec; with port 0 the system chooses one. `again`: the port
/// may be one that was closed a moment ago (SO_REUSEADDR), which port 0 must not be. Below 0: -errno.
inline int listening_at(const sockaddr* place, socklen_t size, bool again) {
  const int descriptor = socket(place->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (descriptor < 0) return -errno;
  if (again) setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(descriptor, place, size) == 0 && listen(descriptor, SOMAXCONN) == 0) return descriptor;
  const int reason = errno;
  close(descriptor);
  return -reason;
}

}  // namespace assay::impl
