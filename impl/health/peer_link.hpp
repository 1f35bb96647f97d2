#pragma once
// Connections between ranks of different hosts: each rank has one to rank 0, which reads the rows of all.
// Ranks that share memory with rank 0 need none; a job on one host opens no socket.
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/health/host_board.hpp"
#include "impl/health/peer_rules.hpp"

namespace assay::impl {

class PeerLink {
 public:
  /// A word that only this job's ranks know: a connection that does not begin with it is closed.
  using Token = std::array<char, 16>;

  /// Collective. `near`: whether this rank shares a board with rank 0. Errors: AgreedError(usage) where a
  /// rank cannot reach rank 0 at any of its addresses.
  PeerLink(Communicator& communicator, bool near);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  /// Sends this rank's row to its reader, and reads what has come; waits for that, at most.
  void turn(const RowView& mine, int milliseconds);
  /// The rows received: on rank 0 those of every rank of another host, elsewhere that of rank 0.
  const std::map<int, SeenRank>& seen() const { return seen_; }

  void send(const Verdict& verdict);
  /// The verdict of another host, once.
  std::optional<Verdict> received();
  /// Sends what waits, as far as the others take it in that time.
  void flush(int milliseconds);

 private:
  struct Peer;
  std::string listen();
  void accept_all(int wanted);
  std::string connect(const std::string& addresses, int rank);
  void take_new();
  void read(Peer& peer);
  void interpret(Peer& peer);
  void write(Peer& peer);
  void close_peer(Peer& peer);
  void poll_once(int milliseconds);

  bool hub_ = false;
  int rank_ = 0;
  int listener_ = -1;
  Token token_{};
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<int, SeenRank> seen_;
  std::optional<Verdict> received_;
};

}  // namespace assay::impl
