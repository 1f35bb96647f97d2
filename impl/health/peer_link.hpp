#pragma once
// How ranks of different hosts see each other: each has a connection to rank 0, which sees all of them. Ranks
// that share memory with rank 0 need none; a job on one host opens no socket.
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
  /// A word that only this job's ranks know: who does not begin with it is not listened to.
  using Token = std::array<char, 16>;

  /// Collective. `near`: whether this rank shares a board with rank 0. Errors: AgreedError(usage) where a
  /// rank cannot reach rank 0 at any of its addresses.
  PeerLink(Communicator& communicator, bool near);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  /// Sends this rank's row to its reader, and reads what has come; waits for that, at most.
  void turn(const RowView& mine, int milliseconds);
  /// What came of the other end: on rank 0, of every rank of another host; there, of rank 0.
  const std::map<int, SeenRank>& seen() const { return seen_; }

  void send(const Verdict& verdict);
  /// What another host has said, once.
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
